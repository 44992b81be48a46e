"""Evaluating rankings: metrics, intervals over queries, folds by query, peers, files."""

from __future__ import annotations

from pathlib import Path
from shutil import which

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from ordrec.datasets import load_letor
from ordrec.documents import (
    BM25,
    Judgements,
    RankSVM,
    RelevanceRanker,
    evaluate_ranking,
    make_ranker,
    read_judgements,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from ordrec.documents.evaluation import _folds
from ordrec.documents.trec import measure_run
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import EvaluationResult, expected_reciprocal_rank
from ordrec.ordinal import OrdinalLogistic

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
WORDS = ["rose", "laptop", "cat", "bridge", "violin", "bread", "train", "storm"]


def library(per_query: int = 6, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for word in WORDS:
        for number in range(per_query):
            grade = int(rng.integers(0, 3))
            text = " ".join(["the", "and", *[word] * grade, *rng.choice(WORDS, 4)])
            rows.append((word, f"{word}-{number}", text, grade))
    return pd.DataFrame(rows, columns=["query", "document", "text", "grade"])


def table(n_queries: int = 10, per_query: int = 8, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    n = n_queries * per_query
    good, noise = rng.normal(size=(2, n))
    return pd.DataFrame(
        {
            "query": np.repeat(np.arange(n_queries), per_query),
            "document": np.arange(n),
            "grade": np.digitize(good + 0.3 * rng.normal(size=n), [0.0, 1.0]),
            "good": good,
            "noise": noise,
        }
    )


def slow_err(grades: list[int], k: int, highest: int) -> float:
    """In the order given."""
    reached, total = 1.0, 0.0
    for place, grade in enumerate(grades[:k], start=1):
        stops = (2**grade - 1) / 2**highest
        total += reached * stops / place
        reached *= 1 - stops
    return total


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(1, 12))
def test_expected_reciprocal_rank_equals_its_plain_twin(grades: list[int], k: int) -> None:
    scores = -np.arange(len(grades))
    found = expected_reciprocal_rank(grades, scores, k=k, highest=4)
    assert found == pytest.approx(slow_err(grades, k, 4))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_metrics_agree_with_ir_measures_ties_and_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    frame = pd.DataFrame(
        {"query": rng.integers(0, 4, n), "document": np.arange(n), "grade": rng.integers(0, 3, n)}
    )
    scores = rng.integers(0, 4, n).astype(float)  # many are equal
    ours = {"map": "AP", "mrr": "RR", "p@5": "P@5", "recall@3": "R@3", "ndcg@10": "nDCG@10"}
    result = evaluate_ranking(scores, frame, metrics=list(ours), gain="linear", n_resamples=0)
    theirs = measure_run(result.rankings, frame, list(ours.values()))
    for metric, name in ours.items():
        found = result.per_query(metric)["scores"]
        expected = theirs[name].loc[[str(query) for query in found.index]]
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.skipif(which("perl") is None, reason="TREC's gdeval is a perl script")
def test_expected_reciprocal_rank_is_that_of_trec() -> None:
    rng = np.random.default_rng(3)
    n = 200
    frame = pd.DataFrame(
        {"query": rng.integers(0, 9, n), "document": np.arange(n), "grade": rng.integers(0, 5, n)}
    )
    scores = rng.integers(0, 12, n).astype(float)  # many are equal
    for k in (3, 20):
        result = evaluate_ranking(scores, frame, metrics=[f"err@{k}"], n_resamples=0)
        theirs = measure_run(result.rankings, frame, [f"ERR@{k}"])[f"ERR@{k}"]
        found = result.per_query(f"err@{k}")["scores"]
        expected = theirs.loc[[str(query) for query in found.index]]
        np.testing.assert_allclose(found, expected, atol=6e-6)  # gdeval prints five digits


def test_lambdamart_stands_beside_and_is_told_the_queries() -> None:
    pytest.importorskip("lightgbm")
    judged = table(n_queries=24, per_query=10)
    result = evaluate_ranking(["lambdamart", "ridge"], judged, metrics=["map"], n_resamples=0)
    assert result.complete
    found = result.summary()["map"]
    noise = evaluate_ranking(judged["noise"].to_numpy(), judged, metrics=["map"], n_resamples=0)
    assert found["lambdamart"] > noise.summary()["map"].iloc[0] + 0.1
    # rows come query by query, in the order of their first documents
    ranker = make_ranker("lambdamart")
    described, queries = judged[["good", "noise"]], judged["query"]
    fitted = ranker.fit(described, judged["grade"], queries)
    mixed = np.random.default_rng(0).permutation(len(judged))
    again = make_ranker("lambdamart").fit(
        described.iloc[mixed], judged["grade"].iloc[mixed], queries.iloc[mixed]
    )
    assert again.estimator_.n_features_in_ == fitted.estimator_.n_features_in_ == 2
    own, others = fitted.scores(described, queries), again.scores(described, queries)
    assert np.corrcoef(own, others)[0, 1] > 0.95


def test_intervals_are_over_queries_and_reports_are_those_of_ratings() -> None:
    rankers = {"ridge": RelevanceRanker(Ridge()), "noise": table()["noise"].to_numpy()}
    result = evaluate_ranking(rankers, table(), seed=1)
    assert isinstance(result, EvaluationResult)
    assert result.split == "5 folds by query"
    values = result.intervals("macro").set_index(["metric", "model"])
    assert set(values.index.get_level_values("metric")) == {
        "ndcg@10", "map", "err@20", "mrr", "p@5"
    }  # fmt: skip
    best = values.loc[("map", "ridge")]
    assert best["low"] < best["value"] < best["high"]
    assert best["verdict"] == "best"
    assert values.loc[("map", "noise"), "verdict"] == "worse"
    assert "80 documents of 10 queries" in result.caption()
    assert "draws of whole queries" in result.test_caption()
    assert r"\toprule" in result.to_latex()
    assert "ridge" in repr(result)
    assert "<table>" in result._repr_html_()
    assert result.plot() is not None
    per_query = result.per_query("map")
    assert per_query.shape == (10, 2)
    assert result.summary()["map"]["ridge"] == pytest.approx(per_query["ridge"].mean())
    tests = result.against("noise", "map")
    assert tests.loc["ridge", "difference"] > 0
    assert tests.loc["ridge", "adjusted_p"] < 0.05
    with pytest.raises(ArgumentError, match="was not measured"):
        result.per_query("recall@5")


def test_results_are_written_and_reported(tmp_path: Path) -> None:
    from ordrec.report.evaluation import evaluation_report

    result = evaluate_ranking(["ridge", "ranksvm"], table())
    result.to_csv(tmp_path / "r.csv")
    result.to_json(tmp_path / "r.json")
    assert len(pd.read_csv(tmp_path / "r.csv")) == len(result.frame)
    assert "ranksvm" in evaluation_report(result).html()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=2, max_size=50), st.integers(2, 6), st.integers(0, 9))
