"""Journeys with histories without ratings: clicks, purchases and views, through both faces."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec import load, save
from ordrec.data import Ratings, Scale
from ordrec.datasets import load_ratings, synthetic_ratings
from ordrec.errors import ArgumentError, DataError, OrdrecWarning
from ordrec.evaluation import evaluate
from ordrec.recommend import EASE, BiasModel, ChoiceMixture, ImplicitALS, Popularity, Recommender

PAIRS = synthetic_ratings(80, 30, n_ratings=1200, seed=3).to_frame()[["user", "item"]]
CLICKS = Ratings.from_frame(PAIRS, rating=None)
ONES = Ratings.from_frame(PAIRS.assign(rating=1.0), scale=Scale([0, 1]))


def quiet_recommender() -> Recommender:
    return Recommender(ChoiceMixture(n_factors=4, regularization=50.0, n_jobs=1))


# ---- reading -------------------------------------------------------------------------------


def test_a_missing_column_of_ratings_is_said_and_no_error() -> None:
    with pytest.warns(OrdrecWarning, match="no column of ratings.*what was picked is all"):
        read = Ratings.from_frame(PAIRS)
    assert not read.has_ratings
    assert read.n_ratings == len(PAIRS)
    assert "1200 picks" in repr(read)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Ratings.from_frame(PAIRS, rating=None)


def test_ratings_that_are_all_the_same_are_picks() -> None:
    with pytest.warns(OrdrecWarning, match="all ratings are 1.*scale="):
        read = Ratings.from_frame(PAIRS.assign(rating=1))
    assert not read.has_ratings
    assert Ratings.from_frame(PAIRS.assign(rating=1), scale=[1, 2]).has_ratings


def test_a_column_of_ratings_that_was_named_must_be_there() -> None:
    with pytest.raises(DataError, match="no column 'stars'"):
        Ratings.from_frame(PAIRS, rating="stars")
    with pytest.raises(DataError, match="no column 'rating'"):
        Ratings.from_frame(PAIRS, scale=range(1, 6))
    with pytest.raises(DataError, match="weights are for ratings"):
        Ratings.from_frame(PAIRS.assign(w=1.0), rating=None, weight="w")


def test_repeated_rows_are_counted_with_their_first_and_last_time() -> None:
    table = pd.DataFrame({"user": [1, 1, 2, 1], "item": ["a", "b", "a", "a"],
                          "timestamp": [30, 10, 40, 20]})  # fmt: skip
    frame = Ratings.from_frame(table, rating=None).to_frame()
    assert frame.to_dict("list") == {
        "user": [1, 1, 2], "item": ["a", "b", "a"], "count": [2, 1, 1], "timestamp": [30, 10, 40],
        "first": [20, 10, 40],
    }  # fmt: skip
    counted = pd.DataFrame({"user": [1, 1], "item": ["a", "a"], "plays": [3, 4]})
    assert Ratings.from_frame(counted, rating=None, count="plays").values.tolist() == [7.0]


@pytest.mark.parametrize("wrong", [0, -1, np.nan, 1e30])
def test_numbers_of_picks_are_checked(wrong: float) -> None:
    table = pd.DataFrame({"user": [1, 2], "item": [1, 1], "count": [1, wrong]})
    with pytest.raises(DataError, match="row 1: count"):
        Ratings.from_frame(table, rating=None)


def test_picks_survive_parts_copies_and_folders(tmp_path: Path) -> None:
    import pickle

    twice = Ratings.from_frame(pd.concat([PAIRS, PAIRS[:50]]), rating=None)
    again = pickle.loads(pickle.dumps(twice.select(np.arange(100)).compact()))
    assert not again.has_ratings
    twice.to_partitions(tmp_path / "parts")
    read = Ratings.scan(tmp_path / "parts").collect()
    order = ["user", "item"]
    pd.testing.assert_frame_equal(
        read.to_frame().sort_values(order, ignore_index=True),
        twice.to_frame().sort_values(order, ignore_index=True),
    )
    (tmp_path / "other").mkdir()
    PAIRS.sort_values(order).to_parquet(tmp_path / "other" / "a.parquet")
    with pytest.warns(OrdrecWarning, match="what was picked"):
        other = Ratings.scan(tmp_path / "other")
    assert other.collect().n_ratings == len(PAIRS)


# ---- models --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        Popularity(),
        EASE(50.0),
        ImplicitALS(n_factors=4, n_jobs=1),
        ChoiceMixture(n_factors=4, regularization=50.0, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_lists_are_those_of_ones_on_a_scale_of_two(model) -> None:
    from sklearn.base import clone

    picks, ones = clone(model).fit(CLICKS), clone(model).fit(ONES)
    pd.testing.assert_frame_equal(picks.recommend_all(5), ones.recommend_all(5))


def test_a_recommender_of_picks_has_no_columns_of_ratings() -> None:
    model = quiet_recommender().fit(CLICKS)
    assert model.recommend(3, 4).columns.tolist() == ["item", "score", "p_pick"]
    with pytest.raises(ArgumentError, match="fitted to a table without ratings"):
        model.predict([3], [3])
    assert "because of their picks of" in str(model.explain(3, 5))
    assert len(model.similar_items(3, 4)) == 4


def test_models_of_ratings_refuse_picks() -> None:
    with pytest.raises(DataError, match="BiasModel predicts ratings, and the table has none"):
        BiasModel().fit(CLICKS)
    with pytest.raises(DataError, match="predicts ratings"):
        Recommender(EASE(50.0), rating="bias").fit(CLICKS)
    rated = Ratings.from_frame(PAIRS.assign(rating=PAIRS["item"] % 5 + 1))
    with pytest.raises(DataError, match="has no ratings"):
        EASE(50.0).fit(rated).fold_in(CLICKS.select(np.arange(3)))
    taken = EASE(50.0).fit(CLICKS).fold_in(rated.select(rated.rows_of_user(0)))
    assert not taken.known_ratings().has_ratings


def test_further_picks_are_added_to_the_known_ones() -> None:
    model = EASE(50.0).fit(CLICKS)
    user, item = PAIRS["user"].iloc[0], PAIRS["item"].iloc[0]
    more = model.update([user, "new"], [item, item]).known_ratings().to_frame()
    own = more[(more["user"] == user) & (more["item"] == item)]
    assert own["count"].tolist() == [2]
    assert more[more["user"] == "new"]["count"].tolist() == [1]
    assert len(more) == CLICKS.n_ratings + 1


def test_models_of_picks_are_saved_and_loaded(tmp_path: Path) -> None:
    twice = Ratings.from_frame(pd.concat([PAIRS, PAIRS[:50]]), rating=None)
    model = quiet_recommender().fit(twice)
    save(model, tmp_path / "picks.model")
    again = load(tmp_path / "picks.model")
    pd.testing.assert_frame_equal(again.recommend(3), model.recommend(3))
    counts = twice.to_frame().sort_values(["user", "item"], ignore_index=True)
    known = again.known_ratings().to_frame().sort_values(["user", "item"], ignore_index=True)
    assert known["count"].tolist() == counts["count"].tolist()


def test_evaluation_measures_lists_alone() -> None:
    result = evaluate(CLICKS, {"popularity": Popularity(), "ease": EASE(50.0), "bias": "bias"})
    assert set(result.frame["metric"]) == {"ndcg@10", "recall@20", "hit_rate@10", "coverage@10"}
    assert result.failures["model"].tolist() == ["bias"]


# ---- the command line ----------------------------------------------------------------------


def test_clicks_from_a_file_to_lists(ordrec, tmp_path: Path) -> None:
    clicks, model = tmp_path / "clicks.csv", tmp_path / "clicks.model"
    PAIRS.to_csv(clicks, index=False)
    fitted = ordrec("fit", clicks, "-o", model, "--set", "n_jobs=1")
    assert fitted.code == 0
    assert "what was picked is all that is known" in fitted.err
    assert "--rating-col none" in fitted.err
    assert "--rating-col none" not in ordrec("fit", clicks, "--rating-col", "none", "-m", "ease",
                                              "-o", tmp_path / "ease.model").err  # fmt: skip
    listed = ordrec("recommend", model, "-u", "3", "-n", "2")
    assert listed.out.splitlines()[0] == "user,place,item,score,p_pick"
    assert ordrec("similar", model, "-i", "3", "-n", "2").code == 0
    assert "own pick" in ordrec("explain", model, "-u", "3", "-i", "5").out
    updated = tmp_path / "updated.model"
    assert ordrec("update", model, clicks, "-o", updated).code == 0
    assert load(updated).known_ratings().values.max() == 2.0
    refused = ordrec("fit", clicks, "-m", "bias", "-o", tmp_path / "bias.model")
    assert refused.code == 2
    assert "predicts ratings, and the table has none" in refused.err


def test_files_of_ids_may_have_other_columns(ordrec, tmp_path: Path) -> None:
    model, out = tmp_path / "m", tmp_path / "top.csv"
    save(Popularity().fit(CLICKS), model)
    (tmp_path / "who.csv").write_text("who,age\n3,40\n999,41\n5,42\n")
    (tmp_path / "what.csv").write_text("what,why\n1,sold out\n77,unknown\n")
    files = ["--for", tmp_path / "who.csv", "--exclude", tmp_path / "what.csv"]
    refused = ordrec("recommend", model, *files, "-o", out)
    assert refused.code == 2
    assert "--item-col" in refused.err
    columns = ["--user-col", "who", "--item-col", "what"]
    said = ordrec("recommend", model, *files, *columns, "-o", out)
    assert said.code == 0
    assert "1 of 3 users are not in the model and are left out: 999" in said.err
    assert "1 of 2 items are not in the model and are left out: 77" in said.err
    lists = pd.read_csv(out)
    assert sorted(set(lists["user"])) == [3, 5]
    assert 1 not in set(lists["item"])
    wrong = ordrec("recommend", model, *files, "--user-col", "age", "--item-col", "name", "-o", out,
                   "--overwrite")  # fmt: skip
    assert "no columns 'name': its first line is what, why" in wrong.err


def test_unknown_users_are_said_and_the_rest_is_answered() -> None:
    model = Popularity().fit(CLICKS)
    with pytest.warns(UserWarning, match="1 of 3 users are not in the model, such as 999"):
        assert sorted(set(model.recommend_all(2, [3, 999, 5])["user"])) == [3, 5]
    with pytest.raises(ArgumentError, match="1 of 1 users"):
        model.recommend_all(2, [999])


def test_ids_with_blanks_can_be_asked_for(ordrec, tmp_path: Path) -> None:
    blank = PAIRS.assign(user="u" + PAIRS["user"].astype(str), item=PAIRS["item"].astype(str) + " ")
    save(Popularity().fit(Ratings.from_frame(blank, rating=None)), tmp_path / "m")
    (tmp_path / "only.csv").write_text("3 \n5 \n")
    said = ordrec("recommend", tmp_path / "m", "-u", " u3", "--only", tmp_path / "only.csv",
                  "--include-rated")  # fmt: skip
    assert said.err == ""
    assert len(said.out.splitlines()) == 3


def test_clicks_are_compared_and_tuned(ordrec, tmp_path: Path) -> None:
    clicks = tmp_path / "clicks.csv"
    PAIRS.to_csv(clicks, index=False)
    compared = ordrec("evaluate", clicks, "-m", "popularity,ease", "-o", tmp_path / "r.csv")
    assert compared.code == 0
    assert set(pd.read_csv(tmp_path / "r.csv")["metric"]) == {
        "ndcg@10", "recall@20", "hit_rate@10", "coverage@10",
    }  # fmt: skip
    tuned = ordrec("tune", clicks, "-m", "ease", "--search", "user_power=0,0.5", "--trials", "2")
    assert tuned.code == 0


def test_a_served_model_of_picks_takes_in_a_visitor() -> None:
    from ordrec.serve.served_model import ServedModel

    served = ServedModel(quiet_recommender().fit(CLICKS), "clicks")
    assert served.about()["scale"] == [1.0]
    answer = served.fold_in([("3", 1.0)], 2, 1)
    assert [row["expected"] for row in answer["items"]] == [None, None]


def test_load_ratings_reads_a_file_without_ratings(tmp_path: Path) -> None:
    file = tmp_path / "plays.csv"
    file.write_text("listener;track;plays\nann;x;3\nbob;x;1\n")
    read = load_ratings(file, user="listener", item="track", rating=None, count="plays")
    assert read.to_frame()["count"].tolist() == [3, 1]
