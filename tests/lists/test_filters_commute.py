"""What filters of lists do together: in any order, at once or one after another, and in vain."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.recommend import EASE, OrdinalFactors, Recommender

GROUPS = ["red", "blue", "red|blue", "green"]
PLAIN = synthetic_ratings(40, 30, n_ratings=500, seed=4)
RATINGS = PLAIN.with_side_tables(
    item_table=pd.DataFrame(
        {"item": PLAIN.item_ids, "group": [GROUPS[k % 4] for k in range(PLAIN.n_items)]}
    )
)
ITEMS = list(RATINGS.item_ids)
SOME, OTHERS = ITEMS[3:22], ITEMS[::3]
CAP = {"group": 2}
USERS = [RATINGS.user_ids[0], RATINGS.user_ids[17], "nobody"]
FACTORS = OrdinalFactors(n_factors=2, pattern=2, max_iter=3)
MODELS: dict[str, Any] = {
    "ease": EASE(50.0),
    "factors": FACTORS,
    "recommender": Recommender(EASE(50.0), FACTORS, n_candidates=6),
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param].fit(RATINGS)


def listed(model: Any, user: Any, n: int = 30, **filters: Any) -> list[Any]:
    return list(model.recommend(user, n, **filters)["item"])


@pytest.mark.filterwarnings("ignore:none of the")
@pytest.mark.parametrize("user", USERS)
def test_what_may_be_listed_less_what_must_not_is_what_may(model: Any, user: Any) -> None:
    left = [item for item in SOME if item not in OTHERS]
    both = listed(model, user, only=SOME, exclude=OTHERS)
    assert both == listed(model, user, only=left)
    assert both == listed(model, user, only=SOME[::-1], exclude=[*OTHERS[::-1], *OTHERS])
    assert both == listed(model, user, exclude=[item for item in ITEMS if item not in left])
    assert len(both) <= len(left)
    assert both or user == USERS[1]  # who has rated all that is left


@pytest.mark.filterwarnings("ignore:none of the")
@pytest.mark.parametrize("filters", [{}, {"at_most": CAP}, {"only": SOME, "at_most": CAP}])
def test_a_shorter_list_is_the_beginning_of_a_longer_one(
    model: Any, filters: dict[str, Any]
) -> None:
    """Items have several groups, so that a model which orders few candidates again under caps can
    find others for a longer list, but never fewer than the number that it finds for it."""
    for user in USERS:
        longer = listed(model, user, 6, **filters)
        for n in range(1, 6):
            shorter = listed(model, user, n, **filters)
            assert len(shorter) == min(n, len(longer))
            if not filters or not isinstance(model, Recommender):
                assert shorter == longer[:n]


@pytest.mark.filterwarnings("ignore:none of the")
def test_filters_that_exclude_nothing_change_nothing(model: Any) -> None:
    for user in USERS:
        plain = listed(model, user, 8)
        assert listed(model, user, 8, only=ITEMS) == plain
        assert listed(model, user, 8, exclude=[]) == plain
        assert listed(model, user, 8, at_most={"group": 8}) == plain
        own = list(RATINGS.item_ids[RATINGS.items[RATINGS.users == RATINGS.user_codes([user])[0]]])
        assert listed(model, user, 8, exclude=own) == plain  # they are not listed anyway


def test_pairs_say_of_every_user_what_items_say_of_one(model: Any) -> None:
    known = USERS[:2]
    pairs = pd.DataFrame(
        [(user, item) for user, items in zip(known, (SOME, OTHERS), strict=True) for item in items],
        columns=["user", "item"],
    ).sample(frac=1.0, random_state=0)
    for name in ("only", "exclude"):
        lists = model.recommend_all(5, known, at_most=CAP, **{name: pairs})
        for user, items in zip(known, (SOME, OTHERS), strict=True):
            own = listed(model, user, 5, at_most=CAP, **{name: items})
            assert list(lists.loc[lists["user"] == user, "item"]) == own


def test_an_item_that_is_left_out_moves_the_others_up(model: Any) -> None:
    user = USERS[0]
    whole = listed(model, user)
    scores = model.recommend(user, 30)
    for left_out in whole[:3]:
        rest = model.recommend(user, 30, exclude=[left_out])
        assert list(rest["item"]) == [item for item in whole if item != left_out]
        both = scores.merge(rest, on="item", suffixes=("", "_then"))
        for column in set(scores.columns) & {"score", "expected", "p_at_least"}:
            np.testing.assert_allclose(both[column], both[f"{column}_then"], rtol=1e-9)
