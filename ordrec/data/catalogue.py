"""The catalogue of known data sets: where each comes from, under which terms, how it is loaded.

Data sets are found by name, on this machine first, then on the network where that is allowed.
Checksums are those that publishers state next to their files, or those recorded by other
public registries; `Download.checksum` is None where neither is known.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from ordrec.data.download import Download, fetch_file
from ordrec.data.formats.archives import files_below
from ordrec.errors import ArgumentError, DatasetMissing

__all__ = [
    "KNOWN_DATASETS",
    "DatasetInfo",
    "cache_folder",
    "describe_dataset",
    "fetch_dataset",
    "find_dataset",
    "list_datasets",
    "load_dataset",
]


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a data set.

    Attributes
    ----------
    name, title, kind : str
        The kind is ``ratings``, ``ranking``, ``documents`` or ``table``.
    loader : str
        ``module:function`` within `ordrec.data.formats`.
    places : tuple of str
        Paths to look for in each data folder, best first.
    markers : tuple of str
        A folder is taken for the data set if it holds one of these files.
    page, terms, cite : str
        Where to get it, under which terms, what to cite.
    downloads : tuple of Download
        Empty if the terms or the publisher's page require a download by hand.
    counts : mapping of str to int
        Published sizes.
    options : mapping
        Arguments for the loader.
    """

    name: str
    title: str
    kind: str
    loader: str
    places: tuple[str, ...]
    markers: tuple[str, ...]
    page: str
    terms: str
    cite: str
    downloads: tuple[Download, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        counts = ", ".join(f"{number:,} {what}" for what, number in self.counts.items())
        return (
            f"{self.name}: {self.title}{f' ({counts})' if counts else ''}\n"
            f"  get it from  {self.page}\n"
            f"  terms        {self.terms}\n"
            f"  cite         {self.cite}\n"
            f"  put it at    {self.places[0]} in the folder ORDREC_DATA"
        )


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of widgets for progress, which a notebook may lack
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


# ---- ratings -----------------------------------------------------------------------------

_HARPER = "Harper and Konstan, The MovieLens Datasets, ACM TiiS 5(4), 2015"
_NO_COPIES = "research only, no commercial use, no redistribution; acknowledge GroupLens"
_SAME_TERMS = "research only, no commercial use; may be passed on under the same terms; acknowledge"
_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_MOVIE_COUNTS = ("ratings", "users", "items")


def _movielens(
    name: str, title: str, counts: tuple[int, int, int], checksum: str, *, places: tuple[str, ...]
) -> DatasetInfo:
    official = f"{_GROUPLENS}/{name}.zip"
    mirror = f"https://web.archive.org/web/2024id_/{official}"
    return DatasetInfo(
        name,
        title,
        "ratings",
        "movielens:load_movielens",
        places,
        ("u.data", "ratings.dat", "ratings.csv"),
        "https://grouplens.org/datasets/movielens/",
        _NO_COPIES if name in ("ml-100k", "ml-1m", "ml-10m") else _SAME_TERMS,
        _HARPER,
        (Download(f"{name}.zip", (official, mirror), checksum),),
        dict(zip(_MOVIE_COUNTS, counts, strict=True)),
        {"name": name},
    )


_RATINGS = [
    _movielens(
        "ml-100k", "MovieLens 100K, 1998", (100_000, 943, 1_682),
        "sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
        places=("ml-100k", "ml-100k.zip"),
    ),
    _movielens(
        "ml-1m", "MovieLens 1M, 2003", (1_000_209, 6_040, 3_706),
        "sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
        places=("ml-1m", "ml-1m.zip"),
    ),
    _movielens(
        "ml-10m", "MovieLens 10M, 2009, half stars", (10_000_054, 69_878, 10_677),
        "md5:ce571fd55effeba0271552578f2648bd",
        places=("ml-10m", "ml-10m.zip", "ml-10M100K"),
    ),
    _movielens(
        "ml-20m", "MovieLens 20M, 2015", (20_000_263, 138_493, 26_744),
        "sha256:96f243c338a8665f6bcc89c53edf6ee39162a846940de6b7c8c48aeada765ff3",
        places=("ml-20m", "ml-20m.zip"),
    ),
    _movielens(
        "ml-25m", "MovieLens 25M, 2019", (25_000_095, 162_541, 59_047),
        "sha256:8b21cfb7eb1706b4ec0aac894368d90acf26ebdfb6aced3ebd4ad5bd1eb9c6aa",
        places=("ml-25m", "ml-25m.zip"),
    ),
    _movielens(
        "ml-32m", "MovieLens 32M, 2023", (32_000_204, 200_948, 84_432),
        "md5:d472be332d4daa821edc399621853b57",
        places=("ml-32m", "ml-32m.zip"),
    ),
    _movielens(
        "ml-latest-small", "MovieLens latest-small, September 2018", (100_836, 610, 9_724),
        "sha256:696d65a3dfceac7c45750ad32df2c259311949efec81f0f144fdfb91ebc9e436",
        places=("ml-latest-small", "ml-latest-small.zip"),
    ),
    DatasetInfo(
        "ml-latest-small-2016", "MovieLens latest-small, October 2016 (bundled)", "ratings",
        "movielens:load_movielens", ("ml-latest-small-2016", "ml-latest-small-2016.zip"),
        ("ratings.csv",), "https://grouplens.org/datasets/movielens/", _SAME_TERMS, _HARPER,
        (), {"ratings": 100_004, "users": 671, "items": 9_066}, {"name": "ml-latest-small-2016"},
    ),
]  # fmt: skip

_EACHMOVIE: dict[str, Any] = {
    "kind": "ratings",
    "loader": "eachmovie:load_eachmovie",
    "page": "the successors of the DEC Systems Research Center, which withdrew it in 2004",
    "terms": "non-commercial research, internal copies only; credit Digital Equipment Corporation",
    "cite": "McJones, EachMovie collaborative filtering data set, DEC SRC, 1997",
}
_EACHMOVIE_PARTS = [
    DatasetInfo(
        "eachmovie", "EachMovie, whichever vote file is present",
        places=("eachmovie", "eachmovie.zip"),
        markers=("Vote.txt", "votes_5055users.csv", "votes_324movies.csv", "eachmovie_triple"),
        options={"name": "eachmovie"}, **_EACHMOVIE,
    ),
    DatasetInfo(
        "eachmovie-5055users", "EachMovie, the users with 121 votes or more",
        places=("eachmovie/votes_5055users.csv.gz", "eachmovie/votes_5055users.csv"), markers=(),
        counts={"ratings": 1_009_402, "users": 5_055, "items": 1_619},
        options={"name": "eachmovie-5055users"}, **_EACHMOVIE,
    ),
    DatasetInfo(
        "eachmovie-324movies", "EachMovie, the votes on 324 films",
        places=("eachmovie/votes_324movies.csv.gz", "eachmovie/votes_324movies.csv"), markers=(),
        counts={"ratings": 506_123, "users": 56_118, "items": 324},
        options={"name": "eachmovie-324movies"}, **_EACHMOVIE,
    ),
]  # fmt: skip

_TWEETS = "https://raw.githubusercontent.com/sidooms/MovieTweetings/master/snapshots/100K"
_OTHERS = [
    DatasetInfo(
        "movietweetings-100k", "MovieTweetings, 100K snapshot", "ratings",
        "movietweetings:load_movietweetings",
        ("movietweetings-100k", "movietweetings-100k.zip", "MovieTweetings/snapshots/100K"),
        ("ratings.dat",), "https://github.com/sidooms/MovieTweetings", "MIT; keep the licence",
        "Dooms, De Pessemier and Martens, MovieTweetings, CrowdRec at RecSys 2013",
        tuple(Download(file, (f"{_TWEETS}/{file}",)) for file in ("ratings.dat", "movies.dat")),
        {"ratings": 100_000, "users": 16_554, "items": 10_506}, {"name": "movietweetings-100k"},
    ),
    DatasetInfo(
        "jester-5k", "Jester, 5000 users who rated 36 jokes or more", "ratings",
        "jester:load_jester", ("jester-5k", "jester-5k.zip"), ("ratings.csv",),
        "https://eigentaste.berkeley.edu/dataset/ (this selection: Jester5k of the R package "
        "recommenderlab, as a csv with the columns user,joke,rating)",
        "research use with citation",
        "Goldberg, Roeder, Gupta and Perkins, Eigentaste, Information Retrieval 4(2), 2001",
        (), {"ratings": 363_209, "users": 5_000, "items": 100}, {"name": "jester-5k"},
    ),
    DatasetInfo(
        "ohsumed-letor", "OHSUMED judged pairs with 45 features, LETOR 3.0", "ranking",
        "letor:load_letor", ("ohsumed-letor", "ohsumed-letor.zip"),
        ("S1.txt",), "https://www.microsoft.com/en-us/research/project/"
        "letor-learning-rank-information-retrieval/", "research use",
        "Qin, Liu, Xu and Li, LETOR, Information Retrieval 13(4), 2010",
        (), {"pairs": 16_140, "queries": 106, "documents": 14_430}, {"name": "ohsumed-letor"},
    ),
    DatasetInfo(
        "ohsumed-trec9", "OHSUMED as in the TREC-9 filtering track", "documents",
        "ohsumed:load_ohsumed", ("ohsumed-trec9", "t9.filtering.tar.gz"),
        ("query.ohsu.1-63",), "https://trec.nist.gov/data/t9_filtering.html",
        "experiments only, not in any clinical or library setting; tell users that the data is "
        "incomplete and out of date",
        "Hersh, Buckley, Leone and Hickam, OHSUMED, SIGIR 1994",
        (
            Download(
                "t9.filtering.tar.gz",
                ("https://trec.nist.gov/data/filtering/t9.filtering.tar.gz",),
            ),
        ),
        {"topics": 63},
    ),
]  # fmt: skip


# ---- ordinal tables --------------------------------------------------------------------

_SURVEY = (
    "automobile balance-scale bondrate car contact-lenses ERA ESL eucalyptus LEV newthyroid "
    "pasture squash-stored squash-unstored SWD tae toy winequality-red"
)
_FREQUENCY = (
    "abalone bank1 bank2 calhousing census1 census2 computer1 computer2 housing machine pyrim stock"
)
_LENGTH = "abalone autompg diabetes housing machine pyrim stock triazines wisconsin"


def _table(folder: str, file: str, name: str, title: str, page: str, **options: Any) -> DatasetInfo:
    return DatasetInfo(
        name,
        title,
        "table",
        "tables:load_table",
        (f"{folder}/{file}.csv", f"{folder}/{file}.csv.gz"),
        (),
        f"{page} (bring it into the csv format of data/README.md)",
        "UCI tables CC BY 4.0; the others are public research data without a stated licence",
        "Gutierrez et al., Ordinal regression methods, IEEE TKDE 28(1), 2016"
        if folder != "ordinal-regression-length"
        else "Chu and Ghahramani, Gaussian processes for ordinal regression, JMLR 6, 2005",
        options={**options, "name": name},
    )


_AYRNA = "https://www.uco.es/grupos/ayrna/orreview"
_CHU = "https://www.gatsby.ucl.ac.uk/~chuwei/ordinalregression.html"
_TABLES = [
    *(
        _table("ordinal-survey", file, f"survey/{file}", f"{file}, 30 partitions", _AYRNA)
        for file in _SURVEY.split()
    ),
    *(
        _table(
            f"ordinal-regression-{bins}", file, f"{bins}/{file}-{ranks}",
            f"{file}, target cut into {ranks} ranks of equal {size}, 20 partitions", page,
            label=f"y{ranks}",
        )
        for bins, size, files, page in (
            ("frequency", "size", _FREQUENCY, _AYRNA), ("length", "length", _LENGTH, _CHU),
        )
        for file in files.split()
        for ranks in (5, 10)
    ),
    _table(
        "student-grades", "grades", "student-grades", "final grades of 30 students, F to A",
        "the data sets of Johnson and Albert, Ordinal Data Modeling, 1999",
    ),
]  # fmt: skip

KNOWN_DATASETS: dict[str, DatasetInfo] = {
    info.name: info for info in (*_RATINGS, *_EACHMOVIE_PARTS, *_OTHERS, *_TABLES)
}
