"""What every choice model must do: lists, filters, fold-in, files."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec import load, save
from ordrec.choice.calibration import PickCalibration
from ordrec.choice.cold_start import with_popularity
from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.recommend import EASE, ImplicitALS, Popularity, RankingModel

RATINGS = synthetic_ratings(50, 30, n_ratings=600, seed=3)
MODELS = {
    "popularity": Popularity(),
    "ease": EASE(regularization=20.0, user_power=0.5, item_power=0.25),
    "plain ease": EASE(regularization=20.0, min_ratings=1),
    "als": ImplicitALS(n_factors=4),
}
FITTED = {name: model.fit(RATINGS) for name, model in MODELS.items()}
every_model = pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)


@every_model
def test_is_a_ranking_model(model) -> None:
    assert isinstance(model, RankingModel)


@every_model
def test_single_scores_and_lists_equal_those_of_blocks(model) -> None:
    users = [*RATINGS.user_ids, "nobody"]
    block = model.scores_block(users)
    for row, user in enumerate(users):
        single = model.scores([user] * RATINGS.n_items, RATINGS.item_ids)
        np.testing.assert_allclose(single, block[row], rtol=1e-6, atol=1e-7)
    pairs = np.random.default_rng(0).permutation(len(users) * RATINGS.n_items)[:300]
    u, i = np.divmod(pairs, RATINGS.n_items)
    asked = model.scores([users[k] for k in u], RATINGS.item_ids.take(i))
    np.testing.assert_allclose(asked, block[u, i], rtol=1e-6, atol=1e-7)


@every_model
def test_a_list_is_the_order_of_the_scores_without_what_was_rated(model) -> None:
    for user in RATINGS.user_ids[:10]:
        listed = model.recommend(user, n=7)
        scores = pd.Series(model.scores_block([user])[0], index=RATINGS.item_ids)
        scores = scores.drop(RATINGS.of_user(user)["item"])
        expected = scores.sort_values(ascending=False, kind="stable").index[:7]
        assert listed["item"].tolist() == expected.tolist()
        assert listed["score"].is_monotonic_decreasing


@given(data=st.data())
@every_model
def test_nothing_excluded_or_rated_is_ever_listed(model, data) -> None:
    ids = RATINGS.item_ids.tolist()
    user = data.draw(st.sampled_from([*RATINGS.user_ids.tolist(), "nobody"]))
    exclude = data.draw(st.none() | st.lists(st.sampled_from([*ids, "no item"]), max_size=12))
    only = data.draw(st.none() | st.lists(st.sampled_from(ids), max_size=12))
    rated_too = data.draw(st.booleans())
    n = data.draw(st.integers(1, 40))
    listed = model.recommend(user, n, exclude=exclude, only=only, include_rated=rated_too)
    rated = set() if user == "nobody" else set(RATINGS.of_user(user)["item"])
    allowed = set(ids if only is None else only) - set(exclude or ())
    if not rated_too:
        allowed -= rated
    found = listed["item"].tolist()
    assert len(set(found)) == len(found) == min(n, len(allowed))
    assert set(found) <= allowed


@every_model
def test_fold_in_of_a_training_history_gives_the_scores_of_training(model) -> None:
    mine = RATINGS.select(RATINGS.users == 7)
    renamed = Ratings.from_frame(mine.to_frame().assign(user="new"), scale=RATINGS.scale)
    folded = model.fold_in(renamed)
    again = model.fold_in(mine)
    np.testing.assert_allclose(
        folded.scores_block(["new"])[0],
        model.scores_block([RATINGS.user_ids[7]])[0],
        atol=1e-6 if isinstance(model, ImplicitALS) else 1e-8,  # single precision
    )
    np.testing.assert_allclose(
        folded.scores_block(["new"]), again.scores_block([RATINGS.user_ids[7]]), atol=1e-8
    )
    others = RATINGS.user_ids[:7]
    assert np.array_equal(folded.scores_block(others), model.scores_block(others))
    assert "new" not in model.user_ids_
    assert not set(folded.recommend("new", 30)["item"]) & set(mine.to_frame()["item"])


def test_fold_in_replaces_histories_and_adds_new_ones() -> None:
    model = FITTED["popularity"]
    known = [RATINGS.user_ids[k] for k in (0, 7, 8, 49)]
    users = [*known, "new", "newer"]
    frame = pd.DataFrame({"user": users * 2, "item": [2] * 6 + [5] * 6, "rating": [1, 2] * 6})
    folded = model.fold_in(Ratings.from_frame(frame, scale=RATINGS.scale))
    expected = pd.DataFrame(model.history_rows(np.arange(50)).toarray(), RATINGS.user_ids)
    expected = expected.reindex([*RATINGS.user_ids, "new", "newer"], fill_value=0.0)
    expected.loc[users] = 0.0
    for row in frame.itertuples():
        expected.loc[row.user, RATINGS.item_ids.get_loc(row.item)] = row.rating / 5
    assert list(folded.user_ids_) == list(expected.index)
    np.testing.assert_array_equal(folded.history_rows(np.arange(52)).toarray(), expected)
    assert folded._history.has_canonical_format


@every_model
def test_fold_in_reads_ratings_by_value(model) -> None:
    frame = pd.DataFrame({"user": "new", "item": RATINGS.item_ids[:3], "rating": [3.0, 4.0, 5.0]})
    inferred = model.fold_in(Ratings.from_frame(frame))  # a scale of 3, 4, 5 alone
    declared = model.fold_in(Ratings.from_frame(frame, scale=RATINGS.scale))
    assert np.array_equal(inferred.scores_block(["new"]), declared.scores_block(["new"]))
    halves = Ratings.from_frame(frame.assign(rating=[3.5, 4.0, 5.0]))
    with pytest.raises(DataError, match=r"3\.5 is not on the scale"):
        model.fold_in(halves)


@every_model
def test_ratings_of_unknown_items_are_left_out_with_a_warning(model) -> None:
    frame = pd.DataFrame(
        {"user": "new", "item": [RATINGS.item_ids[0], 10**6], "rating": [3.0, 4.0]}
    )
    with pytest.warns(UserWarning, match="1 of 2 ratings are of items that the model does not"):
        folded = model.fold_in(Ratings.from_frame(frame, scale=RATINGS.scale))
    assert len(folded.recommend("new", 100)) == RATINGS.n_items - 1


@every_model
def test_there_and_back(model, tmp_path) -> None:
    new = Ratings.from_frame(
        pd.DataFrame({"user": 1000, "item": RATINGS.item_ids[:3], "rating": [3.0, 4.0, 5.0]}),
        scale=RATINGS.scale,
    )
    for number, saved in enumerate((model, model.fold_in(new))):
        save(saved, tmp_path / f"{number}.ordrec")
        again = load(tmp_path / f"{number}.ordrec")
        users = [*saved.user_ids_, -1]
        assert np.array_equal(again.scores_block(users), saved.scores_block(users))
        pd.testing.assert_frame_equal(again.recommend(users[-2]), saved.recommend(users[-2]))
        save(again, tmp_path / "again.ordrec")
        assert (tmp_path / "again.ordrec").read_bytes() == (
            tmp_path / f"{number}.ordrec"
        ).read_bytes()


@every_model
def test_bad_requests_are_answered(model) -> None:
    for n in (0, -1, 2.5, True):
        with pytest.raises(ArgumentError, match="n must be a whole number of at least 1"):
            model.recommend(RATINGS.user_ids[0], n=n)
    assert len(model.recommend("nobody", n=10**6)) == RATINGS.n_items
    assert len(model.recommend("nobody", only=[])) == 0
    with pytest.raises(ArgumentError, match="none of the 1 items is known"):
        model.recommend("nobody", only=["no item"])


@every_model
def test_items_that_nobody_rated_come_last_and_are_not_listed(model) -> None:
    frame = RATINGS.to_frame()
    some = RATINGS.select(RATINGS.items != 4)
    fitted = type(model)(**vars_of(model)).fit(some)
    block = fitted.scores_block(RATINGS.user_ids)
    assert (block[:, 4] < np.delete(block, 4, axis=1).min(axis=1)).all()
    assert RATINGS.item_ids[4] not in set(fitted.recommend(frame["user"][0], 100)["item"])


def vars_of(model) -> dict:
    from dataclasses import fields

    return {field.name: getattr(model, field.name) for field in fields(model)}


def test_users_without_taste_get_popularity() -> None:
    """Who rated what is drawn from the same popularities for all users: nothing else to learn."""
    rng = np.random.default_rng(0)
    share = 0.5 / np.arange(1, 201) ** 0.5
    seen = rng.random((2000, 200)) < share
    users, items = np.nonzero(seen)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    popular = Popularity().fit(ratings).scores_block([0])[0]
    for model in (EASE(regularization=5000.0), ImplicitALS(n_factors=1)):
        scores = model.fit(ratings).scores_block(ratings.user_ids[:50])
        correlations = [np.corrcoef(row, popular)[0, 1] for row in scores]
        assert min(correlations) > 0.9
        assert np.mean(correlations) > 0.95


def test_popularity_counts_raters() -> None:
    frame = pd.DataFrame({"user": [1, 2, 3, 1], "item": ["a", "a", "a", "b"], "rating": [1] * 4})
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5))
    model = Popularity().fit(ratings)
    assert model.scores([2, 9], ["b", "a"]).tolist() == [1 / 3, 1.0]
    assert model.recommend(2)["item"].tolist() == ["b"]


def test_fitting_says_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in MODELS.values():
            type(model)(**vars_of(model)).fit(RATINGS)


def test_shares_of_popularity_by_hand() -> None:
    """a / (a + n^2) of the score is the logarithm of popularity."""
    counts, sizes = np.array([10, 5, 0]), np.array([0, 1, 4])
    mixed = with_popularity(np.ones((3, 3)), counts, sizes, cold=16.0)
    popular = np.log(np.array([1.0, 0.5, 0.0]) + 0.01)
    for row, share in zip(mixed, (1.0, 16 / 17, 0.5), strict=True):
        np.testing.assert_allclose(row, 1.0 - share + share * popular)


def test_expected_picks_are_divided_by_their_bias() -> None:
    scores, counts = np.array([[2.0, 0.5], [1.0, -1.0]]), np.array([5, 50])
    plain = PickCalibration(intercept=-1.0, slope=0.7).p_pick(scores, counts)
    halved = PickCalibration(intercept=-1.0, slope=0.7, bias=2.0).p_pick(scores, counts)
    np.testing.assert_allclose(halved, plain / 2)
    sure = PickCalibration(intercept=9.0, bias=0.5).p_pick(scores, counts)
    assert (sure <= 1.0).all()


@pytest.mark.parametrize("shift", [-2.0, 0.0, 0.25])
def test_items_without_ratings_come_one_below_the_lowest_score_and_zero(monkeypatch, shift) -> None:
    frame = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "rating": [3, 4, 5, 1]})
    ratings = Ratings.from_frame(frame, scale=Scale.regular(1, 5)).select(np.arange(3))
    model = Popularity().fit(ratings)
    plain = model.score_users
    monkeypatch.setattr(model, "score_users", lambda codes: plain(codes) + shift)
    known = np.array([1.0, 0.5]) + shift
    lowest = min(shift, 0.0) - 1.0
    assert model.scores_block([1])[0].tolist() == [*known, lowest]
    assert model.scores([1, 1], [2, 3]).tolist() == [known[1], lowest]
