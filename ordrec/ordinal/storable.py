"""The kinds of model files that hold estimators of this package."""

from __future__ import annotations

__all__ = ["storable_kinds"]

_HERE = "ordrec.ordinal"
_HOMES = {
    "svor.model": ("SVOREX", "SVORIM", "SVORSLA"),
    "npsvor.model": ("NPSVOR",),
    "gpor.model": ("GPOR",),
    "logistic.model": ("OrdinalLogistic",),
    "boosting.model": ("ORBoost", "RankBoostAE"),
    "baselines.cssvc": ("CSSVC",),
    "baselines.gpr": ("GPRanks",),
    "baselines.opbe": ("OPBE",),
    "baselines.prank": ("PRank",),
    "baselines.redsvm": ("REDSVM",),
    "baselines.svc": ("SVC1V1", "SVC1VA"),
    "baselines.svmop": ("SVMOP",),
    "baselines.svr": ("SVRanks",),
}


def storable_kinds() -> dict[str, str]:
    """For each kind of model file ``"package.module:Class"``; `RelevanceRanker` wraps one."""
    homes = {kind: f"{_HERE}.{home}:{kind}" for home, kinds in _HOMES.items() for kind in kinds}
    return homes | {"RelevanceRanker": "ordrec.ordinal.relevance:RelevanceRanker"}
