"""Load ordinal regression tables with published partitions, and divide numbers into ranks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec.data.formats.archives import decode, open_source
from ordrec.data.formats.delimited import read_text_table
from ordrec.errors import ArgumentError, DataError

__all__ = ["OrdinalTable", "discretise", "load_table"]

_OTHER_TARGETS = ("target", "raw_row")
_LABEL = re.compile(r"y\d*")


@dataclass(frozen=True)
class OrdinalTable:
    """Features and ranks, with the published training parts.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of int
        Ranks 1..n_ranks.
    feature_names : list of str
    n_ranks : int
    partitions : list of int ndarray
        Row numbers of each training part, in the published order.
    name : str
    """

    X: np.ndarray
    y: np.ndarray
    feature_names: list[str]
    n_ranks: int
    partitions: list[np.ndarray] = field(default_factory=list)
    name: str = "table"

    def __repr__(self) -> str:
        n_rows, n_features = self.X.shape
        return (
            f"<OrdinalTable {self.name}: {n_rows} rows, {n_features} features, "
            f"{self.n_ranks} ranks, {len(self.partitions)} partitions>"
        )

    def split(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the row numbers of the training and the test part of a partition, from 0."""
        if not 0 <= number < len(self.partitions):
            raise ArgumentError(
                f"{self.name} has {len(self.partitions)} partitions, counted from 0; "
                f"there is no partition {number}"
            )
        train = self.partitions[number]
        return train, np.setdiff1d(np.arange(self.y.size), train)


def load_table(
    path: str | Path,
    *,
    label: str | None = None,
    levels: Sequence[Any] | None = None,
    partitions: str | Path | bool = True,
    drop: Sequence[str] = (),
    name: str | None = None,
) -> OrdinalTable:
    """Load a csv with a header line, numeric features and one ordinal label.

    Parameters
    ----------
    path : path
        The csv, possibly gzipped.
    label : str, optional
        The label column; by default ``y``, or the only column named ``y`` and a number.
        Other columns of that kind, ``target`` and ``raw_row`` are not features.
    levels : sequence, optional
        The label's values from lowest to highest, as written in the file. Without it the
        labels are whole numbers from 1 up, the largest of which is the number of ranks.
    partitions : path or bool
        A file with one training part per line, as row numbers from 0. True reads
        ``<name>.train-rows.txt`` or, for a label ``y5``, ``<name>.train-rows-5.txt``
        next to the csv, if it exists; False reads none.
    drop : sequence of str
        Further columns that are not features.
    """
    path = Path(path).expanduser()
    with open_source(path) as source:
        tables = list(source.members) if source.single else source.matching(r".*\.csv")
        if len(tables) != 1:
            raise DataError(f"{path}: contains {len(tables)} csv files: name one of them")
        place, frame = source.place(tables[0]), read_text_table(source, tables[0], ",")
    if frame.empty:
        raise DataError(f"{place}: no rows below the header")
    label = _label_column(frame, label, place)
    unknown = [column for column in drop if column not in frame.columns]
    if unknown:
        raise ArgumentError(f"{place}: no column {unknown[0]!r} to drop")
    aside = {label, *drop, *_OTHER_TARGETS, *(c for c in frame.columns if _LABEL.fullmatch(c))}
    features = [column for column in frame.columns if column not in aside]
    if not features:
        raise DataError(f"{place}: no feature columns beside {sorted(aside & set(frame.columns))}")
    stem = re.sub(r"\.csv(\.gz)?$", "", path.name, flags=re.I)
    y, n_ranks = _ranks(frame[label], levels, place)
    return OrdinalTable(
        np.column_stack([_feature(frame[column], place) for column in features]),
        y,
        features,
        n_ranks,
        _partitions(path, stem, label, partitions, len(frame)),
        name or stem,
    )