def test_folds_never_share_a_query(queries: list[int], n_folds: int, seed: int) -> None:
    if len(set(queries)) < 2:
        return
    n = len(queries)
    frame = pd.DataFrame({"query": queries, "grade": np.arange(n) % 3, "x": np.arange(n) * 1.0})
    judged = Judgements.from_frame(frame)
    _, parts = _folds(judged, {"ridge": make_ranker("ridge")}, n_folds, seed)
    for train, test in parts:
        assert not set(judged.queries[train]) & set(judged.queries[test])
    assert np.sort(np.concatenate([test for _, test in parts])).tolist() == list(range(n))


def test_texts_are_ranked_by_query_and_peers_stand_beside() -> None:
    frame = library()
    result = evaluate_ranking(
        {"ordinal": RelevanceRanker(OrdinalLogistic()), "bm25": "bm25", "ranksvm": "ranksvm"}, frame
    )
    assert result.complete
    assert (result.summary()["ndcg@10"] > 0.8).all()
    topics = frame.assign(query=pd.factorize(frame["query"])[0])
    by_topic = evaluate_ranking({"topics": RelevanceRanker(OrdinalLogistic())}, topics, folds=2)
    assert by_topic.split == "2 folds by document"


def test_a_fitted_ranker_is_measured_as_it_is() -> None:
    train, test = library(), library(seed=1)
    ranker = RelevanceRanker(OrdinalLogistic()).fit(train[["text"]], train["grade"], train["query"])
    result = evaluate_ranking(ranker, test)
    assert result.split == "all queries"
    assert result.summary()["map"]["RelevanceRanker"] > 0.8


