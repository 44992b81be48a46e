"""LETOR: judged query-document pairs with features, in five parts (Qin et al., 2010)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from ordrec.data.formats.archives import Source, open_source
from ordrec.data.formats.delimited import is_whole_number
from ordrec.errors import ArgumentError, DataError

__all__ = ["Letor", "load_letor"]

N_PARTS = 5


@dataclass(frozen=True)
class Letor:
    """Judged pairs of a query and a document.

    Attributes
    ----------
    X : ndarray of shape (n_pairs, n_features)
        Features, NaN where the file says NULL.
    y : ndarray of int
        Grades: 0 not relevant, 1 possibly, 2 definitely.
    queries : ndarray of int
        Query number of each pair.
    documents : ndarray of int or str
        Document of each pair: numbers where all of them are written as such (-1 if not stated),
        otherwise texts ("" if not stated).
    parts : ndarray of int
        1..5 for S1..S5; 0 for all pairs of a single file.
    """

    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray
    documents: np.ndarray
    parts: np.ndarray
    name: str = field(default="letor")

    @property
    def is_named(self) -> bool:
        """Whether the document of every pair is stated."""
        nothing = "" if self.documents.dtype.kind == "U" else -1
        return bool((self.documents != nothing).all())

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the row numbers of the five (train, validation, test) folds.

        Fold i trains on three parts starting with Si, validates on the next and tests on
        the one after that; S1 follows S5.
        """
        if set(np.unique(self.parts)) != set(range(1, N_PARTS + 1)):
            raise DataError(
                "the standard folds need all of S1..S5: load the folder that contains them"
            )
        for first in range(N_PARTS):
            order = [(first + step) % N_PARTS + 1 for step in range(N_PARTS)]
            yield (
                np.flatnonzero(np.isin(self.parts, order[:3])),
                np.flatnonzero(self.parts == order[3]),
                np.flatnonzero(self.parts == order[4]),
            )


def load_letor(
    path: str | Path, *, features: str = "QueryLevelNorm", name: str | None = None
) -> Letor:
    """Load LETOR feature files.

    Parameters
    ----------
    path : path
        A folder or archive with ``S1.txt`` .. ``S5.txt`` (possibly gzipped), one with
        several versions of them in subfolders, or a single such file.
    features : str
        Which subfolder to read if there are several, such as ``QueryLevelNorm``
        (scaled to 0..1 within each query), ``Feature-null`` or ``Feature-min``.
    """
    with open_source(path) as source:
        members = _part_files(source, features)
        columns = [_read_part(source, member) for member in members.values()]
        widths = {X.shape[1] for X, *_ in columns}
        if len(widths) > 1:
            raise DataError(f"{source.path}: the parts have {sorted(widths)} features")
        sizes = [y.size for _, y, *_ in columns]
        X, y, queries, documents = (np.concatenate(c) for c in zip(*columns, strict=True))
        return Letor(
            X,
            y,
            queries,
            _as_numbers_if_all_are(documents),
            np.repeat(np.array(list(members), dtype=np.int64), sizes),
            name=name or source.stem,
        )


def _part_files(source: Source, features: str) -> dict[int, str]:
    """The member of each part number."""
    if source.single:
        return {0: next(iter(source.members))}
    found = source.matching(r"S[1-5]\.txt")
    folders = {str(PurePosixPath(member).parent) for member in found}
    if len(folders) > 1:
        found = [member for member in found if PurePosixPath(member).parent.name == features]
        if not found:
            kinds = sorted(PurePosixPath(folder).name for folder in folders)
            raise ArgumentError(f"{source.path}: contains no features {features!r}, only {kinds}")
    members = {int(PurePosixPath(member).name[1]): member for member in found}
    if not members:
        raise DataError(f"{source.path}: contains no S1.txt .. S5.txt: name the LETOR folder")
    if len(members) < len(found):
        raise DataError(f"{source.path}: two files for one part ({', '.join(found)}): keep one")
    return dict(sorted(members.items()))


def _read_part(
    source: Source, member: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, grades, queries and documents of one file."""
    place = source.place(member)
    rows: list[list[float]] = []
    heads: list[tuple[int, int]] = []
    documents: list[str] = []
    for line, text in enumerate(source.text(member).split("\n"), start=1):
        if not text.strip() or text.startswith("#"):
            continue
        try:
            head, document, values = _read_line(text)
        except ValueError as error:
            raise DataError(
                f"{place}, line {line}: {error}: expected 'grade qid:Q 1:v 2:v ... #docid = D'"
            ) from None
        if rows and len(values) != len(rows[0]):
            raise DataError(
                f"{place}, line {line}: {len(values)} features, {len(rows[0])} in the lines before"
            )
        rows.append(values)
        heads.append(head)
        documents.append(document)
    if not rows:
        raise DataError(f"{place}: contains no judged pairs")
    grades, queries = np.array(heads, dtype=np.int64).T
    return np.array(rows, dtype=np.float64), grades, queries, np.array(documents)


def _read_line(text: str) -> tuple[tuple[int, int], str, list[float]]:
    data, _, comment = text.partition("#")
    grade, query, *fields = data.split()
    if not query.startswith("qid:"):
        raise ValueError(f"{query[:20]!r} is not a qid")
    values = []
    for number, item in enumerate(fields, start=1):
        key, colon, value = item.partition(":")
        if key != str(number) or not colon:
            raise ValueError(f"{item[:20]!r} is not feature {number}")
        values.append(float("nan") if value == "NULL" else _finite(value))
    if not values:
        raise ValueError("no features")
    return (_whole_number(grade), _whole_number(query[4:])), _document(comment), values


def _document(comment: str) -> str:
    """What stands after ``docid =``, or "" if nothing does."""
    words = comment.replace("=", " ").split()
    return words[1] if len(words) >= 2 and words[0] == "docid" else ""


def _as_numbers_if_all_are(documents: np.ndarray) -> np.ndarray:
    stated = documents != ""
    if not all(is_whole_number(each) and each == str(int(each)) for each in documents[stated]):
        return documents
    return np.where(stated, documents, "-1").astype(np.int64)


def _whole_number(text: str) -> int:
    if not is_whole_number(text):
        raise ValueError(f"{text[:20]!r} is not a whole number")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(f"{text[:20]!r} is not a finite number")
    return value
