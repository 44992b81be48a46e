"""Loaders for rating, relevance and ordinal data sets, and a registry of them by name.

The loaders are imported when first used: listing the data sets needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.datasets.catalogue import DatasetInfo
    from ordrec.datasets.eachmovie import load_eachmovie
    from ordrec.datasets.generic import load_ratings
    from ordrec.datasets.jester import load_jester
    from ordrec.datasets.letor import Letor, load_letor
    from ordrec.datasets.movielens import genre_flags, load_movielens
    from ordrec.datasets.movietweetings import load_movietweetings
    from ordrec.datasets.ohsumed import Ohsumed, load_ohsumed
    from ordrec.datasets.recognise import load_path
    from ordrec.datasets.registry import (
        describe_dataset,
        fetch_dataset,
        find_dataset,
        list_datasets,
        load_dataset,
    )
    from ordrec.datasets.synthetic import (
        LatentModel,
        latent_model,
        synthetic_chunks,
        synthetic_ratings,
    )
    from ordrec.datasets.tables import OrdinalTable, discretise, load_table

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
    "load_path",
    "load_ratings",
    "load_table",
    "synthetic_chunks",
    "synthetic_ratings",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "catalogue": "DatasetInfo",
        "eachmovie": "load_eachmovie",
        "generic": "load_ratings",
        "jester": "load_jester",
        "letor": "Letor load_letor",
        "movielens": "genre_flags load_movielens",
        "movietweetings": "load_movietweetings",
        "ohsumed": "Ohsumed load_ohsumed",
        "recognise": "load_path",
        "registry": "describe_dataset fetch_dataset find_dataset list_datasets load_dataset",
        "synthetic": "LatentModel latent_model synthetic_chunks synthetic_ratings",
        "tables": "OrdinalTable discretise load_table",
    },
)
