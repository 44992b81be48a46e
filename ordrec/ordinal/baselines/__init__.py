"""The baselines that the papers compare with, mostly thin layers over scikit-learn.

Departures
----------
SVR, CSSVC, SVMOP and OPBE have two forms
    The framework in which Wang et al. compare has SVR on targets from 0 to 1, weights |y - k| + 1
    in CSSVC, calibrated probabilities in SVMOP and stretched projections in OPBE.
    ``published=True`` is that form, and all npsvor-* experiments use it; the default is the plain
    one. Effect: on eight small sets and nine partitions NPSVOR was third by MZE and second by MAE
    of ten beside theirs, fourth and second beside the plain ones.
"""

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
