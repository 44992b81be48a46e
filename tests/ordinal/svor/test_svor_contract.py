"""The support vector estimators keep the contract of ordinal estimators."""

from __future__ import annotations

from typing import ClassVar

from contracts.ordinal_contract import OrdinalContract, pytest_generate_tests  # noqa: F401

from ordrec.ordinal import SVOREX, SVORIM, SVORSLA


class TestSVORContract(OrdinalContract):
    estimators: ClassVar = [
        SVORIM(),
        SVOREX(C=3.0),
        SVORSLA(),
        SVORIM(C=3.0, n_landmarks=200, random_state=0),
    ]
