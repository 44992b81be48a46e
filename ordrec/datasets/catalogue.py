"""What is known about each data set: where it lives, under which terms, how it is loaded.

Checksums are those the publishers state beside their files, or those recorded by other
public registries; `Download.checksum` is None where neither is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CATALOGUE", "DatasetInfo", "Download"]


@dataclass(frozen=True)
class Download:
    """One file to fetch.

    Attributes
    ----------
    file : str
        Name in the cache. Archives are unpacked there.
    urls : tuple of str
        The official address and then its mirrors.
    checksum : str or None
        ``sha256:...`` or ``md5:...``. None: recorded at the first download and
        compared from then on.
    """

    file: str
    urls: tuple[str, ...]
    checksum: str | None = None


@dataclass(frozen=True)
class DatasetInfo:
    """A data set by name.

    Attributes
    ----------
    name, title, kind : str
        Kind is ``ratings``, ``ranking``, ``documents`` or ``table``.
    loader : str
        ``module:function`` within `ordrec.datasets`.
    places : tuple of str
        Paths to look for below each data folder, best first.
    markers : tuple of str
        A folder counts as the data set when it holds one of these files.
    page, terms, cite : str
        Where to get it, under which terms, what to cite.
    downloads : tuple of Download
        Empty where the terms, or the publisher's page, ask for a fetch by hand.
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

CATALOGUE: dict[str, DatasetInfo] = {info.name: info for info in _RATINGS}
