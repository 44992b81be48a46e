"""Judged documents of queries, and the files that hold them."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec.data.columns import is_usual_name, order_of
from ordrec.data.formats.archives import prefix_errors
from ordrec.data.formats.letor import Letor, load_letor
from ordrec.data.formats.ohsumed import Ohsumed, load_ohsumed
from ordrec.data.read import load_column_names, load_frame
from ordrec.documents.trec import read_qrels
from ordrec.errors import ArgumentError, DataError

__all__ = [
    "Judgements",
    "documents_of",
    "holds_judgements",
    "read_documents",
    "read_judgements",
    "sample_of_judgements",
]

TABLE = re.compile(r".*\.(csv|tsv|parquet)(\.(gz|bz2|xz))?", re.IGNORECASE)
QRELS = re.compile(rb"\S+[ \t]+Q?0[ \t]+\S+[ \t]+-?[0-9]{1,4}[ \t]*\r?\n")
ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".bz2")


@dataclass(frozen=True, eq=False)
class Judgements:
    """Documents that were judged for queries.

    Attributes
    ----------
    X : ndarray, or DataFrame
        What a `RelevanceRanker` is fitted to: rows of features, or a column for each field of
        texts. None where only the grades are known, to measure scores.
    grades : ndarray
        A higher one is more relevant, and 0 is not relevant.
    queries, documents : ndarray
        The query and the name of the document of each row.
    folds : list of (train, test) row numbers
        Those that were published with the data; empty if there are none.
    name : str
    discount : {"log2", "letor"}
        The discount of NDCG that is usual for this data.

    Examples
    --------
    >>> frame = pd.DataFrame({"query": ["cat food", "cat food"], "document": ["a", "b"],
    ...                       "text": ["what cats eat", "roses"], "grade": [2, 0]})
    >>> Judgements.from_frame(frame)
    <Judgements: 2 documents of 1 query, grades 0 (1), 2 (1), texts in text>
    """

    X: Any
    grades: np.ndarray
    queries: np.ndarray
    documents: np.ndarray
    folds: Sequence[tuple[np.ndarray, np.ndarray]] = ()
    name: str = "judgements"
    discount: str = "log2"

    @classmethod
    def of(cls, given: Any) -> Judgements:
        """Return judgements from a data frame, a `Letor` or an `Ohsumed`, or as they are."""
        if isinstance(given, Judgements):
            return given
        if isinstance(given, Letor):
            return cls.from_letor(given)
        if isinstance(given, Ohsumed):
            return cls.from_ohsumed(given)
        if isinstance(given, pd.DataFrame):
            return cls.from_frame(given)
        raise ArgumentError(
            f"judgements must be a DataFrame, a Letor or an Ohsumed, got {type(given).__name__}"
        )

    @classmethod
    def from_frame(
        cls, frame: pd.DataFrame, name: str = "judgements", *, scale: Sequence[str] | None = None
    ) -> Judgements:
        """Return judgements from columns ``query``, ``grade`` and, if there is one, ``document``.

        All other columns describe the documents: texts, numbers, or both.

        Parameters
        ----------
        frame : DataFrame
            Its columns may have other usual names, such as ``qid`` or ``Relevance``.
        name : str
        scale : sequence of str, optional
            Grades that are words, from the worst to the best; they become 0, 1, 2 and so on. An
            ordered Categorical says its order itself.
        """
        query, grade = _column(frame, "query", name), _column(frame, "grade", name)
        document = _column_or_none(frame, "document", name)
        if not len(frame):
            raise DataError(f"{name}: holds no judgements")
        if frame[query].isna().any():
            row = int(np.flatnonzero(frame[query].isna())[0])
            raise DataError(f"{name}: the query of row {row} is missing")
        with prefix_errors(name):
            grades = _grades(frame[grade], scale)
        described = [column for column in frame if column not in (query, grade, document)]
        names = np.arange(len(frame)) if document is None else frame[document].to_numpy()
        return cls(
            frame[described].reset_index(drop=True) if described else None,
            grades,
            frame[query].to_numpy(),
            names,
            name=name,
        )

    @classmethod
    def from_letor(cls, letor: Letor) -> Judgements:
        """Return the pairs of LETOR files; their folds train on training and validation parts."""
        whole = set(np.unique(letor.parts)) == {1, 2, 3, 4, 5}
        return cls(
            letor.X,
            letor.y,
            letor.queries,
            letor.documents if letor.is_named else np.arange(letor.y.size),
            [(np.concatenate([t, v]), test) for t, v, test in letor.folds()] if whole else (),
            letor.name,
            "letor",
        )

    @classmethod
    def from_ohsumed(cls, found: Ohsumed, name: str = "ohsumed") -> Judgements:
        """Return the judged documents whose texts are there, with the need as the query."""
        texts = found.documents.drop_duplicates("ui").set_index("ui")[["title", "abstract"]]
        judged = found.judgements[found.judgements["topic"].isin(found.topics.index)]
        known = judged[judged["ui"].isin(texts.index)]
        if known.empty:
            raise DataError(
                f"{name}: {len(found.judgements)} judgements, {len(found.topics)} topics and "
                f"{len(found.documents)} documents, but no judged document is among them: add "
                "the files ohsumed.* that hold them"
            )
        return cls(
            texts.loc[known["ui"]].reset_index(drop=True),
            known["grade"].to_numpy(),
            found.topics.loc[known["topic"], "need"].to_numpy(),
            known["ui"].to_numpy(),
            name=name,
        )

    def rows(self, rows: np.ndarray) -> Any:
        """Return what describes the documents of these rows."""
        if isinstance(self.X, pd.DataFrame):
            return self.X.iloc[rows].reset_index(drop=True)
        return self.X[rows]

    def __len__(self) -> int:
        return self.grades.size

    def __repr__(self) -> str:
        values, counts = np.unique(self.grades, return_counts=True)
        graded = ", ".join(f"{v:g} ({n:,})" for v, n in zip(values, counts, strict=True))
        n_queries = len(pd.unique(pd.Series(self.queries)))
        if self.X is None:
            about = "without texts or features"
        elif isinstance(self.X, pd.DataFrame):
            texts = [c for c in self.X if self.X[c].map(lambda v: isinstance(v, str)).any()]
            numbers = self.X.shape[1] - len(texts)
            parts = [f"texts in {', '.join(map(str, texts))}"] if texts else []
            about = " and ".join(parts + ([f"{numbers} columns of numbers"] if numbers else []))
        else:
            about = f"{self.X.shape[1]} features"
        return (
            f"<Judgements: {len(self):,} documents of {n_queries:,} "
            f"{'query' if n_queries == 1 else 'queries'}, grades {graded}, {about}>"
        )


def sample_of_judgements() -> Path:
    """Return the bundled sample: a csv of invented texts, judged for a dozen queries."""
    package = Path(__file__).resolve().parent.parent
    name = "judged-documents.csv"
    places = [package / "data" / "bundled" / name]
    places.append(package.parent / "data" / "samples" / "documents" / name)
    for place in places:
        if place.is_file():
            return place
    raise DataError("the bundled sample of judged documents is missing: install ordrec again")


def read_judgements(
    path: str | Path,
    *,
    documents: str | Path | None = None,
    queries: str | Path | None = None,
    scale: Sequence[str] | None = None,
    encoding: str | None = None,
) -> Judgements:
    """Read judged documents.

    Parameters
    ----------
    path : path
        * a folder, archive or file of LETOR;
        * a csv, tsv or parquet table with columns ``query``, ``grade``, perhaps ``document``,
          and one for each text or feature (see `Judgements.from_frame`);
        * a folder of OHSUMED as in TREC-9 (``ohsumed.*``, ``query.ohsu.*``, ``qrels.ohsu.*``);
        * a qrels file of TREC, with the other two arguments.
    documents, queries : path, optional
        For qrels: tables whose first column (or the one called ``document`` or ``query``) has
        the names that the qrels use. The queries have one other column, their texts.
    scale : sequence of str, optional
        For tables: grades that are words, from the worst to the best.
    encoding : str, optional
        How the characters of tables are written, such as "latin-1"; UTF-8 by default.
    """
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder: name judged documents")
    is_table = TABLE.fullmatch(path.name) is not None
    if scale is not None and not is_table:
        raise ArgumentError("scale is for tables: leave it out", parameter="scale")
    if encoding is not None and not is_table and documents is None:
        raise ArgumentError("encoding is for tables: leave it out", parameter="encoding")
    if documents is not None or queries is not None:
        return _from_qrels(path, documents, queries, encoding)
    if is_table:
        return Judgements.from_frame(_table(path, encoding), path.name, scale=scale)
    kind = holds_judgements(path)
    if kind == "ohsumed":
        return Judgements.from_ohsumed(load_ohsumed(path), path.name)
    if kind == "letor" or path.is_dir() or path.suffix in ARCHIVES:
        return Judgements.from_letor(load_letor(path))
    return Judgements.from_frame(read_qrels(path), path.name)


def holds_judgements(path: str | Path) -> Literal["ohsumed", "letor", "table", "qrels"] | None:
    """Return what kind of judged documents a file or folder holds; None for anything else.

    A folder or file of LETOR and qrels are known by their first lines, OHSUMED by the names of its
    files, and a table by its columns ``query`` and ``grade`` (an archive may hold anything: None).
    """
    path = Path(path)
    if path.is_dir():
        inside = [each.name for each in path.iterdir()]
        if any(name.startswith(("query.ohsu", "qrels.ohsu", "ohsumed.")) for name in inside):
            return "ohsumed"
        files = sorted([*path.rglob("*.txt"), *path.rglob("*.txt.gz")])
        return "letor" if files and b"qid:" in _start_of(files[0]) else None
    if TABLE.fullmatch(path.name):
        try:
            columns = load_column_names(path)
        except DataError:
            return None
        has = {k for k in ("query", "grade", "user") for c in columns if is_usual_name(c, k)}
        return "table" if has == {"query", "grade"} else None  # ratings, too, may have topics
    start = _start_of(path)
    if b"qid:" in start:
        return "letor"
    return "qrels" if QRELS.match(start) else None


def _start_of(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            return stream.read(4096)
    except (OSError, EOFError, zlib.error):
        return b""


def read_documents(path: str | Path, *, encoding: str | None = None) -> pd.DataFrame | Letor:
    """Read documents to rank: a table with a column ``query``, or a file of LETOR."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file: name documents to rank")
    if not TABLE.fullmatch(path.name):
        return load_letor(path)
    frame = _table(path, encoding)
    _column(frame, "query", str(path))
    return frame


