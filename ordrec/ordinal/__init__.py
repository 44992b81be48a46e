"""Ordinal regression: scikit-learn classifiers for ordered labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.ordinal.baselines import (
        CSSVC,
        OPBE,
        REDSVM,
        SVC1V1,
        SVC1VA,
        SVMOP,
        GPRanks,
        PRank,
        SVRanks,
    )
    from ordrec.ordinal.boosting.model import ORBoost, RankBoostAE
    from ordrec.ordinal.boosting.perceptron import PerceptronRCD, SigmoidRCD
    from ordrec.ordinal.decisions import decide
    from ordrec.ordinal.gpor import GPOR, PooledFit, fit_many
    from ordrec.ordinal.logistic.model import OrdinalLogistic
    from ordrec.ordinal.npsvor.model import NPSVOR
    from ordrec.ordinal.svor.model import SVOREX, SVORIM, SVORSLA
    from ordrec.ordinal.tuning import Tuned, tune

__all__ = [
    "CSSVC",
    "GPOR",
    "NPSVOR",
    "OPBE",
    "REDSVM",
    "SVC1V1",
    "SVC1VA",
    "SVMOP",
    "SVOREX",
    "SVORIM",
    "SVORSLA",
    "GPRanks",
    "ORBoost",
    "OrdinalLogistic",
    "PRank",
    "PerceptronRCD",
    "PooledFit",
    "RankBoostAE",
    "SVRanks",
    "SigmoidRCD",
    "Tuned",
    "decide",
    "fit_many",
    "tune",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "baselines.cssvc": "CSSVC",
        "baselines.gpr": "GPRanks",
        "baselines.opbe": "OPBE",
        "baselines.prank": "PRank",
        "baselines.redsvm": "REDSVM",
        "baselines.svc": "SVC1V1 SVC1VA",
        "baselines.svmop": "SVMOP",
        "baselines.svr": "SVRanks",
        "boosting.model": "ORBoost RankBoostAE",
        "boosting.perceptron": "PerceptronRCD SigmoidRCD",
        "decisions": "decide",
        "gpor": "GPOR PooledFit fit_many",
        "logistic.model": "OrdinalLogistic",
        "npsvor.model": "NPSVOR",
        "svor.model": "SVOREX SVORIM SVORSLA",
        "tuning": "Tuned tune",
    },
)