def test_bm25_and_ranksvm_by_hand() -> None:
    ranker = BM25().fit(["garden roses", "cat food", "cat cat"], [0, 1, 2], ["cat"] * 3)
    assert np.argsort(-ranker.scores(["garden roses", "cat food", "cat cat"], ["cat"] * 3)
                      ).tolist() == [2, 1, 0]  # fmt: skip
    frame = table()
    X, y = frame[["good", "noise"]].to_numpy(), frame["grade"].to_numpy()
    machine = RankSVM().fit(X, y, group=[8] * 10)
    assert machine.coef_[0] > 5 * abs(machine.coef_[1])
    few = RankSVM(max_pairs=20).fit(X, y, group=[8] * 10)
    assert few.coef_[0] > 0
    with pytest.raises(ArgumentError, match="no ranker is called 'magic'"):
        make_ranker("magic")
    assert "SVORIM" in repr(make_ranker("SVORIM"))


def test_a_ranker_that_fails_is_named_and_others_go_on() -> None:
    result = evaluate_ranking(["bm25", "ridge"], table())
    assert not result.complete
    assert set(result.failures["model"]) == {"bm25"}
    assert "no column of texts" in result.failures["error"].iloc[0]
    assert np.isnan(result.summary()["map"]["bm25"])
    assert result.user_groups == ["all"]  # queries are in no groups
    assert evaluate_ranking(["bm25"], table()).user_groups == []  # nothing was measured
    assert result.summary()["map"]["ridge"] > 0.8


# ---- files ---------------------------------------------------------------------------------------


def test_runs_come_back_and_missing_documents_come_last(tmp_path: Path) -> None:
    frame = table()
    result = evaluate_ranking(frame["good"].to_numpy(), frame)
    write_run(result.rankings, tmp_path / "run")
    write_qrels(frame, tmp_path / "qrels")
    run, qrels = read_run(tmp_path / "run"), read_qrels(tmp_path / "qrels")
    again = evaluate_ranking(run, qrels)
    pd.testing.assert_series_equal(
        again.summary()["map"], result.summary()["map"], check_names=False
    )
    short = evaluate_ranking(run[run["rank"] <= 2], qrels)
    assert short.summary()["p@5"].iloc[0] < result.summary()["p@5"].iloc[0] + 1e-12
    with pytest.raises(DataError, match="none of the judged documents"):
        _ = evaluate_ranking(run.assign(document="x" + run["document"]), qrels).failures.pipe(
            _raised
        )


def _raised(failures: pd.DataFrame) -> None:
    raise DataError(failures["error"].iloc[0])


