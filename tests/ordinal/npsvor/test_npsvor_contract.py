"""NPSVOR keeps the contract of ordinal estimators and of scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar

from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401
from contracts.sklearn_contract import expected_failures
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.ordinal.npsvor import NPSVOR


class TestNPSVORContract(OrdinalContract):
    estimators: ClassVar = [
        NPSVOR(),
        NPSVOR(C1=10, solver="admm", tol=1e-5),
        NPSVOR(C1=3, n_landmarks=200, random_state=0),
    ]
    absent_ranks_may_win = False


@parametrize_with_checks([NPSVOR()], expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)
