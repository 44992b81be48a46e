"""The campaign tries as many cases as stated, and detects the defects it is meant to detect."""

from __future__ import annotations

import pytest
from fuzz.campaign import CASES, answered, explore
from hypothesis import strategies as st

from ordrec.errors import DataError


def test_the_campaign_is_large_enough():
    assert sum(default for default, _ in CASES.values()) >= 2_000
    assert sum(long for _, long in CASES.values()) >= 100_000


def refuse(message):
    raise DataError(message)


def test_only_one_line_that_names_the_place_counts_as_an_answer():
    assert answered(lambda: 7) == 7
    assert answered(lambda: refuse("f.csv, row 3: no user: drop it"), says="f.csv") is None
    for message in ("bad", "two\nlines of a complaint", "g.csv, row 3: no user: drop it"):
        with pytest.raises(AssertionError):
            answered(lambda message=message: refuse(message), says="f.csv")
    with pytest.raises(ZeroDivisionError):
        answered(lambda: 1 / 0)


def test_a_crash_is_found():
    def check(number):
        assert number < 50

    with pytest.raises(AssertionError):
        explore("scales", "default", check, st.integers(0, 100))
