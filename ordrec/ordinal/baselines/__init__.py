"""The baselines that the papers compare with, mostly thin layers over scikit-learn."""

from __future__ import annotations

from ordrec.ordinal.baselines.cssvc import CSSVC
from ordrec.ordinal.baselines.gpr import GPRanks
from ordrec.ordinal.baselines.opbe import OPBE
from ordrec.ordinal.baselines.prank import PRank
from ordrec.ordinal.baselines.redsvm import REDSVM
from ordrec.ordinal.baselines.svc import SVC1V1, SVC1VA
from ordrec.ordinal.baselines.svmop import SVMOP
from ordrec.ordinal.baselines.svr import SVRanks

__all__ = ["CSSVC", "OPBE", "REDSVM", "SVC1V1", "SVC1VA", "SVMOP", "GPRanks", "PRank", "SVRanks"]
