"""OrdinalLogistic keeps the contract of ordinal estimators."""

from __future__ import annotations

from typing import ClassVar

from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401

from ordrec.ordinal.logistic import OrdinalLogistic


class TestOrdinalLogisticContract(OrdinalContract):
    estimators: ClassVar = [
        OrdinalLogistic(),
        OrdinalLogistic("immediate"),
        OrdinalLogistic(loss="generalised", sharpness=20.0),
        OrdinalLogistic("immediate", kernel="rbf"),
    ]
