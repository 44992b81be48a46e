"""Models that predict ratings, and the face they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.recommend.adapters import (
        ImplicitModel,
        MyFMModel,
        SklearnModel,
        SurpriseModel,
    )
    from ordrec.recommend.baselines import BiasModel, GlobalMean, RatingHistogram
    from ordrec.recommend.candidates import ALSRanking
    from ordrec.recommend.explain import Explanation
    from ordrec.recommend.factors import OrdinalFactors
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
    from ordrec.recommend.per_user import PerUserPredictor
    from ordrec.recommend.predictor import RatingPredictor
    from ordrec.recommend.relevance import RelevanceRanker
    from ordrec.recommend.scan_predictions import HeldOut, ScanPredictions, predict_scan
    from ordrec.recommend.thresholds import PersonalThresholds

__all__ = [
    "ALSRanking",
    "BiasModel",
    "Explanation",
    "FoldInModel",
    "GlobalMean",
    "HeldOut",
    "ImplicitModel",
    "ItemKNN",
    "MyFMModel",
    "OrdinalFactors",
    "PerUserPredictor",
    "PersonalThresholds",
    "ProbabilityModel",
    "RankingModel",
    "RatingHistogram",
    "RatingModel",
    "RatingPredictor",
    "RelevanceRanker",
    "ScanPredictions",
    "SklearnModel",
    "SurpriseModel",
    "make_model",
    "model_names",
    "predict_scan",
    "register_model",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "adapters": "ImplicitModel MyFMModel SklearnModel SurpriseModel",
        "baselines": "BiasModel GlobalMean RatingHistogram",
        "candidates": "ALSRanking",
        "explain": "Explanation",
        "factors": "OrdinalFactors",
        "models": "FoldInModel ProbabilityModel RankingModel RatingModel make_model model_names "
        "register_model",
        "neighbours": "ItemKNN",
        "per_user": "PerUserPredictor",
        "relevance": "RelevanceRanker",
        "scan_predictions": "HeldOut ScanPredictions predict_scan",
        "predictor": "RatingPredictor",
        "thresholds": "PersonalThresholds",
    },
)
