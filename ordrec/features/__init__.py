"""What models are made of: rating matrices, biases, imputation, and document vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.features.low_rank import LowRankEM
    from ordrec.features.matrix import Biases, RatingMatrix, damped_biases
    from ordrec.features.mean import MeanImputer
    from ordrec.features.text import DocumentTfidf

__all__ = [
    "Biases",
    "DocumentTfidf",
    "LowRankEM",
    "MeanImputer",
    "RatingMatrix",
    "damped_biases",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "low_rank": "LowRankEM",
        "matrix": "Biases RatingMatrix damped_biases",
        "mean": "MeanImputer",
        "text": "DocumentTfidf",
    },
)
