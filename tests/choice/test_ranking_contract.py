"""Every model that only ranks items keeps the contract of ranking models."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from contracts.ranking_contract import RankingContract, pytest_generate_tests  # noqa: F401

from ordrec.recommend import make_model

RANKING_MODELS = {
    "popularity": partial(make_model, "popularity"),
    "ease": partial(make_model, "ease"),
    "als": partial(make_model, "als", n_factors=3),
    "implicit-als": partial(make_model, "implicit-als", n_factors=3),
    "choice": partial(make_model, "choice", n_factors=3),
    "ordered": partial(make_model, "ordered", n_factors=3),
    "implicit-bpr": partial(make_model, "implicit-bpr", n_factors=3, n_iter=5),
}


class TestRankingModels(RankingContract):
    models: ClassVar = RANKING_MODELS
    drawn: ClassVar = {"implicit-als", "implicit-bpr"}
    by_code: ClassVar = drawn | {"als", "choice", "ordered"}
