"""Features of users or items from the columns of their side table, of whatever kind."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError, DataError, ModelFileError, callers_level
from ordrec.features.side.blocks import NumberBlock, VectorBlock, WordBlock
from ordrec.features.side.columns import (
    KINDS,
    as_numbers,
    as_vectors,
    infer_kind,
    is_missing,
    labels_of,
    numbered_columns,
    separator_of,
    text_of,
)
from ordrec.storage.schema import Array, As, Names, Optional, Part, Parts, Storable, Text

__all__ = ["SideEncoder", "side_encoders"]

log = logging.getLogger(__name__)

FLAGS = 3  # columns of zeros and ones, from which on they are labels of one block
MOST_BLOCKS = 500

Block = NumberBlock | WordBlock | VectorBlock


@dataclass(frozen=True)
class _StoredBlock:
    """A block of a `SideEncoder` and what it reads, as a file stores them."""

    stored: ClassVar = {
        "name": Text(),
        "kind": Text("numeric", "categorical", "labels", "text", "flags", "vector"),
        "columns": Names(),
        "separator": Text(),
        "numbers": Optional(Part(NumberBlock)),
        "words": Optional(Part(WordBlock)),
        "vectors": Optional(Part(VectorBlock)),
    }

    name: str
    kind: str
    columns: tuple[str, ...]
    separator: str
    numbers: NumberBlock | None
    words: WordBlock | None
    vectors: VectorBlock | None

    def check_stored(self) -> None:
        """Check that the block is of the column's kind."""
        there = [self.numbers is not None, self.vectors is not None, self.words is not None]
        own = {"numeric": 0, "vector": 1}.get(self.kind, 2)
        fits = there == [place == own for place in range(3)]
        if self.vectors is not None:
            fits &= len(self.columns) in (1, self.vectors.mean.size)
        if self.words is not None:
            fits &= self.words.is_text == (self.kind == "text")
        if not fits or not self.columns or len(self.separator) > 1:
            raise ModelFileError(f"side column {self.name[:50]!r} is not a column")


@dataclass(frozen=True)
class _StoredBlocks:
    """All blocks of a `SideEncoder`, as a file stores them."""

    stored: ClassVar = {"all": Parts(_StoredBlock)}

    all: tuple[_StoredBlock, ...]

    @classmethod
    def of(cls, blocks: Mapping[str, tuple[_Reader, Block]]) -> _StoredBlocks:
        """From the readers and blocks by name."""
        return cls(
            tuple(
                _StoredBlock(
                    name,
                    reader.kind,
                    tuple(reader.columns),
                    reader.separator,
                    block if isinstance(block, NumberBlock) else None,
                    block if isinstance(block, WordBlock) else None,
                    block if isinstance(block, VectorBlock) else None,
                )
                for name, (reader, block) in blocks.items()
            )
        )

    def restored(self, encoder: SideEncoder) -> dict[str, tuple[_Reader, Block]]:
        """The readers and blocks by name."""
        blocks: dict[str, tuple[_Reader, Block]] = {}
        for each in self.all:
            block = each.numbers or each.words or each.vectors
            if block is None or each.name in blocks:
                raise ModelFileError(f"side column {each.name[:50]!r} occurs twice, or is empty")
            size = each.vectors.mean.size if each.vectors is not None else None
            reader = _Reader(each.kind, list(each.columns), each.separator, size)
            blocks[each.name] = reader, block
        return blocks


