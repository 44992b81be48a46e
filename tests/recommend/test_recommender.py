"""The recommender: order, filters, fold-in, files, lists for all users on every engine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec import load, save
from ordrec.cli.parameters import in_options
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.lists.best import rank_gains
from ordrec.lists.bulk import _Lists
from ordrec.recommend import (
    EASE,
    BiasModel,
    ChoiceMixture,
    ItemKNN,
    OrdinalFactors,
    Popularity,
    ProbabilityModel,
    RankingModel,
    RatingPredictor,
    Recommender,
    recommend_all,
)

RATINGS = synthetic_ratings(60, 120, n_ratings=1500, seed=4)
FACTORS = OrdinalFactors(n_factors=3, pattern=3, max_iter=3)


@pytest.fixture(scope="module")
def model() -> Recommender:
    return Recommender(rating=FACTORS, n_candidates=25).fit(RATINGS)


def test_is_a_rating_model_and_a_ranking_model(model) -> None:
    assert isinstance(model, ProbabilityModel)
    assert isinstance(model, RankingModel)


def test_the_order_is_choice_plus_taste_by_hand(model) -> None:
    for user in RATINGS.user_ids[:8]:
        choice = pd.Series(model.choice_.scores_block([user])[0], RATINGS.item_ids)
        choice = choice.drop(RATINGS.of_user(user)["item"])
        candidates = choice.sort_values(ascending=False, kind="stable").index[:25]
        p = model.predict_proba([user] * 25, candidates)
        total = choice[candidates] + 0.25 * np.log(p @ rank_gains(5))
        expected = total.sort_values(ascending=False, kind="stable")
        listed = model.recommend(user, 7)
        assert listed["item"].tolist() == expected.index[:7].tolist()
        np.testing.assert_allclose(listed["score"], expected[:7], rtol=1e-6)
        of_item = dict(zip(candidates, p, strict=True))
        distributions = np.array([of_item[item] for item in listed["item"]])
        np.testing.assert_allclose(listed["expected"], distributions @ RATINGS.scale.values)
        np.testing.assert_allclose(listed["p_like"], distributions[:, 3:].sum(axis=1))
        assert listed["p_pick"].between(0, 1).all()


def test_scores_put_candidates_in_the_order_of_the_list_and_others_after_them(model) -> None:
    users = [*RATINGS.user_ids[:5], "nobody"]
    block = model.scores_block(users)
    for row, user in zip(block, users, strict=True):
        scores = pd.Series(row, RATINGS.item_ids)
        if user != "nobody":
            scores = scores.drop(RATINGS.of_user(user)["item"])
        order = scores.sort_values(ascending=False, kind="stable").index
        assert order[:25].tolist()[:10] == model.recommend(user, 10)["item"].tolist()
        choice = pd.Series(model.choice_.scores_block([user])[0], RATINGS.item_ids)[order]
        assert set(order[:25]) == set(choice.nlargest(25).index)  # by the pair (candidate, score)
        assert choice[25:].is_monotonic_decreasing
        assert scores[order[24]] >= scores[order[25]] + 1.0 - 1e-9
        single = model.scores([user] * RATINGS.n_items, RATINGS.item_ids)
        np.testing.assert_allclose(single, row, rtol=1e-6, atol=1e-7)


def test_without_taste_or_rating_model_the_choice_model_decides() -> None:
    plain = Recommender(choice=EASE(), rating=None).fit(RATINGS)
    bland = Recommender(choice=EASE(), rating=BiasModel(), taste=0.0).fit(RATINGS)
    ease = EASE().fit(RATINGS)
    for user in RATINGS.user_ids[:5]:
        expected = ease.recommend(user, 6)["item"].tolist()
        assert plain.recommend(user, 6)["item"].tolist() == expected
        assert bland.recommend(user, 6)["item"].tolist() == expected
    assert list(plain.recommend(0).columns) == ["item", "score", "p_pick"]
    assert list(bland.recommend(0).columns) == ["item", "score", "p_pick", "expected"]
    with pytest.raises(ArgumentError, match="has no rating model"):
        plain.predict([0], [0])
    with pytest.raises(ArgumentError, match="predicts no distributions"):
        bland.predict_proba([0], [0])


@given(data=st.data())
@settings(max_examples=25)
def test_nothing_excluded_or_rated_is_ever_listed(model, data) -> None:
    ids = RATINGS.item_ids.tolist()
    user = data.draw(st.sampled_from([*RATINGS.user_ids.tolist(), "nobody"]))
    exclude = data.draw(st.none() | st.lists(st.sampled_from([*ids, "no item"]), max_size=12))
    only = data.draw(st.none() | st.lists(st.sampled_from(ids), max_size=12))
    rated_too, n = data.draw(st.booleans()), data.draw(st.integers(1, 150))
    listed = model.recommend(user, n, exclude=exclude, only=only, include_rated=rated_too)
    rated = set() if user == "nobody" else set(RATINGS.of_user(user)["item"])
    rated_by_some = set(RATINGS.to_frame()["item"])
    allowed = rated_by_some & set(ids if only is None else only) - set(exclude or ())
    if not rated_too:
        allowed -= rated
    found = listed["item"].tolist()
    assert len(set(found)) == len(found) == min(n, len(allowed))
    assert set(found) <= allowed


def test_folded_in_users_get_the_list_of_their_ratings(model) -> None:
    mine = RATINGS.select(RATINGS.users == 9)
    new = Ratings.from_frame(mine.to_frame().assign(user="new"), scale=RATINGS.scale)
    folded = model.fold_in(new)
    again = model.fold_in(mine)
    assert folded.recommend("new")["item"].tolist() == again.recommend(9)["item"].tolist()
    assert not set(folded.recommend("new", 200)["item"]) & set(mine.to_frame()["item"])
    pd.testing.assert_frame_equal(folded.recommend(3), model.recommend(3))
    with pytest.raises(ArgumentError, match="GlobalMean cannot take in new users"):
        Recommender(choice=EASE(), rating="mean").fit(RATINGS).fold_in(new)


@pytest.mark.parametrize("rating", [FACTORS, RatingPredictor(preset="fast")], ids=["f", "p"])
def test_update_is_fold_in_with_one_rating_more(rating) -> None:
    model = Recommender(choice=EASE(regularization=20.0), rating=rating).fit(RATINGS)
    user = RATINGS.user_ids[5]
    item = model.recommend(user, 1)["item"][0]
    frame = RATINGS.of_user(user)[["user", "item", "rating"]]
    more = pd.concat([frame, pd.DataFrame({"user": [user], "item": [item], "rating": [1.0]})])
    folded = model.fold_in(Ratings.from_frame(more, scale=RATINGS.scale))
    updated = model.update(user, item, 1.0)
    pd.testing.assert_frame_equal(updated.recommend(user), folded.recommend(user))
    assert item not in set(updated.recommend(user, 200)["item"])
    changed = updated.update(user, item, 5.0)
    assert not changed.recommend(user).equals(updated.recommend(user))
    assert (
        len(model.update("new", item, 4.0).recommend("new", 200))
        == (RATINGS.item_counts > 0).sum() - 1
    )
    with pytest.raises(DataError, match="is not on the scale"):
        model.update(user, item, 7.0)


def test_there_and_back(model, tmp_path) -> None:
    new = Ratings.from_frame(
        pd.DataFrame({"user": 1000, "item": RATINGS.item_ids[:3], "rating": [3.0, 4.0, 5.0]}),
        scale=RATINGS.scale,
    )
    for saved in (model, model.fold_in(new)):
        save(saved, tmp_path / "model.ordrec")
        again = load(tmp_path / "model.ordrec")
        for user in (3, 1000, -1):
            pd.testing.assert_frame_equal(again.recommend(user), saved.recommend(user))
        users, items = [0, 1, 1000], RATINGS.item_ids[:3]
        assert np.array_equal(again.predict_proba(users, items), saved.predict_proba(users, items))


def test_titles_and_reasons() -> None:
    titles = pd.DataFrame({"title": [f"Title {k}" for k in RATINGS.item_ids]}, RATINGS.item_ids)
    titled = Ratings.from_frame(RATINGS.to_frame(), scale=RATINGS.scale, item_table=titles)
    model = Recommender(choice=EASE(regularization=20.0), rating="predictor-fast").fit(titled)
    listed = model.recommend(3, 2)
    assert listed["title"].tolist() == [f"Title {k}" for k in listed["item"]]
    why = model.explain(3, listed["item"][0])
    score = model.choice_.scores([3], [listed["item"][0]])[0]
    assert why.pick["contribution"].sum() == pytest.approx(score, abs=1e-6)
    assert set(why.pick["item"]) == set(RATINGS.of_user(3)["item"])
    assert why.expected == pytest.approx(listed["expected"][0])
    assert why.p_pick == pytest.approx(listed["p_pick"][0])
    text = str(why)
    assert text.startswith(f"Title {listed['item'][0]} for user 3\n")
    assert f"expected rating {why.expected:.2f}" in text
    table = why.largest(1)
    assert table["why"].tolist()[:3] == ["pick", "pick", "like"]
    assert table["source"].tolist()[1:5] == ["others", "all ratings", "this item", "you"]
    like = table[table["why"] == "like"]
    assert like["contribution"].sum() == pytest.approx(why.expected)
    assert len(like) <= 5  # one rating of their own, and the sum of the others
    with pytest.raises(ArgumentError, match="there is nothing to explain"):
        model.explain(3, "no item")


@pytest.mark.parametrize("choice", [ChoiceMixture(n_factors=3), EASE(regularization=20.0)])
def test_contributions_of_als_and_ease_add_up_to_their_scores(choice) -> None:
    model = choice.fit(RATINGS)
    members = [model.ease_, model.als_] if isinstance(model, ChoiceMixture) else [model]
    for member in members:
        scores = member.score_users(np.arange(5))
        for user in range(5):
            for item in (0, 7, 21):
                parts = member.contributions(user, item)
                # the mixture keeps factors of users in half precision
                assert parts.sum() == pytest.approx(scores[user, item], abs=1e-4)


# ---- p_pick --------------------------------------------------------------------------------


def test_expected_picks_are_about_as_many_as_come() -> None:
    """Users pick by taste for one of four groups of items; a fifth of each history is to come."""
    rng = np.random.default_rng(5)
    group = rng.integers(0, 4, 800)
    chance = np.where(group[:, None] == np.arange(120) % 4, 0.5, 0.08)
    chance *= np.linspace(1.2, 0.4, 120)
    users, items = np.nonzero(rng.random((800, 120)) < chance)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    future = rng.random(users.size) < 0.2
    history = Ratings.from_frame(frame[~future], scale=range(1, 6))
    model = Recommender(choice=ChoiceMixture(future="random"), rating="bias").fit(history)
    lists = model.recommend_all(10)
    come = set(map(tuple, frame.loc[future, ["user", "item"]].to_numpy().tolist()))
    hits = sum(pair in come for pair in zip(lists["user"], lists["item"], strict=True))
    assert lists["p_pick"].sum() == pytest.approx(hits, rel=0.1)


# ---- everybody -----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["serial", "threads", "processes", "dask"])
def test_all_engines_make_the_same_lists(model, monkeypatch, engine: str) -> None:
    monkeypatch.setattr("ordrec.lists.listing.CELLS_AT_ONCE", 120 * 7)  # blocks of 7 users
    lists = model.recommend_all(4, engine=engine, n_jobs=2)
    assert lists["user"].is_monotonic_increasing
    for user in RATINGS.user_ids:
        own = lists[lists["user"] == user].reset_index(drop=True)
        expected = model.recommend(user, 4)
        assert own["item"].tolist() == expected["item"].tolist()
        np.testing.assert_allclose(own["score"], expected["score"], rtol=1e-6, atol=1e-7)
        assert own["place"].tolist() == [1, 2, 3, 4][: len(own)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_interrupted_run_goes_on_where_it_stopped(
    model, monkeypatch, tmp_path, ending: str
) -> None:
    monkeypatch.setattr("ordrec.lists.listing.CELLS_AT_ONCE", 120 * 7)
    out, real, calls = tmp_path / f"top.{ending}", _Lists.frame, []

    def dying(self, codes):
        calls.append(codes)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(self, codes)

    monkeypatch.setattr(_Lists, "frame", dying)
    with pytest.raises(KeyboardInterrupt):
        model.recommend_all(4, out=out, engine="serial")
    assert not out.exists()
    with pytest.raises(ArgumentError, match="holds lists of other options"):
        model.recommend_all(5, out=out, engine="serial")
    with pytest.raises(ArgumentError, match="holds lists of other users"):
        model.recommend_all(4, [1, 2], out=out, engine="serial")
    with pytest.raises(ArgumentError, match="holds lists of other options"):
        model.recommend_all(4, out=out, engine="serial", timestamp=5)
    with pytest.raises(ArgumentError, match=r"has not ended: .* overwrite=True") as refused:
        model.recommend_all(3, out=out, engine="serial")
    assert "pass --overwrite to throw" in in_options(refused.value)
    calls.clear()
    monkeypatch.setattr(_Lists, "frame", lambda *words: calls.append(words[1]) or real(*words))
    model.recommend_all(4, out=out, engine="serial")
    assert sum(codes.size for codes in calls) == 60 - 3 * 7
    table = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    expected = model.recommend_all(4)
    pd.testing.assert_frame_equal(table, expected, rtol=1e-6, check_dtype=False)
    assert list(tmp_path.iterdir()) == [out]


def test_blocks_of_another_run_are_thrown_away_if_one_says_so(model, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("ordrec.lists.listing.CELLS_AT_ONCE", 120 * 7)
    out, real = tmp_path / "top.csv", _Lists.frame

    def dying(self, codes):
        if 20 in codes:
            raise KeyboardInterrupt
        return real(self, codes)

    monkeypatch.setattr(_Lists, "frame", dying)
    with pytest.raises(KeyboardInterrupt):
        model.recommend_all(4, out=out, engine="serial")
    monkeypatch.setattr(_Lists, "frame", real)
    model.recommend_all(2, out=out, overwrite=True, engine="serial")
    pd.testing.assert_frame_equal(
        pd.read_csv(out), model.recommend_all(2), rtol=1e-6, check_dtype=False
    )
    assert list(tmp_path.iterdir()) == [out]


def test_a_run_whose_folder_another_has_removed_says_so(model, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("ordrec.lists.listing.CELLS_AT_ONCE", 120 * 7)
    out, real = tmp_path / "top.csv", _Lists.frame

    def outrun(self, codes):
        if 20 in codes:
            monkeypatch.setattr(_Lists, "frame", real)
            model.recommend_all(4, out=out, engine="serial")  # another process: it ends first
        return real(self, codes)

    monkeypatch.setattr(_Lists, "frame", outrun)
    with pytest.raises(ArgumentError, match=r"another run that writes this file has ended"):
        model.recommend_all(4, out=out, engine="serial")
    pd.testing.assert_frame_equal(
        pd.read_csv(out), model.recommend_all(4), rtol=1e-6, check_dtype=False
    )


@pytest.mark.parametrize(
    "fitted",
    [
        Recommender(rating=FACTORS, n_candidates=25),
        OrdinalFactors(n_factors=3, pattern=3, max_iter=3),
        Recommender(choice=Popularity(), rating=None),
    ],
    ids=["recommender", "factors", "popularity"],
)
def test_a_run_is_not_resumed_by_a_model_that_knows_more(fitted, monkeypatch, tmp_path) -> None:
    """The first user's list is the same in both models: only other users have rated more."""
    monkeypatch.setattr("ordrec.lists.listing.CELLS_AT_ONCE", 120 * 5 * 7)
    model = fitted.fit(RATINGS)
    last = RATINGS.user_ids[-1]
    later = model.update(last, model.recommend(last, 1)["item"].item(), 5)
    out, real, calls = tmp_path / "top.csv", _Lists.frame, []

    def dying(self, codes):
        calls.append(codes)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, codes)

    monkeypatch.setattr(_Lists, "frame", dying)
    with pytest.raises(KeyboardInterrupt):
        model.recommend_all(4, RATINGS.user_ids[::-1], out=out, engine="serial")
    with pytest.raises(ArgumentError, match="holds lists of other model"):
        later.recommend_all(4, RATINGS.user_ids[::-1], out=out, engine="serial")
    save(model, tmp_path / "model.ordrec")
    again = load(tmp_path / "model.ordrec")
    again.recommend_all(4, RATINGS.user_ids[::-1], out=out, engine="serial")
    table = pd.read_csv(out)
    expected = model.recommend_all(4, RATINGS.user_ids[::-1], engine="serial")
    pd.testing.assert_frame_equal(table, expected, rtol=1e-6, check_dtype=False)
    assert sum(map(len, calls)) < 3 * 60


