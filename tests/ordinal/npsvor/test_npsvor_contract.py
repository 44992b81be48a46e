"""NPSVOR keeps the contract of ordinal estimators and of scikit-learn."""

from __future__ import annotations

from typing import Any

import pytest
from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.ordinal.npsvor import NPSVOR


class TestNPSVORContract(OrdinalContract):
    estimators = [NPSVOR(), NPSVOR(C1=10, solver="admm", tol=1e-5), NPSVOR(exact_rows=20, C1=3)]  # noqa: RUF012
    absent_ranks_may_win = False


@parametrize_with_checks([NPSVOR(), NPSVOR(kernel="linear")])
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)