class SideEncoder(Storable):
    """Turn the columns of a side table into features.

    Each column is numeric, categorical, labels ("a|b", "a;b", "a,b" or lists), text, or ignored,
    as declared or as its values look:

    * numbers, dates: a smooth (Gaussian) kernel relative to their spread, on a logarithmic axis
      if they have a long tail; extreme values are moved to the border of the bulk;
    * few different numbers, repeated strings: one column per category;
    * labels: one column each; many labels are projected on a few components;
    * three or more columns of zeros and ones: the labels of one block;
    * strings of eight words or more: components of their TF-IDF vectors;
    * vectors (embeddings): sequences of numbers of one length, or eight or more columns ``emb_0``,
      ``emb_1``, ... of fractions: directions from their mean, along the leading components; a gap
      in one of the columns counts as its mean;
    * ids, constants, and strings that hardly repeat (titles, links) are ignored.

    A missing value, a missing column and an unknown category are rows of zeros.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Kinds of columns: "numeric", "categorical", "labels", "text", "vector" or "ignore"; those of
        the other columns are inferred.

    Attributes
    ----------
    used_ : dict of str to str
        Kind of each column that is used.
    ignored_ : dict of str to str
        Why each of the other columns is not used.

    Examples
    --------
    >>> items = pd.DataFrame({
    ...     "title": ["Alien", "Heat", "Solaris", "Stalker", "Tenet", "Up"],
    ...     "genres": ["Horror|SciFi", "Crime", "SciFi", "SciFi", "SciFi|Crime", None],
    ...     "year": [1979, 1995, 1972, 1980, 2020, 2009]})
    >>> encoder = SideEncoder().fit(items)
    >>> encoder.used_
    {'genres': 'labels', 'year': 'numeric'}
    >>> encoder.ignored_
    {'title': 'nearly every value is different'}
    >>> encoder.blocks(pd.DataFrame({"genres": ["SciFi|Crime"]}))["genres"].round(3)
    array([[0.707, 0.707]])
    """

    stored: ClassVar = {
        "used_": Names(values=True),
        "ignored_": Names(values=True),
        "_blocks": As(_StoredBlocks),
        "_scales": Array("scales", low=0.0, high=1e6),
    }

    def __init__(self, kinds: Mapping[str, str] | None = None):
        self.kinds = kinds

    def fit(self, table: pd.DataFrame) -> SideEncoder:
        """Learn kinds, categories, words and scales from a table with one row per id."""
        declared = _checked(self.kinds or {}, table)
        self.used_: dict[str, str] = {}
        self.ignored_: dict[str, str] = {}
        self._blocks: dict[str, tuple[_Reader, Block]] = {}
        described = table[~table.isna().all(axis=1)]  # an id without a row has no values at all
        flags = []
        inferred = {
            name: infer_kind(described.iloc[:, place])
            for place, name in enumerate(map(str, table.columns))
        }
        open_ = {name: kind for name, (kind, _) in inferred.items() if name not in declared}
        grouped = [
            group for group in numbered_columns(open_)
            if not all(_are_whole(_column(described, name)) for name in group)
        ]  # fmt: skip
        first_of = {group[0]: group for group in grouped}
        for name, (kind, reason) in inferred.items():
            if name in declared:
                kind, reason = declared[name], "as declared"
            if name in first_of:
                group = first_of[name]
                self._add(f"{name}..{group[-1]}", "vector", group, described, False)
            elif any(name in group for group in grouped):
                continue
            elif kind == "ignore":
                self.ignored_[name] = reason
            elif kind == "flag":
                flags.append(name)
            else:
                self._add(name, kind, [name], described, name in declared)
        if len(flags) >= FLAGS:
            self._add(f"{flags[0]}, {flags[1]}, ...", "flags", flags, described, False)
        else:
            for name in flags:
                self._add(name, "categorical", [name], described, False)
        if len(self._blocks) > MOST_BLOCKS:
            raise DataError(
                f"side table: {len(self._blocks)} columns, more than {MOST_BLOCKS}: declare some "
                'as "ignore", or leave them out'
            )
        self._scales = _scales(list(self.blocks(table).values()))
        return self

    def _add(
        self, name: str, kind: str, columns: list[str], table: pd.DataFrame, declared: bool
    ) -> None:
        """Fit the block of one column, or of several columns of flags."""
        cells = _column(table, columns[0])
        separator = (separator_of(cells) or "|") if kind == "labels" else ""
        reader = _Reader(kind, columns, separator)
        block: Block | None
        if kind == "numeric":
            block, reason = NumberBlock.of(reader.values(table)), "the same number everywhere"
        elif kind == "vector":
            values = reader.values(table)
            block, reason = VectorBlock.of(values), "the same vector everywhere"
            reader = replace(reader, size=values.shape[1])
        else:
            block, reason = WordBlock.of(reader.values(table), kind), "no value occurs twice"
        if block is not None:
            self._blocks[name] = reader, block
            self.used_ |= dict.fromkeys(columns, kind)
        elif declared:
            raise DataError(f"side table: column {name!r} cannot be used as {kind}: {reason}")
        else:
            self.ignored_ |= dict.fromkeys(columns, reason)

    @property
    def columns_(self) -> dict[str, str]:
        """Each column's kind, or "ignored: " and why."""
        return self.used_ | {name: f"ignored: {why}" for name, why in self.ignored_.items()}

    @property
    def numeric(self) -> list[str]:
        """Names of the blocks of numbers; the others are of words or vectors."""
        return [name for name, (reader, _) in self._blocks.items() if reader.kind == "numeric"]

    def columns_of(self, block: str) -> list[str]:
        """The columns that a block is made of."""
        return list(self._blocks[block][0].columns)

    def blocks(self, table: pd.DataFrame) -> dict[str, np.ndarray]:
        """Features of the rows of a table, for each column, or group of columns, that is used.

        The rows have length 1, or 0 where nothing is known. The table may be another one than
        that of the fit: columns are found by name, and those that it lacks count as missing.
        """
        return {
            name: block.rows(reader.values(table)) for name, (reader, block) in self._blocks.items()
        }

    def matrix(self, table: pd.DataFrame) -> np.ndarray:
        """All blocks side by side, scaled: the squares of a training row sum to 1 on average."""
        blocks = self.blocks(table).values()
        rows = [scale * block for scale, block in zip(self._scales, blocks, strict=True)]
        return np.hstack([np.zeros((len(table), 0)), *rows])

    # ---- files ---------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check that there is a scale for each block."""
        if len(self._scales) != len(self._blocks):
            raise ModelFileError("the scales of side columns are not one for each of them")


