"""Ranking by relevance: known orders, scaling within queries, texts, TREC files, LETOR."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

from ordrec.documents import RelevanceRanker
from ordrec.documents.trec import measure_run, read_qrels, write_qrels, write_run
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import mean_average_precision, ndcg, precision_at
from ordrec.ordinal import SVORIM, OrdinalLogistic


def judged(n_queries: int = 12, per_query: int = 15, seed: int = 0, shift: float = 0.0):
    """Documents whose first feature determines the grade, at a different level in each query."""
    rng = np.random.default_rng(seed)
    queries = np.repeat(np.arange(n_queries), per_query)
    quality = rng.standard_normal(queries.size)
    y = np.digitize(quality, [0.0, 1.0])
    level = shift * rng.standard_normal(n_queries)[queries]
    X = np.column_stack([quality + level, rng.standard_normal(queries.size)])
    return X, y, queries


@pytest.mark.parametrize(
    ("estimator", "how"),
    [
        (SVORIM(kernel="linear"), "latent"),
        (OrdinalLogistic(), "expected"),
        (LogisticRegression(), "auto"),
        (Ridge(), "auto"),
    ],
)
def test_documents_come_in_order_of_relevance(estimator, how: str) -> None:
    X, y, queries = judged()
    ranker = RelevanceRanker(estimator, rank_by=how).fit(X, y, queries)
    X_new, y_new, queries_new = judged(5, seed=1)
    assert ndcg(y_new, ranker.scores(X_new, queries_new), groups=queries_new) > 0.97


def test_a_ranking_lists_each_query_best_first() -> None:
    X, y, queries = judged()
    ranker = RelevanceRanker(Ridge()).fit(X, y, queries)
    names = [f"d{row}" for row in range(len(y))]
    ranking = ranker.rank(X[::-1], queries[::-1], names[::-1])
    assert list(ranking["query"].unique()) == list(range(11, -1, -1))
    for _, part in ranking.groupby("query"):
        assert part["score"].is_monotonic_decreasing
        assert part["rank"].tolist() == list(range(1, 16))
    scores = dict(zip(names, ranker.scores(X, queries), strict=True))
    expected = [scores[name] for name in ranking["document"]]
    assert ranking["score"].to_numpy() == pytest.approx(np.array(expected), rel=1e-12)


def test_centring_makes_queries_comparable() -> None:
    X, y, queries = judged(20, shift=5.0)
    X_new, y_new, new = judged(8, seed=4, shift=5.0)
    value = {}
    for scaling in ("none", "range", "centre"):
        ranker = RelevanceRanker(LinearRegression(), scaling=scaling).fit(X, y, queries)
        first = (
            ranker.estimator_.coef_ @ np.array([1.0, 0.0]) / np.abs(ranker.estimator_.coef_).sum()
        )
        value[scaling] = (ndcg(y_new, ranker.scores(X_new, new), groups=new), first)
    assert value["centre"][1] > value["none"][1]
    assert value["centre"][0] >= value["none"][0]


def test_scaling_within_queries_by_hand() -> None:
    ranker = RelevanceRanker(LinearRegression(), scaling="range")
    X = np.array([[1.0, np.nan], [3.0, 2.0], [10.0, 4.0], [10.0, 8.0]])
    scaled = ranker._scaled(X, np.array([1, 1, 2, 2]))
    assert scaled.tolist() == [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    centred = ranker.set_params(scaling="centre")._scaled(X, np.array([1, 1, 2, 2]))
    assert centred[:, 0].tolist() == [-0.5, 0.5, 0.0, 0.0]


def test_every_query_weighs_the_same() -> None:
    """With balanced queries, repeating a query's documents ten times changes nothing."""
    X, y, queries = judged(4)
    often = np.concatenate([np.arange(60), *([np.arange(15)] * 9)])
    for balance in (True, False):
        ranker = RelevanceRanker(Ridge(), scaling="none", balance=balance)
        once = clone(ranker).fit(X, y, queries)
        more = clone(ranker).fit(X[often], y[often], queries[often])
        change = np.abs(once.estimator_.coef_ - more.estimator_.coef_).max()
        # Ridge's penalty weighs against the sum of the weights, which grows with the rows.
        assert (change < 0.02) == balance


def test_permuted_grades_teach_nothing() -> None:
    X, y, queries = judged(40)
    shuffled = np.random.default_rng(9).permutation(y)
    X_new, y_new, new = judged(40, seed=5)
    taught = RelevanceRanker(OrdinalLogistic(alpha=10)).fit(X, shuffled, queries)
    by_chance = ndcg(y_new, np.random.default_rng(1).random(y_new.size), groups=new)
    assert ndcg(y_new, taught.scores(X_new, new), groups=new) < by_chance + 0.35
    told = RelevanceRanker(OrdinalLogistic(alpha=10)).fit(X, y, queries)
    assert ndcg(y_new, told.scores(X_new, new), groups=new) > 0.97


class GroupedRanker(LinearRegression):
    """Imitates rankers whose fit takes the number of documents of each query."""

    def fit(self, X, y, group=None):
        self.group_, self.first_ = group, X[: group[0]]
        return super().fit(X, y)


def test_rankers_are_told_the_sizes_of_the_queries() -> None:
    """Queries come in the order of their first document, whatever they are called."""
    X = np.arange(5.0)[:, None]
    ranker = RelevanceRanker(GroupedRanker(), scaling="none")
    ranker.fit(X, np.arange(5), np.array([2, 1, 2, 1, 2]))
    assert ranker.estimator_.group_.tolist() == [3, 2]
    assert ranker.estimator_.first_[:, 0].tolist() == [0.0, 2.0, 4.0]


