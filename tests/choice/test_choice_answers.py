"""What every choice model and recommender answers, with its parameters changed, is as recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.invented_by_taste import invented_by_taste
from support.recorded_answers import compare_with_record, recorded_names
from support.small_pieces import make_pieces_small

from ordrec.data import Ratings
from ordrec.recommend import (
    EASE,
    ChoiceMixture,
    ImplicitALS,
    OrderedChoice,
    OrdinalFactors,
    Popularity,
    RatingPredictor,
    Recommender,
)

RECORD = Path(__file__).with_suffix(".json")
factors = partial(OrdinalFactors, n_factors=3, pattern=4, max_iter=6)
MODELS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "popularity": (Popularity, ["plain", "events"]),
    "ease": (EASE, ["plain", "whole", "events"]),
    "ease powers": (
        partial(EASE, 20.0, user_power=0.3, item_power=0.4, min_ratings=2, n_nearest=3), ["plain"],
    ),
    "ease few": (partial(EASE, min_ratings=12), ["plain"]),
    "als": (partial(ImplicitALS, 4), ["plain", "events"]),
    "als heavy": (partial(ImplicitALS, 3, regularization=0.2, unseen_weight=0.1), ["plain"]),
    "mixture": (ChoiceMixture, ["plain", "dated", "whole", "events"]),
    "mixture given": (
        partial(ChoiceMixture, 30.0, 4, als_regularization=0.02, mix=0.4, cold=0.3), ["whole"],
    ),
    "mixture latest": (partial(ChoiceMixture, future="latest", horizon=0.4), ["dated"]),
    "mixture next": (partial(ChoiceMixture, future="next"), ["dated"]),
    "ordered": (OrderedChoice, ["dated", "whole"]),
    "ordered latest": (partial(OrderedChoice, future="latest", n_factors=3), ["dated"]),
    "recommender": (partial(Recommender, rating=RatingPredictor("fast")), ["plain", "whole"]),
    "recommender of factors": (
        partial(Recommender, EASE(), factors(), taste=1.5, like=4, n_candidates=6), ["dated"],
    ),
    "recommender of picks": (partial(Recommender, rating=None), ["plain"]),
}  # fmt: skip
WAYS = [(name, data) for name, (_, kinds) in MODELS.items() for data in kinds]
USERS = [100, 103, 117, 999]


def with_events() -> Ratings:
    """Ratings, and views of some of the other items."""
    ratings = invented_by_taste()
    rated = set(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    views = [(u, i) for u in range(26) for i in range(18) if (u + i) % 3 and (u, i) not in rated]
    users, items = np.array(views).T
    frame = pd.DataFrame({"user": users + 100, "item": ratings.item_ids.take(items)})
    return ratings.with_events(frame.assign(kind="view"))


RATINGS = {
    "plain": invented_by_taste(),
    "dated": invented_by_taste(dated=True),
    "whole": invented_by_taste(dated=True, described=True),
    "events": with_events(),
}


def answers(model: Any) -> dict[str, Any]:
    """Scores of all items, lists, reasons, likeness, and what is said after new ratings."""
    new = pd.DataFrame({"user": "new", "item": ["i01", "i04", "i09"], "rating": [5, 1, 4]})
    when = () if model.known_ratings().timestamps is None else (1_180_000_000,)
    said: dict[str, Any] = {
        "scores": model.scores_block(USERS),
        "list": model.recommend(103, 5),
        "list for a stranger": model.recommend("nobody", 5),
        "updated": model.update(103, "i16", 5, *when).scores_block([103]),
    }
    if hasattr(model, "reasons"):
        said["reasons"] = model.reasons(103, "i05")
    if hasattr(model, "similar_items"):
        said["similar"] = model.similar_items("i05", 4)
    if hasattr(model, "predict") and model.rating is not None:
        said["ratings"] = model.predict(USERS, ["i00", "i03", "i05", "i16"])
        said["explained"] = model.explain(103, "i05").table
    folded = model.fold_in(Ratings.from_frame(new, scale=model.scale_))
    return said | {"folded in": folded.scores_block(["new"])}


@pytest.mark.parametrize(("name", "data"), WAYS)
def test_recorded_answers_of_choice_models(name: str, data: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = answers(MODELS[name][0]().fit(RATINGS[data]))
    compare_with_record(RECORD, f"{name}, {data}", said, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("name", "data"), WAYS)
def test_recorded_answers_do_not_depend_on_the_size_of_pieces(monkeypatch, name, data) -> None:
    make_pieces_small(monkeypatch)
    test_recorded_answers_of_choice_models(name, data)


def test_every_record_has_a_test() -> None:
    assert recorded_names(RECORD) == {f"{name}, {data}" for name, data in WAYS}