def side_encoders(
    user_table: pd.DataFrame | None,
    item_table: pd.DataFrame | None,
    kinds: Mapping[str, str] | None = None,
) -> dict[str, SideEncoder]:
    """Fitted encoders "user" and "item" of the tables that there are.

    ``kinds`` declares columns of either table. What is used and what is not is logged, and a
    table of which nothing can be used is warned of.

    Examples
    --------
    >>> users = pd.DataFrame({"age": [20, 30, 40, 41, 45, 50], "zip": list("abcdef")})
    >>> side_encoders(users, None)["user"].columns_
    {'age': 'numeric', 'zip': 'ignored: nearly every value is different'}
    """
    tables = {"user": user_table, "item": item_table}
    present = {side: table for side, table in tables.items() if table is not None}
    names = {side: [str(name) for name in table.columns] for side, table in present.items()}
    declared = {str(name): kind for name, kind in (kinds or {}).items()}
    for name in declared:
        if not any(name in columns for columns in names.values()):
            raise ArgumentError(f"side_kinds: no side table has a column {name!r}: {names}")
    encoders = {}
    for side, table in present.items():
        own = {name: kind for name, kind in declared.items() if name in names[side]}
        encoders[side] = encoder = SideEncoder(own).fit(table)
        log.info("side data of %ss: %s", side, encoder.columns_)
        if not encoder.used_ and names[side] not in ([], ["title"]):
            warnings.warn(
                f"no column of the {side} table can be used: {encoder.columns_}: declare their "
                "kinds with side_kinds",
                stacklevel=callers_level(),
            )
    return encoders


@dataclass(frozen=True)
class _Reader:
    """Which columns a block reads (several for flags and vectors), and how."""

    kind: str
    columns: list[str]
    separator: str
    size: int | None = None  # of vectors

    def values(self, table: pd.DataFrame) -> Any:
        """What the block takes: numbers, texts, lists of words, or vectors as rows."""
        if self.kind == "vector":
            if len(self.columns) == 1:
                return as_vectors(_column(table, self.columns[0]), self.size)
            return np.column_stack([as_numbers(_column(table, name)) for name in self.columns])
        if self.kind == "flags":
            ones = [as_numbers(_column(table, name)) == 1.0 for name in self.columns]
            return [list(compress(self.columns, row)) for row in zip(*ones, strict=True)]
        column = _column(table, self.columns[0])
        if self.kind == "numeric":
            return as_numbers(column)
        if self.kind == "text":
            missing = is_missing(column)
            return ["" if gap else text_of(cell) for gap, cell in zip(missing, column, strict=True)]
        cells = column.tolist()
        known = {text: labels_of(text, self.separator) for text in set(filter(_is_text, cells))}
        return [
            known[cell] if _is_text(cell) else labels_of(cell, self.separator) for cell in cells
        ]


def _are_whole(column: pd.Series) -> bool:
    numbers = as_numbers(column)
    return bool((numbers[np.isfinite(numbers)] % 1 == 0).all())


def _is_text(cell: Any) -> bool:
    return isinstance(cell, str)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    """The column of this name; one without values if there is none."""
    names = [str(column) for column in table.columns]
    if name not in names:
        return pd.Series([None] * len(table), index=table.index, name=name, dtype=object)
    return table.iloc[:, names.index(name)]


def _scales(blocks: list[np.ndarray]) -> np.ndarray:
    """Factors that make blocks comparable, and the mean square of their joint rows one."""
    squares = [np.einsum("nk,nk->n", rows, rows) for rows in blocks]
    known = np.array([own[own > 0].mean() if own.any() else 1.0 for own in squares])
    total = sum(float(own.mean()) / one for own, one in zip(squares, known, strict=True))
    return 1.0 / np.sqrt(known * (total or 1.0))


def _checked(kinds: Mapping[str, str], table: pd.DataFrame) -> dict[str, str]:
    names = [str(column) for column in table.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"side table: column {twice!r} occurs twice: keep one")
    for name, kind in kinds.items():
        if str(name) not in names:
            raise ArgumentError(f"kinds: no column {name!r} in the table (it has {names})")
        if kind not in KINDS:
            raise ArgumentError(f"kinds: {name!r} is {kind!r}, not one of {', '.join(KINDS)}")
    return {str(name): kind for name, kind in kinds.items()}
