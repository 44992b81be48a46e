"""What a ranker is asked for: kinds of input, probabilities, reasons, updates, ties, bad input."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge

from ordrec.datasets import load_letor
from ordrec.documents import RelevanceRanker
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import mean_average_precision, ndcg
from ordrec.ordinal import SVORIM, OrdinalLogistic

TOPICS = ["rose", "laptop", "cat", "bridge", "violin", "bread", "train", "storm", "lamp", "coin"]
FILLER = ["the", "of", "and", "to", "in", "on", "with", "from", "for", "this", "that", "about"]


def library(seed: int = 0, per_query: int = 8):
    """Texts that mention the query's word as often as they are relevant, among filler."""
    rng = np.random.default_rng(seed)
    texts, grades, queries = [], [], []
    for topic in TOPICS:
        for _ in range(per_query):
            grade = int(rng.integers(0, 3))
            other = rng.choice([word for word in TOPICS if word != topic], 3 - grade)
            words = [*rng.choice(FILLER, 20), *[topic] * grade, *other]
            rng.shuffle(words)
            texts.append(" ".join(words))
            grades.append(grade)
            queries.append(topic)
    return texts, np.array(grades), np.array(queries, dtype=object)


def table(n_queries: int = 8, per_query: int = 10, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * per_query, 3))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=len(X)), [-0.3, 0.8])
    return X, y, np.repeat(np.arange(n_queries), per_query)


# ---- kinds ---------------------------------------------------------------------------------------


def test_the_kind_of_input_is_recognised() -> None:
    texts, grades, words = library()
    X, y, queries = table()
    ordinal = OrdinalLogistic()
    for given_X, given_y, given_queries, kind in (
        (X, y, queries, "features"),
        (sparse.csr_array(X), y, queries, "features"),
        (pd.DataFrame(X), y, queries, "features"),
        (texts, grades, words, "texts"),
        (pd.DataFrame({"body": texts}), grades, words, "texts"),
        (texts, grades, np.unique(words, return_inverse=True)[1], "topics"),
        (texts, grades, np.array([f"q{word}" for word in words], dtype=object), "topics"),
    ):
        assert RelevanceRanker(ordinal).fit(given_X, given_y, given_queries).kind_ == kind
    asked = RelevanceRanker(ordinal, kind="topics").fit(texts, grades, words)
    assert asked.kind_ == "topics"
    with pytest.raises(DataError, match="needs documents as texts"):
        RelevanceRanker(ordinal, kind="texts").fit(X, y, queries)
    with pytest.raises(DataError, match="needs rows of numbers"):
        RelevanceRanker(ordinal, kind="features").fit(texts, grades, words)
    with pytest.raises(ArgumentError, match="unknown kind 'vague'"):
        RelevanceRanker(ordinal, kind="vague").fit(X, y, queries)  # type: ignore[arg-type]


def test_the_default_estimator_is_chosen_on_queries_held_out() -> None:
    texts, grades, queries = library()
    ranker = RelevanceRanker().fit(texts, grades, queries)
    assert ranker.choice_ is not None
    assert ranker.choice_["map"].is_monotonic_decreasing
    assert "alpha=" in ranker.choice_["setting"][0]
    new, found, asked = library(seed=1)
    assert ndcg(found, ranker.scores(new, asked), groups=asked) > 0.95


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=60), st.integers(2, 6), st.integers(0, 99))
def test_inner_parts_never_share_a_query(numbers: list[int], n_splits: int, seed: int) -> None:
    queries = np.array(numbers)
    y = np.arange(queries.size) % 2
    ranker = RelevanceRanker(n_splits=n_splits, random_state=seed)
    ranker.kind_, ranker.grades_ = "features", np.unique(y)
    tested: list[int] = []
    for train, test in ranker._inner_parts(y, queries):
        assert not set(queries[train]) & set(queries[test])
        assert np.sort(np.concatenate([train, test])).tolist() == list(range(queries.size))
        tested += test.tolist()
    assert len(tested) == len(set(tested))


