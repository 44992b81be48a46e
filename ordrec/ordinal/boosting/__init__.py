"""Thresholded ensembles: ORBoost and RankBoost-AE (Lin & Li 2006)."""

from ordrec.ordinal.boosting.model import ORBoost, RankBoostAE, TreeSearch
from ordrec.ordinal.boosting.perceptron import PerceptronRCD, SigmoidRCD
from ordrec.ordinal.boosting.stump import StumpSearch

__all__ = ["ORBoost", "PerceptronRCD", "RankBoostAE", "SigmoidRCD", "StumpSearch", "TreeSearch"]
