"""Features of queries and documents: against plain Python, scikit-learn, and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.naive_documents import NaiveCollection
from sklearn.feature_extraction.text import TfidfVectorizer

from ordrec.documents import QueryDocumentFeatures
from ordrec.documents.features import NAMES, without_plural
from ordrec.errors import ArgumentError, DataError

WORDS = ["rose", "garden", "cat", "food", "laptop", "repair", "screen", "of"]
TEXTS = st.lists(st.sampled_from([*WORDS, "x"]), max_size=12).map(" ".join)


def column(features: QueryDocumentFeatures, X: np.ndarray, name: str) -> np.ndarray:
    return X[:, list(features.get_feature_names_out()).index(name)]


@given(
    st.lists(TEXTS, min_size=1, max_size=6).filter(lambda texts: any("a" in t for t in texts)),
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8),
    st.floats(0.1, 3), st.floats(0, 1), st.floats(1, 3000), st.floats(0.05, 0.95),
)  # fmt: skip
def test_every_feature_is_that_of_plain_python(collection, pairs, k1, b, mu, smoothing) -> None:
    features = QueryDocumentFeatures(k1=k1, b=b, mu=mu, smoothing=smoothing).fit(collection)
    X = features.transform([q for q, _ in pairs], [d for _, d in pairs])
    naive = NaiveCollection(collection, k1, b, mu, smoothing)
    for row, (query, document) in zip(X, pairs, strict=True):
        expected = naive.features(query, document)
        np.testing.assert_allclose(row, [expected[name] for name in NAMES], rtol=1e-9, atol=1e-9)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6), TEXTS)
def test_the_union_has_the_words_of_all_fields(rows, query) -> None:
    frame = pd.DataFrame(rows, columns=["title", "body"])
    frame.loc[len(frame)] = ["cat", "food"]
    features = QueryDocumentFeatures().fit(frame)
    X = features.transform(query, frame)
    for field, texts in {
        "title": frame["title"],
        "body": frame["body"],
        "all": frame["title"] + " " + frame["body"],
    }.items():
        naive = NaiveCollection(list(texts))
        for name in NAMES:
            expected = [naive.features(query, text)[name] for text in texts]
            np.testing.assert_allclose(
                column(features, X, f"{field}:{name}"), expected, rtol=1e-9, atol=1e-9
            )


def test_the_cosine_is_scikit_learns() -> None:
    texts = ["cat food", "garden rose garden", "laptop repair of a laptop", "cat cat rose"]
    queries = ["cat rose", "laptop of", "food food cat"]
    tfidf = TfidfVectorizer().fit(texts)
    expected = (tfidf.transform(queries) @ tfidf.transform(texts).T).toarray()
    features = QueryDocumentFeatures().fit(texts)
    for query, row in zip(queries, expected, strict=True):
        found = column(features, features.transform(query, texts), "text:cosine")
        np.testing.assert_allclose(found, row)


def test_bm25_is_that_of_bm25s() -> None:
    bm25s = pytest.importorskip("bm25s")
    texts = ["cat food", "garden rose garden", "laptop repair of a laptop", "cat cat rose"]
    split = [text.split() for text in texts]
    retriever = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    retriever.index(split, show_progress=False)
    features = QueryDocumentFeatures().fit(texts)
    for query in ("cat rose", "laptop garden"):
        found = column(features, features.transform(query, texts), "text:bm25")
        expected = retriever.get_scores(query.split())
        # bm25s counts "a" as a word, which moves lengths a little; the numerator has no k1 + 1
        np.testing.assert_allclose(found / 2.2, expected, atol=0.05)


def test_a_word_that_one_document_has_ranks_it_first() -> None:
    texts = [f"rose garden number{i}" for i in range(30)]
    features = QueryDocumentFeatures().fit(texts)
    X = features.transform("number17", texts)
    for name in set(NAMES) - {"log_length"}:
        assert column(features, X, f"text:{name}").argmax() == 17, name


def test_numbers_and_vectors_come_along() -> None:
    frame = pd.DataFrame(
        {
            "text": ["cat", "rose"],
            "price": [1.5, 2.0],
            "vector": [[1, 2], [3, 4]],
            "tag": [None] * 2,
        }
    )
    features = QueryDocumentFeatures().fit(frame)
    names = list(features.get_feature_names_out())
    assert names[-3:] == ["price", "vector_0", "vector_1"]
    assert features.transform("cat", frame)[:, -3:].tolist() == [[1.5, 1, 2], [2.0, 3, 4]]
    with pytest.raises(DataError, match="column 'vector' held 2 numbers"):
        features.transform("cat", frame.assign(vector=[[1, 2, 3], [1, 2, 3]]))
    with pytest.raises(DataError, match="no column 'price'"):
        features.transform("cat", frame.drop(columns="price"))


def test_repeated_pairs_and_any_index_are_welcome() -> None:
    texts = pd.Series(["cat food", "rose", "cat food"], index=[7, 7, 1]).to_frame("text")
    features = QueryDocumentFeatures().fit(texts)
    X = features.transform(["cat", "cat", "cat"], texts)
    np.testing.assert_array_equal(X[0], X[2])
    assert (X[1] != X[0]).any()


def test_stop_words_and_stems(tmp_path) -> None:
    texts = ["the cats of the garden", "a rose"]
    listed = tmp_path / "stop.txt"
    listed.write_text("the\nof\n")
    for stop_words in ("english", listed, ["the", "of"]):
        features = QueryDocumentFeatures(stop_words=stop_words, stem="plural").fit(texts)
        assert sorted(features.vocabulary_) == ["cat", "garden", "rose"]
    assert sorted(QueryDocumentFeatures(stem=lambda word: word[0]).fit(texts).vocabulary_) == list(
        "cgort"
    )
    assert QueryDocumentFeatures(min_documents=2).fit(["cat rose", "cat"]).vocabulary_ == {"cat": 0}
    assert [without_plural(word) for word in ("shoes", "bees", "gas", "studies", "bus")] == [
        "shoe", "bee", "gas", "study", "bus",
    ]  # fmt: skip


def test_a_huge_document_and_empty_ones() -> None:
    texts = ["", "cat " * 1_000_000, "rose"]
    features = QueryDocumentFeatures().fit(texts)
    X = features.transform(["cat", "cat", ""], texts)
    assert np.isfinite(X).all()
    assert column(features, X, "text:matches").tolist() == [0, 1_000_000, 0]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda f: f.transform(["cat"], ["cat", "rose"]), "1 queries and 2 documents"),
        (lambda f: f.transform([1, 2], ["cat", "rose"]), "query of row 0 is 1, not a text"),
        (lambda f: f.transform("cat", "cat"), "documents is a single text"),
        (lambda f: f.fit(["", "x"]), "no word is left of 2 documents in text"),
        (lambda f: f.set_params(min_documents=5).fit(["cat"]), "no word occurs in 5 of the 1"),
        (lambda f: f.set_params(fields=["title"]).fit(["cat"]), "no column 'title'"),
        (lambda f: f.fit(pd.DataFrame({"price": [1.0]})), "no column of texts"),
    ],
)
def test_bad_input(call, said) -> None:
    with pytest.raises(DataError, match=said):
        call(QueryDocumentFeatures().fit(["cat food", "rose"]))


@pytest.mark.parametrize(
    "params", [{"k1": 0}, {"b": 1.5}, {"mu": -1}, {"smoothing": 1}, {"stem": "german"}]
)
def test_bad_parameters(params) -> None:
    with pytest.raises(ArgumentError, match=next(iter(params))):
        QueryDocumentFeatures(**params).fit(["cat"])
