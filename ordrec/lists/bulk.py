"""Lists for all users: in blocks of users, on any engine, in bounded memory, resumable."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.ids import warn_of_other_type
from ordrec.data.on_disk.partitions import parquet_engine
from ordrec.errors import ArgumentError
from ordrec.lists.filters import ItemFilter, check_list_length, check_one_user
from ordrec.models.base import IdMappedModel, codes_of
from ordrec.runtime.files import check_folder_visible, replace_file
from ordrec.runtime.parallel import Engine, run
from ordrec.storage.part_folder import PartFolder, checksum

__all__ = ["ListingModel", "list_frame", "recommend_all"]

FORMAT = "ordrec lists"
VERSION = 1
MANIFEST = "_lists.json"
ENDINGS = (".csv", ".parquet")


class ListingModel(IdMappedModel):
    """Base of fitted models that make lists for blocks of users."""

    titles_: list[str] | None = None

    @abstractmethod
    def lists(
        self, codes: np.ndarray, n: int, options: ItemFilter
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return item codes, -1 if there are no more, and columns, one row per user code."""

    @abstractmethod
    def block_size(self) -> int:
        """Return for how many users lists are made at the same time."""

    @abstractmethod
    def item_filter(
        self, exclude: Any = None, only: Any = None, include_rated: bool = False
    ) -> ItemFilter:
        """Return which items may be listed; see `recommend`."""

    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
    ) -> pd.DataFrame:
        """List the n best items for a user.

        Parameters
        ----------
        user : id
            An unknown user gets the list of one without ratings.
        n : int
            The list is shorter if there are not as many items to choose from.
        exclude, only : sequence of item ids, optional
            Items that must not be listed; the only ones that may.
        include_rated : bool
            Whether items that the user has rated may be listed.

        Returns
        -------
        DataFrame
            ``item``, ``title`` if known, ``score``, and what else the model says of an item:
            ``p_pick`` is the probability that it is among the user's next picks (see
            `ChoiceMixture`), ``expected`` the expected rating, ``p_like`` the probability that the
            user likes it.
        """
        check_list_length(n)
        check_one_user(user)
        self._check_fitted()
        options = self.item_filter(exclude, only, include_rated)
        codes = codes_of(self.user_ids_, [user])
        warn_of_other_type(self.user_ids_, [user], codes)
        best, columns = self.lists(codes, n, options)
        return pd.DataFrame(_item_columns(self, best, columns))

    def recommend_all(
        self,
        n: int = 10,
        users: Any = None,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        **options: Any,
    ) -> pd.DataFrame | Path:
        """Make lists for all users, or for those given; see `ordrec.recommend.recommend_all`.

        ``out``, ``engine``, ``n_jobs`` and ``progress`` are handed on.
        """
        self._check_fitted()
        listed = self.item_filter(exclude, only, include_rated)
        return recommend_all(self, n, users, listed, **options)


def list_frame(model: ListingModel, codes: np.ndarray, n: int, options: ItemFilter) -> pd.DataFrame:
    """Return the lists of known users, by code, as one table: user, place, item, and columns."""
    best, columns = model.lists(codes, n, options)
    rows, places = np.nonzero(best >= 0)
    keys = {"user": model.user_ids_.take(codes[rows]), "place": places + 1}
    return pd.DataFrame(keys | _item_columns(model, best, columns))


