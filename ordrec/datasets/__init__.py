"""Loaders for rating, relevance and ordinal data sets, and a registry of them by name.

The loaders are imported when first used: listing the data sets needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordrec.datasets.catalogue import DatasetInfo
    from ordrec.datasets.eachmovie import load_eachmovie
    from ordrec.datasets.generic import load_ratings
    from ordrec.datasets.jester import load_jester
    from ordrec.datasets.letor import Letor, load_letor
    from ordrec.datasets.movielens import genre_flags, load_movielens
    from ordrec.datasets.movietweetings import load_movietweetings
    from ordrec.datasets.ohsumed import Ohsumed, load_ohsumed
    from ordrec.datasets.registry import (
        describe_dataset,
        fetch_dataset,
        find_dataset,
        list_datasets,
        load_dataset,
    )
    from ordrec.datasets.synthetic import LatentModel, latent_model, synthetic_ratings
    from ordrec.datasets.tables import OrdinalTable, discretise, load_table

_HOME = {
    "DatasetInfo": "catalogue",
    "LatentModel": "synthetic",
    "Letor": "letor",
    "Ohsumed": "ohsumed",
    "OrdinalTable": "tables",
    "describe_dataset": "registry",
    "discretise": "tables",
    "fetch_dataset": "registry",
    "find_dataset": "registry",
    "genre_flags": "movielens",
    "latent_model": "synthetic",
    "list_datasets": "registry",
    "load_dataset": "registry",
    "load_eachmovie": "eachmovie",
    "load_jester": "jester",
    "load_letor": "letor",
    "load_movielens": "movielens",
    "load_movietweetings": "movietweetings",
    "load_ohsumed": "ohsumed",
    "load_ratings": "generic",
    "load_table": "tables",
    "synthetic_ratings": "synthetic",
}

__all__ = [
    "DatasetInfo",
    "LatentModel",
    "Letor",
    "Ohsumed",
    "OrdinalTable",
    "describe_dataset",
    "discretise",
    "fetch_dataset",
    "find_dataset",
    "genre_flags",
    "latent_model",
    "list_datasets",
    "load_dataset",
    "load_eachmovie",
    "load_jester",
    "load_letor",
    "load_movielens",
    "load_movietweetings",
    "load_ohsumed",
    "load_ratings",
    "load_table",
    "synthetic_ratings",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ordrec.datasets' has no attribute {name!r}")
    return getattr(import_module(f"ordrec.datasets.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
