"""Load ratings from a path, recognising the format by the names of the files."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from ordrec.data import Ratings
from ordrec.data.formats.archives import Source, open_source
from ordrec.data.formats.eachmovie import load_eachmovie
from ordrec.data.formats.jester import load_jester
from ordrec.data.formats.movielens import load_movielens
from ordrec.data.generic import load_ratings
from ordrec.data.on_disk.partitions import MANIFEST
from ordrec.data.registry import list_datasets, load_dataset
from ordrec.errors import DataError, DatasetMissing

__all__ = ["load_path", "read_ratings"]

MOVIELENS = ({"u.data"}, {"ratings.dat", "movies.dat"}, {"ratings.csv", "movies.csv"})
JOKES = "user,joke,rating"
EACHMOVIE = ({"vote.txt"}, {"votes_5055users.csv"}, {"votes_324movies.csv"}, {"eachmovie_triple"})


def load_path(path: str | Path) -> Ratings:
    """Load a MovieLens, EachMovie or Jester folder or archive, or any csv or parquet file.

    Files without characteristic names (a csv with the columns user, item, rating) are read by
    `load_ratings`; call that, or the loader of the format, if columns or options differ.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mine.csv"
    >>> _ = file.write_text("user,item,rating\\n1,1,5\\n1,2,4\\n2,1,3\\n")
    >>> load_path(file).n_ratings
    3
    """
    with open_source(path) as source:
        names = {
            PurePosixPath(member).name.lower().removesuffix(".gz") for member in source.members
        }
        jokes = _has_jokes(source)
    if any(marker_files <= names for marker_files in MOVIELENS):
        return load_movielens(path)
    if any(marker_files <= names for marker_files in EACHMOVIE):
        return load_eachmovie(path)
    return load_jester(path) if jokes else load_ratings(path)


def read_ratings(
    data: str | Path, *, folder: str | Path | None = None, offline: bool = False
) -> Ratings:
    """Load ratings by the name of a data set or by path, as every command does.

    Parameters
    ----------
    data : str or path
        One of `list_datasets`; or a folder or file for `load_path`, or a folder of partitions.
    folder : path, optional
        A folder of data sets, where names are searched for first.
    offline : bool
        Whether to stay off the network.

    Examples
    --------
    >>> read_ratings("ml-latest-small-2016", offline=True).n_users
    671
    """
    name = str(data)
    loaded: Any
    if name in list_datasets():
        loaded = load_dataset(name, folder=folder, offline=offline)
    elif (Path(data) / MANIFEST).is_file():
        loaded = Ratings.scan(data).collect()
    elif Path(data).exists():
        loaded = load_path(data)
    elif any(mark in name for mark in "/\\.") or not name:
        raise DatasetMissing(f"{name!r}: no such file or folder")
    else:
        loaded = load_dataset(name)  # raises the message with the nearest names
    if not isinstance(loaded, Ratings):
        raise DataError(f"{data} holds a {type(loaded).__name__}, not ratings")
    return loaded


def _has_jokes(source: Source) -> bool:
    """Whether the only table has the columns of Jester's ratings."""
    tables = [name for name in source.members if name.lower().endswith((".csv", ".csv.gz"))]
    if len(tables) != 1:
        return False
    with source.open(tables[0]) as stream:
        start = stream.readline(1 << 12)
    return start.decode("utf-8-sig", "replace").strip().lower().startswith(JOKES)