def test_bad_requests_are_answered(model, tmp_path) -> None:
    with pytest.warns(UserWarning, match="1 of 2 users are not in the model, such as 'x'"):
        model.recommend_all(3, users=[1, "x"])
    with pytest.raises(ArgumentError, match=r"written as \.csv or \.parquet"):
        model.recommend_all(3, out=tmp_path / "top.txt")
    with pytest.raises(ArgumentError, match="does not exist"):
        model.recommend_all(3, out=tmp_path / "none" / "top.csv")
    with pytest.raises(ArgumentError, match="n must be a whole number"):
        model.recommend_all(0)
    assert len(model.recommend_all(3, users=[])) == 0
    assert len(recommend_all(Popularity().fit(RATINGS), 1000, [3])) < RATINGS.n_items


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"taste": -1.0}, "taste must be"),
        ({"taste": "sweet"}, "taste must be"),
        ({"n_candidates": 0}, "must be a whole number"),
        ({"choice": ItemKNN()}, "choice must be"),
        ({"choice": "bias"}, "choice must be"),
        ({"choice": EASE}, "choice must be a model, not a class"),
        ({"rating": EASE()}, "which does not predict"),
        ({"rating": "nonsense"}, "unknown model"),
    ],
)
def test_wrong_parameters_are_refused(parameters, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        Recommender(**parameters).fit(RATINGS)


def test_cold_users_get_what_is_popular() -> None:
    model = ChoiceMixture(n_factors=4).fit(RATINGS)
    popular = Popularity().fit(RATINGS).recommend("nobody", 5)["item"].tolist()
    assert model.recommend("nobody", 5)["item"].tolist() == popular


@pytest.mark.parametrize("steep", [False, True])
def test_popularity_counts_more_where_it_is_harder_to_beat(steep: bool) -> None:
    """Groups of taste, or the same few hits for everybody: the constant is chosen accordingly."""
    rng = np.random.default_rng(1)
    group = rng.integers(0, 4, 400)
    tastes = np.where(group[:, None] == np.arange(80) % 4, 0.6, 0.05)
    hits = np.tile(0.9 / np.arange(1, 81) ** 0.7, (400, 1))
    users, items = np.nonzero(rng.random((400, 80)) < (hits if steep else tastes))
    frame = pd.DataFrame({"user": users, "item": items, "rating": rng.integers(1, 6, users.size)})
    model = ChoiceMixture(n_factors=4).fit(Ratings.from_frame(frame, scale=range(1, 6)))
    assert (model.cold_ >= 16) if steep else (model.cold_ < 4)
