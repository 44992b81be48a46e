"""OHSUMED records, topics and judgements in both distributions."""

from __future__ import annotations

import pytest

from ordrec.datasets import load_ohsumed
from ordrec.errors import DataError


def test_trec9(samples):
    found = load_ohsumed(samples / "ohsumed")
    assert found.documents.index.tolist() == [1, 2, 3]
    assert found.documents.columns.tolist() == [
        "ui", "source", "mesh", "title", "type", "abstract", "authors",
    ]  # fmt: skip
    assert found.documents.loc[1, "ui"] == "90000001"
    assert found.documents.loc[2, "abstract"] == ""
    assert found.documents.loc[3, "abstract"].endswith("pressure. Less salt lowered it further.")
    assert found.topics.loc["OHSU2", "patient"] == "70 year old woman with hypertension"
    assert found.topics.loc["OHSU2", "need"] == "exercise as treatment"
    assert found.judgements[["topic", "ui", "grade"]].to_numpy().tolist() == [
        ["OHSU1", "90000001", 2],
        ["OHSU2", "90000003", 1],
    ]


def test_original(samples):
    found = load_ohsumed(samples / "ohsumed-original")
    assert len(found.documents) == 0
    assert found.topics.loc["1", "need"] == "effect of tea on sleep"
    assert found.judgements["grade"].tolist() == [2, 0, 0, 1]  # the first judgement counts
    assert found.judgements["document"].tolist() == [1, 2, 1, 3]


def test_of_several_judgements_of_a_pair_the_first_counts(tmp_path):
    (tmp_path / "judged").write_text("1\t7\t1\td\n2\t7\t1\tn\n1\t7\t1\tn\n2\t7\t1\tp\n")
    found = load_ohsumed(tmp_path).judgements
    assert found[["topic", "grade"]].to_numpy().tolist() == [["1", 2], ["2", 0]]


@pytest.mark.parametrize(
    ("file", "sizes"),
    [
        ("ohsumed/ohsumed.87", (3, 0, 0)),
        ("ohsumed/query.ohsu.1-2", (0, 2, 0)),
        ("ohsumed/qrels.ohsu.87", (0, 0, 2)),
        ("ohsumed-original/queries", (0, 2, 0)),
        ("ohsumed-original/judged", (0, 0, 4)),
    ],
)
def test_single_files_are_recognised(samples, file, sizes):
    found = load_ohsumed(samples / file)
    assert (len(found.documents), len(found.topics), len(found.judgements)) == sizes


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("ohsumed.1", ".I\n.U\n1\n", "line 1: '.I' has no record number"),
        ("ohsumed.1", ".I 1\n.T\nx\n", "line 1: record 1 has no .U"),
        ("ohsumed.1", ".I 1\n.U\n1\n.U\n2\n", "line 4: .U is out of place"),
        ("ohsumed.1", "text\n.I 1\n", "line 1: 'text' does not belong to a field"),
        ("ohsumed.1", ".I 1\n.U\n1\n.I 1\n.U\n2\n", "document 1 occurs twice"),
        ("ohsumed.1", ".I 1\n.U\n\0\n", "line 3: NUL byte"),
        ("query.ohsu.1", "<top>\n<num> 1\n", "a <top> is not closed"),
        ("query.ohsu.1", "<top>\n<num> 1\n</top>", "lacks <num>, <title> or <desc>"),
        ("qrels.ohsu.1", "A\t1\t7\n", "line 1: grade '7' is not 0, 1 or 2"),
        ("qrels.ohsu.1", "A\t1\n", "line 1: 2 fields, expected 3"),
        ("judged", "1\t2\t3\tx\n", "line 1: expected topic, identifier, number, and d, p or n"),
        ("other", "", r"no ohsumed\.\*"),
    ],
)
def test_errors_name_the_line(tmp_path, file, content, message):
    (tmp_path / file).write_text(content)
    with pytest.raises(DataError, match=message):
        load_ohsumed(tmp_path)
