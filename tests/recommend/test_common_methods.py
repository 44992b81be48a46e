"""`OrdinalFactors`, `RatingPredictor` and `Recommender` do the same things in the same way."""

from __future__ import annotations

import inspect
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from support.two_taste_ratings import two_taste_ratings
from typer.testing import CliRunner

from ordrec import load, save
from ordrec.cli import app
from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.recommend import (
    EASE,
    BiasModel,
    HeldOut,
    OrdinalFactors,
    ProcessPredictor,
    RatingPredictor,
    Recommender,
    make_model,
    predict_scan,
)
from ordrec.recommend.registry import MODELS as REGISTERED

PLAIN = two_taste_ratings(dated=True)
TITLES = pd.DataFrame({"title": [f"Film №{k}" for k in range(PLAIN.n_items)]}, index=PLAIN.item_ids)
RATINGS = PLAIN.with_side_tables(item_table=TITLES)
SCALE = RATINGS.scale
FACTORS = {"n_factors": 3, "pattern": 3}
MODELS: dict[str, Any] = {
    "factors": OrdinalFactors(**FACTORS),
    "predictor": RatingPredictor("fast", learn="defaults"),
    "recommender": Recommender(choice=EASE(20.0), rating=OrdinalFactors(**FACTORS)),
}
CAPABILITIES = [
    "predict", "predict_proba", "predict_frame", "recommend", "recommend_all", "fold_in", "update",
    "explain", "similar_items", "known_ratings", "history_of",
]  # fmt: skip


@pytest.fixture(scope="module", params=list(MODELS))
def model(request) -> Any:
    return clone(MODELS[request.param]).fit(RATINGS)


def expected(model: Any, user: Any, item: Any, time: int | None = None) -> float:
    times = None if time is None else [time]
    return float((model.predict_proba([user], [item], times) @ SCALE.values)[0])


@pytest.mark.parametrize("name", CAPABILITIES)
def test_methods_have_the_same_parameters(name: str) -> None:
    taken = [
        [(each.name, each.kind, each.default) for each in signature.parameters.values()]
        for signature in (inspect.signature(getattr(type(m), name)) for m in MODELS.values())
    ]
    if name == "recommend":  # only a recommender knows what is likely, orders by it, and explores
        own = [each for each in taken[2] if each[0] not in ("by", "n_candidates", "explore")]
        for of_rating_model in taken[:2]:
            assert [each for each in of_rating_model if each[0] != "by"] == own
        defaults = [{each[0]: each[2] for each in each_model} for each_model in taken]
        assert [each["by"] for each in defaults] == ["expected", "expected", "recommended"]
        return
    if name == "update":  # a recommender of picks takes in further ones without ratings
        taken = [[each[:2] for each in of_model] for of_model in taken]
    assert taken[0] == taken[1] == taken[2]


# ---- lists ---------------------------------------------------------------------------------


def test_lists_have_the_same_columns(model) -> None:
    rated = set(RATINGS.of_user(103)["item"])
    best = model.recommend(103, 5)
    more = ["p_pick", "expected", "p_like"] if isinstance(model, Recommender) else ["expected"]
    assert best.columns.tolist() == ["item", "title", "score", *more]
    assert best["title"].tolist() == [f"Film №{item - 500}" for item in best["item"]]
    assert not rated & set(best["item"])
    assert (np.diff(best["score"]) <= 1e-12).all()
    np.testing.assert_allclose(best["expected"], [expected(model, 103, i) for i in best["item"]])
    for by in ("expected", "p_at_least", "lower_quantile"):
        best = model.recommend(103, 5, by=by)
        assert best.columns.tolist() == ["item", "title", "score", "expected"]
        assert len(best) == 5
        assert not rated & set(best["item"])
        assert (np.diff(best["score"]) <= 1e-12).all()
    assert len(model.recommend(-1, 3)) == 3


@pytest.mark.parametrize("by", ["default", "expected"])
def test_filters(model, by: str) -> None:
    if by == "default":
        by = model.ordered_by
    rated = RATINGS.of_user(103)["item"].tolist()
    everything = set(model.recommend(103, 1000, by=by)["item"])
    assert everything == set(RATINGS.item_ids) - set(rated)
    some = sorted(everything)[:4]
    assert set(model.recommend(103, 9, by=by, only=some)["item"]) == set(some)
    assert set(model.recommend(103, 9, by=by, candidates=some)["item"]) == set(some)
    assert set(model.recommend(103, 9, by=by, candidates=some, only=some[:2])["item"]) == set(
        some[:2]
    )
    left = set(model.recommend(103, 1000, by=by, exclude=some)["item"])
    assert left == everything - set(some)
    whole = model.recommend(103, 1000, by=by, include_rated=True)
    assert set(whole["item"]) == set(RATINGS.item_ids)
    if isinstance(model, Recommender):
        likely = model.recommend(103, 9, by=by, candidates="likely", n_candidates=3)
        assert len(likely) == (9 if by == "recommended" else 3)
    with pytest.raises(ArgumentError, match="none of the 1 items is known"):
        model.recommend(103, 3, by=by, only=["no item"])
    with pytest.raises(ArgumentError, match="user must be one id, got 2"):
        model.recommend([103, 104], 3, by=by)


