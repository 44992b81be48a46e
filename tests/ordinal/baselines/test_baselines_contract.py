"""The baselines keep the contract of ordinal estimators and of scikit-learn."""

from __future__ import annotations

from typing import Any, ClassVar

from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401
from contracts.sklearn_contract import expected_failures
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.ordinal.baselines import (
    CSSVC,
    OPBE,
    REDSVM,
    SVC1V1,
    SVC1VA,
    SVMOP,
    GPRanks,
    PRank,
    SVRanks,
)


class TestNominalContract(OrdinalContract):
    estimators: ClassVar = [
        SVC1V1(C=10, tol=1e-6),
        SVC1VA(C=10, tol=1e-6),
        CSSVC(C=10, tol=1e-6),
        CSSVC(C=10, tol=1e-6, published=True),
    ]
    absent_ranks_may_win = False


class TestOrdinalBaselineContract(OrdinalContract):
    estimators: ClassVar = [
        SVRanks(C=10, tol=1e-6),
        SVRanks(C=10, tol=1e-6, published=True),
        SVMOP(C=10, tol=1e-6),
        REDSVM(C=10, tol=1e-6),
        GPRanks(),
    ]


class TestOPBEContract(OrdinalContract):
    estimators: ClassVar = [OPBE(C=10), OPBE(C=10, published=True)]
    absent_ranks_may_win = False


class TestCalibratedPartitionsContract(OrdinalContract):
    estimators: ClassVar = [SVMOP(C=10, tol=1e-6, published=True)]
    order_of_samples_matters = True  # the folds of its calibration follow it
    tolerance = 0.1


class TestOnlineContract(OrdinalContract):
    estimators: ClassVar = [PRank(random_state=0)]
    order_of_samples_matters = True


@parametrize_with_checks(
    [
        CSSVC(),
        OPBE(),
        REDSVM(),
        SVC1V1(),
        SVC1VA(),
        SVMOP(),
        GPRanks(),
        PRank(),
        SVRanks(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_it(estimator: Any, check: Any) -> None:
    check(estimator)
