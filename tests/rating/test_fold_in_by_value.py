"""Whoever is folded in has given what they gave: ratings are read by value, not by rank."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec.choice.base import ChoiceModel
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import DataError
from ordrec.recommend import FoldInModel, OrdinalFactors, make_model

RATINGS = synthetic_ratings(25, 20, n_ratings=260, seed=1)
MODELS = {
    "bias": make_model("bias"),
    "item-knn": make_model("item-knn"),
    "factors": OrdinalFactors(n_factors=2, pattern=2, max_iter=2),
    "ease": make_model("ease"),
    "als": make_model("als", n_factors=2),
    "choice": make_model("choice", n_factors=2),
    "recommender": make_model(
        "recommender", choice=make_model("ease"), rating=OrdinalFactors(n_factors=2, max_iter=2)
    ),
}


def given(values: list[float], **more) -> Ratings:
    frame = pd.DataFrame({"user": 777, "item": RATINGS.item_ids[: len(values)], "rating": values})
    return Ratings.from_frame(frame, **more)


@pytest.mark.parametrize("name", MODELS)
def test_three_four_and_five_are_three_four_and_five(name: str) -> None:
    model = MODELS[name].fit(RATINGS)
    assert isinstance(model, (FoldInModel, ChoiceModel))
    values = [3.0, 4.0, 5.0]
    unscaled = given(values)
    assert unscaled.scale != RATINGS.scale
    users = [777] * RATINGS.n_items
    answers = [
        getattr(model.fold_in(ratings), "predict" if hasattr(model, "predict") else "scores")(
            users, RATINGS.item_ids
        )
        for ratings in (unscaled, given(values, scale=RATINGS.scale))
    ]
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("name", MODELS)
def test_values_off_the_scale_are_refused(name: str) -> None:
    model = MODELS[name].fit(RATINGS)
    for wrong in ([3.0, 3.5, 4.0], [0.0, 1.0, 2.0], [10.0, 20.0, 30.0]):
        with pytest.raises(DataError, match=r"is not on the (declared )?scale"):
            model.fold_in(given(wrong))
    assert 777 not in model.user_ids_
