"""Lists for all users: in blocks of users, on any engine, in bounded memory, resumable."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ordrec.data.on_disk.partitions import parquet_engine
from ordrec.errors import ArgumentError, OrdrecError, callers_level
from ordrec.lists.filters import ItemFilter, check_list_length
from ordrec.models.base import codes_of
from ordrec.runtime.files import check_folder_visible, replace_file
from ordrec.runtime.parallel import Engine, run
from ordrec.storage.parts import PartFolder, checksum, model_checksum

if TYPE_CHECKING:
    from ordrec.lists.listing import ListingModel

__all__ = ["checked_file", "item_columns", "join_tables", "recommend_all", "write_table"]

FORMAT = "ordrec lists"
VERSION = 1
MANIFEST = "_lists.json"
ENDINGS = (".csv", ".parquet")


def item_columns(
    model: ListingModel, best: np.ndarray, columns: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Items, titles if known, and columns of all lists, one after the other."""
    there = best >= 0
    found: dict[str, Any] = {"item": model.item_ids_.take(best[there])}
    if model.titles_ is not None:
        found["title"] = [model.titles_[item] for item in best[there]]
    return found | {name: values[there] for name, values in columns.items()}


@dataclass(frozen=True)
class _Lists:
    """The lists to be made: by which model, how long, of which items, for which time."""

    model: ListingModel
    n: int
    listable: ItemFilter
    timestamp: int | None

    def frame(self, codes: np.ndarray) -> pd.DataFrame:
        """The lists of known users, by code, as one table: user, place, item, and columns."""
        model = self.model
        best, columns = model.lists(codes, self.n, self.listable, timestamp=self.timestamp)
        rows, places = np.nonzero(best >= 0)
        keys = {"user": model.user_ids_.take(codes[rows]), "place": places + 1}
        return pd.DataFrame(keys | item_columns(model, best, columns))

    def empty(self) -> pd.DataFrame:
        """A table of no lists."""
        return self.frame(np.zeros(0, dtype=np.int64))

    def identity(self, codes: np.ndarray) -> dict[str, Any]:
        """What the lists depend on."""
        users = pd.util.hash_array(np.asarray(self.model.user_ids_.take(codes), dtype=object))
        allowed = checksum(b" ".join(self.listable.identity()))
        when = "" if self.timestamp is None else f" at {self.timestamp}"
        return {
            "model": model_checksum(self.model),
            "users": checksum(users.tobytes()),
            "options": f"{self.n} {allowed}{when}",
        }


def recommend_all(
    model: ListingModel,
    n: int = 10,
    users: Any = None,
    *,
    exclude: Any = None,
    only: Any = None,
    include_rated: bool = False,
    at_most: Mapping[str, int] | None = None,
    explore: float = 0.0,
    timestamp: int | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> pd.DataFrame | Path:
    """Make lists for many users.

    Parameters
    ----------
    model : fitted model that makes lists
        A `Recommender`, `RatingPredictor`, `OrdinalFactors` or choice model.
    n : int
        Length of a list.
    users : sequence of ids, optional
        All users of the model if None. Unknown users have no list, and a warning names one of
        them; if none is known, they are refused.
    exclude, only : sequence of item ids, or data frame, optional
        Items that must not be listed; the only ones that may. A frame with columns of users and
        items names pairs: with ``only``, a user without a pair has no list.
    include_rated : bool
        Whether items that a user has rated may be listed for that user.
    at_most : mapping of str to int, optional
        Columns of the item table of training, and how many items of a list may have the same
        category or label: ``{"genre": 3}``.
    explore : float
        The share of each list, rounded up, that is for new items; see `Recommender.recommend`.
    timestamp : int, optional
        Time for which the lists are made, in seconds since 1970.
    out : path, optional
        A file, csv or parquet by its ending. The lists are written to it block by block, so that
        they need not fit into memory. Finished blocks are stored in a folder beside it until the
        file is complete: the same call again goes on where it stopped.
    overwrite : bool
        Whether finished blocks of a stopped call with other arguments are thrown away.
    engine, n_jobs, progress
        See `ordrec.runtime.parallel.run`; a task is a block of users.

    Returns
    -------
    DataFrame or Path
        One row per user and place, users in the order given; or the file.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import Popularity
    >>> ratings = synthetic_ratings(20, 12, n_ratings=100, seed=0)
    >>> lists = recommend_all(Popularity().fit(ratings), 3, users=[7, 9], engine="serial")
    >>> lists.columns.tolist(), lists["user"].tolist()
    (['user', 'place', 'item', 'score'], [7, 7, 7, 9, 9, 9])
    """
    check_list_length(n)
    model._check_fitted()
    listable = model.item_filter(exclude, only, include_rated, at_most, explore)
    lists = _Lists(model, n, listable, timestamp)
    codes = _codes(model, users)
    width = model.block_size()
    blocks = [codes[first : first + width] for first in range(0, codes.size, width)]
    parallel: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "progress": progress}
    parallel["label"] = lambda _: f"lists for {codes.size} users"
    if out is None:
        found = dict(run(_block_frame, blocks, shared=(lists,), **parallel))
        frames = [found[number] for number in range(len(blocks))]
        return pd.concat(frames, ignore_index=True) if frames else lists.empty()
    path = checked_file(out)
    folder = PartFolder(
        path.with_name(path.name + ".parts"),
        MANIFEST,
        FORMAT,
        VERSION,
        lists.identity(codes),
        path.suffix,
        overwrite,
        "end it with the same arguments, pass overwrite=True to throw its blocks away, or name "
        "another file",
    )
    parts = [folder.file(number) for number in range(len(blocks))]
    tasks = [(parts[number], blocks[number]) for number in folder.waiting(range(len(blocks)))]
    try:
        for _ in run(_write_block, tasks, shared=(lists,), **parallel):
            pass
        join_tables(parts, path, lists.empty())
    except (OSError, OrdrecError) as error:
        if folder.path.is_dir():
            raise
        raise ArgumentError(
            f"{path}: another run that writes this file has ended before this one, and removed "
            f"{folder.path}: what it wrote is complete; let one run at a time write to a file"
        ) from error
    shutil.rmtree(folder.path, ignore_errors=True)  # another run may do so, too
    return path