def test_texts_are_described_with_their_query() -> None:
    """The order of the same documents follows the words of the query, also of a new one."""
    texts = ["heart failure treatment", "garden flower colour", "laptop screen repair"]
    asked = ["heart treatment", "flower garden", "repair laptop"]
    X = texts * 3
    queries = np.repeat(asked, 3)
    ranker = RelevanceRanker(OrdinalLogistic()).fit(X, (2 * np.eye(3, dtype=int)).ravel(), queries)
    assert ranker.kind_ == "texts"
    for query, best in [*zip(asked, texts, strict=True), ("failure", texts[0])]:
        ranking = ranker.rank(texts, [query] * 3, texts)
        assert ranking["document"][0] == best
    with pytest.raises(DataError, match="texts"):
        ranker.scores(np.zeros((1, 3)), [1])


def test_topics_have_a_model_each() -> None:
    good, bad = "heart failure treatment", "garden flower colour"
    texts = [f"{good} therapy", good, f"{bad} plant", bad] * 2
    y = np.array([2, 2, 0, 0, 0, 0, 2, 2])  # the second topic wants what the first does not
    ranker = RelevanceRanker(OrdinalLogistic()).fit(texts, y, np.repeat([1, 2], 4))
    assert ranker.kind_ == "topics"
    assert sorted(ranker.estimators_) == [1, 2]
    first, second = ranker.scores([good, bad], [1, 1]), ranker.scores([good, bad], [2, 2])
    assert first[0] > first[1]
    assert second[0] < second[1]
    with pytest.raises(DataError, match="topic 9 was not in the fit"):
        ranker.scores([good, bad], [9, 9])
    with pytest.raises(AttributeError, match="one estimator for each topic"):
        _ = ranker.estimator_


def test_inner_parts_of_topics_have_every_topic_and_its_grades_in_equal_shares() -> None:
    rng = np.random.default_rng(0)
    queries, y = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    ranker = RelevanceRanker(Ridge(), n_splits=4)
    ranker.kind_, ranker.grades_ = "topics", np.arange(3)
    held_out = []
    for train, test in ranker._inner_parts(y, queries):
        assert sorted([*train, *test]) == list(range(200))
        held_out.append(test)
    assert len(held_out) == 4
    assert sorted(np.concatenate(held_out)) == list(range(200))
    for topic in range(4):
        for grade in range(3):
            cell = (queries == topic) & (y == grade)
            shares = [int(cell[test].sum()) for test in held_out]
            assert max(shares) - min(shares) <= 1, (topic, grade, shares)
    again = [test.tolist() for _, test in ranker._inner_parts(y, queries)]
    assert again == [test.tolist() for test in held_out]
    ranker.random_state = 1
    assert [test.tolist() for _, test in ranker._inner_parts(y, queries)] != again


def test_refusals() -> None:
    X, y, queries = judged()
    with pytest.raises(ArgumentError, match="rank_by"):
        RelevanceRanker(Ridge(), rank_by="luck").fit(X, y, queries)
    with pytest.raises(ArgumentError, match="scaling"):
        RelevanceRanker(Ridge(), scaling="wild").fit(X, y, queries)
    with pytest.raises(DataError, match="one grade and one query"):
        RelevanceRanker(Ridge()).fit(X, y[:-1], queries)


# ---- TREC files --------------------------------------------------------------------------


def test_run_files_and_judgements_come_back(tmp_path: Path) -> None:
    X, y, queries = judged()
    names = np.array([f"d{row}" for row in range(len(y))])
    ranking = RelevanceRanker(Ridge()).fit(X, y, queries).rank(X, queries, names)
    run = write_run(ranking, tmp_path / "run.txt", tag="ridge")
    first = run.read_text().splitlines()[0].split()
    assert first[1] == "Q0"
    assert first[3] == "1"
    assert first[5] == "ridge"
    assert float(first[4]) == ranking["score"][0]
    qrels = read_qrels(
        write_qrels(pd.DataFrame({"query": queries, "document": names, "grade": y}), tmp_path / "q")
    )
    assert qrels["grade"].tolist() == y.tolist()
    table = measure_run(ranking, qrels, ["AP", "P@5", "nDCG@10"])
    scores = RelevanceRanker(Ridge()).fit(X, y, queries).scores(X, queries)
    assert table["AP"].mean() == pytest.approx(mean_average_precision(y, scores, groups=queries))
    assert table["P@5"].mean() == pytest.approx(precision_at(y, scores, groups=queries, k=5))
    linear = ndcg(y, scores, groups=queries, gain="linear")
    assert table["nDCG@10"].mean() == pytest.approx(linear)


def test_a_query_without_ranking_counts_nothing() -> None:
    qrels = pd.DataFrame({"query": ["a", "b"], "document": ["x", "y"], "grade": [1, 1]})
    ranking = pd.DataFrame({"query": ["a"], "document": ["x"], "score": [1.0], "rank": [1]})
    assert measure_run(ranking, qrels, ["AP"])["AP"].to_dict() == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("line", ["q 0 d", "q 0 d x", "q 0 d 1 2", "q 0 d 1\nq 0 d 2", ""])
def test_bad_judgements_are_refused_with_their_place(tmp_path: Path, line: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(line)
    with pytest.raises(DataError, match="qrels"):
        read_qrels(path)


def test_bad_runs_are_refused(tmp_path: Path) -> None:
    ranking = pd.DataFrame({"query": ["a b"], "document": ["x"], "score": [1.0], "rank": [1]})
    with pytest.raises(ArgumentError, match="single words"):
        write_run(ranking, tmp_path / "run")
    with pytest.raises(ArgumentError, match="no column 'rank'"):
        write_run(ranking.drop(columns="rank"), tmp_path / "run")
