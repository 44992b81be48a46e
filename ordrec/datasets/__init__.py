"""Loaders for rating, relevance and ordinal data sets, and a registry of them by name."""

from __future__ import annotations

from ordrec.datasets.movielens import genre_flags, load_movielens
from ordrec.datasets.registry import (
    describe_dataset,
    fetch_dataset,
    list_datasets,
    load_dataset,
)

__all__ = [
    "describe_dataset",
    "fetch_dataset",
    "genre_flags",
    "list_datasets",
    "load_dataset",
    "load_movielens",
]