def discretise(
    target: Any, bins: int, how: Literal["frequency", "length"] = "frequency"
) -> np.ndarray:
    """Divide numbers into ranks 1..bins.

    Parameters
    ----------
    target : array of float
    bins : int
        Number of ranks.
    how : {"frequency", "length"}
        Ranks of equal size (sizes differ by at most one; equal numbers at a boundary are
        assigned in the order they come), or intervals of equal length between the smallest
        and the largest number: ``max(1, ceil(bins (t - lo) / (hi - lo)))``.

    Examples
    --------
    >>> discretise([1.0, 2.0, 3.0, 10.0], 2, "frequency")
    array([1, 1, 2, 2])
    >>> discretise([1.0, 2.0, 3.0, 10.0], 2, "length")
    array([1, 1, 1, 2])
    """
    values = np.asarray(target, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise ArgumentError("target must be a one-dimensional array of finite numbers")
    if bins < 2:
        raise ArgumentError(f"bins must be at least 2, got {bins}")
    if how == "frequency":
        if values.size < bins:
            raise ArgumentError(f"{values.size} numbers cannot fill {bins} ranks")
        ranks = np.empty(values.size, dtype=np.int64)
        ranks[np.argsort(values, kind="stable")] = np.arange(values.size) * bins // values.size + 1
        return ranks
    if how == "length":
        low, high = values.min(), values.max()
        if low == high:
            raise ArgumentError("all numbers are equal: they cannot be divided into ranks")
        share = values / 2 - low / 2  # halves, so that no difference overflows
        share /= high / 2 - low / 2
        return np.clip(np.ceil(bins * share), 1, bins).astype(np.int64)
    raise ArgumentError(f'how must be "frequency" or "length", got {how!r}')


def _label_column(frame: pd.DataFrame, label: str | None, place: str) -> str:
    if label is not None:
        if label not in frame.columns:
            raise ArgumentError(f"{place}: no column {label!r}; it has {list(frame.columns)}")
        return label
    found = [c for c in frame.columns if _LABEL.fullmatch(c)]
    if "y" in found or len(found) == 1:
        return "y" if "y" in found else found[0]
    raise ArgumentError(
        f"{place}: which column is the label? name it with label= (candidates: "
        f"{found or list(frame.columns)})"
    )


def _ranks(column: pd.Series, levels: Sequence[Any] | None, place: str) -> tuple[np.ndarray, int]:
    if levels is not None:
        order = {str(level): rank for rank, level in enumerate(levels, start=1)}
        if len(order) < 2:
            raise ArgumentError("levels needs at least two distinct values")
        ranks = column.map(order)
        wrong = np.flatnonzero(ranks.isna())
        remedy = f"it is not among the levels {list(order)}"
    else:
        ranks = pd.to_numeric(column, errors="coerce")
        values = ranks.to_numpy(dtype=np.float64)
        wrong = np.flatnonzero(~((values >= 1) & (values <= 1000) & (values == np.floor(values))))
        remedy = "ranks are whole numbers from 1 up; name the values in order with levels="
    if wrong.size:
        at = wrong[0]
        raise DataError(
            f"{place}, line {column.index[at]}: {column.name} {column.iloc[at][:40]!r}: {remedy}"
        )
    y = ranks.to_numpy(dtype=np.int64)
    n_ranks = len(levels) if levels is not None else int(y.max())
    if n_ranks < 2:
        raise DataError(f"{place}: all rows have rank 1: there is nothing to order")
    return y, n_ranks


def _feature(column: pd.Series, place: str) -> np.ndarray:
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        at = wrong[0]
        raise DataError(
            f"{place}, line {column.index[at]}: feature {column.name} is "
            f"{column.iloc[at][:40]!r}, not a number: code it as numbers, or leave it out with "
            f"drop=[{column.name!r}]"
        )
    return values


def _partitions(
    path: Path, stem: str, label: str, given: str | Path | bool, n_rows: int
) -> list[np.ndarray]:
    if given is False:
        return []
    if given is True:
        number = f"-{label[1:]}" if _LABEL.fullmatch(label) and label != "y" else ""
        file = path.parent / f"{stem}.train-rows{number}.txt"
        if not file.is_file():
            return []
    else:
        file = Path(given).expanduser()
        if not file.is_file():
            raise ArgumentError(f"no such partition file: {file}")
    parts = []
    for line, text in enumerate(decode(file.read_bytes(), str(file)).splitlines(), start=1):
        words = text.split()
        if not words:
            continue
        if not all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
            raise DataError(f"{file}, line {line}: row numbers are whole numbers from 0 up")
        rows = np.array(words, dtype=np.int64)
        if rows.max() >= n_rows or np.unique(rows).size < rows.size or rows.size == n_rows:
            raise DataError(
                f"{file}, line {line}: rows must be distinct, below {n_rows}, and leave a test part"
            )
        parts.append(rows)
    return parts