def _codes(model: ListingModel, users: Any) -> np.ndarray:
    if users is None:
        return np.arange(len(model.user_ids_))
    codes = codes_of(model.user_ids_, users)
    unknown = codes < 0
    if unknown.any():
        said = (
            f"{int(unknown.sum())} of {codes.size} users are not in the model, such as "
            f"{list(users)[int(np.argmax(unknown))]!r}"
        )
        if unknown.all():
            raise ArgumentError(f"{said}: fold them in first, or leave them out")
        warnings.warn(f"{said}, and have no list: fold them in first", stacklevel=callers_level())
    return codes[~unknown]


def checked_file(out: str | Path) -> Path:
    """Return the full path of a file for lists, after checking its ending and its folder."""
    path = Path(out)
    if path.suffix not in ENDINGS:
        raise ArgumentError(f"{path}: lists are written as {' or '.join(ENDINGS)}")
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path}: the folder {path.absolute().parent} does not exist")
    if path.suffix == ".parquet":
        parquet_engine(path)
    return path.absolute()


def _block_frame(codes: np.ndarray, lists: _Lists) -> pd.DataFrame:
    return lists.frame(codes)


def _write_block(task: tuple[Path, np.ndarray], lists: _Lists) -> None:
    path, codes = task
    check_folder_visible(path.parent)
    write_table(lists.frame(codes), path)


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as csv or parquet, by the ending."""
    with replace_file(path) as file:
        if path.suffix == ".csv":
            frame.to_csv(file, index=False, lineterminator="\n")
        else:
            pyarrow, parquet = parquet_engine(path)
            parquet.write_table(pyarrow.Table.from_pandas(frame, preserve_index=False), file)


def join_tables(parts: list[Path], path: Path, empty: pd.DataFrame) -> None:
    """Write the tables of all parts to one file; ``empty`` has the columns of a table."""
    join = _join_csv if path.suffix == ".csv" else _join_parquet
    join(parts, path, empty)


def _join_csv(parts: list[Path], path: Path, empty: pd.DataFrame) -> None:
    with replace_file(path) as file, open(file, "wb") as joined:
        joined.write(empty.to_csv(index=False, lineterminator="\n").encode())
        for part in parts:
            with open(part, "rb") as lines:
                lines.readline()  # its header
                shutil.copyfileobj(lines, joined)


def _join_parquet(parts: list[Path], path: Path, empty: pd.DataFrame) -> None:
    pyarrow, parquet = parquet_engine(path)

    def tables() -> Iterator[Any]:
        if not parts:
            yield pyarrow.Table.from_pandas(empty, preserve_index=False)
        for part in parts:
            yield parquet.read_table(part)

    with replace_file(path) as file:
        writer = None
        for table in tables():
            writer = writer or parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
