"""Documents as TF-IDF vectors."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from ordrec.errors import ArgumentError, DataError
from ordrec.features.text import DocumentTfidf, read_stop_list


@pytest.fixture
def records() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "title": ["Heart failure", "Heart murmur", "Kidney failure", "About nothing", "Heart"],
            "abstract": ["The heart in failure.", None, "Failure of a kidney 1987", "", "murmur"],
        }
    )


def test_matches_the_definition(records: pd.DataFrame) -> None:
    tfidf = DocumentTfidf(min_documents=2)
    X = tfidf.fit_transform(records).toarray()
    assert tfidf.get_feature_names_out().tolist() == ["failure", "heart", "murmur"]
    counts = np.array([[2, 2, 0], [0, 1, 1], [2, 0, 0], [0, 0, 0], [0, 1, 1]])
    expected = counts * (np.log(5 / np.array([2, 3, 2])) + 1)
    norms = np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(X, expected / np.where(norms > 0, norms, 1))


def test_three_documents_are_needed_by_default(records: pd.DataFrame) -> None:
    tfidf = DocumentTfidf().fit(records)
    assert tfidf.get_feature_names_out().tolist() == ["heart"]


def test_new_documents_have_the_same_columns(records: pd.DataFrame) -> None:
    tfidf = DocumentTfidf(min_documents=2).fit(records)
    other = pd.DataFrame({"title": ["murmur of unknown origin"], "abstract": [np.nan]})
    assert tfidf.transform(other).toarray().tolist() == [[0.0, 0.0, 1.0]]


def test_stop_lists(records: pd.DataFrame, tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "smart.txt"
    path.write_text("the\n\nHeart\nisn't\n")
    assert read_stop_list(path) == ["the", "heart", "isn't"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = DocumentTfidf("smart", stop_file=path, min_documents=1).fit(records)
    words = chosen.get_feature_names_out().tolist()
    assert "heart" not in words
    assert "about" in words
    assert "1987" not in words
    assert "about" not in DocumentTfidf(min_documents=1).fit(records).get_feature_names_out()
    assert "the" in DocumentTfidf(None, min_documents=1).fit(records).get_feature_names_out()


def test_bad_input_is_named(records: pd.DataFrame, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="no column 'abstract'"):
        DocumentTfidf().fit(records[["title"]])
    with pytest.raises(DataError, match="no word occurs in 5 of the 5 documents"):
        DocumentTfidf(min_documents=5).fit(records)
    with pytest.raises(ArgumentError, match="stop_list must be"):
        DocumentTfidf("german").fit(records)
    with pytest.raises(ArgumentError, match="must be given together"):
        DocumentTfidf("smart").fit(records)
    with pytest.raises(ArgumentError, match="must be given together"):
        DocumentTfidf(stop_file=tmp_path / "words").fit(records)
    with pytest.raises(DataError, match="no such stop list"):
        DocumentTfidf("smart", stop_file=tmp_path / "words").fit(records)
    (tmp_path / "words").write_text("\n")
    with pytest.raises(DataError, match="is empty"):
        read_stop_list(tmp_path / "words")


@pytest.mark.realdata
def test_real_stop_list(real_data, records: pd.DataFrame) -> None:  # type: ignore[no-untyped-def]
    path = real_data / "stopwords" / "smart-571.txt"
    assert len(read_stop_list(path)) == 571
    DocumentTfidf("smart", stop_file=path, min_documents=1).fit(records)