def test_a_topic_with_one_grade_is_left_out_and_said() -> None:
    texts, grades, words = library()
    grades[:8] = 1
    with pytest.warns(UserWarning, match="topic 'rose': all 8 documents have one grade"):
        ranker = RelevanceRanker(OrdinalLogistic(), kind="topics").fit(texts, grades, words)
    assert "rose" not in ranker.estimators_
    with pytest.raises(DataError, match="topic 'rose'"):
        ranker.scores(texts[:8], words[:8])


# ---- the query counts ----------------------------------------------------------------------------


def test_permuting_the_queries_leaves_chance() -> None:
    texts, grades, queries = library(per_query=20)
    ranker = RelevanceRanker(OrdinalLogistic()).fit(texts, grades, queries)
    new, found, asked = library(seed=1, per_query=20)
    rng = np.random.default_rng(0)
    right = ndcg(found, ranker.scores(new, asked), groups=asked)
    names = dict(zip(TOPICS, np.roll(TOPICS, 1), strict=True))
    wrong = ndcg(found, ranker.scores(new, [names[word] for word in asked]), groups=asked)
    chance = np.mean([ndcg(found, rng.random(found.size), groups=asked) for _ in range(50)])
    assert right > 0.95
    assert wrong < chance + 0.1  # a document with another topic's word has less of its own


def test_a_word_that_only_one_document_has_ranks_it_first() -> None:
    texts, grades, queries = library()
    texts = [*texts, "zeppelin over the bridge"]
    ranker = RelevanceRanker(OrdinalLogistic()).fit(texts, [*grades, 2], [*queries, "zeppelin"])
    documents = [*texts[:10], "a zeppelin in the storm"]
    ranking = ranker.rank(documents, ["zeppelin"] * 11)
    assert ranking["document"][0] == 10
    assert ranking["tied"].tolist()[0] is False


# ---- probabilities, reasons, updates, ties -------------------------------------------------------


def test_probabilities_of_grades_add_up_and_rank_alike() -> None:
    X, y, queries = table()
    ranker = RelevanceRanker(OrdinalLogistic()).fit(X, y, queries)
    p = ranker.predict_proba(X, queries)
    assert p.shape == (80, 3)
    assert p.sum(axis=1) == pytest.approx(np.ones(80))
    expected = p @ ranker.grades_
    assert np.corrcoef(expected, ranker.scores(X, queries))[0, 1] > 0.95
    with pytest.raises(ArgumentError, match="a Ridge has no probabilities"):
        RelevanceRanker(Ridge()).fit(X, y, queries).predict_proba(X, queries)


def test_probabilities_of_topics_have_a_column_for_every_grade() -> None:
    texts, grades, words = library()
    grades[:8] = np.where(grades[:8] > 0, 2, 0)  # the first topic lacks a grade
    ranker = RelevanceRanker(OrdinalLogistic(), kind="topics").fit(texts, grades, words)
    p = ranker.predict_proba(texts, words)
    assert p.shape == (80, 3)
    assert p.sum(axis=1) == pytest.approx(np.ones(80))
    assert (p[:8, 1] == 0).all()


@pytest.mark.parametrize("kind", ["features", "texts", "topics"])
def test_lifts_of_a_linear_model_add_up_to_the_difference_of_scores(kind: str) -> None:
    if kind == "features":
        X, y, queries = table()
    else:
        X, y, queries = library()
    ranker = RelevanceRanker(OrdinalLogistic(), kind=kind).fit(X, y, queries)
    scores = ranker.scores(X, queries)
    first_query = np.flatnonzero(queries == queries[0])
    order = first_query[np.argsort(-scores[first_query], kind="stable")]
    for here, there in [*pairwise(order), (order[-1], order[-2])]:
        reasons = ranker.explain(X, queries, int(here))
        assert reasons["lift"].sum() == pytest.approx(scores[here] - scores[there], abs=1e-9)
        assert reasons["lift"].is_monotonic_decreasing
    if kind == "texts":
        assert "text:bm25" in set(reasons["feature"])
    with pytest.raises(ArgumentError, match="only document of its query"):
        ranker.explain(X[:1], queries[:1], 0)


