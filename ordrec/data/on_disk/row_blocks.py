"""Read row groups of parquet files as checked columns of ratings that know where they are from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ordrec.data.columns import as_numbers, as_weights, on_scale
from ordrec.data.on_disk.partitions import parquet_engine
from ordrec.data.scale import Scale
from ordrec.data.times import as_seconds
from ordrec.errors import DataError
from ordrec.runtime.files import check_folder_visible

__all__ = ["RowBlock", "checked_frame", "column_names", "row_blocks", "user_starts"]


class RowBlock(NamedTuple):
    """Consecutive rows of a file; ``groups`` has each row group's number and where it ends."""

    users: np.ndarray
    items: np.ndarray
    values: np.ndarray
    times: np.ndarray | None
    weights: np.ndarray | None
    file: str
    groups: tuple[tuple[int, int], ...]

    @classmethod
    def joined(cls, blocks: list[RowBlock]) -> RowBlock:
        """Join blocks that follow each other in a file."""
        if len(blocks) == 1:
            return blocks[0]
        groups, before = [], 0
        for block in blocks:
            groups += [(group, before + stop) for group, stop in block.groups]
            before += block.values.size

        def joined(name: str) -> Any:
            """A column of all blocks, None where they have none."""
            columns = [getattr(block, name) for block in blocks]
            return None if columns[0] is None else np.concatenate(columns)

        return cls(
            joined("users"), joined("items"), joined("values"), joined("times"), joined("weights"),
            blocks[0].file, tuple(groups),
        )  # fmt: skip

    def slice(self, first: int, stop: int) -> RowBlock:
        """Return the rows from ``first`` up to, but not including, ``stop``."""
        groups = tuple((group, end - first) for group, end in self.groups if end > first)
        own = slice(first, stop)
        return RowBlock(
            self.users[own],
            self.items[own],
            self.values[own],
            None if self.times is None else self.times[own],
            None if self.weights is None else self.weights[own],
            self.file,
            groups,
        )

    def place_of(self, row: int) -> str:
        """Return the file and row group of a row, for error messages."""
        group = next(group for group, stop in self.groups if row < stop)
        return f"{self.file}, row group {group}"


def row_blocks(
    path: Path,
    columns: tuple[str, str, str, str],
    dated: bool,
    scale: Scale | None,
    weight: str | None = None,
) -> Iterator[RowBlock]:
    """Yield the row groups of a file, after checking them; ``weight`` is the column of weights.

    Without a column of ratings (an empty name), all values are 1.
    """
    check_folder_visible(path.parent)
    pyarrow, parquet = parquet_engine(path)
    wanted = [name for name in columns[: 4 if dated else 3] if name]
    wanted += [] if weight is None else [weight]
    names = column_names(path)
    for column in wanted:
        if names.count(column) != 1:
            raise DataError(
                f"{path}: {names.count(column) or 'no'} columns {column!r} (it has {names}): give "
                "all files the same columns, or name them with user=, item=, rating=, timestamp=, "
                "weight=",
                parameter=("user", "item", "rating", "timestamp", "weight"),
            )
    with parquet.ParquetFile(path, page_checksum_verification=True) as file:
        for group in range(file.num_row_groups):
            place = f"{path}, row group {group}"
            try:
                table = checked_frame(file.read_row_group(group, columns=wanted))
            except (OSError, ValueError, pyarrow.ArrowException) as error:
                raise DataError(
                    f"{place}: cannot be read ({str(error)[:200]}): write the file again"
                ) from None
            if len(table) == 0:
                continue
            try:
                users, items = _ids(table[columns[0]]), _ids(table[columns[1]])
                values = np.ones(len(table))
                if columns[2]:
                    values = as_numbers(table[columns[2]], columns[2])
                if scale is not None:
                    on_scale(values, scale, columns[2])
                times = as_seconds(table[columns[3]], columns[3]) if dated else None
                weights = None if weight is None else as_weights(table[weight], weight)
            except DataError as error:
                raise error.prefixed(place, ", ") from None
            yield RowBlock(users, items, values, times, weights, str(path), ((group, values.size),))


def checked_frame(table: Any) -> pd.DataFrame:
    """Convert an untrusted arrow table to a frame; its metadata for pandas is ignored."""
    table.validate(full=True)
    return table.to_pandas(ignore_metadata=True)


def column_names(path: Path) -> list[str]:
    """Return the column names of a parquet file."""
    pyarrow, parquet = parquet_engine(path)
    try:
        return parquet.read_schema(path).names
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: write the folder again") from None
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DataError(
            f"{path}: not a parquet table ({str(error)[:200]}): write it again, or keep it "
            "elsewhere"
        ) from None


def user_starts(users: np.ndarray) -> np.ndarray:
    """Return the rows at which another user begins."""
    return np.flatnonzero(np.concatenate([[True], users[1:] != users[:-1]]))


def _ids(column: pd.Series) -> np.ndarray:
    """Return ids, none of which may be missing, as integers or strings."""
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise DataError(f"row {missing[0]}: no {column.name} id ({missing.size} in all): drop them")
    if pd.api.types.is_integer_dtype(column.dtype):
        if int(column.max()) >= 2**63:
            raise DataError(
                f"row {int(column.argmax())}: {column.name} id {column.max()} is too large: turn "
                "the ids into strings"
            )
        return column.to_numpy(np.int64)
    ids = column.to_numpy(object)
    if pd.api.types.infer_dtype(ids, skipna=False) != "string":
        raise DataError(
            f"row 0: {column.name} ids of type {column.dtype}: turn them into integers or strings"
        )
    return ids
