"""ORBoost and RankBoostAE keep the contract of ordinal estimators."""

from __future__ import annotations

from typing import ClassVar

from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401

from ordrec.ordinal.boosting import ORBoost, PerceptronRCD, RankBoostAE, SigmoidRCD

SMOOTH, HARD = SigmoidRCD(n_iter=20), PerceptronRCD(n_iter=20)


class TestBoostingContract(OrdinalContract):
    estimators: ClassVar = [
        ORBoost(base=SMOOTH, n_estimators=30, random_state=0),
        ORBoost("immediate", HARD, n_estimators=30, random_state=0),
        ORBoost(base="stump", n_estimators=60),
        ORBoost(base="tree", max_depth=2, n_estimators=30, random_state=0),
        RankBoostAE(base=SMOOTH, n_estimators=30, random_state=0),
    ]
