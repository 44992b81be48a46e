"""One ordinal model per user, independent of all others: the setting of the papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.kernels import Kernel
from ordrec.kernels.items.pearson import Pearson
from ordrec.models.base import IDENTITY, IdMappedModel, fits
from ordrec.rating.baselines.bias import BiasModel
from ordrec.rating.intervals import DistributionModel
from ordrec.rating.per_user.items import (
    ItemSource,
    UserSample,
    filled_source,
    fitted,
    takes_kernels,
)
from ordrec.rating.per_user.pooled import PARTS, SMOOTH, PooledSource
from ordrec.rating.per_user.stored import (
    StoredEstimator,
    StoredModels,
    StoredRatings,
    StoredSource,
    storable_estimator,
)
from ordrec.runtime.parallel import one_blas_thread, run_all
from ordrec.runtime.progress import report
from ordrec.storage.schema import As, Member, Writer

__all__ = ["PerUserPredictor", "per_user_logistic"]

USERS_PER_TASK = 16
GRID_FOLDS = 5  # of a user's ratings, by which a setting of the grid is chosen
POOLED_RATINGS = 5.0  # pooled ratings added to those of a user without a model


def _has_probabilities(model: PerUserPredictor) -> bool:
    estimator = model._new_estimator()
    return hasattr(estimator, "predict_proba") and estimator.get_params().get("probability", True)


@dataclass(eq=False)
class PerUserPredictor(IdMappedModel, DistributionModel):
    """An ordinal model of each user's ratings, over kernels or features of the items.

    A user's training set is the items they rated. An item is described by the ratings of the
    *other* users; the user's own column is in no kernel and no feature. Users share the table
    the kernels come from and, with ``kernel="pooled"`` and ``grid``, a few numbers chosen for all;
    `RatingPredictor` and `OrdinalFactors` pool the users' tastes, too, and are more accurate.

    Parameters
    ----------
    estimator : estimator, optional
        Any estimator of `ordrec.ordinal`, or another classifier. An estimator with a parameter
        ``kernel`` is given the items' kernel as "precomputed", any other the items as rows of
        features. ``classes`` is set to the ranks of the scale. ``SVORIM(C=1)`` when omitted.
    features : "mean", LowRankEM or ItemSource
        How missing ratings of items are filled: with the mean of the item's ratings, or by a
        weighted low-rank estimate (see `ordrec.rating.per_user.items`). The ``source_`` of
        another model that was fitted to the same ratings and users, kernel and weights included,
        saves making it again.
    kernel : "pearson", "pooled" or Kernel
        Between items. "pearson" is the correlation, ``Pearson().normalised()``, the kernel of the
        papers. "pooled" adds kernels of co-ratings, of `implicit`'s item factors and of the items'
        means, with the weights that maximise the summed evidence of the users' Gaussian processes
        (see `ordrec.rating.per_user.pooled`); a `GPOR` takes its noise and its thresholds from
        there, too. It predicts far better. A kernel object: with ``features="mean"`` any
        that `ItemKernel` takes, otherwise any.
    grid : dict of str to list, optional
        Values to try for parameters of the estimator, such as ``{"C": [0.1, 1, 10]}``. One setting
        is chosen for all users, with the smallest absolute error in five-fold cross-validation of
        their ratings.
    min_ratings : int
        A user with fewer ratings has no model of their own.
    n_jobs : int, optional
        Workers that fit the users' models and predict with them; all cores by default, see
        `ordrec.runtime.parallel`.
    engine : Engine or str, optional
        Where the workers run, see `ordrec.runtime.parallel`: in threads by default, as the
        estimators are compiled. The results depend neither on it nor on ``n_jobs``; it is
        not saved with the model.

    Attributes
    ----------
    models_ : dict of int to estimator
        The fitted model of each user code that has one.
    source_ : ItemSource
        What the items' kernels and features come from.
    kernel_weights_ : dict of str to float
        The weight of each part of the kernel, with ``kernel="pooled"``, in units of the noise.
    setting_ : dict
        What was chosen from ``grid``.
    grid_errors_ : list of (dict, float)
        Each setting of the grid with its cross-validated mean absolute error, in ranks.

    Notes
    -----
    Users without a model: for an unknown user, or one with fewer than ``min_ratings``, the
    prediction is that of the damped biases, rounded to the scale; for one who always gave the
    same rating, it is that rating; for one of whose ratings only equal ones have a weight above 0,
    it is the most frequent of all theirs. Their distribution is that of their own ratings plus five
    more, distributed as the ratings of all users. An item without ratings is similar to no other.

    The model can be saved if ``features="mean"``, the kernel has a name and the estimator is one of
    SVORIM, SVOREX, SVORSLA and OrdinalLogistic: other estimators' models are more than coefficients
    over the user's items and thresholds. The file has the chosen setting as the estimator's
    parameters, and no grid.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(30, 40, n_ratings=800, seed=0)
    >>> model = PerUserPredictor().fit(ratings)
    >>> model.predict([0, 1, "stranger"], [5, 5, 5]).shape
    (3,)
    """

    stored: ClassVar = IDENTITY | {
        "_chosen_estimator": StoredEstimator(),
        "_ratings": As(StoredRatings),
        "_bias": Member(BiasModel, *IDENTITY),
        "source_": As(StoredSource),
        "models_": As(StoredModels),
    }
    _unstored_parameters = ("estimator", "engine", "grid", "verbose")

    estimator: Any = None
    features: Any = "mean"
    kernel: Any = "pearson"
    min_ratings: int = 10
    n_jobs: int | None = None
    engine: Any = None
    grid: Any = None
    search_space: ClassVar[dict[str, Any]] = {
        "min_ratings": [5, 10, 20, 40],
        "kernel": ["pearson", "pooled"],
    }
    _counts_weights = True

    @fits
    @one_blas_thread()
    def fit(self, ratings: Ratings, users: Any = None) -> PerUserPredictor:
        """Build the shared table and fit every user's model.

        Parameters
        ----------
        ratings : Ratings
        users : sequence of ids, optional
            Fit models for these users only; the ratings of all users describe the items.
        """
        if self.min_ratings < 2:
            raise ArgumentError(f"min_ratings must be at least 2, got {self.min_ratings}")
        self._remember(ratings)
        self._describe(ratings, BiasModel().fit(ratings.without_weights()))
        counted = self._counts
        if ratings.weights is not None:
            counted = _level_counts(ratings.select(ratings.weights > 0))
        wanted = np.count_nonzero(counted, axis=1) > 1
        wanted &= ratings.user_counts >= self.min_ratings
        if users is not None:
            wanted &= np.isin(np.arange(ratings.n_users), ratings.user_codes(users))
        rows = {u: ratings.rows_of_user(u) for u in np.flatnonzero(wanted).tolist()}
        self._items = {u: ratings.items[rows[u]].astype(np.int64) for u in rows}
        weights = ratings.weights
        samples = [
            (
                u,
                self._items[u],
                ratings.levels[rows[u]].astype(np.int64),
                None if weights is None else weights[rows[u]],
            )
            for u in rows
        ]
        estimator = self._new_estimator()
        if "classes" in estimator.get_params():
            estimator.set_params(classes=np.arange(ratings.scale.n_ranks))
        if weights is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ArgumentError(
                f"{type(estimator).__name__} takes no weights, and these ratings have some: pass "
                "ratings.without_weights(), or use another estimator"
            )
        if isinstance(self.source_, PooledSource) and samples:
            self._weigh(self.source_, samples, estimator)
        if self.grid and samples:
            self._choose(samples, estimator)
        self.models_ = dict(
            zip(rows, self._over_users(_fit_users, samples, estimator), strict=True)
        )
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the prediction of each pair by its user's model, a value of the scale."""
        user_codes, item_codes = self._codes(users, items)
        values = self.scale_.nearest(self._bias.predict(users, items))
        constant = (user_codes >= 0) & (self._counts[user_codes].sum(axis=1) >= self.min_ratings)
        values[constant] = self.scale_.values[self._counts[user_codes[constant]].argmax(axis=1)]
        for _, pairs, levels in self._by_user("predict", user_codes, item_codes):
            values[pairs] = self.scale_.values[levels.astype(np.int64)]
        return values

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Return distributions by each user's model; only if the estimator has probabilities."""
        user_codes, item_codes = self._codes(users, items)
        pooled = self._counts.sum(axis=0) + 1.0
        own = np.vstack([self._counts, np.zeros(len(pooled))])[user_codes]
        counts = own + POOLED_RATINGS * pooled / pooled.sum()
        p = counts / counts.sum(axis=1, keepdims=True)
        for user, pairs, rows in self._by_user("predict_proba", user_codes, item_codes):
            p[pairs] = 0.0  # a classifier without the parameter classes may leave ranks out
            p[np.ix_(pairs, self.models_[user].classes_)] = rows
        return p

    # ---- files ---------------------------------------------------------------------------------

    @property
    def _chosen_estimator(self) -> Any:
        """The estimator with the setting that was chosen from the grid."""
        return storable_estimator(self)

    @_chosen_estimator.setter
    def _chosen_estimator(self, estimator: Any) -> None:
        self.estimator = estimator

    def write_to(self, file: Writer) -> None:
        """Write the model; see the notes on what can be saved."""
        self._check_fitted()
        storable_estimator(self)  # raises an error that says what can be saved
        super().write_to(file)

    # ---- users one by one ----------------------------------------------------------------------

    def _describe(self, ratings: Ratings, bias: BiasModel) -> None:
        """Set up what all users share, and the predictions for users without a model."""
        self._counts = _level_counts(ratings)
        self._bias, self._ratings = bias, ratings
        self.source_ = self._item_source(ratings)

    def _item_source(self, ratings: Ratings) -> ItemSource:
        """What the items' kernels and features come from, by ``features`` and ``kernel``."""
        if isinstance(self.features, ItemSource):
            return self.features
        pooled = isinstance(self.kernel, str) and self.kernel == "pooled"
        kernel = self.kernel
        if isinstance(kernel, str) and kernel in ("pearson", "pooled"):
            kernel = Pearson().normalised(SMOOTH if pooled else 0.0)
        if not isinstance(kernel, Kernel):
            raise ArgumentError(
                f'kernel must be "pearson", "pooled" or a kernel of items, got {kernel!r}'
            )
        source = filled_source(self.features, kernel, ratings)
        return PooledSource(ratings, source) if pooled else source

    def _weigh(self, source: PooledSource, samples: list[UserSample], estimator: Any) -> None:
        """Learn the weights of the kernel's parts; a GPOR gets the shared parameters, too."""
        shared = source.learn(samples, self.scale_.n_ranks)
        self.kernel_weights_ = dict(zip(PARTS, shared.weights.tolist(), strict=True))
        if {"noise", "thresholds", "optimizer"} <= set(estimator.get_params()):
            estimator.set_params(noise=shared.noise, thresholds=shared.thresholds, optimizer=None)

    def _choose(self, samples: list[UserSample], estimator: Any) -> None:
        """Set the parameters of the estimator to those of the grid with the smallest error."""
        settings = list(ParameterGrid(self.grid))
        estimators = [clone(estimator).set_params(**setting) for setting in settings]
        totals, tested = zip(*self._over_users(_absolute_errors, samples, estimators), strict=True)
        errors = np.sum(totals, axis=0) / (sum(tested) or 1.0)
        self.grid_errors_ = list(zip(settings, errors.tolist(), strict=True))
        self.setting_ = settings[int(errors.argmin())]
        estimator.set_params(**self.setting_)

    def _new_estimator(self) -> Any:
        """A fresh estimator, for precomputed kernels if it takes kernels at all."""
        if self.estimator is None:
            from ordrec.ordinal import SVORIM

            return SVORIM(kernel="precomputed")
        estimator = clone(self.estimator)
        return estimator.set_params(kernel="precomputed") if takes_kernels(estimator) else estimator

    def _by_user(
        self, method: str, users: np.ndarray, items: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """For each user with a model: code, positions of their pairs, and the predictions."""
        order = np.argsort(users, kind="stable")
        distinct, first = np.unique(users[order], return_index=True)
        groups = dict(zip(distinct.tolist(), np.split(order, first)[1:], strict=True))
        groups = {user: pairs for user, pairs in groups.items() if user in self.models_}
        tasks = [(u, items[pairs], self._items[u], self.models_[u]) for u, pairs in groups.items()]
        predicted = self._over_users(_predict_users, tasks, method)
        yield from zip(groups, groups.values(), predicted, strict=True)

    def _over_users(
        self, function: Callable[..., list[Any]], users: list[Any], *shared: Any
    ) -> list[Any]:
        """Apply a function to chunks of the users; returns one result per user."""
        chunks = [users[k : k + USERS_PER_TASK] for k in range(0, len(users), USERS_PER_TASK)]
        found = run_all(
            function,
            chunks,
            shared=(self.source_, *shared),
            engine=self.engine or "threads",
            n_jobs=self.n_jobs,
            progress=lambda done, total, _: report(done, total, "models of users"),
            label=lambda chunk: f"users {chunk[0][0]} to {chunk[-1][0]}",
        )
        return [each for chunk in found for each in chunk]


def _level_counts(ratings: Ratings) -> np.ndarray:
    """How often each user gave each rating, shape (n_users, n_ranks)."""
    n_ranks = ratings.scale.n_ranks
    cells = ratings.users.astype(np.int64) * n_ranks + ratings.levels
    return np.bincount(cells, minlength=ratings.n_users * n_ranks).reshape(-1, n_ranks)


def _fit_users(users: list[UserSample], source: ItemSource, estimator: Any) -> list[Any]:
    """Fit a model for each user."""
    describe = source.gram if takes_kernels(estimator) else source.rows
    return [
        fitted(clone(estimator), describe(user, items), levels, weights)
        for user, items, levels, weights in users
    ]


def _predict_users(
    users: list[tuple[int, np.ndarray, np.ndarray, Any]], source: ItemSource, method: str
) -> list[np.ndarray]:
    """Predict with the model of each user, given as code, items, rated items and model."""
    predicted = []
    for user, items, rated, model in users:
        takes = takes_kernels(model)
        X = source.gram(user, items, rated) if takes else source.rows(user, items)
        predicted.append(getattr(model, method)(X))
    return predicted


def _absolute_errors(
    users: Sequence[UserSample], source: ItemSource, estimators: Sequence[Any]
) -> list[tuple[np.ndarray, float]]:
    """For each user: the error of each estimator, and the weight of the ratings tested.

    The error is the sum of ``|predicted - true|``, in ranks, over five folds of the user's ratings
    with equal shares of every level. A fold with one level in its training part is left out.
    Weights count in both.
    """
    errors = []
    for user, items, levels, weights in users:
        takes = takes_kernels(estimators[0])
        X = source.gram(user, items) if takes else source.rows(user, items)
        fold = _folds(levels, seed=user)
        counts = np.ones(levels.size) if weights is None else weights
        total, tested = np.zeros(len(estimators)), 0.0
        for k in range(GRID_FOLDS):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if test.size == 0 or np.unique(levels[train[counts[train] > 0]]).size < 2:
                continue
            tested += counts[test].sum()
            block = X[np.ix_(train, train)] if takes else X[train]
            new = X[np.ix_(test, train)] if takes else X[test]
            own = None if weights is None else weights[train]
            for s, estimator in enumerate(estimators):
                predicted = fitted(clone(estimator), block, levels[train], own).predict(new)
                total[s] += counts[test] @ np.abs(predicted - levels[test])
        errors.append((total, tested))
    return errors


def _folds(levels: np.ndarray, seed: int) -> np.ndarray:
    """The fold of each rating: in turn, level by level, in random order within a level."""
    order = np.lexsort((np.random.default_rng(seed).random(levels.size), levels))
    fold = np.empty(levels.size, dtype=np.int64)
    fold[order] = np.arange(levels.size) % GRID_FOLDS
    return fold


def per_user_logistic(
    alpha: float = 1.0,
    min_ratings: int = 10,
    n_jobs: int | None = None,
    kernel: str = "pearson",
) -> PerUserPredictor:
    """Return a `PerUserPredictor` with all-threshold logistic regressions (with probabilities)."""
    from ordrec.ordinal import OrdinalLogistic

    estimator = OrdinalLogistic("all", alpha=alpha, kernel="precomputed")
    return PerUserPredictor(estimator, kernel=kernel, min_ratings=min_ratings, n_jobs=n_jobs)
