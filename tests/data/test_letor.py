"""LETOR lines, missing features and the five folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from ordrec.datasets import load_letor
from ordrec.errors import ArgumentError, DataError


def test_sample(samples):
    letor = load_letor(samples / "letor")
    assert letor.X.shape == (15, 4)
    assert letor.parts.tolist() == np.repeat([1, 2, 3, 4, 5], 3).tolist()
    assert letor.queries.tolist() == letor.parts.tolist()
    assert letor.documents.tolist() == list(range(1001, 1016))
    assert np.isnan(letor.X).sum() == 3
    assert np.isnan(letor.X[3, 2])


def test_equals_scikit_learn_where_nothing_is_null(samples):
    file = samples / "letor" / "S1.txt"
    X, y, queries = load_svmlight_file(str(file), query_id=True, zero_based=False)
    letor = load_letor(file)
    np.testing.assert_array_equal(letor.X, X.toarray())
    np.testing.assert_array_equal(letor.y, y)
    np.testing.assert_array_equal(letor.queries, queries)


def test_folds_rotate(samples):
    letor = load_letor(samples / "letor")
    rotation = [tuple(sorted(set(letor.parts[rows])) for rows in fold) for fold in letor.folds()]
    assert rotation == [
        ([1, 2, 3], [4], [5]),
        ([2, 3, 4], [5], [1]),
        ([3, 4, 5], [1], [2]),
        ([1, 4, 5], [2], [3]),
        ([1, 2, 5], [3], [4]),
    ]
    for fold in letor.folds():
        assert sorted(np.concatenate(fold)) == list(range(15))


def test_one_file_has_no_folds(samples):
    with pytest.raises(DataError, match=r"need all of S1\.\.S5"):
        next(load_letor(samples / "letor" / "S1.txt").folds())


def test_versions_are_chosen_by_folder(samples, tmp_path):
    for version, value in (("QueryLevelNorm", 1), ("Feature-null", 2)):
        (tmp_path / version).mkdir()
        for part in range(1, 6):
            (tmp_path / version / f"S{part}.txt").write_text(f"0 qid:1 1:{value} #docid = 1\n")
    assert load_letor(tmp_path).X[0, 0] == 1
    assert load_letor(tmp_path, features="Feature-null").X[0, 0] == 2
    with pytest.raises(ArgumentError, match=r"no features 'mine', only \['Feature-null', 'Quer"):
        load_letor(tmp_path, features="mine")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0 qid:1 1:2\n0 qid:1 1:2 2:3\n", "line 2: 2 features, 1 in the lines before"),
        ("x qid:1 1:2\n", "line 1: 'x' is not a whole number"),
        ("0 1:2 2:3\n", "line 1: '1:2' is not a qid"),
        ("0 qid:1 2:2\n", "line 1: '2:2' is not feature 1"),
        ("0 qid:1 1:abc\n", "line 1: could not convert"),
        ("0 qid:1 1:inf\n", "line 1: 'inf' is not a finite number"),
        ("0 qid:1\n", "line 1: no features"),
        ("0\n", "line 1"),
        ("", "no judged pairs"),
    ],
)
def test_errors_name_the_line(tmp_path, content, message):
    (tmp_path / "S1.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        load_letor(tmp_path)


def test_documents_may_be_texts(tmp_path) -> None:
    """Once -1, so that a ranking could not be told apart."""
    file = tmp_path / "g.txt"
    file.write_text("1 qid:1 1:0.5 #docid = G00-00-0000001\n0 qid:1 1:0.2 #docid = 7\n")
    letor = load_letor(file)
    assert letor.documents.tolist() == ["G00-00-0000001", "7"]
    assert letor.is_named
    file.write_text("1 qid:1 1:0.5 #docid = 8\n0 qid:1 1:0.2\n")
    assert load_letor(file).documents.tolist() == [8, -1]
    assert not load_letor(file).is_named
