"""GPOR keeps the contract of ordinal estimators and of scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401
from contracts.sklearn_contract import expected_failures
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.ordinal.gpor import GPOR


class TestGPORContract(OrdinalContract):
    estimators: ClassVar = [
        GPOR(),
        GPOR(inference="ep"),
        GPOR("ard", max_iter=20),
        GPOR(n_landmarks=20, random_state=0),
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [GPOR(max_iter=20), GPOR(inference="ep", max_iter=3)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)