def documents_of(given: pd.DataFrame | Letor) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return what describes documents, their queries and their names.

    Grades, where there are some, are left out.
    """
    if isinstance(given, Letor):
        judged = Judgements.from_letor(given)
        return judged.X, judged.queries, judged.documents
    query = _column(given, "query", "the documents")
    document = _column_or_none(given, "document", "the documents")
    grade = _column_or_none(given, "grade", "the documents")
    described = [column for column in given if column not in (query, document, grade)]
    names = np.arange(len(given)) if document is None else given[document].to_numpy()
    return given[described], given[query].to_numpy(), names


def _from_qrels(
    path: Path,
    documents: str | Path | None,
    queries: str | Path | None,
    encoding: str | None,
) -> Judgements:
    if documents is None:
        raise ArgumentError("qrels need the documents, too: name a table of them")
    judged = read_qrels(path)
    texts = _table(Path(documents), encoding)
    texts = texts.set_index(_named_or_first(texts, "document", str(documents)))
    texts.index = texts.index.astype(str)
    missing = ~judged["document"].isin(texts.index)
    if missing.all():
        raise DataError(f"{documents}: has none of the documents that {path} judges")
    judged = judged[~missing]
    described = texts[~texts.index.duplicated()].loc[judged["document"]].reset_index(drop=True)
    asked = judged["query"].to_numpy()
    if queries is not None:
        table = _table(Path(queries), encoding)
        table = table.set_index(_named_or_first(table, "query", str(queries)))
        table.index = table.index.astype(str)
        unknown = sorted(set(asked) - set(table.index))
        if unknown:
            raise DataError(f"{queries}: has no query {unknown[0]!r}, which {path} judges")
        words = table.iloc[:, 0]
        asked = words[~words.index.duplicated()].loc[asked].to_numpy()
    return Judgements(
        described, judged["grade"].to_numpy(), asked, judged["document"].to_numpy(), name=path.name
    )


def _table(path: Path, encoding: str | None) -> pd.DataFrame:
    """A csv or parquet table, with ids in the columns of queries and documents."""
    return load_frame(
        path,
        lambda name: is_usual_name(name, "query") or is_usual_name(name, "document"),
        encoding=encoding,
    )


def _grades(column: pd.Series, scale: Sequence[str] | None) -> np.ndarray:
    """The grades as numbers: those of words are their places on the scale."""
    words = order_of(column, "the column of grades") if scale is None else list(scale)
    texts = column if words is None else column.astype(object)
    if words is None:
        grades = pd.to_numeric(texts, errors="coerce")
    else:
        if len(set(words)) != len(words):
            raise ArgumentError(f"scale names a grade twice: {', '.join(words)}", parameter="scale")
        places = {word: place for place, word in enumerate(words)}
        grades = texts.map(lambda word: places.get(str(word).strip(), np.nan))
    if grades.isna().any():
        row = int(np.flatnonzero(grades.isna())[0])
        wanted = "write a number" if words is None else f"write one of {', '.join(words)}"
        raise DataError(f"the grade of row {row} is {column.iloc[row]!r}: {wanted}")
    numbers = grades.to_numpy(dtype=np.float64)
    return numbers.astype(np.int64) if (numbers == numbers.round()).all() else numbers


def _column_or_none(frame: pd.DataFrame, kind: str, place: str) -> str | None:
    """The column of a kind: the one that is called so, or the only one with a usual name."""
    if kind in frame:
        return kind
    usual: list[Any] = [column for column in frame if is_usual_name(column, kind)]
    if len(usual) > 1:
        raise DataError(
            f"{place}: the {kind} may be in {' or '.join(map(repr, usual))}: call one {kind!r}"
        )
    return usual[0] if usual else None


def _column(frame: pd.DataFrame, kind: str, place: str) -> str:
    found = _column_or_none(frame, kind, place)
    if found is None:
        columns = ", ".join(map(str, frame.columns))
        raise DataError(f"{place}: no column {kind!r} among {columns}: rename one")
    return found


def _named_or_first(frame: pd.DataFrame, kind: str, place: str) -> str:
    return _column_or_none(frame, kind, place) or str(frame.columns[0])
