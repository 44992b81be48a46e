"""`RatingsScan`: ratings that stay on disk and are read one chunk of users at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.data.columns import TIMESTAMP, chosen_scale, find_columns, is_usual_name, plain
from ordrec.data.on_disk.partitions import (
    ITEMS,
    MANIFEST,
    SIDE_ID,
    SIDE_TABLES,
    Manifest,
    Part,
    parquet_engine,
    read_manifest,
)
from ordrec.data.on_disk.row_blocks import (
    RowBlock,
    checked_frame,
    column_names,
    row_blocks,
    user_starts,
)
from ordrec.errors import ArgumentError, DataError, StorageError
from ordrec.storage.parts import checksum

__all__ = ["RatingsScan", "scan_ratings"]

ROWS = 1_000_000  # per chunk
NAMES = ("user", "item", "rating", "timestamp")
NAMES_OF_PICKS = ("user", "item", "count", "timestamp")


@dataclass(frozen=True)
class RatingsScan:
    """A folder of ratings, partitioned by user; made by `Ratings.scan`.

    Iterating yields chunks: `Ratings` with all ratings of some users. Item codes are the same in
    all chunks; each chunk numbers its own users, in the order of the file.

    Attributes
    ----------
    path : Path
    parts : tuple of Part
        The files, with their numbers of ratings and users.
    scale : Scale
    item_ids : pandas.Index
        Original id of each item code.
    item_counts : ndarray
        Number of ratings of each item.
    dated : bool
        Whether the ratings have times.
    columns : tuple of str
        Names of the user, item, rating and timestamp columns in the files. In a folder without
        ratings, that of the column of counts, or "", is in the place of the third.
    name : str
    weight : str or None
        Name of the column of weights in the files, None where all ratings count alike.
    user_table, item_table : DataFrame or None
        Side data, if the folder has any. They are read when they are asked for, and given to what
        `collect` and `sample_users` return.

    Examples
    --------
    >>> import tempfile
    >>> from ordrec.datasets import synthetic_ratings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthetic_ratings(50, 40, n_ratings=500).to_partitions(folder, rows_per_part=200)
    ...     scan = Ratings.scan(folder)
    ...     [chunk.n_ratings for chunk in scan.chunks(rows=100)][:3]
    [100, 94, 130]
    """

    path: Path
    parts: tuple[Part, ...]
    scale: Scale
    item_ids: pd.Index
    item_counts: np.ndarray
    dated: bool
    columns: tuple[str, str, str, str] = NAMES
    name: str = "ratings"
    weight: str | None = None

    @cached_property
    def item_table(self) -> pd.DataFrame | None:
        """Side data of the items, in code order; None if the folder has none."""
        table = self._side_table("item")
        return None if table is None else table.reindex(self.item_ids)

    @cached_property
    def user_table(self) -> pd.DataFrame | None:
        """Side data of users, indexed by their ids; None if the folder has none."""
        return self._side_table("user")

    def _side_table(self, kind: str) -> pd.DataFrame | None:
        file = self.path / SIDE_TABLES[kind]
        if not file.is_file():
            return None
        pyarrow, parquet = parquet_engine(self.path)
        try:
            table = parquet.ParquetFile(file, page_checksum_verification=True).read().to_pandas()
            ids = pd.Index(table.pop(SIDE_ID).to_numpy())
            if ids.is_unique:
                return table.set_axis(ids)
            reason = "an id has two rows"
        except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
            reason = f"cannot be read: {str(error)[:200]}"
        raise DataError(f"{file}: {reason}: write the folder again")

    @property
    def n_ratings(self) -> int:
        """Number of ratings."""
        return sum(part.n_ratings for part in self.parts)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return sum(part.n_users for part in self.parts)

    @property
    def n_items(self) -> int:
        """Number of items, including those without a rating."""
        return len(self.item_ids)

    def __iter__(self) -> Iterator[Ratings]:
        return self.chunks()

    def chunks(self, rows: int = ROWS, part: int | None = None) -> Iterator[Ratings]:
        """Yield the ratings in chunks of complete users, in the order of the files.

        Parameters
        ----------
        rows : int
            A chunk ends with the user who brings it to this many ratings, or with the part.
        part : int, optional
            Number of the only part to read.

        Raises
        ------
        DataError
            Naming the file, row group and row of an invalid rating, of one that is not on the
            scale, or of an item that the same user rated twice.
        """
        if rows < 1:
            raise ArgumentError(f"rows must be at least 1, got {rows}")
        for one in self.parts if part is None else self.parts[part : part + 1]:
            yield from self._chunks_of(one, rows)

    def collect(self) -> Ratings:
        """Return all ratings, in memory."""
        return self._joined(list(self.chunks()))

    def sample_users(self, n: int, seed: int = 0) -> Ratings:
        """Return the ratings of n random users, in memory, in the order of the files.

        Item codes and ids are those of the scan. If there are at most n users, all are returned.
        """
        if n < 1:
            raise ArgumentError(f"sample_users: n must be at least 1, got {n}")
        chosen = np.zeros(self.n_users, dtype=np.bool_)
        chosen[np.random.default_rng(seed).permutation(self.n_users)[:n]] = True
        found, first = [], 0
        for number, part in enumerate(self.parts):
            if chosen[first : first + part.n_users].any():
                at = first
                for chunk in self.chunks(part=number):
                    own = chosen[at : at + chunk.n_users]
                    found.append(_only_users(chunk, own))
                    at += chunk.n_users
            first += part.n_users
        return self._joined(found)

    def check(self) -> None:
        """Read everything once, and raise an error if a user is split or a count is wrong."""
        users, places, counts = [], [], np.zeros(self.n_items, dtype=np.int64)
        for number, part in enumerate(self.parts):
            n_ratings = n_users = 0
            for chunk in self.chunks(part=number):
                users.append(chunk.user_ids)
                places.append(np.full(chunk.n_users, number))
                counts += chunk.item_counts
                n_ratings, n_users = n_ratings + chunk.n_ratings, n_users + chunk.n_users
            if (n_ratings, n_users) != (part.n_ratings, part.n_users):
                raise DataError(
                    f"{self.path / part.file}: holds {n_ratings} ratings of {n_users} users, not "
                    f"{part.n_ratings} of {part.n_users}: write the folder again"
                )
        files = [str(self.path / part.file) for part in self.parts]
        _refuse_split_users(users, [files[k] for k in np.concatenate(places)])
        if not np.array_equal(counts, self.item_counts):
            item = int(np.flatnonzero(counts != self.item_counts)[0])
            raise DataError(
                f"{self.path / ITEMS}: item {plain(self.item_ids[item])!r} has {counts[item]} "
                f"ratings, not {self.item_counts[item]}: write the folder again"
            )

    def checksum(self) -> str:
        """Return a checksum of the files, and of how they are read."""
        about = [self.columns, self.dated, self.weight, [part.file for part in self.parts]]
        edges = (self.scale.values, self.scale.edges)
        pieces = [json.dumps(about).encode(), *(e.tobytes() for e in edges if e is not None)]
        for part in self.parts:
            try:
                with open(self.path / part.file, "rb") as file:
                    pieces.append(hashlib.file_digest(file, "sha256").digest())
            except OSError as error:
                raise StorageError(f"{self.path / part.file}: cannot be read: {error}") from None
        return checksum(*pieces)

    # ---- reading ---------------------------------------------------------------------------

    def _chunks_of(self, part: Part, rows: int) -> Iterator[Ratings]:
        held: list[RowBlock] = []
        n_held = 0
        file = self.path / part.file
        for block in row_blocks(file, self.columns, self.dated, self.scale, self.weight):
            held.append(block)
            n_held += block.values.size
            if n_held < rows:
                continue
            joined = RowBlock.joined(held)
            start = user_starts(joined.users)
            first = at = 0
            # The last user may continue in the next row group.
            while first < start.size - 1:
                last = int(np.searchsorted(start, at + rows))
                if last >= start.size:
                    break
                yield self._ratings(joined, start[first : last + 1])
                first, at = last, int(start[last])
            held, n_held = [joined.slice(at, joined.values.size)], joined.values.size - at
        if n_held:
            joined = RowBlock.joined(held)
            yield self._ratings(joined, np.append(user_starts(joined.users), n_held))

    def _ratings(self, block: RowBlock, start: np.ndarray) -> Ratings:
        """Ratings of the users who begin at the rows ``start``, the last of which is the end."""
        part = block.slice(int(start[0]), int(start[-1]))
        ids = pd.Index(block.users[start[:-1]])
        if not ids.is_unique:
            _refuse_split_users([ids], [part.place_of(int(a - start[0])) for a in start[:-1]])
        users = np.repeat(np.arange(ids.size, dtype=np.int32), np.diff(start))
        items = self.item_ids.get_indexer(pd.Index(part.items)).astype(np.int32)
        if items.size and items.min() < 0:
            at = int(np.argmin(items))
            raise DataError(
                f"{part.place_of(at)}: item {plain(part.items[at])!r} is not in {ITEMS}: delete "
                f"{MANIFEST} and {ITEMS} to have all files examined"
            )
        key = users.astype(np.int64) * self.n_items + items
        if not (key[1:] > key[:-1]).all():
            order = np.argsort(key, kind="stable")
            twice = np.flatnonzero(key[order][1:] == key[order][:-1])
            if twice.size:
                at = int(order[twice[0] + 1])
                raise DataError(
                    f"{part.place_of(at)}: user {plain(part.users[at])!r} rated item "
                    f"{plain(part.items[at])!r} twice ({twice.size} in all): keep one of them"
                )
        return Ratings(
            users,
            items,
            self.scale.levels_of(part.values),
            scale=self.scale,
            user_ids=ids,
            item_ids=self.item_ids,
            timestamps=part.times,
            name=self.name,
            binned_values=None if self.scale.edges is None else part.values,
            weights=part.weights,
        )

    def _joined(self, chunks: list[Ratings]) -> Ratings:
        first = np.cumsum([0, *(chunk.n_users for chunk in chunks)])
        users = [chunk.users + np.int32(at) for chunk, at in zip(chunks, first, strict=False)]

        def joined(name: str) -> Any:
            """A column of all chunks, None where they have none."""
            columns = [getattr(chunk, name) for chunk in chunks]
            return None if columns[0] is None else np.concatenate(columns)

        user_ids = chunks[0].user_ids.append([chunk.user_ids for chunk in chunks[1:]])
        return Ratings(
            np.concatenate(users),
            joined("items"),
            joined("levels"),
            scale=self.scale,
            user_ids=user_ids,
            item_ids=self.item_ids,
            user_table=None if self.user_table is None else self.user_table.reindex(user_ids),
            item_table=self.item_table,
            timestamps=joined("timestamps"),
            name=self.name,
            binned_values=joined("binned_values"),
            weights=joined("weights"),
        )

    def __repr__(self) -> str:
        n_parts = f"{len(self.parts)} part{'s' if len(self.parts) > 1 else ''}"
        return (
            f"<RatingsScan {self.name}: {self.n_users} users x {self.n_items} items, "
            f"{self.n_ratings} ratings in {n_parts}, {self.scale}{', dated' * self.dated}"
            f"{', weighted' * (self.weight is not None)}>"
        )


def scan_ratings(
    path: str | Path,
    *,
    user: str = "user",
    item: str = "item",
    rating: str | None = "rating",
    timestamp: str | None = "timestamp",
    weight: str | None = None,
    count: str | None = "count",
    scale: Any = None,
) -> RatingsScan:
    """Open a folder of parquet files, partitioned by user, without loading the ratings.

    A folder that `Ratings.to_partitions` wrote is described by its manifest. A folder from another
    program is read once to find its users, items and scale; the rows of each user must be
    consecutive rows of one file.

    Parameters
    ----------
    path : str or Path
    user, item, rating, timestamp, weight, count : str
        Column names in a folder that ordrec did not write; without ``weight``, ratings count alike.
        A folder without ratings is one of what was picked, see `Ratings.from_frame`.
    scale : Scale or iterable of float, optional
        The declared rating values; when omitted, those of the manifest, or inferred.

    Raises
    ------
    DataError
        Naming the file, the row group and the remedy.
    """
    folder = Path(path).absolute()  # it may travel to workers that are in other folders
    if not folder.is_dir():
        raise DataError(f"{path}: no such folder: name one with parquet files")
    if scale is not None and not isinstance(scale, Scale):
        scale = Scale(scale)
    manifest = read_manifest(folder)
    if manifest is None:
        names = (user, item, rating or "", timestamp or "")
        return _scan_without_manifest(folder, names, scale, weight, count or "")
    written = Scale.from_json(manifest.scale)
    if scale is not None and scale != written:
        raise ArgumentError(f"{folder}: has the {written}, not {scale}")
    items = _item_table(folder, manifest)
    return RatingsScan(
        folder,
        tuple(manifest.parts),
        written,
        pd.Index(items["item"].to_numpy()),
        items["n_ratings"].to_numpy(np.int64),
        manifest.dated,
        NAMES_OF_PICKS if written.only_picks else NAMES,
        name=manifest.name,
        weight="weight" if manifest.weighted else None,
    )


# ---- folders ---------------------------------------------------------------------------------


def _item_table(folder: Path, manifest: Manifest) -> pd.DataFrame:
    pyarrow, parquet = parquet_engine(folder)
    try:
        file = parquet.ParquetFile(folder / ITEMS, page_checksum_verification=True)
        items = checked_frame(file.read(["item", "n_ratings"]))
        right = len(items) == manifest.n_items and items["item"].is_unique
        if right and int(items["n_ratings"].sum()) == manifest.n_ratings:
            return items
        reason = f"does not fit {MANIFEST}"
    except (OSError, ValueError, KeyError, TypeError, pyarrow.ArrowException) as error:
        reason = f"cannot be read: {str(error)[:200]}"
    raise DataError(f"{folder / ITEMS}: {reason}: write the folder again")


class _FolderContents:
    """Users, items and rating values of the row blocks read so far."""

    def __init__(self) -> None:
        self.users: list[pd.Index] = []
        self.places: list[str] = []
        self.item_counts = pd.Series(dtype=np.int64)
        self.values = self.value_counts = np.empty(0)
        self._id_types: tuple[Any, Any] | None = None

    def add(self, block: RowBlock, continues_user: bool) -> int:
        """Count a block in, and return how many users begin in it."""
        id_types = (block.users.dtype, block.items.dtype)
        self._id_types = self._id_types or id_types
        if self._id_types != id_types:
            raise DataError(
                f"{block.place_of(0)}: ids are integers in some files and strings in others: "
                "use one of them"
            )
        start = user_starts(block.users)
        ids = pd.Index(block.users[start[1:] if continues_user else start])
        self.users.append(ids)
        self.places += [block.place_of(0)] * len(ids)
        codes, distinct = pd.factorize(block.items)
        counts = pd.Series(np.bincount(codes), index=distinct)
        self.item_counts = self.item_counts.add(counts, fill_value=0)
        values, times_given = np.unique(block.values, return_counts=True)
        self.values, place = np.unique(np.append(self.values, values), return_inverse=True)
        given = np.append(self.value_counts, times_given)
        self.value_counts = np.bincount(place, given).astype(np.float64)
        return len(ids)


def _scan_without_manifest(
    folder: Path,
    columns: tuple[str, str, str, str],
    scale: Scale | None,
    weight: str | None,
    count: str,
) -> RatingsScan:
    """Scan a folder that ordrec did not write: read it once to find users, items and scale."""
    files = sorted(
        file
        for file in folder.rglob("*.parquet")
        if not any(name.startswith(("_", ".")) for name in file.relative_to(folder).parts)
    )
    if not files:
        raise DataError(
            f"{folder}: contains no parquet files: make such a folder with write_partitions"
        )
    has = column_names(files[0])
    rated = columns[2] in has or any(is_usual_name(name, "rating") for name in has)
    if columns[2] == "" or (columns[2] == "rating" and scale is None and not rated):
        found = find_columns(has, *columns[:2], columns[2] or None, None, weight, count or None)
        columns, scale = (*columns[:2], found.n_picks or "", columns[3]), Scale.of_picks()
    dated = columns[3] in column_names(files[0])
    if not dated and columns[3] not in ("", TIMESTAMP):
        raise DataError(
            f"{files[0]}: no column {columns[3]!r} (it has {column_names(files[0])}): name the "
            "column of times with timestamp=, or pass timestamp=None",
            parameter="timestamp",
        )
    parts, contents = [], _FolderContents()
    for file in files:
        if (columns[3] in column_names(file)) != dated:
            raise DataError(
                f"{file}: {'lacks' if dated else 'has'} the column {columns[3]!r}, unlike "
                f"{files[0].name}: give all files the same columns, or pass timestamp=None",
                parameter="timestamp",
            )
        n_ratings = n_users = 0
        last_user: Any = None
        for block in row_blocks(file, columns, dated, scale, weight):
            n_users += contents.add(block, n_ratings > 0 and block.users[0] == last_user)
            n_ratings += block.values.size
            last_user = block.users[-1]
        parts.append(Part(str(file.relative_to(folder)), n_ratings, n_users, file.stat().st_size))
    if contents.values.size == 0:
        raise DataError(f"{folder}: its files hold no ratings")
    _refuse_split_users(contents.users, contents.places)
    counts = contents.item_counts.sort_index()
    return RatingsScan(
        folder,
        tuple(part for part in parts if part.n_ratings),
        chosen_scale(
            contents.values,
            contents.value_counts,
            scale,
            lambda value: _place_of(value, files, columns, dated),
        ),
        pd.Index(counts.index.to_numpy()),
        counts.to_numpy(np.int64),
        dated,
        columns,
        folder.name,
        weight,
    )


def _place_of(
    value: float, files: list[Path], columns: tuple[str, str, str, str], dated: bool
) -> str:
    """File, row group and row of the first rating with this value."""
    blocks = (block for file in files for block in row_blocks(file, columns, dated, None))
    block = next(block for block in blocks if (block.values == value).any())
    return f"{block.place_of(0)}, row {int(np.argmax(block.values == value))}"


def _refuse_split_users(users: list[pd.Index], places: list[str]) -> None:
    every = users[0].append(users[1:])
    if every.is_unique:
        return
    second = int(np.flatnonzero(every.duplicated())[0])
    first = int(np.flatnonzero(every == every[second])[0])
    raise DataError(
        f"{places[second]}: user {plain(every[second])!r} is also in {places[first]} "
        f"({int(every.duplicated().sum())} such cases): sort the table by user, and split it "
        "into files between users, or write it with write_partitions"
    )


def _only_users(chunk: Ratings, chosen: np.ndarray) -> Ratings:
    """Ratings of the chosen users, who are renumbered; item codes stay the same."""
    selected = chunk.select(chosen[chunk.users])
    users = (np.cumsum(chosen, dtype=np.int32) - np.int32(1))[selected.users]
    return selected._replaced(users=users, user_ids=chunk.user_ids[chosen])