def test_lists_for_a_time(model) -> None:
    for by in (model.ordered_by, "expected"):
        listed = model.recommend(103, 4, by=by, timestamp=14_000)
        at_time = [expected(model, 103, item, 14_000) for item in listed["item"]]
        np.testing.assert_allclose(listed["expected"], at_time)
        undated = [expected(model, 103, item) for item in listed["item"]]
        assert not np.allclose(at_time, undated)
    lists = model.recommend_all(4, [103], timestamp=14_000, engine="serial")
    pd.testing.assert_frame_equal(
        lists.drop(columns=["user", "place"]), model.recommend(103, 4, timestamp=14_000)
    )


def test_lists_for_all_are_those_of_each(model) -> None:
    later = model.update([7] * 3, [501, 502, 503], [5.0, 1.0, 2.0])
    lists = later.recommend_all(3, exclude=[504], engine="serial")
    assert set(lists["user"]) == {*RATINGS.user_ids.tolist(), 7}
    for user in (7, 100, 103):
        own = later.recommend(user, 3, exclude=[504])
        rows = lists[lists["user"] == user].drop(columns=["user", "place"])
        pd.testing.assert_frame_equal(rows.reset_index(drop=True), own, rtol=1e-4)


# ---- reasons -------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [None, 12_000])
def test_explanations_add_up_to_the_expected_rating(model, time: int | None) -> None:
    for user, item in ((103, 504), (110, 520), (-1, 504)):
        why = model.explain(user, item, time)
        assert why.expected == pytest.approx(expected(model, user, item, time), abs=1e-9)
        assert why.table["contribution"].sum() == pytest.approx(why.expected, abs=1e-9)
        assert why.table["source"].tolist()[:3] == ["all ratings", "this item", "you"]
        assert why.table["contribution"][0] == pytest.approx(RATINGS.values.mean())
    own = model.explain(103, 504).table.query("source == 'own rating'")
    assert set(own["id"]) <= set(RATINGS.of_user(103)["item"])
    assert len(own) > 0
    assert own["title"].tolist() == [f"Film №{item - 500}" for item in own["id"]]
    words = str(model.explain(103, 504))
    assert "the mean of all ratings" in words
    assert "to Film №" in words
    assert len(model.explain(103, 504).largest(2)) >= 4


def test_shares_agree_with_leaving_ratings_out() -> None:
    """Taking a rating away moves the taste against its share, nearly wherever the share counts."""
    model = clone(MODELS["factors"]).fit(RATINGS)

    def taste(fitted: OrdinalFactors, user: int, item: int) -> float:
        return expected(fitted, user, item) - expected(fitted, user, -7)

    shares, agree = [], []
    for user, item in ((100, 501), (103, 504), (108, 512), (117, 525), (122, 507), (130, 519)):
        others = RATINGS.item_ids[RATINGS.items] != item
        mine = RATINGS.select(others & (RATINGS.users == user - 100))
        whole = model.fold_in(mine)
        for row in whole.explain(user, item).table.query("source == 'own rating'").itertuples():
            left = model.fold_in(mine.select(mine.item_ids[mine.items] != row.id))
            moved = taste(whole, user, item) - taste(left, user, item)
            shares.append(abs(row.contribution))
            agree.append(np.sign(moved) == np.sign(row.contribution))
    assert np.average(agree, weights=shares) > 0.8


@pytest.mark.parametrize("rating", [BiasModel(), ProcessPredictor("fast"), None], ids=str)
def test_recommenders_of_other_models_explain_and_compare_too(rating) -> None:
    model = Recommender(choice=EASE(20.0), rating=rating).fit(RATINGS)
    assert len(model.similar_items(504, 3)) == 3
    why = model.explain(103, 504)
    if rating is None:
        assert why.table.empty
        assert why.expected is None
        return
    assert why.table["contribution"].sum() == pytest.approx(why.expected, abs=1e-9)
    assert why.table["source"].tolist() == ["all ratings", "this item", "you", "taste"]


# ---- similar items -------------------------------------------------------------------------


