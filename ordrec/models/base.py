"""The ids and the scale of the training ratings, which every fitted model keeps."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.data.ids import codes_of, warn_of_other_type
from ordrec.data.ratings import as_ratings
from ordrec.data.times import seconds_of
from ordrec.errors import ArgumentError, DataError, ModelFileError, OrdrecWarning, callers_level
from ordrec.runtime.notebooks import facts_html
from ordrec.runtime.parallel.interrupts import interruptible
from ordrec.runtime.progress import progress
from ordrec.storage.parameters import check_types, plain_of, value_of
from ordrec.storage.schema import Field, Ids, Number, Reader, Storable, Writer

__all__ = [
    "IDENTITY",
    "IdMappedModel",
    "StoredRating",
    "StoredScale",
    "codes_of",
    "codes_of_pairs",
    "drop_weights",
    "fits",
    "folds_in",
    "replacing_ratings",
    "times_of",
]

Method = TypeVar("Method", bound=Callable[..., Any])


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


def times_of(timestamps: Any, n_pairs: int) -> np.ndarray:
    """Seconds since 1970 of each pair, 0 where unknown; from a time or date per pair, or None."""
    if timestamps is None:
        return np.zeros(n_pairs)
    times = seconds_of(timestamps).astype(np.float64)
    if times.shape != (n_pairs,):
        raise ArgumentError(f"timestamps must pair up with users, got {times.size} for {n_pairs}")
    return times


def drop_weights(ratings: Ratings, who: str) -> Ratings:
    """The ratings without their weights, with a warning that somebody ignores them."""
    if ratings.weights is None:
        return ratings
    warnings.warn(
        OrdrecWarning(
            f"{who} ignores the weights of the ratings, all of which count as 1: pass weight=None, "
            'or take OrdinalFactors ("factors") or PerUserPredictor ("per-user-logistic"), which '
            "count them",
            parameter="weight",
        ),
        stacklevel=callers_level(),
    )
    return ratings.without_weights()


def fits(fit: Method) -> Method:
    """Let a model's ``fit`` take data frames, report its progress and end by Ctrl-C.

    Data frames become ratings on a scale of their own. A model that ignores weights or events
    warns once, and its ``fit`` does not see them. The fitted model has a `FitReport` as
    ``fit_report_``.
    """

    @functools.wraps(fit)
    def fit_ratings(self: Any, ratings: Any, *args: Any, **options: Any) -> Any:
        ratings = self._noticed(self._counted(self._learnable(as_ratings(ratings))))
        verbose = getattr(self, "verbose", None)
        with interruptible(), progress(type(self).__name__, verbose) as stage:
            fitted = fit(self, ratings, *args, **options)
        (fitted.fit_report_,) = stage.found
        return fitted

    return cast(Method, fit_ratings)


_replaces_knowingly: ContextVar[bool] = ContextVar("replaces_knowingly", default=False)


@contextmanager
def replacing_ratings() -> Iterator[None]:
    """Let ``fold_in`` replace the ratings of known users without a warning."""
    before = _replaces_knowingly.set(True)
    try:
        yield
    finally:
        _replaces_knowingly.reset(before)


def _warn_of_replaced_ratings(model: Any, ratings: Ratings) -> None:
    present = ratings.user_ids.take(np.unique(ratings.users))
    known = codes_of(model.user_ids_, present) >= 0
    if known.any() and hasattr(model, "known_ratings"):
        before = model.known_ratings()
        codes = codes_of(before.user_ids, present)
        known[known] = (codes[known] >= 0) & (before.user_counts[codes[known]] > 0)
    if known.any():
        example = present[known][:1].tolist()[0]
        remedy = "call update" if hasattr(model, "update") else "pass all of them"
        warnings.warn(
            f"{type(model).__name__}.fold_in replaces all ratings of {int(known.sum())} of "
            f"{known.size} users, whom the model knows already, such as {example!r}: to add "
            f"ratings to theirs, {remedy}",
            stacklevel=callers_level(),
        )


def folds_in(fold_in: Method) -> Method:
    """Let a model's ``fold_in`` take data frames, read on the model's scale, and end by Ctrl-C.

    It warns if it replaces the ratings of known users, unless `replacing_ratings` says so.
    """

    @functools.wraps(fold_in)
    def fold_in_ratings(self: Any, ratings: Any, *args: Any, **options: Any) -> Any:
        self._check_fitted()
        ratings = self._counted(as_ratings(ratings, self.scale_))
        if self.scale_.only_picks == ratings.has_ratings:
            ratings = ratings.on_scale(self.scale_)  # ratings are picks, but picks are no ratings
        if not _replaces_knowingly.get():
            _warn_of_replaced_ratings(self, ratings)
        with interruptible(), replacing_ratings():  # a model inside need not warn again
            return fold_in(self, ratings, *args, **options)

    return cast(Method, fold_in_ratings)


class StoredScale(Field):
    """A rating scale, which fixes the lengths "ranks" and "thresholds" (one less)."""

    def write(self, file: Writer, name: str, value: Scale) -> None:
        """Write the values of the scale."""
        file.values[name] = value.to_json()

    def read(self, file: Reader, name: str) -> Scale:
        """Return the scale."""
        scale = Scale.from_json(file.value(name))
        file.sizes |= {"ranks": scale.n_ranks, "thresholds": scale.n_ranks - 1}
        return scale


class StoredRating(Number):
    """A number within the scale of the model."""

    def read(self, file: Reader, name: str) -> float:
        """Return the number after checking that it is on the scale."""
        rating, scale = super().read(file, name), file.owner.scale_
        if not scale.low <= rating <= scale.high:
            raise ModelFileError(f"{name} is {rating:g}, which is not on the scale {scale}")
        return rating


# Fields of what models of the same ratings have in common.
IDENTITY: dict[str, Field] = {
    "scale_": StoredScale(),
    "user_ids_": Ids("users"),
    "item_ids_": Ids("items"),
}


class IdMappedModel(Storable):
    """A model that keeps the scale and the ids of its training ratings.

    Models are dataclasses, whose fields are their parameters; `fits` and `folds_in` decorate their
    ``fit`` and ``fold_in``. A model that can be saved declares what it has learnt in ``stored``,
    beside `IDENTITY`. `get_params` and `set_params` do what they do in scikit-learn, so that
    `sklearn.base.clone` and tools that search parameters work.

    Examples
    --------
    >>> from ordrec.recommend import BiasModel, PersonalThresholds
    >>> model = PersonalThresholds(BiasModel())
    >>> model.set_params(model__user_damping=3.0, n_splits=4).model.user_damping
    3.0
    >>> model.get_params(deep=False)["n_splits"]
    4
    """

    # parameters that a file leaves at their defaults: how a model was fitted, not what
    _unstored_parameters: ClassVar[tuple[str, ...]] = ("verbose",)

    scale_: Scale
    user_ids_: pd.Index
    item_ids_: pd.Index
    takes_long: ClassVar[bool] = False  # started first where models are fitted side by side
    _counts_weights: ClassVar[bool] = False  # whether `fit` and `fold_in` do, or hand them on
    _notices_events: ClassVar[bool] = False  # likewise
    _learns_from_picks: ClassVar[bool] = False  # whether it takes tables without ratings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep : bool
            Whether parameters of parameters are added, as ``name__their_name``.
        """
        params = self._parameters()
        if not deep:
            return params
        inner = {
            f"{name}__{key}": each
            for name, value in params.items()
            if hasattr(value, "get_params") and not isinstance(value, type)
            for key, each in value.get_params().items()
        }
        return params | inner

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of parameters as ``name__their_name``; return the model.

        What was fitted before stays as it is until the next `fit`.
        """
        known = self._parameters()
        inner: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, nested, key_of_inner = key.partition("__")
            if name not in known:
                raise ArgumentError(
                    f"{type(self).__name__} has no parameter {name!r}: "
                    f"choose from {', '.join(known) or 'none'}"
                )
            if nested:
                inner.setdefault(name, {})[key_of_inner] = value
            else:
                setattr(self, name, value)
        for name, theirs in inner.items():
            if not hasattr(getattr(self, name), "set_params"):
                raise ArgumentError(
                    f"{name} is {getattr(self, name)!r}, which has no parameters: set {name} first"
                )
            getattr(self, name).set_params(**theirs)
        return self

    def _repr_html_(self) -> str:
        """What a notebook shows: the parameters, and what the model was fitted to."""
        facts = {name: repr(value) for name, value in self._parameters().items()}
        if hasattr(self, "scale_"):
            facts["fitted to"] = (
                f"{len(self.user_ids_):,} users, {len(self.item_ids_):,} items, {self.scale_}"
            )
        else:
            facts["fitted to"] = "nothing yet"
        return facts_html(type(self).__name__, facts)

    def _learnable(self, ratings: Ratings) -> Ratings:
        """The ratings; a table without any is refused by models that predict ratings."""
        if ratings.has_ratings or self._learns_from_picks:
            return ratings
        raise DataError(
            f"{type(self).__name__} predicts ratings, and the table has none: take a model of what "
            'users pick, such as Recommender ("recommender"), EASE ("ease") or ImplicitALS '
            '("als"), or name the column of ratings with rating=',
            parameter="rating",
        )

    def _counted(self, ratings: Ratings) -> Ratings:
        """The ratings, without their weights if the model ignores them."""
        if self._counts_weights:
            return ratings
        return drop_weights(ratings, type(self).__name__)

    def _noticed(self, ratings: Ratings) -> Ratings:
        """The ratings, without their events if the model takes no notice of them."""
        if self._notices_events or ratings.events is None:
            return ratings
        warnings.warn(
            OrdrecWarning(
                f"{type(self).__name__} takes no notice of events: choice models, OrdinalFactors, "
                "RatingPredictor and Recommender do",
                parameter="events",
            ),
            stacklevel=callers_level(),
        )
        return ratings.without_events()

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
        """Codes of users and items given by original ids, -1 for the unknown."""
        self._check_fitted()
        user_codes, item_codes = codes_of_pairs(self.user_ids_, self.item_ids_, users, items)
        if not self._folded_ids(users):
            warn_of_other_type(self.user_ids_, users, user_codes)
        warn_of_other_type(self.item_ids_, items, item_codes)
        return user_codes, item_codes

    def _folded_ids(self, users: Any) -> bool:
        """Whether any of the users is known beside ``user_ids_``."""
        return False

    def _known(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user and each item was in training."""
        user_codes, item_codes = self._codes(users, items)
        return user_codes >= 0, item_codes >= 0

    def _with_users_of(self, ratings: Ratings) -> tuple[pd.Index, np.ndarray, np.ndarray]:
        """The known user ids followed by the new ones, and the ratings' codes in them."""
        self._check_fitted()
        present = ratings.user_ids.take(np.unique(ratings.users))
        newcomers = present[codes_of(self.user_ids_, present) < 0]
        user_ids = self.user_ids_.append(newcomers) if len(newcomers) else self.user_ids_
        users = codes_of(user_ids, ratings.user_ids)[ratings.users]
        return user_ids, users, codes_of(self.item_ids_, ratings.item_ids)[ratings.items]

    def _warn_of_unknown_items(
        self, items: Any, codes: np.ndarray, fate: str = "are left out"
    ) -> None:
        """Say what becomes of ratings to fold in whose items, by id, have the code -1."""
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            example = pd.Index(items)[unknown[:1]].tolist()[0]
            warnings.warn(
                f"{type(self).__name__}: {unknown.size} of {codes.size} ratings are of items that "
                f"the model does not know, such as {example!r}, and {fate}",
                stacklevel=callers_level(),
            )

    # ---- files ---------------------------------------------------------------------------

    def write_to(self, file: Writer) -> None:
        """Write the parameters, and what is declared."""
        self._check_fitted()
        file.values["parameters"] = {
            name: plain_of(value, f"{type(self).__name__}({name}=...)")
            for name, value in self._parameters().items()
            if name not in self._unstored_parameters
        }
        file.add_attributes(self)

    @classmethod
    def read_from(cls, file: Reader) -> Any:
        """Return the model of a file, after checking every part of it."""
        plain = file.value("parameters")
        names = {field.name for field in fields(cls)} - set(cls._unstored_parameters)  # type: ignore[arg-type]
        if not isinstance(plain, dict) or not set(plain) <= names:
            raise ModelFileError(f"the parameters are not those of a {cls.__name__}")
        parameters = {name: value_of(value) for name, value in plain.items()}
        check_types(cls, parameters)
        model = cls(**parameters)
        file.restore(model)
        return model

    def _check_decision(self, decision: Any) -> None:
        """Check that a decision read from a file is a name, or a cost matrix for this scale."""
        if isinstance(decision, str):
            return
        costs, n_ranks = np.array(decision, dtype=np.float64), self.scale_.n_ranks
        if costs.shape != (n_ranks, n_ranks) or not np.isfinite(costs).all():
            raise ModelFileError(f"decision is not a cost matrix of {n_ranks} ranks")

    def _parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def _clipped(self, values: np.ndarray) -> np.ndarray:
        return np.clip(values, self.scale_.low, self.scale_.high)
