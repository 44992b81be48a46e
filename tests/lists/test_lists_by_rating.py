"""Lists of rating models against a twin in pandas, and what all models of lists have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.naive_lists import list_by_rating

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.evaluation.metrics.measure_types import graded
from ordrec.lists.best import rank_gains
from ordrec.lists.listing import similarity_by_raters
from ordrec.recommend import (
    EASE,
    BiasModel,
    ChoiceMixture,
    Explanation,
    ImplicitALS,
    OrdinalFactors,
    Popularity,
    RatingHistogram,
    RatingPredictor,
    Recommender,
    fit_scan,
    make_model,
    recommend_all,
)

EVERYTHING = synthetic_ratings(25, 18, n_ratings=200, seed=6)
RATINGS = EVERYTHING.select(EVERYTHING.items != 5)  # an item of which only the id is known
IDS = RATINGS.item_ids.tolist()
FACTORS = OrdinalFactors(n_factors=2, pattern=2, max_iter=3)
MODELS: dict[str, Any] = {
    "factors": FACTORS,
    "predictor": RatingPredictor("fast", learn="defaults"),
    "recommender of factors": Recommender(Popularity(), FACTORS),
    "recommender of a histogram": Recommender(Popularity(), RatingHistogram()),
}
FITTED = {name: model.fit(RATINGS) for name, model in MODELS.items()}
some_items = st.none() | st.lists(st.sampled_from(IDS), min_size=1, max_size=10, unique=True)


@pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)
@given(data=st.data())
def test_lists_are_those_of_the_twin(model, data) -> None:
    user = data.draw(st.sampled_from([*RATINGS.user_ids.tolist(), -1]))
    by = data.draw(st.sampled_from(["expected", "p_at_least", "lower_quantile"]))
    candidates = data.draw(some_items)
    options = {
        "exclude": data.draw(some_items),
        "only": data.draw(some_items),
        "include_rated": data.draw(st.booleans()),
    }
    n = data.draw(st.integers(1, 20))
    chosen = "all" if candidates is None else candidates
    listed = model.recommend(user, n, by=by, candidates=chosen, **options)
    expected = list_by_rating(model, RATINGS, user, n, by, candidates=candidates, **options)
    pd.testing.assert_frame_equal(listed, expected, check_dtype=False, atol=1e-9)
    assert listed.attrs["ordered_by"] == by


@pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)
def test_lists_for_all_are_those_of_each(model, monkeypatch) -> None:
    monkeypatch.setattr("ordrec.lists.listing.CELLS_AT_ONCE", 18 * 5 * 4)  # blocks of 4 users
    lists = recommend_all(model, 3, exclude=IDS[:2], engine="serial")
    assert lists["user"].is_monotonic_increasing
    for user in RATINGS.user_ids:  # some have rated nearly everything
        rows = lists[lists["user"] == user]
        own = model.recommend(user, 3, exclude=IDS[:2])
        assert rows["item"].tolist() == own["item"].tolist()
        np.testing.assert_allclose(rows["score"], own["score"], rtol=1e-6)


@pytest.mark.parametrize(
    "name", ["ease", "als", "choice", "implicit-als", "factors", "recommender"]
)
def test_a_history_is_item_codes_and_levels_by_the_id_of_a_user(name: str) -> None:
    small = {
        "recommender": {"choice": EASE(20.0), "rating": BiasModel()},
        "factors": {"n_factors": 2},
    }
    model = make_model(name, **small.get(name, {"n_factors": 2} if name != "ease" else {}))
    model.fit(RATINGS)
    for user in RATINGS.user_ids[:4]:
        codes, levels = model.history_of(user)
        own = RATINGS.of_user(user).set_index("item")["rating"]
        found = dict(zip(RATINGS.item_ids[codes], RATINGS.scale.values[levels], strict=True))
        assert found == own.to_dict()
    assert [part.size for part in model.history_of(-1)] == [0, 0]


def test_a_model_without_its_training_ratings_lists_what_was_rated(tmp_path) -> None:
    RATINGS.to_partitions(tmp_path / "parts", rows_per_part=60)
    scan = Ratings.scan(tmp_path / "parts")
    models = [
        fit_scan(OrdinalFactors(n_factors=2, max_iter=3), scan),
        FITTED["factors"].without_users(),
    ]
    rated = set(RATINGS.item_ids[RATINGS.item_counts > 0])
    for model in models:
        assert set(model.recommend(-1, 100)["item"]) == rated
        newer = model.update(-1, IDS[4], 5.0)
        assert set(newer.recommend(-1, 100)["item"]) == rated - {IDS[4]}


@pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)
def test_explanations_are_of_one_class(model) -> None:
    why = model.explain(RATINGS.user_ids[3], IDS[4])
    assert type(why) is Explanation
    assert (why.user, why.item) == (RATINGS.user_ids[3], IDS[4])
    assert why.table["contribution"].sum() == pytest.approx(why.expected)
    assert (why.pick is None) == (why.p_pick is None) == (not isinstance(model, Recommender))
    assert ("why" in why.largest(3)) == isinstance(model, Recommender)


@pytest.mark.parametrize(
    ("scale", "liked_from"),
    [
        (Scale.regular(1, 5), 4.0),
        (Scale.regular(0.5, 5, 0.5), 4.0),
        (Scale.regular(1, 10), 8.0),
        (Scale([0, 1]), 1.0),
        (Scale([1, 2, 3]), 3.0),
    ],
)
def test_liked_means_the_same_in_lists_metrics_and_recommenders(scale, liked_from: float) -> None:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((12, 10)) < 0.7)
    values = scale.values[rng.integers(0, scale.n_ranks, users.size)]
    frame = pd.DataFrame({"user": users, "item": items, "rating": values})
    ratings = Ratings.from_frame(frame, scale=scale)
    assert scale.liked_from == liked_from
    model = Recommender(Popularity(), RatingHistogram()).fit(ratings)
    assert model.like_ == liked_from
    assert (graded(ratings, "liked", None) == (ratings.values >= liked_from)).all()
    by_default = model.recommend(0, 5, by="p_at_least")
    given = model.recommend(0, 5, by="p_at_least", at_least=liked_from)
    pd.testing.assert_frame_equal(by_default, given)
    whole = model.recommend(0, 5).set_index("item")["p_like"]
    np.testing.assert_allclose(by_default["score"], whole[by_default["item"]])


def test_the_preset_of_a_recommender_is_that_of_its_rating_predictor() -> None:
    assert Recommender()._new_rating_model().preset == "auto"
    assert RatingPredictor().preset == "auto"


def test_the_mixture_scales_users_and_ridges_which_published_ease_does_not() -> None:
    published, mixed = EASE(), ChoiceMixture(n_factors=2).fit(RATINGS).ease_
    assert (published.user_power, published.item_power) == (0.0, 0.0)
    assert (mixed.user_power, mixed.item_power) == (0.5, 0.25)


@pytest.mark.parametrize("kind", [EASE, ImplicitALS, ChoiceMixture, Recommender])
def test_search_spaces_name_parameters(kind: Any) -> None:
    assert kind.search_space.keys() <= kind().get_params(deep=False).keys()
    for values in kind.search_space.values():
        if isinstance(values, tuple):
            assert values[0] < values[1]
            assert values[2:] in ((), ("log",))


def test_gains_double_from_rank_to_rank_and_are_bounded_on_fine_scales() -> None:
    assert rank_gains(10).tolist() == [2.0**k - 1 for k in range(1, 11)]
    for n_ranks in (11, 20, 60, 1000):
        gains = rank_gains(n_ranks)
        assert gains[-1] == pytest.approx(1023)
        assert (np.diff(gains) > 0).all()


def test_items_without_ratings_are_similar_to_nothing() -> None:
    frame = pd.DataFrame({"user": [0, 0, 1, 1, 2], "item": [0, 1, 0, 1, 2], "rating": [5] * 5})
    ratings = Ratings.from_frame(frame, scale=range(1, 6))
    wider = ratings._replaced(item_ids=pd.Index([0, 1, 2, 3, 4]))
    found = np.array([similarity_by_raters(wider, code) for code in range(5)])
    assert found[0, 1] > 0.3
    assert not found[3:].any()
    assert not found[:, 3:].any()
    np.testing.assert_allclose(found, found.T)