def test_similar_items(model) -> None:
    found = model.similar_items(504, 6)
    assert found.columns.tolist() == ["item", "title", "similarity"]
    assert len(found) == 6
    assert 504 not in set(found["item"])
    assert found["similarity"].between(-1, 1).all()
    assert (np.diff(found["similarity"]) <= 0).all()
    assert len(model.similar_items(504, 1000)) == RATINGS.n_items - 1
    with pytest.raises(ArgumentError, match="item 'x' is not in the model"):
        model.similar_items("x")
    with pytest.raises(ArgumentError, match="n must be"):
        model.similar_items(504, 0)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_items_for_the_same_people_are_similar(model) -> None:
    """Half of the users like the even items, the others the odd ones."""
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((60, 20)) < 0.7)
    liked = (users % 2) == (items % 2)
    rating = np.where(liked, 5, 1) - np.sign(liked - 0.5) * (rng.random(users.size) < 0.2)
    frame = pd.DataFrame({"user": users, "item": items, "rating": rating})
    fitted = clone(model).fit(Ratings.from_frame(frame, scale=Scale.regular(1, 5)))
    for item in (4, 7):
        assert (fitted.similar_items(item, 9)["item"] % 2 == item % 2).all()


# ---- new users, items and ratings ----------------------------------------------------------


def test_update_takes_one_rating_or_many(model) -> None:
    new = [7, 7, 103], [501, 502, 503], [5.0, 1.0, 2.0]
    together = model.update(*new, [12_000] * 3)
    single = model
    for row in zip(*new, strict=True):
        single = single.update(*row, 12_000)
    pairs = [7, 7, 103, 100], [504, 505, 504, 504]
    np.testing.assert_allclose(
        together.predict_proba(*pairs), single.predict_proba(*pairs), atol=1e-5
    )
    assert together.history_of(7)[0].size == 2
    rated = RATINGS.of_user(103)["item"].tolist()
    assert together.history_of(103)[0].size == len({*rated, 503})
    assert model.history_of(7)[0].size == 0
    with pytest.raises(ArgumentError, match="must pair up"):
        model.update([7, 8], [501], [5.0])
    with pytest.raises(DataError, match="not on the scale"):
        model.update(7, 501, 9.0)


def test_fold_in_replaces_and_update_adds(model) -> None:
    frame = pd.DataFrame({"user": 103, "item": [501, 502], "rating": [5.0, 1.0]})
    folded = model.fold_in(Ratings.from_frame(frame, scale=SCALE))
    assert folded.history_of(103)[0].size == 2
    assert not {501, 502} & set(folded.recommend(103, 100)["item"])


@pytest.mark.filterwarnings("ignore:EASE")  # says that it leaves out the ratings of new items
def test_new_items_are_predicted_explained_and_listed_by_rating(model) -> None:
    raters = RATINGS.user_ids[:12].tolist()
    later = model.update(raters, ["new"] * 12, [5.0] * 12)
    assert expected(later, 130, "new") > expected(model, 130, "new")
    assert later.predict_frame(pd.DataFrame({"user": [130], "item": ["new"]}))["known_item"].all()
    assert "new" in set(later.recommend(130, 100, by="expected")["item"])
    assert "new" not in set(later.recommend(raters[0], 100, by="expected")["item"])
    why = later.explain(130, "new")
    assert why.table["contribution"].sum() == pytest.approx(why.expected, abs=1e-9)
    assert len(str(why).splitlines()) > 3
    assert "new" in set(later.similar_items(504, 1000)["item"])
    assert len(later.similar_items("new", 3)) == 3


# ---- files and partitions ------------------------------------------------------------------


def test_files_hold_all_of_it(model, tmp_path: Path) -> None:
    later = model.update([7, 7], [501, 502], [5.0, 1.0])
    for saved, orders in ((model, (model.ordered_by, "expected")), (later, ("expected",))):
        save(saved, tmp_path / "model.ordrec")
        again = load(tmp_path / "model.ordrec")
        for user in (7, 103):
            for by in orders:
                pd.testing.assert_frame_equal(
                    again.recommend(user, 4, by=by, timestamp=12_000),
                    saved.recommend(user, 4, by=by, timestamp=12_000),
                )
            one, two = again.explain(user, 504), saved.explain(user, 504)
            pd.testing.assert_frame_equal(one.table, two.table)
            assert str(one) == str(two)
        pd.testing.assert_frame_equal(again.similar_items(504), saved.similar_items(504))
    assert again.update(7, 503, 4.0).history_of(7)[0].size == 3
    assert len(again.recommend(7, 3)) == 3


