"""Ordinal regression: scikit-learn classifiers for ordered labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.ordinal.boosting.model import ORBoost, RankBoostAE
    from ordrec.ordinal.boosting.perceptron import PerceptronRCD
    from ordrec.ordinal.decisions import decide
    from ordrec.ordinal.gpor.model import GPOR
    from ordrec.ordinal.logistic.model import OrdinalLogistic
    from ordrec.ordinal.svor.model import SVOREX, SVORIM, SVORSLA

__all__ = [
    "GPOR",
    "SVOREX",
    "SVORIM",
    "SVORSLA",
    "ORBoost",
    "OrdinalLogistic",
    "PerceptronRCD",
    "RankBoostAE",
    "decide",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "boosting.model": "ORBoost RankBoostAE",
        "boosting.perceptron": "PerceptronRCD",
        "decisions": "decide",
        "gpor.model": "GPOR",
        "logistic.model": "OrdinalLogistic",
        "svor.model": "SVOREX SVORIM SVORSLA",
    },
)
