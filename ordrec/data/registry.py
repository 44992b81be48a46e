"""Find data sets by name: on this machine first, then on the network where that is allowed."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from ordrec.data.formats.archives import files_below
from ordrec.data.known import KNOWN_DATASETS, DatasetInfo
from ordrec.errors import ArgumentError, DatasetMissing

__all__ = [
    "cache_folder",
    "describe_dataset",
    "fetch_dataset",
    "find_dataset",
    "list_datasets",
    "load_dataset",
]


def load_dataset(
    name: str, *, folder: str | Path | None = None, offline: bool = False, **options: Any
) -> Any:
    """Load a data set by its name.

    It is searched for in ``folder``, in the folder named by the environment variable
    ORDREC_DATA, among the bundled files and in the cache (ORDREC_CACHE, or the user's
    cache folder), in this order. If it is not found it is downloaded, provided that its
    terms allow it.

    Parameters
    ----------
    name : str
        One of `list_datasets`.
    folder : path, optional
        Where to look first: a folder of data sets, or the folder of this data set.
    offline : bool
        Whether to stay off the network.
    **options
        Passed to the loader, such as ``ranks=5`` for ``jester-5k``.

    Returns
    -------
    Ratings, OrdinalTable, Letor or Ohsumed
        Depending on the kind of data.

    Raises
    ------
    DatasetMissing
        If it is not found; the message says where to get it, under which terms, and where
        to put it.

    Examples
    --------
    >>> ratings = load_dataset("ml-latest-small-2016", offline=True)
    >>> ratings.n_users, ratings.n_items, ratings.scale
    (671, 9066, Scale(0.5..5 by 0.5))
    """
    info = describe_dataset(name)
    path = find_dataset(name, folder=folder)
    if path is None:
        if offline or not info.downloads:
            raise _missing(info, folder, offline)
        path = fetch_dataset(name)
    module, function = info.loader.split(":")
    load = getattr(import_module(f"ordrec.data.formats.{module}"), function)
    return load(path, **{**info.options, **options})


def list_datasets() -> list[str]:
    """Return the names of all data sets that ordrec knows.

    Examples
    --------
    >>> "ml-1m" in list_datasets()
    True
    """
    return list(KNOWN_DATASETS)


def describe_dataset(name: str) -> DatasetInfo:
    """Return what is known about a data set: sizes, source, terms.

    Examples
    --------
    >>> describe_dataset("ml-1m").counts["ratings"]
    1000209
    """
    if name not in KNOWN_DATASETS:
        from difflib import get_close_matches

        near = get_close_matches(name, KNOWN_DATASETS, 3, 0.4)
        hint = f"did you mean {' or '.join(near)}?" if near else "see ordrec.datasets.list_datasets"
        raise ArgumentError(f"no data set is called {name!r}: {hint}")
    return KNOWN_DATASETS[name]


def find_dataset(name: str, *, folder: str | Path | None = None) -> Path | None:
    """Return the path of a data set on this machine, or None if it is not there."""
    info = describe_dataset(name)
    if folder is not None:
        folder = Path(folder).expanduser()
        if not folder.is_dir():
            raise DatasetMissing(f"no such folder: {folder}")
    for root in _roots(folder):
        for place in info.places:
            path = root / place
            if path.is_file() or _holds(path, info.markers):
                return path
        if root == folder and _holds(root, info.markers, below=False):
            return root  # the folder of this data set itself
    return None


def fetch_dataset(name: str, *, progress: bool = False) -> Path:
    """Download a data set into the cache, unless it is there already, and return its path.

    Every file is checked against its published checksum. Where none is published, the
    SHA-256 of the first download is kept with it, and later downloads must agree.
    Mirrors are tried in order.

    Parameters
    ----------
    name : str
    progress : bool
        Whether to show a progress bar on the terminal.
    """
    from ordrec.data.download import fetch_file

    info = describe_dataset(name)
    target = cache_folder() / name
    if _holds(target, info.markers):
        return target
    if not info.downloads:
        raise _missing(info, None, offline=False)
    for download in info.downloads:
        fetch_file(download, target, progress=progress)
    return target


def cache_folder() -> Path:
    """Return the folder that downloaded data sets are kept in."""
    named = os.environ.get("ORDREC_CACHE")
    if named:
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("ordrec"))


def _roots(folder: Path | None) -> list[Path]:
    """Folders to search, in order."""
    roots = [folder] if folder is not None else []
    named = os.environ.get("ORDREC_DATA")
    if named:
        roots.append(Path(named).expanduser())
    return [*roots, *_bundled_folders(), cache_folder()]


def _bundled_folders() -> list[Path]:
    """Folders of the bundled ratings: in an installed wheel, and in a checkout."""
    here = Path(__file__).resolve().parent
    return [here / "bundled", here.parent.parent / "data"]


def _holds(folder: Path, markers: tuple[str, ...], *, below: bool = True) -> bool:
    """Whether one of the marker files, possibly gzipped, is in the folder (or below it)."""
    if not folder.is_dir():
        return False
    wanted = {f"{marker}{end}".lower() for marker in markers for end in ("", ".gz")}
    files = files_below(folder) if below else folder.iterdir()
    return any(file.name.lower() in wanted for file in files)


def _missing(info: DatasetInfo, folder: str | Path | None, offline: bool) -> DatasetMissing:
    searched = ", ".join(str(root) for root in _roots(Path(folder) if folder else None))
    if info.downloads:
        remedy = "allow the download" if offline else "try the download again"
    else:
        remedy = "it is not fetched automatically"
    return DatasetMissing(
        f"data set {info.name!r} ({info.title}) was not found ({remedy}): get it from {info.page} "
        f"(terms: {info.terms}) and put it at {info.places[0]} in a folder named by ORDREC_DATA; "
        f"searched in {searched}"
    )