def test_scans(model, tmp_path: Path) -> None:
    PLAIN.to_partitions(tmp_path / "parts", rows_per_part=200)
    scan = Ratings.scan(tmp_path / "parts")
    found = predict_scan(model, scan, HeldOut(0.2), tmp_path / "out", engine="serial")
    frame = pd.concat(found.frames())
    assert 0.15 < len(frame) / RATINGS.n_ratings < 0.25
    error = np.abs(frame["expected"] - frame["actual"]).mean()
    assert error < np.abs(frame["actual"] - RATINGS.values.mean()).mean()


# ---- the command line ----------------------------------------------------------------------


def test_every_command_works_for_each_model(model, tmp_path: Path) -> None:
    path = str(tmp_path / "model.ordrec")
    save(model, path)

    def table(*words: str) -> pd.DataFrame:
        done = CliRunner().invoke(app, list(words), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return pd.read_csv(StringIO(done.stdout))

    more = ["p_pick", "expected", "p_like"] if isinstance(model, Recommender) else ["expected"]
    columns = ["user", "place", "item", "title", "score", *more]
    assert table("recommend", path, "-u", "103", "-n", "3").columns.tolist() == columns
    by_rating = table("recommend", path, "-u", "103", "-n", "3", "--by", "expected")
    assert by_rating["expected"].is_monotonic_decreasing
    out = str(tmp_path / "top.csv")
    done = CliRunner().invoke(app, ["recommend", path, "--for", "all", "-n", "2", "-o", out])
    assert (done.exit_code, done.output) == (0, "")
    assert pd.read_csv(out)["user"].nunique() == RATINGS.n_users
    why = table("explain", path, "-u", "103", "-i", "504")
    like = why if "why" not in why else why[why["why"] == "like"]
    total = expected(model, 103, 504)
    assert like["contribution"].sum() == pytest.approx(total, abs=1e-5)
    similar = table("similar", path, "-i", "504", "-n", "4")
    assert similar.columns.tolist() == ["place", "item", "title", "similarity"]
    assert similar["item"].tolist() == model.similar_items(504, 4)["item"].tolist()
    for _ in range(2):  # its own output may be replaced
        words = ["similar", path, "-i", "504", "-o", str(tmp_path / "similar.csv")]
        assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.filterwarnings("ignore:EASE")  # says that it leaves out the ratings of new items
def test_the_command_update_takes_new_users_items_and_titles(model, tmp_path: Path) -> None:
    path, later = str(tmp_path / "model.ordrec"), str(tmp_path / "later.ordrec")
    save(model, path)
    rows = {"user": [7, 7, 103], "item": [501, 990, 990], "rating": [5, 1, 2], "timestamp": 12_000}
    pd.DataFrame(rows).to_csv(tmp_path / "new.csv", index=False)
    pd.DataFrame({"item": [990], "title": ["A New One"]}).to_csv(tmp_path / "i.csv", index=False)
    for more in ([], ["--items", str(tmp_path / "i.csv")]):
        words = ["update", path, str(tmp_path / "new.csv"), "-o", later, "--overwrite", *more]
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        updated = load(later)
        codes, levels = updated.history_of(7)
        known = updated.known_ratings()
        given = dict(zip(known.item_ids[codes], SCALE.values[levels], strict=True))
        assert given == {501: 5.0, 990: 1.0}
        why = updated.explain(103, 990)
        assert why.table["contribution"].sum() == pytest.approx(why.expected, abs=1e-9)
    titles = updated.similar_items(504, 1000).set_index("item")["title"]
    assert titles[990] == "A New One"


# ---- what is not fitted ---------------------------------------------------------------------

ASKED = {
    "users": [1], "items": [1], "user": 1, "item": 1, "rating": 3, "ratings": RATINGS, "n": 3,
    "pairs": RATINGS.to_frame()[["user", "item"]], "given": RATINGS,
}  # fmt: skip


@pytest.mark.parametrize("name", [each.name for each in REGISTERED if each.storable and each.name])
def test_every_question_to_a_model_that_is_not_fitted_is_answered_so(name: str) -> None:
    model = make_model(name)
    asked = 0
    for method in (*CAPABILITIES, "scores", "scores_block", "predict_interval"):
        needed = "predict_proba" if method == "predict_interval" else method
        if not hasattr(model, needed):
            continue
        parameters = inspect.signature(getattr(model, method)).parameters.values()
        plain = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
        words = [ASKED[each.name] for each in plain if each.default is each.empty]
        with pytest.raises(NotFittedError, match=f"{type(model).__name__} is not fitted"):
            getattr(model, method)(*words)
        asked += 1
    assert asked
