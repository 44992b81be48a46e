"""Groups of items, such as genres, of which a list may have at most so many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.errors import ArgumentError
from ordrec.features.side.columns import infer_kind, labels_of, separator_of
from ordrec.storage.schema import Table, Text, Texts

__all__ = ["Cap", "ItemGroups", "caps_of", "item_groups", "with_new_groups", "within_caps"]

MOST_LABELS = 1000  # of a column; more tell items apart rather than group them


@dataclass(frozen=True)
class ItemGroups:
    """Which items have which label of a column.

    Attributes
    ----------
    column : str
    separator : str
        Between the labels of a cell; "" where a cell is one label.
    labels : list of str
    members : csr_array of shape (n_items, n_labels)
        1 where an item has a label.
    """

    stored: ClassVar = {
        "column": Text(),
        "separator": Text("", "|", ";", ","),
        "labels": Texts("labels", distinct=True),
        "members": Table("items", "labels", low=1.0, high=1.0),
    }

    column: str
    separator: str
    labels: list[str]
    members: sparse.csr_array

    @classmethod
    def of(cls, cells: pd.Series, separator: str) -> ItemGroups:
        """From the cells of a column, one per item."""
        own = [labels_of(cell, separator) for cell in cells]
        labels = sorted({label for each in own for label in each})
        return cls(str(cells.name), separator, labels, _members(own, labels))

    def extended(self, cells: pd.Series) -> ItemGroups:
        """With further items; labels that no item had before are added."""
        own = [labels_of(cell, self.separator) for cell in cells]
        new = sorted({label for each in own for label in each} - set(self.labels))
        labels = self.labels + new
        before = self.members.copy()
        before.resize((before.shape[0], len(labels)))
        members = sparse.csr_array(sparse.vstack([before, _members(own, labels)]))
        return replace(self, labels=labels, members=members)


def _members(own: Sequence[Sequence[str]], labels: list[str]) -> sparse.csr_array:
    place = {label: number for number, label in enumerate(labels)}
    columns = [sorted({place[label] for label in each}) for each in own]
    start = np.concatenate([[0], np.cumsum([len(each) for each in columns])]).astype(np.int64)
    index = np.array([number for each in columns for number in each], dtype=np.int64)
    shape = len(own), len(labels)
    return sparse.csr_array((np.ones(index.size), index, start), shape=shape)


def item_groups(table: pd.DataFrame | None) -> tuple[ItemGroups, ...]:
    """Return the groups of every column of a table that holds categories or labels.

    Examples
    --------
    >>> table = pd.DataFrame({"title": list("abcd"), "genre": ["War", "War|Crime", "Crime", None]})
    >>> [(each.column, each.labels) for each in item_groups(table)]
    [('genre', ['Crime', 'War'])]
    """
    found = []
    for place, name in enumerate([] if table is None else map(str, table.columns)):
        assert table is not None
        cells = table.iloc[:, place].rename(name)
        kind = infer_kind(cells)[0]
        if kind not in ("labels", "categorical", "flag"):
            continue
        separator = (separator_of(cells) or "|") if kind == "labels" else ""
        own = ItemGroups.of(cells, separator)
        if 0 < len(own.labels) <= MOST_LABELS:
            found.append(own)
    return tuple(found)


def with_new_groups(
    groups: tuple[ItemGroups, ...], table: pd.DataFrame | None, new: pd.Index
) -> tuple[ItemGroups, ...]:
    """Return the groups with new items, whose labels the table may have."""
    rows = pd.DataFrame(index=new) if table is None else table.reindex(new)
    nothing = pd.Series([None] * len(new), index=new, dtype=object)
    return tuple(each.extended(rows.get(each.column, nothing)) for each in groups)


@dataclass(frozen=True)
class Cap:
    """At most so many items of each group of a column in a list."""

    column: str
    members: sparse.csr_array
    most: int


def caps_of(at_most: Any, groups: tuple[ItemGroups, ...]) -> tuple[Cap, ...]:
    """Return the caps that ``at_most`` asks for, such as ``{"genre": 3}``."""
    if at_most is None:
        return ()
    if not isinstance(at_most, Mapping):
        raise ArgumentError(
            f'at_most must name columns and numbers, as in {{"genre": 3}}, got {at_most!r}',
            parameter="at_most",
        )
    known = {each.column: each for each in groups}
    caps = []
    for name, most in at_most.items():
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise ArgumentError(
                f"at_most: the model knows no column {name!r} of categories or labels of the items "
                f"({has}): fit it to ratings with such an item table",
                parameter="at_most",
            )
        if not isinstance(most, (int, np.integer)) or isinstance(most, bool) or most < 1:
            raise ArgumentError(
                f"at_most: {name!r} must be a whole number of at least 1, got {most!r}",
                parameter="at_most",
            )
        caps.append(Cap(str(name), known[name].members, int(most)))
    return tuple(caps)


def within_caps(
    best: np.ndarray,
    caps: Sequence[Cap],
    n: int,
    wanted: tuple[np.ndarray, int] | None = None,
) -> np.ndarray:
    """Return the places of the first n items of each list that keep within all caps.

    Parameters
    ----------
    best : int array of shape (n_lists, n_places)
        Items, best first; -1 where there are no more.
    caps : sequence of Cap
    n : int
    wanted : (bool array of shape (n_items,), int), optional
        Items of which a list has at least so many, as far as there are any.

    Returns
    -------
    int array of shape (n_lists, n)
        Places in the lists, ascending; -1 where there are no more.

    Examples
    --------
    >>> members = sparse.csr_array(np.array([[1.0], [1.0], [0.0]]))
    >>> within_caps(np.array([[1, 0, 2]]), [Cap("genre", members, 1)], 2)
    array([[0, 2]])
    >>> within_caps(np.array([[1, 0, 2]]), [], 2, (np.array([False, False, True]), 1))
    array([[0, 2]])
    """
    kept = np.full((len(best), min(n, best.shape[1])), -1, dtype=np.int64)
    for row, items in enumerate(best):
        left = [np.full(cap.members.shape[1], cap.most) for cap in caps]
        places: list[int] = []
        if wanted is not None:
            first = np.flatnonzero((items >= 0) & wanted[0][np.maximum(items, 0)])
            _fill(places, first, items, caps, left, min(wanted[1], kept.shape[1]))
        others = np.setdiff1d(np.flatnonzero(items >= 0), places)
        _fill(places, others, items, caps, left, kept.shape[1])
        kept[row, : len(places)] = sorted(places)
    return kept


def _fill(
    places: list[int],
    further: np.ndarray,
    items: np.ndarray,
    caps: Sequence[Cap],
    left: list[np.ndarray],
    n: int,
) -> None:
    """Add places whose items have room, until there are n; ``left`` counts down."""
    for place in further.tolist():
        if len(places) >= n:
            return
        item = items[place]
        own = [cap.members.indices[slice(*cap.members.indptr[item : item + 2])] for cap in caps]
        if all((free[labels] > 0).all() for free, labels in zip(left, own, strict=True)):
            places.append(place)
            for free, labels in zip(left, own, strict=True):
                free[labels] -= 1
