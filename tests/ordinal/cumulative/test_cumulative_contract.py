"""CumulativeLink keeps the contract of ordinal estimators and of scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar

from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401
from contracts.sklearn_contract import expected_failures
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.ordinal import CumulativeLink


class TestCumulativeLinkContract(OrdinalContract):
    estimators: ClassVar = [
        CumulativeLink(),
        CumulativeLink("probit"),
        CumulativeLink("cloglog", alpha=0.1),
    ]


@parametrize_with_checks([CumulativeLink()], expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)
