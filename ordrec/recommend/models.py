"""The face that every rating model shows, and the names by which models are made.

A rating model is any object with ``fit(ratings)`` and ``predict(users, items)``; original
ids go in, ratings in the data's own scale come out. What else it can do is optional and
found by looking for the method: ``predict_proba`` (a distribution over the scale) and
``fold_in`` (users it did not see in training). A ranking model has ``scores`` in place of
``predict``: numbers that order items and mean nothing else.
"""

from __future__ import annotations

import difflib
import inspect
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.ratings import Ratings

__all__ = [
    "FoldInModel",
    "ProbabilityModel",
    "RankingModel",
    "RatingModel",
    "make_model",
    "model_names",
    "register_model",
]


# ---- the face --------------------------------------------------------------------------


@runtime_checkable
class RatingModel(Protocol):
    """Predicts ratings."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn from ratings, forgetting what was learnt before; return the model."""
        ...

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Predict one rating a pair, as floats within the scale's range.

        ``users`` and ``items`` are original ids, of equal length. Unknown ones get a
        sensible fallback, never an exception.
        """
        ...


@runtime_checkable
class ProbabilityModel(RatingModel, Protocol):
    """Predicts distributions over the rating scale."""

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """One row a pair, one column a scale value in ascending order; rows sum to 1."""
        ...


@runtime_checkable
class FoldInModel(RatingModel, Protocol):
    """Takes in users it did not see in training, without training again."""

    def fold_in(self, ratings: Ratings) -> Any:
        """Return a model that also knows the users of these ratings; nothing else changes."""
        ...


@runtime_checkable
class RankingModel(Protocol):
    """Orders items for users without predicting ratings."""

    def fit(self, ratings: Ratings) -> Any:
        """Learn from ratings, forgetting what was learnt before; return the model."""
        ...

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """One number a pair; the higher, the earlier the item comes for the user."""
        ...


# ---- the names -------------------------------------------------------------------------

_HOMES: dict[str, str] = {
    "mean": "ordrec.recommend.baselines:GlobalMean",
    "histogram": "ordrec.recommend.baselines:RatingHistogram",
    "bias": "ordrec.recommend.baselines:BiasModel",
    "item-knn": "ordrec.recommend.baselines:ItemKNN",
    "als": "ordrec.recommend.baselines:ALSRanking",
}


def register_model(name: str, home: str) -> None:
    """Let `make_model` and the command line know a model.

    Parameters
    ----------
    name : str
        Lower case, words joined by hyphens.
    home : str
        ``"package.module:Class"``; imported when the model is first made.
    """
    if name in _HOMES and _HOMES[name] != home:
        raise ArgumentError(f"model name {name!r} is taken by {_HOMES[name]}: choose another")
    if ":" not in home:
        raise ArgumentError(f'home must read "package.module:Class", got {home!r}')
    _HOMES[name] = home


def model_names() -> list[str]:
    """The names that `make_model` knows, in the order they were registered."""
    return list(_HOMES)


def make_model(name: str, **params: Any) -> Any:
    """Make an unfitted model by its name.

    Parameters
    ----------
    name : str
        One of `model_names`.
    **params
        The model's own parameters.

    Raises
    ------
    ArgumentError
        For an unknown name or parameter, listing the known ones and the nearest.

    Examples
    --------
    >>> make_model("bias", user_damping=5)
    BiasModel(user_damping=5, item_damping=10.0, tol=1e-06, max_iter=200)
    """
    if name not in _HOMES:
        raise ArgumentError(f"unknown model {name!r}: {_suggestion(name, model_names())}")
    module, _, attribute = _HOMES[name].partition(":")
    factory = getattr(import_module(module), attribute)
    known = list(inspect.signature(factory).parameters)
    for param in params:
        if param not in known:
            raise ArgumentError(
                f"model {name!r} has no parameter {param!r}: {_suggestion(param, known)}"
            )
    return factory(**params)


def _suggestion(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word.lower(), known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}choose from {', '.join(known) or 'none'}"


# ---- what models share -----------------------------------------------------------------


def codes_of(index: pd.Index, ids: Any) -> np.ndarray:
    """Position of each original id in the index, -1 for the unknown."""
    if isinstance(ids, str) or not hasattr(ids, "__len__"):
        raise ArgumentError(f"users and items must be sequences of ids, got {ids!r}")
    return np.asarray(index.get_indexer(pd.Index(ids)), dtype=np.int64)


def codes_of_pairs(
    user_ids: pd.Index, item_ids: pd.Index, users: Any, items: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Codes of users and items given by original ids, -1 for the unknown."""
    user_codes, item_codes = codes_of(user_ids, users), codes_of(item_ids, items)
    if user_codes.size != item_codes.size:
        raise ArgumentError(
            f"users and items must pair up, got {user_codes.size} users and {item_codes.size} items"
        )
    return user_codes, item_codes
