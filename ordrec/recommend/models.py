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
from dataclasses import fields
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError, DataError, ModelFileError
from ordrec.persistence import LARGEST, ids_from_arrays, ids_to_arrays
from ordrec.ratings import Ratings, Scale

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
    "item-knn": "ordrec.recommend.neighbours:ItemKNN",
    "factors": "ordrec.recommend.factors:OrdinalFactors",
    "predictor": "ordrec.recommend.predictor:RatingPredictor",
    "predictor-fast": "ordrec.recommend.predictor:fast_predictor",
    "per-user-svor": "ordrec.recommend.per_user:PerUserPredictor",
    "per-user-logistic": "ordrec.recommend.per_user:per_user_logistic",
    "als": "ordrec.recommend.candidates:ALSRanking",
    "surprise-svd": "ordrec.recommend.adapters:SurpriseModel",
    "surprise-knn": "ordrec.recommend.adapters:surprise_knn",
    "implicit-bpr": "ordrec.recommend.adapters:implicit_bpr",
    "myfm": "ordrec.recommend.adapters:MyFMModel",
    "ridge": "ordrec.recommend.adapters:ridge_on_ids",
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


class RemembersIds:
    """A model that keeps the scale and the ids of its training ratings."""

    scale_: Scale
    user_ids_: pd.Index
    item_ids_: pd.Index

    def _remember(self, ratings: Ratings) -> None:
        if ratings.n_ratings == 0:
            raise DataError(f"{type(self).__name__}: no ratings to learn from")
        self.scale_ = ratings.scale
        self.user_ids_ = ratings.user_ids
        self.item_ids_ = ratings.item_ids

    def _check_fitted(self) -> None:
        if not hasattr(self, "scale_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(f"{type(self).__name__} is not fitted: call fit(ratings) first")

    def _codes(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Codes of a model's arguments, -1 for the unknown."""
        self._check_fitted()
        return codes_of_pairs(self.user_ids_, self.item_ids_, users, items)

    def _known(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user and each item is one of those remembered."""
        user_codes, item_codes = self._codes(users, items)
        return user_codes >= 0, item_codes >= 0

    def _with_users_of(self, ratings: Ratings) -> tuple[pd.Index, np.ndarray, np.ndarray]:
        """The known user ids and after them the new ones, and codes of the ratings by these."""
        self._check_fitted()
        present = ratings.user_ids.take(np.unique(ratings.users))
        newcomers = present[codes_of(self.user_ids_, present) < 0]
        user_ids = self.user_ids_.append(newcomers) if len(newcomers) else self.user_ids_
        users = codes_of(user_ids, ratings.user_ids)[ratings.users]
        return user_ids, users, codes_of(self.item_ids_, ratings.item_ids)[ratings.items]

    def _identity(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and metadata of the ids, the scale and the parameters, for a model file."""
        self._check_fitted()
        arrays = ids_to_arrays("user_ids", self.user_ids_)
        arrays |= ids_to_arrays("item_ids", self.item_ids_)
        parameters = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return arrays, {"parameters": parameters, "scale": self.scale_.values.tolist()}

    @classmethod
    def _from_identity(cls, arrays: Any, metadata: dict[str, Any]) -> Any:
        """A model with the ids, the scale and the parameters of a file."""
        model = cls(**cls._checked(metadata["parameters"]))
        model.scale_ = Scale([float(value) for value in metadata["scale"]])
        model.user_ids_ = ids_from_arrays("user_ids", arrays)
        model.item_ids_ = ids_from_arrays("item_ids", arrays)
        return model

    @classmethod
    def _checked(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Parameters out of a file: each must be of the type of its default."""
        checked = {}
        for field in fields(cls):  # type: ignore[arg-type]
            value: Any = parameters[field.name]
            kind: Any = type(field.default)
            if kind is float and type(value) is int and -LARGEST < value < LARGEST:
                value = float(value)
            fits = type(value) is kind and (kind is not float or -LARGEST < value < LARGEST)
            if not fits:
                raise ModelFileError(f"parameter {field.name} is {str(value)[:50]!r}")
            checked[field.name] = value
        return checked

    def _clipped(self, values: np.ndarray) -> np.ndarray:
        return np.clip(values, self.scale_.values[0], self.scale_.values[-1])
