"""``ordrec rank``: fit, evaluate and predict, from all kinds of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import exit_code
from typer.testing import CliRunner

from ordrec import load
from ordrec.cli import app
from ordrec.documents import read_qrels, read_run
from ordrec.documents.judgements import sample_of_judgements
from ordrec.errors import ArgumentError, DataError

SAMPLES = Path(__file__).parents[2] / "data" / "samples"


def run(*words: str | Path):
    return CliRunner().invoke(app, ["rank", *map(str, words)])


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    path = tmp_path / "judged.csv"
    path.write_text(sample_of_judgements().read_text(encoding="utf-8"), encoding="utf-8")
    return path


@pytest.fixture
def features(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    good, noise = rng.normal(size=(2, 60))
    frame = pd.DataFrame({"query": np.repeat(range(6), 10), "good": good, "noise": noise})
    frame["grade"] = np.digitize(good, [0.0, 1.0])
    frame.to_csv(tmp_path / "features.csv", index=False)
    return tmp_path / "features.csv"


def test_the_bundled_sample_is_evaluated_at_once() -> None:
    found = run("evaluate")
    assert found.exit_code == 0, found.output
    for word in ("ordinal", "bm25", "ridge", "ranksvm", "ndcg@10", "12 queries"):
        assert word in found.output


def in_words(judged: Path, folder: Path) -> Path:
    """The same judgements as a shop may have them: other names, words as grades, latin-1."""
    frame = pd.read_csv(judged)
    words = frame["grade"].map({0: "poor", 1: "fair", 2: "perfect"})
    frame = frame.assign(grade=words, text="caf\xe9 " + frame["text"])
    frame.columns = [{"query": "Search Term", "grade": "Judgement"}.get(c, c) for c in frame]
    frame.to_csv(folder / "shop.csv.gz", index=False, encoding="latin-1", sep=";")
    return folder / "shop.csv.gz"


def test_grades_in_words_other_names_and_other_characters(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = in_words(judged, tmp_path)
    for options, says in [
        ([], "not UTF-8: pass --encoding latin-1"),
        (["--encoding", "latin-1"], "holds words and no numbers ('fair', 'perfect', 'poor'): name"),
        (["--encoding", "latin-1", "--scale", "poor,fair"], "write one of poor, fair"),
    ]:
        assert exit_code("rank", "fit", shop, "-o", tmp_path / "a.ordrec", *options) == 2
        assert says in " ".join(capsys.readouterr().err.split())
    options = ["--encoding", "latin-1", "--scale", "poor,fair,perfect"]
    found = run("fit", shop, "-o", tmp_path / "a.ordrec", *options)
    assert found.exit_code == 0, found.output
    grades = load(tmp_path / "a.ordrec")._judged_grades
    assert grades.tolist() == pd.read_csv(judged)["grade"].tolist()
    found = run("predict", tmp_path / "a.ordrec", shop, "--encoding", "latin-1")
    assert found.exit_code == 0, found.output
    described = CliRunner().invoke(app, ["data", "describe", str(shop), *options])
    assert "grades 0 " in described.output, described.output
    assert exit_code("rank", "evaluate", "ohsumed-letor", "--scale", "a,b") == 2
    assert "--scale is for files, not for ohsumed-letor" in capsys.readouterr().err


def test_a_table_with_two_columns_that_may_be_the_query_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "two.csv"
    table.write_text("qid,Topic,grade,text\n1,2,0,a cat\n1,2,1,a dog\n")
    assert exit_code("rank", "fit", table, "-o", tmp_path / "a.ordrec") == 2
    assert "the query may be in 'qid' or 'Topic': call one 'query'" in capsys.readouterr().err


def test_a_ranker_is_fitted_and_ranks_new_documents(judged: Path, tmp_path: Path) -> None:
    ranker, new = tmp_path / "ranker.ordrec", tmp_path / "new.csv"
    found = run("fit", judged, "-o", ranker)
    assert found.exit_code == 0, found.output
    assert "taken for texts; chosen:" in found.stderr
    assert load(ranker).kind_ == "texts"
    pd.DataFrame(
        {
            "query": ["train tickets"] * 3,
            "document": ["a", "b", "c"],
            "text": ["a cat", "tickets for the train", "the garden"],
        }
    ).to_csv(new, index=False)
    found = run("predict", ranker, new, "--proba")
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[0] == "query,document,score,rank,tied,p_0,p_1,p_2"
    assert lines[1].startswith("train tickets,b,")
    for _ in range(2):  # the second time it replaces what it wrote
        assert run("predict", ranker, new, "-o", tmp_path / "ranking.csv").exit_code == 0
    assert pd.read_csv(tmp_path / "ranking.csv")["document"][0] == "b"
    assert isinstance(run("predict", ranker, new, "-o", judged).exception, ArgumentError)
    # the file is measured like any other ranker, and the general commands refuse it
    found = run("evaluate", judged, "-m", ranker, "-m", "bm25")
    assert found.exit_code == 0, found.output
    assert "ranker" in found.output
    refused = CliRunner().invoke(app, ["predict", str(ranker), str(new)])
    assert "ordrec rank predict" in str(refused.exception)


def test_features_and_letor_are_read(features: Path, tmp_path: Path) -> None:
    found = run("evaluate", features, "-m", "ridge,SVORIM", "--metrics", "map,p@5")
    assert found.exit_code == 0, found.output
    assert "SVORIM" in found.output
    found = run("fit", features, "-o", tmp_path / "r.ordrec", "-m", "OrdinalLogistic")
    assert found.exit_code == 0, found.output
    assert run("predict", tmp_path / "r.ordrec", features).exit_code == 0
    found = run("evaluate", SAMPLES / "letor", "-m", "ridge")
    assert "letor" in found.output
    found = run("fit", SAMPLES / "letor", "-o", tmp_path / "l.ordrec", "-m", "OrdinalLogistic")
    assert found.exit_code == 0, found.output
    part = next(iter(sorted((SAMPLES / "letor").glob("S1*"))))
    assert run("predict", tmp_path / "l.ordrec", part).exit_code == 0


def test_results_runs_and_reports_are_written(features: Path, tmp_path: Path) -> None:
    found = run(
        "evaluate", features, "-m", "ridge", "-m", "ranksvm", "--reference", "ridge",
        "-o", tmp_path / "r.csv", "-o", tmp_path / "r.json", "--report", tmp_path / "r.html",
        "--per-query", tmp_path / "q.csv", "--write-runs", tmp_path / "runs",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "signed-rank tests" in found.output
    assert "ranksvm" in (tmp_path / "r.html").read_text()
    assert pd.read_csv(tmp_path / "q.csv").columns.tolist() == [
        "model", "query", "fold", "metric", "value"
    ]  # fmt: skip
    qrels = read_qrels(tmp_path / "runs" / "qrels.txt")
    assert len(read_run(tmp_path / "runs" / "ridge.run")) == len(qrels) == 60
    measured = run("evaluate", tmp_path / "runs" / "qrels.txt",
                   "--run", tmp_path / "runs" / "ridge.run")  # fmt: skip
    assert measured.exit_code == 0, measured.output
    assert "all queries" in measured.output


def test_qrels_with_documents_and_queries(judged: Path, tmp_path: Path) -> None:
    found = run("evaluate", judged, "-m", "bm25", "--write-runs", tmp_path / "runs")
    assert found.exit_code == 0, found.output
    frame = pd.read_csv(judged).drop_duplicates("document")
    frame[["document", "text"]].to_csv(tmp_path / "d.csv", index=False)
    queries = pd.read_csv(tmp_path / "runs" / "queries.tsv", sep="\t", names=["query", "words"])
    queries.to_csv(tmp_path / "q.csv", index=False)
    found = run(
        "evaluate", tmp_path / "runs" / "qrels.txt", "-m", "bm25",
        "--documents", tmp_path / "d.csv", "--queries", tmp_path / "q.csv",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    assert "96 documents of 12 queries" in " ".join(found.output.split())


def test_what_cannot_be_done_is_said(judged: Path, features: Path, tmp_path: Path) -> None:
    for words, kind, message in (
        (["evaluate", "nowhere.csv"], DataError, "no such file"),
        (["evaluate", judged, "-m", "magic"], ArgumentError, "no ranker is called"),
        (["evaluate", "ml-latest-small-2016", "--offline"], ArgumentError, "ordrec evaluate"),
        (["fit", judged, "-o", tmp_path / "r", "-m", "ridge"], ArgumentError, "cannot be saved"),
        (["fit", judged, "-o", judged], ArgumentError, "also the input"),
    ):
        found = run(*words)
        assert isinstance(found.exception, kind), found.output
        assert message in str(found.exception)
    found = run("evaluate", features, "-m", "bm25", "-m", "ridge")
    assert found.exit_code == 1
    assert "bm25 failed: DataError" in found.output


def test_what_lifts_a_document_is_explained(features: Path, tmp_path: Path) -> None:
    ranker, out = tmp_path / "ranker.ordrec", tmp_path / "lifts.csv"
    assert run("fit", features, "-o", ranker, "-m", "OrdinalLogistic", "-q").exit_code == 0
    new = tmp_path / "new.csv"
    frame = pd.DataFrame(
        {
            "query": [7, 7, 7, 8],
            "document": list("abcd"),
            "good": [0.1, 3.0, 1.0, 0.0],
            "noise": 0.0,
        }
    )
    frame.to_csv(new, index=False)
    found = run("explain", ranker, new, "--query", "7", "-o", out)
    assert found.exit_code == 0, found.output
    assert "b is number 1 of 3 for query 7, compared with c, number 2; scores" in found.stderr
    lifts = pd.read_csv(out)
    assert lifts.columns.tolist() == ["feature", "value", "other", "lift"]
    scores = load(ranker).scores(frame[["good", "noise"]], frame["query"])
    assert lifts["lift"].sum() == pytest.approx(scores[1] - scores[2])
    assert lifts["feature"][0] == "good"
    # the last is compared with the one above it; a document's own query need not be named
    found = run("explain", ranker, new, "--document", "a", "-n", "1", "-o", out)
    assert "a is number 3 of 3 for query 7, compared with c, number 2" in found.stderr
    assert pd.read_csv(out)["lift"].tolist() < [0.0]
    for words, said in (
        ([], "2 queries: name one with --query"),
        (["--query", "9"], "has no query '9'"),
        (["--query", "7", "--document", "z"], "has no document 'z'"),
        (["--query", "7", "-n", "0"], "-n must be at least 1"),
        (["--query", "8"], "only document of its query"),
    ):
        assert said in str(run("explain", ranker, new, *words).exception)


def test_a_ranker_takes_in_further_judgements(features: Path, tmp_path: Path) -> None:
    ranker, updated, whole = (tmp_path / f"{name}.ordrec" for name in ("first", "second", "whole"))
    frame = pd.read_csv(features)
    frame[:30].to_csv(tmp_path / "first.csv", index=False)
    frame[30:].to_csv(tmp_path / "second.csv", index=False)
    assert run("fit", tmp_path / "first.csv", "-o", ranker, "-m", "OrdinalLogistic").exit_code == 0
    found = run("update", ranker, tmp_path / "second.csv", "-o", updated)
    assert found.exit_code == 0, found.output
    assert "30 documents of 3 queries" in found.stderr
    assert run("fit", features, "-o", whole, "-m", "OrdinalLogistic").exit_code == 0
    described = frame[["good", "noise"]], frame["query"]
    np.testing.assert_allclose(load(updated).scores(*described), load(whole).scores(*described))
    refused = run("update", ranker, tmp_path / "second.csv", "-o", tmp_path / "second.csv")
    assert isinstance(refused.exception, ArgumentError)


def test_judged_documents_are_described(judged: Path, features: Path, tmp_path: Path) -> None:
    letor, ohsumed, ratings = SAMPLES / "letor", SAMPLES / "ohsumed", tmp_path / "ratings.csv"
    qrels, topics = tmp_path / "judged.qrels", tmp_path / "topics.csv"
    qrels.write_text("q1 0 d1 2\nq1 0 d2 0\n")
    ratings.write_text("user item rating\n1 0 3\n2 1 4\n")
    topics.write_text("user,item,rating,topic\n1,1,3,a\n2,1,4,b\n")
    for path, said in (
        (judged, "texts in text"),
        (features, "60 documents of 6 queries"),
        (qrels, "2 documents of 1 query, grades 0 (1), 2 (1), without texts or features"),
        (letor, "features"),
        (ohsumed, "topics"),
        (ratings, "Ratings"),
        (topics, "Ratings"),
    ):
        found = CliRunner().invoke(app, ["data", "describe", str(path)])
        assert found.exit_code == 0, (path, found.exception)
        assert said in found.output