def _item_columns(
    model: ListingModel, best: np.ndarray, columns: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Items, titles if known, and columns of all lists, one after the other."""
    there = best >= 0
    found: dict[str, Any] = {"item": model.item_ids_.take(best[there])}
    if model.titles_ is not None:
        found["title"] = [model.titles_[item] for item in best[there]]
    return found | {name: values[there] for name, values in columns.items()}


def recommend_all(
    model: ListingModel,
    n: int,
    users: Any,
    options: ItemFilter,
    out: str | Path | None = None,
    *,
    engine: Engine | str | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> pd.DataFrame | Path:
    """Make lists for many users.

    Parameters
    ----------
    model : ListingModel
    n : int
        Length of a list.
    users : sequence of ids, optional
        All users with ratings if None. Unknown users are refused.
    options : ItemFilter
        Which items may be listed.
    out : path, optional
        A file, csv or parquet by its ending. The lists are written to it block by block, so that
        they need not fit into memory. Finished blocks are kept in a folder beside it until the
        file is complete: the same call again goes on where it stopped.
    engine, n_jobs, progress
        See `ordrec.runtime.parallel.run`; a task is a block of users.

    Returns
    -------
    DataFrame or Path
        One row per user and place, users in the order given; or the file.
    """
    check_list_length(n)
    codes = _codes(model, users)
    width = model.block_size()
    blocks = [codes[first : first + width] for first in range(0, codes.size, width)]
    parallel: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "progress": progress}
    parallel["label"] = lambda _: f"lists for {codes.size} users"
    if out is None:
        shared = model, n, options
        found = dict(run(_block_frame, blocks, shared=shared, **parallel))
        frames = [found[number] for number in range(len(blocks))]
        return pd.concat(frames, ignore_index=True) if frames else _empty(model, n, options)
    path = _checked_file(out)
    folder = PartFolder(
        path.with_name(path.name + ".parts"),
        MANIFEST,
        FORMAT,
        VERSION,
        _identity(model, n, codes, options),
        path.suffix,
    )
    waiting = folder.waiting(len(blocks))
    tasks = [(folder.file(number), blocks[number]) for number in waiting]
    for _ in run(_write_block, tasks, shared=(model, n, options), **parallel):
        pass
    parts = [folder.file(number) for number in range(len(blocks))]
    if path.suffix == ".csv":
        _join_csv(parts, path, _empty(model, n, options))
    else:
        _join_parquet(parts, path, _empty(model, n, options))
    shutil.rmtree(folder.path)
    return path


def _codes(model: ListingModel, users: Any) -> np.ndarray:
    if users is None:
        return np.arange(len(model.user_ids_))
    codes = codes_of(model.user_ids_, users)
    if (codes < 0).any():
        unknown = list(users)[int(np.argmax(codes < 0))]
        raise ArgumentError(
            f"{int((codes < 0).sum())} of {codes.size} users are not in the model, such as "
            f"{unknown!r}: fold them in first, or leave them out"
        )
    return codes


def _checked_file(out: str | Path) -> Path:
    path = Path(out)
    if path.suffix not in ENDINGS:
        raise ArgumentError(f"{path}: lists are written as {' or '.join(ENDINGS)}")
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path}: the folder {path.absolute().parent} does not exist")
    if path.suffix == ".parquet":
        parquet_engine(path)
    return path.absolute()


def _identity(model: Any, n: int, codes: np.ndarray, options: ItemFilter) -> dict[str, Any]:
    """What lists depend on. A model is identified by its list for its first user."""
    everything = ItemFilter(np.ones_like(options.allowed))
    first, columns = model.lists(np.zeros(1, dtype=np.int64), 10, everything)
    values = [np.round(column, 6).tobytes() for column in columns.values()]
    users = pd.util.hash_array(np.asarray(model.user_ids_.take(codes), dtype=object))
    return {
        "model": f"{type(model).__name__} {checksum(first.tobytes(), *values)}",
        "users": checksum(users.tobytes()),
        "options": f"{n} {options.include_rated} {checksum(options.allowed.tobytes())}",
    }


def _block_frame(
    codes: np.ndarray, model: ListingModel, n: int, options: ItemFilter
) -> pd.DataFrame:
    return list_frame(model, codes, n, options)


def _write_block(
    task: tuple[Path, np.ndarray], model: ListingModel, n: int, options: ItemFilter
) -> None:
    path, codes = task
    check_folder_visible(path.parent)
    frame = list_frame(model, codes, n, options)
    with replace_file(path) as file:
        if path.suffix == ".csv":
            frame.to_csv(file, index=False, lineterminator="\n")
        else:
            pyarrow, parquet = parquet_engine(path)
            parquet.write_table(pyarrow.Table.from_pandas(frame, preserve_index=False), file)


def _empty(model: ListingModel, n: int, options: ItemFilter) -> pd.DataFrame:
    return list_frame(model, np.zeros(0, dtype=np.int64), n, options)


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
