"""Rankers in files: the same scores for all three kinds, and what cannot be saved or read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from ordrec import load, save
from ordrec.documents import QueryDocumentFeatures, RelevanceRanker
from ordrec.errors import ArgumentError, DataError, ModelFileError
from ordrec.ordinal import SVORIM, OrdinalLogistic
from ordrec.storage.archive import load_arrays, save_arrays

TEXTS = ["red apple pie", "green apple", "blue car", "red car", "apple pie crust", "car wash"]
GRADES, QUERIES = [2, 1, 0, 0, 2, 1], [1, 1, 1, 2, 2, 2]
WORDS = ["apple pie", "apple pie", "apple pie", "car", "car", "car"]
FRAME = pd.DataFrame({"title": TEXTS, "body": TEXTS[::-1], "price": [1.0, 3.0, 2.0, 5.0, 4.0, 6.0]})


def through_a_file(model: Any, folder: Path) -> Any:
    save(model, folder / "model.ordrec")
    return load(folder / "model.ordrec")


def rows(missing: bool = False) -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(6, 3))
    X[2, 1] = np.nan if missing else 0.5
    return X


CASES = {
    "features": (RelevanceRanker(SVORIM(), scaling="none"), rows(), QUERIES),
    "features, centred": (RelevanceRanker(SVORIM(), scaling="centre"), rows(True), QUERIES),
    "features, named": (
        RelevanceRanker(OrdinalLogistic()),
        pd.DataFrame(rows(), columns=["bm25", "length", "age"]),
        ["a", "a", "a", "b", "b", "b"],
    ),
    "texts": (RelevanceRanker(OrdinalLogistic()), TEXTS, WORDS),
    "texts in fields": (
        RelevanceRanker(
            OrdinalLogistic(),
            text=QueryDocumentFeatures(k1=0.9, stem="plural", stop_words=["wash"]),
        ),
        FRAME,
        WORDS,
    ),
    "texts, every parameter": (
        RelevanceRanker(
            OrdinalLogistic(),
            text=QueryDocumentFeatures(
                ["title"], k1=0.9, b=0.4, mu=300.0, smoothing=0.4, stop_words=["wash"],
                stem="plural", min_documents=2,
            ),
        ),
        FRAME,
        WORDS,
    ),
    "topics": (RelevanceRanker(OrdinalLogistic(alpha=0.1)), TEXTS, QUERIES),
    "topics with names": (
        RelevanceRanker(OrdinalLogistic(), kind="topics"), TEXTS, ["x y"] * 3 + ["z"] * 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_ranker_ranks_the_same(case: str, tmp_path: Path) -> None:
    ranker, X, queries = CASES[case]
    ranker.fit(X, GRADES, queries)
    again = through_a_file(ranker, tmp_path)
    np.testing.assert_array_equal(again.scores(X, queries), ranker.scores(X, queries))
    pd.testing.assert_frame_equal(again.rank(X, queries), ranker.rank(X, queries))
    pd.testing.assert_frame_equal(again.explain(X, queries, 0), ranker.explain(X, queries, 0))
    if again.kind_ == "texts":
        of_words, before = again.text_.get_params(), ranker.text_.get_params()
        for name in of_words.keys() - {"fields", "stop_words"}:  # which are those found
            assert of_words[name] == before[name], name
    assert (again.kind_, again.scaling) == (ranker.kind_, ranker.scaling)
    assert again.grades_.tolist() == [0, 1, 2]
    # what was judged is in the file, too
    updated, expected = (each.update(X, GRADES, queries) for each in (again, ranker))
    np.testing.assert_array_equal(updated.scores(X, queries), expected.scores(X, queries))
    # a second file is the same as the first
    save(again, tmp_path / "again.ordrec")
    first, second = (load_arrays(tmp_path / f"{name}.ordrec") for name in ("model", "again"))
    assert first[1] == second[1]
    for name, array in first[0].items():
        np.testing.assert_array_equal(array, second[0][name])


def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    path = tmp_path / "model.ordrec"
    with pytest.raises(ArgumentError, match="a Ridge cannot be saved: only"):
        save(RelevanceRanker(Ridge()).fit(rows(), GRADES, QUERIES), path)
    own = RelevanceRanker(OrdinalLogistic(), text=TfidfVectorizer()).fit(TEXTS, GRADES, QUERIES)
    with pytest.raises(ArgumentError, match="transformer of its own"):
        save(own, path)
    own = RelevanceRanker(OrdinalLogistic(), text=QueryDocumentFeatures(stem=str.upper))
    with pytest.raises(ArgumentError, match="function of your own"):
        save(own.fit(TEXTS, GRADES, WORDS), path)


@pytest.mark.parametrize("case", ["features", "texts in fields", "topics"])
def test_altered_files_are_refused_or_rank(case: str, tmp_path: Path) -> None:
    ranker, X, queries = CASES[case]
    path = tmp_path / "model.ordrec"
    save(ranker.fit(X, GRADES, queries), path)
    arrays, metadata = load_arrays(path)
    for name, array in arrays.items():
        for altered in (array[:-1], np.concatenate([array, array]), np.full_like(array, 2)):
            save_arrays(path, {**arrays, name: altered}, metadata)
            try:
                scores = load(path).scores(X, queries)
            except (ModelFileError, DataError):  # another name of a field, or of a topic
                continue
            assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    "change", [{"kind": "topics"}, {"kind": "texts"}, {"scaling": "wild"}, {"n_splits": 1}]
)
def test_forged_settings_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.ordrec"
    save(RelevanceRanker(SVORIM()).fit(rows(), GRADES, QUERIES), path)
    arrays, metadata = load_arrays(path)
    metadata["state"] |= change
    save_arrays(path, arrays, metadata)
    with pytest.raises(ModelFileError):
        load(path)