def test_equal_scores_of_a_run_are_ordered_as_trec_eval_does(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 a 1 0.5 t\nq Q0 b 2 0.5 t\nq Q0 c 3 0.9 t\n")
    run = read_run(tmp_path / "run").set_index("document")
    assert run["rank"].to_dict() == {"a": 3, "b": 2, "c": 1}


@pytest.mark.parametrize("line", ["q Q0 d 1 x t", "q Q0 d 1 0.5", "q Q0 d 1 nan t", ""])
def test_bad_runs_are_refused_with_their_place(tmp_path: Path, line: str) -> None:
    (tmp_path / "run").write_text(line)
    with pytest.raises(DataError, match="run"):
        read_run(tmp_path / "run")


def test_judgements_are_read_from_all_kinds_of_files(tmp_path: Path) -> None:
    frame = library()
    frame.to_csv(tmp_path / "judged.csv", index=False)
    judged = read_judgements(tmp_path / "judged.csv")
    assert repr(judged).startswith("<Judgements: 48 documents of 8 queries, grades 0 (")
    assert "texts in text" in repr(judged)
    names = pd.factorize(frame["query"])[0] + 1
    write_qrels(frame.assign(query=names), tmp_path / "qrels.txt")
    frame[["document", "text"]].to_csv(tmp_path / "documents.csv", index=False)
    pd.DataFrame({"query": np.arange(1, 9), "words": WORDS}).to_csv(
        tmp_path / "queries.csv", index=False
    )
    trec = read_judgements(
        tmp_path / "qrels.txt",
        documents=tmp_path / "documents.csv",
        queries=tmp_path / "queries.csv",
    )
    assert trec.queries.tolist() == frame["query"].tolist()
    assert trec.X["text"].tolist() == frame["text"].tolist()
    assert read_judgements(tmp_path / "qrels.txt").X is None
    letor = read_judgements(SAMPLES / "letor")
    assert letor.discount == "letor"
    assert "features" in repr(letor)
    assert len(letor.folds) == 5
    one = next(each for each in sorted((SAMPLES / "letor").rglob("S1.txt*")))
    assert len(read_judgements(one)) < len(letor)
    assert len(Judgements.of(load_letor(SAMPLES / "letor"))) == len(letor)
    assert read_judgements(SAMPLES / "ohsumed").X.columns.tolist() == ["title", "abstract"]


def test_bad_judgements_say_what_is_wrong(tmp_path: Path) -> None:
    frame = library()
    for change, message in (
        (frame.drop(columns="grade"), "no column 'grade' among"),
        (frame.drop(columns="query"), "no column 'query' among"),
        (frame.assign(grade="good"), "the grade of row 0 is 'good'"),
        (frame[:0], "holds no judgements"),
    ):
        with pytest.raises(DataError, match=message):
            Judgements.from_frame(change)
    with pytest.raises(DataError, match="no such file"):
        read_judgements(tmp_path / "none.csv")
    with pytest.raises(DataError, match="has grades only"):
        evaluate_ranking("ridge", frame[["query", "document", "grade"]])
    with pytest.raises(DataError, match="one query only"):
        evaluate_ranking("ridge", table(1))
    with pytest.raises(ArgumentError, match="unknown metric 'luck'"):
        evaluate_ranking("ridge", table(), metrics=["luck"])
    with pytest.raises(ArgumentError, match="must be a DataFrame"):
        evaluate_ranking("ridge", [1, 2])
    # a query without documents
    write_qrels(frame, tmp_path / "qrels")
    frame[["document", "text"]][:6].to_csv(tmp_path / "d.csv", index=False)
    assert len(read_judgements(tmp_path / "qrels", documents=tmp_path / "d.csv")) == 6
    frame.assign(document="other")[["document", "text"]].to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match="none of the documents"):
        read_judgements(tmp_path / "qrels", documents=tmp_path / "d.csv")
    pd.DataFrame({"query": ["rose"], "words": ["a rose"]}).to_csv(tmp_path / "q.csv", index=False)
    frame[["document", "text"]].to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(DataError, match="has no query 'bread'"):
        read_judgements(tmp_path / "qrels", documents=tmp_path / "d.csv",
                        queries=tmp_path / "q.csv")  # fmt: skip


def test_ranksvm_learns_from_a_single_pair_and_refuses_none() -> None:
    X = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 0.0]])
    machine = RankSVM().fit(X, [0, 1, 3], group=[2, 1])  # pairs of two queries are none
    assert machine.coef_[0] > 0
    assert machine.coef_[1] == pytest.approx(0.0)
    later = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [0.0], [0.0]])  # of the second query
    assert RankSVM().fit(later, [0, 0, 0, 0, 1, 0, 0], group=[3, 2, 2]).coef_[0] > 0
    with pytest.raises(DataError, match="no query has documents of different grades"):
        RankSVM().fit(X, [1, 1, 0], group=[2, 1])


def test_tables_of_judgements_in_every_format_are_the_same(tmp_path: Path) -> None:
    frame = table().drop(columns=["good", "noise"], errors="ignore").assign(words="a b")
    frame.to_csv(tmp_path / "j.csv", index=False)
    frame.to_csv(tmp_path / "j.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "j.parquet")
    one, *others = (read_judgements(tmp_path / f"j.{end}") for end in ("csv", "tsv", "parquet"))
    for other in others:
        pd.testing.assert_frame_equal(pd.DataFrame(other.X), pd.DataFrame(one.X))
        assert other.queries.tolist() == one.queries.tolist()
        assert other.grades.tolist() == one.grades.tolist()
