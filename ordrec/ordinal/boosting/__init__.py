"""Thresholded ensembles: ORBoost and RankBoost-AE (Lin & Li 2006)."""

from ordrec.ordinal.boosting.model import ORBoost, RankBoostAE
from ordrec.ordinal.boosting.perceptron import PerceptronRCD, SigmoidRCD
from ordrec.ordinal.boosting.stump import StumpSearch
from ordrec.ordinal.boosting.tree import TreeSearch

__all__ = ["ORBoost", "PerceptronRCD", "RankBoostAE", "SigmoidRCD", "StumpSearch", "TreeSearch"]
