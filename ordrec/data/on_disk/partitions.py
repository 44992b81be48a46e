"""Write ratings to disk in parts, each a parquet file with all ratings of some users.

A folder contains

    part-00000.parquet ...   columns user, item, rating and, if there are any, timestamp (seconds)
                             and weight; the rows of each user are consecutive
    _items.parquet           every item id, in code order, and its number of ratings
    _item_table.parquet      side data of items, with their ids in a column "id", if there are any
    _user_table.parquet      side data of users, likewise
    _ratings.json            the manifest: version, scale, sizes of the whole and of each part

Other readers of partitioned parquet skip names that start with an underscore, so they see the
folder as a plain table. Every file is written in one atomic step, the final manifest last: a
folder whose manifest says that it is incomplete is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.data.columns import plain
from ordrec.errors import ArgumentError, DataError
from ordrec.runtime.files import half_written, is_fresh, make_folder, replace_file, write_text

__all__ = [
    "ITEMS",
    "MANIFEST",
    "SIDE_ID",
    "SIDE_TABLES",
    "Manifest",
    "Part",
    "parquet_engine",
    "read_manifest",
    "write_partitions",
]

FORMAT = "ordrec ratings"
VERSION = 1
MANIFEST = "_ratings.json"
ITEMS = "_items.parquet"
SIDE_TABLES = {"user": "_user_table.parquet", "item": "_item_table.parquet"}
SIDE_ID = "id"
ROWS_PER_GROUP = 1 << 17  # a reader holds at least one row group in memory


@dataclass(frozen=True)
class Part:
    """One file: its name in the folder, its counts, and its size, which detects changed files."""

    file: str
    n_ratings: int
    n_users: int
    n_bytes: int


@dataclass
class Manifest:
    """Description of the contents of a folder."""

    scale: Any = None  # as `Scale.to_json` writes it
    dated: bool = False
    weighted: bool = False
    name: str = "ratings"
    n_ratings: int = 0
    n_users: int = 0
    n_items: int = 0
    parts: list[Part] = field(default_factory=list)
    complete: bool = False

    def write(self, folder: Path) -> None:
        """Write the manifest to a folder."""
        header = {"format": FORMAT, "version": VERSION} | asdict(self)
        write_text(folder / MANIFEST, json.dumps(header, indent=1))


def write_partitions(
    chunks: Iterable[Ratings], path: str | Path, *, rows_per_part: int = 1_000_000
) -> None:
    """Write a stream of ratings to a folder that `Ratings.scan` can open.

    Parameters
    ----------
    chunks : iterable of Ratings
        They must have the same scale, and each must hold all ratings of its users. Users
        without ratings are not written. Side tables are written beside the ratings.
    path : str or Path
        A new or empty folder, or one whose writing was interrupted, which is started again.
    rows_per_part : int
        Number of rows that a part holds at most, unless a single user has more.

    Examples
    --------
    >>> import tempfile
    >>> from ordrec.datasets import synthetic_chunks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_partitions(synthetic_chunks(50, 40, n_ratings=500, rows=100), folder)
    ...     Ratings.scan(folder)
    <RatingsScan synthetic: 50 users x 40 items, 500 ratings in 1 part, Scale(1..5 by 1)>
    """
    if rows_per_part < 1:
        raise ArgumentError(f"rows_per_part must be at least 1, got {rows_per_part}")
    writer = _Writer(_empty_folder(Path(path)), rows_per_part)
    for chunk in chunks:
        writer.add(chunk)
    writer.finish()


class _Writer:
    """Divide chunks between users into parts, and write them."""

    def __init__(self, folder: Path, rows_per_part: int):
        self._folder, self._rows_per_part = folder, rows_per_part
        self._pyarrow, self._parquet = parquet_engine(folder)
        self._manifest = Manifest()
        self._manifest.write(folder)
        self._waiting: list[Any] = []
        self._n_rows = self._n_users = 0
        self._users: list[pd.Index] = []
        self._side: dict[str, list[pd.DataFrame]] = {kind: [] for kind in SIDE_TABLES}
        self._counts = pd.Series(dtype=np.int64)

    def add(self, chunk: Ratings) -> None:
        """Add the ratings of further users."""
        if chunk.n_ratings == 0:
            return
        self._check(chunk)
        chunk = chunk.select(np.argsort(chunk.users, kind="stable"))
        present = np.flatnonzero(chunk.user_counts)
        self._users.append(chunk.user_ids.take(present))
        if chunk.user_table is not None:
            self._side["user"].append(chunk.user_table.iloc[present])
        if chunk.item_table is not None and not any(
            chunk.item_table is table for table in self._side["item"]
        ):
            self._side["item"].append(chunk.item_table)
        counts = pd.Series(chunk.item_counts, index=chunk.item_ids)
        same = counts.index.equals(self._counts.index)
        self._counts = self._counts + counts if same else self._counts.add(counts, fill_value=0)
        stop = np.cumsum(chunk.user_counts[present])
        table = self._table(chunk)
        first = at = 0
        while first < present.size:
            last_row = at + self._rows_per_part - self._n_rows
            fits = int(np.searchsorted(stop, last_row, side="right"))
            if fits <= first and self._n_rows:
                self._write_part()
                continue
            fits = max(fits, first + 1)
            self._waiting.append(table.slice(at, int(stop[fits - 1]) - at))
            self._n_rows += int(stop[fits - 1]) - at
            self._n_users += fits - first
            first, at = fits, int(stop[fits - 1])

    def finish(self) -> None:
        """Write the last part, the items and the manifest."""
        if self._n_rows:
            self._write_part()
        if not self._manifest.parts:
            raise DataError(f"{self._folder}: no ratings were given: nothing to write")
        users = self._users[0].append(self._users[1:])
        if not users.is_unique:
            twice = users[users.duplicated()][0]
            raise DataError(
                f"{self._folder}: user {plain(twice)!r} occurs in two chunks: a chunk must "
                "hold all ratings of its users"
            )
        items = pd.DataFrame({"item": self._counts.index, "n_ratings": self._counts.to_numpy(int)})
        with replace_file(self._folder / ITEMS) as part:
            items.to_parquet(part, engine="pyarrow", index=False, write_page_checksum=True)
        for kind, tables in self._side.items():
            if tables:
                self._write_side_table(kind, pd.concat(tables))
        self._manifest.n_ratings = sum(part.n_ratings for part in self._manifest.parts)
        self._manifest.n_users, self._manifest.n_items = len(users), len(items)
        self._manifest.complete = True
        self._manifest.write(self._folder)

    def _check(self, chunk: Ratings) -> None:
        if chunk.events is not None:
            raise ArgumentError(
                "partitions hold ratings and no events: leave these out (without_events)"
            )
        manifest, scale = self._manifest, chunk.scale.to_json()
        if manifest.scale is None:
            manifest.scale, manifest.name = scale, chunk.name
            manifest.dated = chunk.timestamps is not None
            manifest.weighted = chunk.weights is not None
            self._counts = pd.Series(0, index=chunk.item_ids)
        if manifest.scale != scale:
            raise DataError(
                f"{self._folder}: a chunk has the {chunk.scale}, earlier ones have "
                f"{Scale.from_json(manifest.scale)}: use the same scale for all"
            )
        if manifest.dated != (chunk.timestamps is not None):
            raise DataError(
                f"{self._folder}: only some chunks have times: drop them (without_timestamps)"
            )
        if manifest.weighted != (chunk.weights is not None):
            raise DataError(
                f"{self._folder}: only some chunks have weights: drop them (without_weights)"
            )

    def _table(self, chunk: Ratings) -> Any:
        """Return the chunk as an arrow table."""
        try:
            for ids in (chunk.user_ids, chunk.item_ids):
                if ids.dtype.kind not in "iu" and ids.inferred_type != "string":
                    raise TypeError(f"{plain(ids[0])!r}")
            frame = chunk.to_frame().drop(columns="first", errors="ignore")
            return self._pyarrow.Table.from_pandas(frame, preserve_index=False)
        except (ValueError, TypeError, self._pyarrow.ArrowException) as error:
            raise DataError(
                f"{self._folder}: ids cannot be written ({str(error)[:200]}): turn them into "
                "integers or strings"
            ) from None

    def _write_side_table(self, kind: str, table: pd.DataFrame) -> None:
        """Write side data; of an item that several chunks describe, the first description."""
        table = table[~table.index.duplicated()]
        ids = pd.Series(table.index, name=SIDE_ID)
        columns = table.drop(columns=SIDE_ID, errors="ignore").reset_index(drop=True)
        try:
            with replace_file(self._folder / SIDE_TABLES[kind]) as part:
                pd.concat([ids, columns], axis=1).to_parquet(
                    part, engine="pyarrow", index=False, write_page_checksum=True
                )
        except (ValueError, TypeError, self._pyarrow.ArrowException) as error:
            raise DataError(
                f"{self._folder}: {kind}_table cannot be written ({str(error)[:200]}): turn its "
                "columns into numbers or strings",
                parameter=f"{kind}_table",
            ) from None

    def _write_part(self) -> None:
        file = f"part-{len(self._manifest.parts):05d}.parquet"
        table = self._pyarrow.concat_tables(self._waiting)
        with replace_file(self._folder / file) as part:
            self._parquet.write_table(
                table, part, row_group_size=ROWS_PER_GROUP, write_page_checksum=True
            )
        size = (self._folder / file).stat().st_size
        self._manifest.parts.append(Part(file, self._n_rows, self._n_users, size))
        self._waiting, self._n_rows, self._n_users = [], 0, 0


def _empty_folder(folder: Path) -> Path:
    """Create the folder, or empty it of the remains of an interrupted run, and return it."""
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder}: is a file: name a folder to write to")
    make_folder(folder)
    if (folder / MANIFEST).exists() and not _header(folder).get("complete", True):
        for leftover in [
            *folder.glob("part-*.parquet"),
            *folder.glob(".*.parquet"),
            folder / ITEMS,
            *(folder / name for name in SIDE_TABLES.values()),
        ]:
            leftover.unlink(missing_ok=True)
        (folder / MANIFEST).unlink()
    if not is_fresh(folder):
        raise ArgumentError(f"{folder}: is not empty: name a new folder, or delete this one")
    for leftover in half_written(folder):
        leftover.unlink(missing_ok=True)
    return folder


# ---- the manifest --------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder after checking it, or None if there is none."""
    if not (folder / MANIFEST).exists():
        return None
    place, header = folder / MANIFEST, _header(folder)
    if not header.get("complete"):
        raise DataError(f"{place}: the writing of this folder was interrupted: write it again")
    try:
        n_ratings, n_users, n_items = (
            int(header[f"n_{what}"]) for what in ("ratings", "users", "items")
        )
        parts = [
            Part(str(p["file"]), int(p["n_ratings"]), int(p["n_users"]), int(p["n_bytes"]))
            for p in header["parts"]
        ]
        scale = Scale.from_json(header["scale"]).to_json()
        manifest = Manifest(
            scale, bool(header["dated"]), bool(header.get("weighted")), str(header["name"]),
            n_ratings, n_users, n_items, parts, complete=True,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{place}: damaged ({error!r}): write the folder again") from None
    sums = [sum(part.n_ratings for part in parts), sum(part.n_users for part in parts)]
    if sums != [n_ratings, n_users]:
        raise DataError(f"{place}: the counts of the parts do not add up: write the folder again")
    for part in parts:
        inside = Path(part.file).name == part.file
        if not inside or not (folder / part.file).is_file():
            raise DataError(f"{folder / part.file}: missing: write the folder again")
        if (folder / part.file).stat().st_size != part.n_bytes:
            raise DataError(
                f"{folder / part.file}: is not the file that {MANIFEST} describes: write the "
                f"folder again, or delete {MANIFEST} and {ITEMS} to have all files examined"
            )
    return manifest


def _header(folder: Path) -> dict[str, Any]:
    place = folder / MANIFEST
    try:
        header = json.loads(place.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{place}: cannot be read ({error}): write the folder again") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DataError(f"{place}: does not say {FORMAT!r}: delete it to have all files examined")
    if header.get("version") != VERSION:
        raise DataError(
            f"{place}: has version {str(header.get('version'))[:20]} of the format, but this "
            f"ordrec reads version {VERSION}: write the folder again with this ordrec"
        )
    return header


# ---- files -----------------------------------------------------------------------------------


def parquet_engine(place: Any) -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet; raise an error if they are missing."""
    try:
        import pyarrow  # type: ignore[import-untyped]
        from pyarrow import parquet
    except ImportError:
        raise ArgumentError(f"{place}: parquet files need pyarrow: pip install pyarrow") from None
    return pyarrow, parquet