def test_lifts_of_other_models_are_what_the_score_loses() -> None:
    X, y, queries = table()
    named = pd.DataFrame(X, columns=["quality", "noise", "more noise"])
    ranker = RelevanceRanker(SVORIM(kernel="rbf")).fit(named, y, queries)
    best = int(np.argmax(np.where(queries == 0, ranker.scores(named, queries), -np.inf)))
    reasons = ranker.explain(named, queries, best)
    assert set(reasons["feature"]) == {"quality", "noise", "more noise"}
    assert reasons.columns.tolist() == ["feature", "value", "other", "lift"]


@pytest.mark.parametrize("kind", ["features", "texts", "topics"])
def test_an_update_is_a_fit_to_both_parts(kind: str) -> None:
    X, y, queries = table() if kind == "features" else library()
    ranker = RelevanceRanker(OrdinalLogistic(), kind=kind)
    part = np.arange(0, 80, 2)  # queries have documents in both parts
    rest = np.setdiff1d(np.arange(80), part)
    if kind == "features":
        first, second = X[part], X[rest]
        together = np.concatenate([first, second])
    else:
        first, second = [X[row] for row in part], [X[row] for row in rest]
        together = first + second
    old = clone(ranker).fit(first, y[part], queries[part])
    new = old.update(second, y[rest], queries[rest])
    both = clone(ranker)
    order = np.concatenate([part, rest])
    both.fit(together, y[order], queries[order])
    if kind != "features":  # what is known about the words is that of the first part
        both.text_ = old.text_
        both._learn(both._features(together, queries[order]), y[order], queries[order])
    np.testing.assert_allclose(new.scores(X, queries), both.scores(X, queries), rtol=1e-9)
    assert old._judged_grades.size == 40  # the old ranker is as it was
    assert new._judged_grades.size == 80


def test_an_update_keeps_the_chosen_setting() -> None:
    X, y, queries = table(12)
    ranker = RelevanceRanker().fit(X, y, queries)
    new = ranker.update(*table(2, seed=3))
    assert new.estimator is None
    assert new.estimator_.get_params() == ranker.estimator_.get_params()
    with pytest.raises(DataError, match="given features"):
        ranker.update(["a text"], [1], ["text"])


def test_ties_keep_the_order_given_and_are_marked() -> None:
    X, y, queries = table()
    ranker = RelevanceRanker(Ridge(), scaling="none").fit(X, y, queries)
    same = np.array([[0.0, 0, 0], [5.0, 0, 0], [0.0, 0, 0], [0.0, 0, 0]])
    ranking = ranker.rank(same, ["q"] * 4, ["a", "b", "c", "d"])
    assert ranking["document"].tolist() == ["b", "a", "c", "d"]
    assert ranking["tied"].tolist() == [False, True, True, True]


# ---- bad input -----------------------------------------------------------------------------------


def test_constant_scores_are_refused_with_the_reason() -> None:
    X, y, queries = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match="gives all documents of a query the same score"):
            RelevanceRanker(OrdinalLogistic(), scaling="none").fit(np.ones_like(X), y, queries)
        by_query = queries[:, None] * np.ones((1, 2))  # tells queries apart, not documents
        with pytest.raises(DataError, match="tell queries apart but not documents"):
            RelevanceRanker(Ridge(), scaling="none").fit(by_query, y, queries)


def test_bad_input_has_its_message() -> None:
    X, y, queries = table()
    texts, grades, words = library()
    ranker = RelevanceRanker(OrdinalLogistic())
    with pytest.raises(DataError, match="all documents have grade 1"):
        ranker.fit(X, np.ones(80, dtype=int), queries)
    with pytest.raises(DataError, match="grades must be numbers"):
        ranker.fit(X, np.array(["good"] * 80), queries)
    with pytest.raises(DataError, match="grades must be numbers"):
        ranker.fit(X, np.where(y > 0, np.nan, 1.0), queries)
    with pytest.raises(DataError, match="80 documents, 79 grades"):
        ranker.fit(X, y[1:], queries)
    with pytest.raises(DataError, match="there are no documents"):
        ranker.fit(X[:0], y[:0], queries[:0])
    with pytest.raises(DataError, match="the query of row 3 is missing"):
        ranker.fit(texts, grades, [None if row == 3 else word for row, word in enumerate(words)])
    with pytest.raises(DataError, match="features must be numbers"):
        ranker.fit([["a", "b"]] * 80, y, queries)
    with pytest.raises(ArgumentError, match="n_splits must be at least 2"):
        RelevanceRanker(n_splits=1).fit(X, y, queries)
    # grades outside the declared ones
    with pytest.raises(DataError, match="2"):
        RelevanceRanker(OrdinalLogistic(classes=[0, 1])).fit(X, y, queries)
    fitted = ranker.fit(X, y, queries)
    with pytest.raises(DataError, match="fitted to 3 features but given 2"):
        fitted.scores(X[:, :2], queries)
    with pytest.raises(DataError, match="80 documents and 3 queries"):
        fitted.scores(X, queries[:3])
    with pytest.raises(DataError, match="no word is left"):
        RelevanceRanker(OrdinalLogistic(), kind="texts").fit(["", ""], [0, 1], ["a", "a"])


