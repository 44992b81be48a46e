"""Ratings and models that several tests of the ordinal factors share."""

from __future__ import annotations

import pytest
from support.factor_ratings import described_ratings, moody_ratings

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.rating.factors.model import OrdinalFactors


@pytest.fixture(scope="session")
def ratings() -> Ratings:
    return synthetic_ratings(80, 60, n_ratings=2500, noise=0.4, seed=3)


@pytest.fixture(scope="session")
def model(ratings) -> OrdinalFactors:
    return OrdinalFactors(n_factors=4, pattern=6).fit(ratings)


@pytest.fixture(scope="session")
def described() -> Ratings:
    return described_ratings()


@pytest.fixture(scope="session")
def moody() -> Ratings:
    return moody_ratings()


@pytest.fixture(scope="session")
def dated_model(moody) -> OrdinalFactors:
    return OrdinalFactors(n_factors=2, pattern=2, max_iter=8).fit(moody)
