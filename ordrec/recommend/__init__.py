"""Models that predict ratings, and the face they share.

Names are loaded when first used, so that importing the package is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordrec.recommend.baselines import BiasModel, GlobalMean, RatingHistogram
    from ordrec.recommend.candidates import ALSRanking
    from ordrec.recommend.models import (
        FoldInModel,
        ProbabilityModel,
        RankingModel,
        RatingModel,
        make_model,
        model_names,
        register_model,
    )
    from ordrec.recommend.neighbours import ItemKNN

__all__ = [
    "ALSRanking",
    "BiasModel",
    "FoldInModel",
    "GlobalMean",
    "ItemKNN",
    "ProbabilityModel",
    "RankingModel",
    "RatingHistogram",
    "RatingModel",
    "make_model",
    "model_names",
    "register_model",
]

_HOME = {
    "ALSRanking": "candidates",
    "BiasModel": "baselines",
    "FoldInModel": "models",
    "GlobalMean": "baselines",
    "ItemKNN": "neighbours",
    "ProbabilityModel": "models",
    "RankingModel": "models",
    "RatingHistogram": "baselines",
    "RatingModel": "models",
    "make_model": "models",
    "model_names": "models",
    "register_model": "models",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ordrec.recommend' has no attribute {name!r}")
    return getattr(import_module(f"ordrec.recommend.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
