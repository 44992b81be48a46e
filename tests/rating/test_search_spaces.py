"""What a search tries by default is what the model takes."""

from __future__ import annotations

from typing import Any

import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.recommend import (
    BiasModel,
    ItemKNN,
    PersonalThresholds,
    PerUserPredictor,
    ProcessPredictor,
    RatingPredictor,
)

KINDS = [
    BiasModel, ItemKNN, PersonalThresholds, PerUserPredictor, ProcessPredictor, RatingPredictor,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_search_spaces_name_parameters(kind: Any) -> None:
    assert kind.search_space.keys() <= kind().get_params(deep=False).keys()
    for values in kind.search_space.values():
        if isinstance(values, tuple):
            low, high, *how = values
            assert 0 < low < high
            assert how == ["log"]


@pytest.mark.parametrize("kernel", PerUserPredictor.search_space["kernel"])
def test_models_of_users_take_every_kernel_that_is_searched(kernel: str) -> None:
    ratings = synthetic_ratings(12, 15, n_ratings=120, seed=0)
    model = PerUserPredictor(kernel=kernel, min_ratings=5).fit(ratings)
    assert model.models_
