"""Pairs read from csv files, and tables of any model's predictions for them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec.data.ids import ids_like
from ordrec.data.times import seconds_of
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.lists.frames import predict_pairs, read_pairs
from ordrec.recommend import BiasModel, ImplicitALS, PersonalThresholds, RatingPredictor, make_model

RATINGS = synthetic_ratings(20, 15, n_ratings=150, seed=1)
PAIRS = pd.DataFrame({"user": [0, 3, -1], "item": [1, -1, 2], "timestamp": [0, 5, 6]})


@pytest.fixture(scope="module")
def biases() -> BiasModel:
    return BiasModel().fit(RATINGS)


def written(folder: Path, text: str) -> Path:
    path = folder / "pairs.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["mean", "histogram", "bias", "item-knn", "factors"])
def test_tables_hold_what_the_model_says(name: str) -> None:
    model = make_model(name).fit(RATINGS)
    table = predict_pairs(model, PAIRS)
    assert np.array_equal(table["rating"], model.predict(PAIRS["user"], PAIRS["item"]))
    assert table["known_user"].tolist() == [True, True, False]
    assert table["known_item"].tolist() == [True, False, True]
    columns = [f"p_{value:g}" for value in RATINGS.scale.values]
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(PAIRS["user"], PAIRS["item"])
        assert np.array_equal(table[columns], p)
        assert np.allclose(table["expected"], p @ RATINGS.scale.values)
    else:
        assert not set(columns) & set(table)
    plain = predict_pairs(model, PAIRS, proba=False)
    assert plain.columns.tolist() == ["user", "item", "rating", "known_user", "known_item"]
    assert plain.equals(table[plain.columns])


def test_scores_and_times_go_where_they_are_taken() -> None:
    ranking = ImplicitALS(n_factors=2, n_iter=2).fit(RATINGS)
    assert np.array_equal(
        predict_pairs(ranking, PAIRS)["score"], ranking.scores(PAIRS["user"], PAIRS["item"])
    )
    layer = PersonalThresholds().fit(RATINGS, np.random.default_rng(0).normal(size=150))
    with pytest.raises(ArgumentError, match="give scores"):
        predict_pairs(layer, PAIRS)
    scored = PAIRS.assign(score=[0.1, 0.2, 3.0])
    table = predict_pairs(layer, scored)
    assert np.array_equal(
        table["rating"], layer.predict(PAIRS["user"], PAIRS["item"], [0.1, 0.2, 3])
    )
    own = PersonalThresholds(BiasModel(), n_splits=2).fit(RATINGS)
    assert predict_pairs(own, scored).equals(predict_pairs(own, PAIRS))
    rng = np.random.default_rng(0)
    dated = RATINGS._replaced(timestamps=rng.integers(1000, 1100, RATINGS.n_ratings))
    timed = RatingPredictor(preset="fast").fit(dated)
    rated = dated.to_frame().head(30)
    p = timed.predict_proba(rated["user"], rated["item"], rated["timestamp"])
    assert np.allclose(predict_pairs(timed, rated)["expected"], p @ RATINGS.scale.values)


def test_pairs_are_read_by_the_type_of_the_models_ids(biases, tmp_path) -> None:
    text = "\ufeffitem,user,note\n 3 ,7,x\n-2,+4,y\n5.0,6,\n"
    assert read_pairs(written(tmp_path, text), biases).to_dict("list") == {
        "user": [7, 4, 6],
        "item": [3, -2, 5],
    }
    frame = RATINGS.to_frame().assign(user=lambda f: "0" + f["user"].astype(str))
    texts = BiasModel().fit(type(RATINGS).from_frame(frame))
    found = read_pairs(written(tmp_path, "user,item\n007,3\nNA,4\n"), texts)
    assert found["user"].tolist() == ["007", "NA"]
    assert predict_pairs(texts, found)["known_user"].tolist() == ["007" in texts.user_ids_, False]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("user,item\n1,2\nbob,3\n,4\n", r"row 1 \('bob'\), row 2 \(''\): user is not a whole"),
        ("user,item\n1,2.5\n", r"row 0 \('2.5'\): item is not a whole number"),
        ("user,item\n99999999999999999999,1\n", "user is not a whole number"),
        ("user,item\n" + "x,1\n" * 9, "and 4 more: user"),
        ("user,thing\n1,2\n", "no column 'item'"),
        ("user,item,timestamp\n1,2,soon\n", "row 0: timestamp 'soon' is neither seconds"),
        ("user,item,score\n1,2,high\n", "score is not a number"),
        ("", "not a csv table"),
        ('user,item\n"1,2\n', "not a csv table"),
    ],
)
def test_unreadable_rows_are_named(biases, tmp_path, text: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as caught:
        read_pairs(written(tmp_path, text), biases)
    assert "pairs.csv" in str(caught.value)


def test_missing_and_foreign_files(biases, tmp_path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_pairs(tmp_path / "none.csv", biases)
    (tmp_path / "latin.csv").write_bytes(b"user,item\n1,\xe9\xff\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_pairs(tmp_path / "latin.csv", biases)
    with pytest.raises(ArgumentError, match="no column 'user'"):
        predict_pairs(biases, pd.DataFrame({"item": [1]}))


def test_no_pairs_at_all(biases, tmp_path) -> None:
    empty = read_pairs(written(tmp_path, "user,item\n"), biases)
    table = predict_pairs(biases, empty)
    assert len(table) == 0
    assert "rating" in table


def test_times_and_ids() -> None:
    written_times = ["12", "1e3", "1970-01-02", "1970-01-01T00:01:00+00:00", " "]
    assert seconds_of(written_times).tolist() == [12, 1000, 86400, 60, 0]
    assert ids_like(pd.Index([1], dtype="uint64"), ["4"], "user").tolist() == [4]
