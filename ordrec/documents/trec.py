"""Write and read rankings and judgements in TREC's formats and measure them with ir-measures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from ordrec.errors import ArgumentError, DataError
from ordrec.runtime.extras import import_extra
from ordrec.runtime.files import write_text

__all__ = ["measure_run", "read_qrels", "read_run", "write_qrels", "write_run"]

LARGEST_GRADE = 9999
LETOR_MEASURES = (*(f"nDCG@{k}" for k in range(1, 11)), *(f"P@{k}" for k in range(1, 11)), "AP")


def write_run(ranking: pd.DataFrame, path: str | Path, *, tag: str = "ordrec") -> Path:
    """Write a ranking as lines ``query Q0 document rank score tag``.

    Parameters
    ----------
    ranking : DataFrame
        ``query document score rank``, as from `RelevanceRanker.rank`.
    path : path
    tag : str
        The name of the run, one word.
    """
    for column in ("query", "document", "score", "rank"):
        if column not in ranking:
            raise ArgumentError(f"the ranking has no column {column!r}")
    for name in [tag, *map(str, ranking["query"]), *map(str, ranking["document"])]:
        if re.search(r"\s", name) or not name:
            raise ArgumentError(f"{name!r} cannot be written to a run file: names are single words")
    lines = [
        f"{query} Q0 {document} {rank} {score!r} {tag}\n"
        for query, document, rank, score in zip(
            ranking["query"],
            ranking["document"],
            ranking["rank"],
            ranking["score"].astype(float).tolist(),
            strict=True,
        )
    ]
    return write_text(path, "".join(lines))


def write_qrels(judgements: pd.DataFrame, path: str | Path) -> Path:
    """Write judgements ``query document grade`` as lines ``query 0 document grade``."""
    columns = zip(judgements["query"], judgements["document"], judgements["grade"], strict=True)
    lines = [f"{query} 0 {document} {int(grade)}\n" for query, document, grade in columns]
    return write_text(path, "".join(lines))


def read_qrels(path: str | Path) -> pd.DataFrame:
    """Read judgements from lines ``query iteration document grade``.

    Returns
    -------
    DataFrame
        ``query document grade``; names are texts.
    """
    rows = []
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}): name a file of judgements") from None
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 4 or not re.fullmatch(r"-?[0-9]{1,4}", words[3]) or "\0" in line:
            raise DataError(
                f"{path}, line {number}: {line[:60]!r} is not 'query iteration document grade' "
                "with a grade of at most four digits: correct the line"
            )
        rows.append((words[0], words[2], int(words[3])))
    if not rows:
        raise DataError(f"{path}: it holds no judgements: name a file of judgements")
    frame = pd.DataFrame(rows, columns=["query", "document", "grade"])
    twice = frame[frame.duplicated(["query", "document"])]
    if len(twice):
        query, document, _ = twice.iloc[0]
        raise DataError(
            f"{path}: document {document[:60]!r} is judged twice for query {query[:60]!r}: keep one"
        )
    return frame


def read_run(path: str | Path) -> pd.DataFrame:
    """Read a ranking from lines ``query Q0 document rank score tag``.

    Returns
    -------
    DataFrame
        ``query document rank score``; names are texts. As in trec_eval, the scores decide, and
        equal ones are ordered by the names of the documents, the last in the alphabet first;
        ``rank`` is what follows from that.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}): name a run file") from None
    rows = []
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.split()
        if not words:
            continue
        try:
            score = float(words[4])
            if len(words) != 6 or not math.isfinite(score):
                raise ValueError
        except (IndexError, ValueError):
            raise DataError(
                f"{path}, line {number}: {line[:60]!r} is not 'query Q0 document rank score tag'"
            ) from None
        rows.append((words[0], words[2], score))
    if not rows:
        raise DataError(f"{path}: it holds no ranking: name a run file")
    frame = pd.DataFrame(rows, columns=["query", "document", "score"])
    if frame.duplicated(["query", "document"]).any():
        query, document, _ = frame[frame.duplicated(["query", "document"])].iloc[0]
        raise DataError(f"{path}: lists document {document[:60]!r} twice for query {query[:60]!r}")
    ordered = frame.sort_values(["score", "document"], ascending=False, kind="stable")
    frame["rank"] = ordered.groupby("query").cumcount() + 1
    return frame[["query", "document", "rank", "score"]]


def measure_run(
    ranking: pd.DataFrame, qrels: pd.DataFrame, measures: Sequence[str] = LETOR_MEASURES
) -> pd.DataFrame:
    """Measure a ranking with ir-measures and return one row per query and one column per measure.

    Parameters
    ----------
    ranking : DataFrame
        ``query document score rank``. The rank decides, not the score, because trec_eval
        orders equal scores by the names of the documents.
    qrels : DataFrame
        ``query document grade``. A query that is missing in the ranking counts 0.
    measures : sequence of str
        Names of ir-measures, such as ``nDCG@10``, ``AP``, ``P@5``; by default those of LETOR's
        tables. The discount of its NDCG differs: see `ordrec.evaluation.ndcg`.

    Examples
    --------
    >>> ranking = pd.DataFrame(
    ...     {"query": [1, 1], "document": ["a", "b"], "score": [2.0, 1.0], "rank": [1, 2]})
    >>> qrels = pd.DataFrame({"query": [1, 1], "document": ["a", "b"], "grade": [0, 2]})
    >>> measure_run(ranking, qrels, ["AP", "P@1"]).loc["1"].tolist()
    [0.5, 0.0]
    """
    ir_measures = import_extra("ir_measures", "ir-measures", "experiments")
    for table in (ranking, qrels):  # trec_eval ends names at a zero byte and then crashes
        if table[["query", "document"]].astype(str).map(lambda name: "\0" in name).any(axis=None):
            raise DataError("names of queries and documents must not hold zero bytes: rename them")
    # trec_eval keeps a count of every possible grade.
    if (qrels["grade"].abs() > LARGEST_GRADE).any():
        raise DataError(f"grades must lie within {LARGEST_GRADE}: code them as ranks")
    parsed = [ir_measures.parse_measure(name) for name in measures]
    ranked = pd.DataFrame(
        {
            "query_id": ranking["query"].astype(str),
            "doc_id": ranking["document"].astype(str),
            "score": -ranking["rank"].astype(float),
        }
    )
    judged = pd.DataFrame(
        {
            "query_id": qrels["query"].astype(str),
            "doc_id": qrels["document"].astype(str),
            "relevance": qrels["grade"].astype(int),
        }
    )
    rows = list(ir_measures.iter_calc(parsed, judged, ranked))
    found = pd.DataFrame(
        [(row.query_id, str(row.measure), row.value) for row in rows],
        columns=["query", "measure", "value"],
    )
    table = found.pivot(index="query", columns="measure", values="value")
    queries = list(dict.fromkeys(judged["query_id"]))
    return table.reindex(index=queries, columns=[str(m) for m in parsed]).fillna(0.0)