def test_no_documents_have_no_scores() -> None:
    X, y, queries = table()
    fitted = RelevanceRanker(OrdinalLogistic()).fit(X, y, queries)
    assert fitted.scores(X[:0], queries[:0]).size == 0
    assert fitted.rank(X[:0], queries[:0]).empty


def test_too_few_queries_to_choose_are_said() -> None:
    X, y, queries = table(1)
    with pytest.warns(UserWarning, match="too few queries"):
        RelevanceRanker().fit(X, y, queries)


def test_an_empty_text_comes_last() -> None:
    texts, grades, queries = library()
    ranker = RelevanceRanker(OrdinalLogistic()).fit([*texts, ""], [*grades, 0], [*queries, "cat"])
    best = texts[int(np.flatnonzero((queries == "cat") & (grades == 2))[0])]
    ranking = ranker.rank(["", best, "a dog"], ["cat"] * 3)
    assert ranking["document"][0] == 1


def test_documents_in_two_languages_are_ranked_by_the_words_they_share() -> None:
    texts, grades, queries = library()
    other = ["die rose blüht im garten rose rose", "der zug kommt aus köln"]
    ranker = RelevanceRanker(OrdinalLogistic()).fit(
        [*texts, *other], [*grades, 2, 0], [*queries, "rose", "rose"]
    )
    assert ranker.rank(other, ["rose"] * 2)["document"].tolist() == [0, 1]
    assert ranker.rank(other, ["köln"] * 2)["document"].tolist() == [1, 0]


def test_a_document_of_a_million_words_is_one_of_many() -> None:
    texts, grades, queries = library()
    ranker = RelevanceRanker(OrdinalLogistic()).fit(texts, grades, queries)
    long = " ".join(["storm", *["and", "about"] * 500_000])
    start = time.perf_counter()
    ranking = ranker.rank([long, "storm storm", "lamp"], ["storm"] * 3)
    assert time.perf_counter() - start < 20
    assert ranking["document"][0] == 1


# ---- LETOR ---------------------------------------------------------------------------------------


@pytest.mark.realdata
def test_default_arguments_reach_the_published_numbers(real_data) -> None:
    """Training and validation queries train; the setting is chosen inside of them."""
    letor = load_letor(real_data / "ohsumed-letor")
    values = []
    for train, validation, test in letor.folds():
        rows = np.concatenate([train, validation])
        ranker = RelevanceRanker().fit(letor.X[rows], letor.y[rows], letor.queries[rows])
        scores, queries = ranker.scores(letor.X[test], letor.queries[test]), letor.queries[test]
        values.append(
            (
                ndcg(letor.y[test], scores, groups=queries, discount="letor", undefined=0.0),
                mean_average_precision(letor.y[test], scores, groups=queries, undefined=0.0),
            )
        )
    gain, precision = np.mean(values, axis=0)
    assert gain >= 0.4533
    assert precision >= 0.4499


@pytest.mark.realdata
def test_a_constant_machine_on_letor_is_refused(real_data) -> None:
    letor = load_letor(real_data / "ohsumed-letor")
    rows = np.isin(letor.queries, np.unique(letor.queries)[:80])
    with pytest.raises(DataError, match="SVORIM gives all documents of a query the same score"):
        RelevanceRanker(SVORIM(kernel="linear"), scaling="none").fit(
            letor.X[rows], letor.y[rows], letor.queries[rows]
        )
