"""New items in lists: items without ratings, by their columns of the item table.

With ``q_i`` the factors of `ImplicitALS` and ``x_i`` the features of the item table, the factors of
an item without ratings are those that a ridge regression on the items with ratings predicts,

(1) ``q_c = q_mean + W' (x_c - x_mean)``, ``W = (X'X + l I)^-1 X'Q`` with X and Q from their means

and the raw score is ``log(max(p_u . q_c, 0) + 0.01)``. The ridge ``l`` is chosen by items that are
set aside in training, with all their ratings: ALS is fitted without them, and lists of them alone
are measured. The same lists say how often a user has picked an item with a raw score that the
model knew nothing of, which is calibrated as in `ordrec.choice.calibration`. What a user goes on to
pick is taken as the share ``horizon`` of what they have picked; or as one more item.

New and other items are put into one order by the chance of being picked: the score of a new item is
the one with which any other item would have its ``p_pick``.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.als import ImplicitALS
from ordrec.choice.base import ChoiceModel
from ordrec.choice.calibration import ListedScores, PickCalibration
from ordrec.choice.choosing import Chosen
from ordrec.choice.inner_splits import FEW_USERS, ListQuality
from ordrec.data import Ratings
from ordrec.features import SideEncoder
from ordrec.lists.best import best_columns
from ordrec.lists.groups import with_new_groups
from ordrec.models.base import codes_of
from ordrec.storage.schema import Array, Member, Number, Part

__all__ = ["ListsNewItems", "NewItems"]

SHARE = 0.1  # of the items with ratings, set aside
RIDGES = (10.0, 30.0, 3.0, 100.0, 1.0, 300.0)  # the usual first, which others must beat
LEAST_ITEMS = 20  # set aside; fewer choose nothing, and new items are not listed
LEAST_RATINGS = 3  # of an item that is learnt from
MOST_USERS = 2000  # who choose and calibrate
LENGTH = 20  # of the lists that choose
FLOOR = 0.01


@dataclass(frozen=True)
class NewItems:
    """What is known of items without ratings.

    Attributes
    ----------
    items : int64 array of shape (n_new,)
        Their codes.
    factors : float32 array of shape (n_new, n_factors)
        As predicted, (1).
    encoder : SideEncoder
        Of the item table.
    weights : array of shape (n_features, n_factors)
        W of (1).
    means : array of shape (n_features,)
        Of the features of the items that were learnt from.
    mean_factors : array of shape (n_factors,)
    ridge : float
        l of (1).
    calibration : PickCalibration
        How often a new item is picked by its raw score.
    """

    stored: ClassVar = {
        "items": Array("new_items", dtype=np.int64, codes="items"),
        "factors": Array("new_items", "factors", dtype=np.float32),
        "encoder": Member(SideEncoder),
        "weights": Array("features", "factors"),
        "means": Array("features"),
        "mean_factors": Array("factors"),
        "ridge": Number(low=0.0),
        "calibration": Part(PickCalibration),
    }

    items: np.ndarray
    factors: np.ndarray
    encoder: SideEncoder
    weights: np.ndarray
    means: np.ndarray
    mean_factors: np.ndarray
    ridge: float
    calibration: PickCalibration

    @classmethod
    def learnt(
        cls,
        table: pd.DataFrame | None,
        history: sparse.csr_array,
        als: ImplicitALS,
        n_ranks: int,
        rng: np.random.Generator,
    ) -> NewItems | None:
        """Learn from the items with ratings; None without new items that anything is known of.

        Parameters
        ----------
        table : DataFrame or None
            One row per item.
        history : csr_array
            Of all users.
        als : ImplicitALS
            Fitted to it.
        n_ranks : int
        rng : Generator
            Draws the items that are set aside.
        """
        counts = np.bincount(history.indices, minlength=history.shape[1])
        if table is None or counts.all():
            return None
        new = np.flatnonzero((counts == 0) & ~table.isna().all(axis=1).to_numpy())
        known = np.flatnonzero(counts >= LEAST_RATINGS)
        rated = np.flatnonzero(counts)
        if not new.size or not known.size or round(SHARE * rated.size) < LEAST_ITEMS:
            return None
        encoder = SideEncoder().fit(table)
        X = encoder.matrix(table)
        if not X.shape[1]:
            return None
        trial = _Trial.of(history, rated, known, als, X, n_ranks, rng)
        if trial is None:
            return None
        found = {str(ridge): trial.quality(ridge) for ridge in RIDGES}
        ridge = float(Chosen.among(found).name)
        fit = _Regression.of(X[known], als.item_factors_[known], ridge)
        return cls(
            new, fit.predicted(X[new]), encoder, fit.weights, fit.means, fit.mean_factors, ridge,
            trial.calibration(ridge),
        )  # fmt: skip

    def scores(
        self,
        factors: np.ndarray,
        counts: np.ndarray,
        calibration: PickCalibration,
        share: np.ndarray | float,
    ) -> np.ndarray:
        """Return the scores of the new items on the scale of the others.

        Parameters
        ----------
        factors : array of shape (n_users, n_factors)
        counts : array of shape (n_users,)
            Numbers of their ratings.
        calibration : PickCalibration
            Of the scores of the other items.
        share : array of shape (n_users,) or float
            Picks to come, relative to the number of ratings.
        """
        raw = _raw(factors @ self.factors.T)
        share = np.broadcast_to(share, counts.shape)[:, None]
        p = np.minimum(share, 1.0) * self.calibration.p_pick(raw, counts)
        return calibration.scores_of(p, counts)

    def taken_up(self, codes: np.ndarray, table: pd.DataFrame) -> NewItems:
        """Return the same with further new items, by code; the table has a row for each."""
        fit = _Regression(self.weights, self.means, self.mean_factors)
        rows = fit.predicted(self.encoder.matrix(table))
        return replace(
            self,
            items=np.concatenate([self.items, codes]),
            factors=np.vstack([self.factors, rows]),
        )


def _raw(affinity: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(affinity, 0.0).astype(np.float64) + FLOOR)


@dataclass(frozen=True)
class _Regression:
    """The regression of factors on features, (1)."""

    weights: np.ndarray
    means: np.ndarray
    mean_factors: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, Q: np.ndarray, ridge: float) -> _Regression:
        means, mean_factors = X.mean(axis=0), Q.mean(axis=0).astype(np.float64)
        centred = X - means
        A = centred.T @ centred + ridge * np.eye(X.shape[1])
        return cls(np.linalg.solve(A, centred.T @ (Q - mean_factors)), means, mean_factors)

    def predicted(self, X: np.ndarray) -> np.ndarray:
        return (self.mean_factors + (X - self.means) @ self.weights).astype(np.float32)


@dataclass(frozen=True)
class _Trial:
    """Items set aside with all their ratings, and ALS fitted without them."""

    users: np.ndarray  # factors of those who picked some of them
    counts: np.ndarray
    held: sparse.csr_array
    X: np.ndarray  # of the items that are left
    Q: np.ndarray
    X_held: np.ndarray
    n_ranks: int

    @classmethod
    def of(
        cls,
        history: sparse.csr_array,
        rated: np.ndarray,
        known: np.ndarray,
        als: ImplicitALS,
        X: np.ndarray,
        n_ranks: int,
        rng: np.random.Generator,
    ) -> _Trial | None:
        drawn = np.sort(rng.permutation(rated)[: round(SHARE * rated.size)])
        left = np.setdiff1d(known, drawn)
        kept = np.ones(history.shape[1])
        kept[drawn] = 0.0
        given = sparse.csr_array(history @ sparse.diags_array(kept))
        given.eliminate_zeros()
        held = sparse.csr_array(history[:, drawn])
        sizes = np.diff(given.indptr)
        users = np.flatnonzero(sizes > 0)
        users = np.sort(rng.permutation(users)[:MOST_USERS])
        chosen_by = int((np.diff(held[users].indptr) > 0).sum())
        if chosen_by < FEW_USERS or left.size < LEAST_ITEMS:
            return None
        model = copy.copy(als)
        model.learn_histories(given)
        return cls(
            model.user_factors_[users], sizes[users], held[users], X[left],
            model.item_factors_[left], X[drawn], n_ranks,
        )  # fmt: skip

    def _scores(self, ridge: float) -> np.ndarray:
        fit = _Regression.of(self.X, self.Q, ridge)
        return _raw(self.users @ fit.predicted(self.X_held).T)

    def quality(self, ridge: float) -> np.ndarray:
        """How good lists of the items set aside are, for users who picked some of them."""
        picked = np.diff(self.held.indptr) > 0
        measure = ListQuality(self.held[picked], self.n_ranks, LENGTH)
        return measure(best_columns(self._scores(ridge)[picked], LENGTH))

    def calibration(self, ridge: float) -> PickCalibration:
        """How often items set aside were picked, by their raw scores."""
        lists = ListedScores.of(self._scores(ridge), self.counts, self.held)
        return PickCalibration.of_latest(lists)


class ListsNewItems(ChoiceModel):
    """Base of the choice models that list new items.

    A model has ``new_items_``, None where there are none, and the calibration of its scores.
    """

    new_items_: NewItems | None = None
    calibration_: PickCalibration
    future: str
    horizon: float

    def _new_items(self) -> np.ndarray:
        """Which items without ratings the model can list."""
        new = np.zeros(len(self.item_ids_), dtype=np.bool_)
        if self.new_items_ is not None and self.calibration_.slope > 0:
            new[self.new_items_.items] = True
        return new

    def with_items(self, ratings: Ratings) -> Self:
        """Return a model that also knows the new items of the ratings' item table."""
        new = ratings.item_ids[codes_of(self.item_ids_, ratings.item_ids) < 0]
        if self.new_items_ is None or ratings.item_table is None or not len(new):
            return self
        table = ratings.item_table.set_axis(ratings.item_ids, axis=0).reindex(new)
        new = new[~table.isna().all(axis=1).to_numpy()]
        if not len(new):
            return self
        n_known = len(self.item_ids_)
        taken_up = self.new_items_.taken_up(n_known + np.arange(len(new)), table.loc[new])
        model = copy.copy(self)
        model.item_ids_ = self.item_ids_.append(new)
        model.item_groups_ = with_new_groups(self.item_groups_, table, new)
        model.item_counts_ = np.concatenate([self.item_counts_, np.zeros(len(new), np.int64)])
        model._history = self._history.copy()
        model._history.resize((self._history.shape[0], len(model.item_ids_)))
        if self._events is not None:
            model._events = self._events.resized(*model._history.shape)
        model._take_up(taken_up)
        return model

    @abstractmethod
    def _take_up(self, new_items: NewItems) -> None:
        """Let the models that this copy is made of know its items, the last of which are new."""

    def with_new(
        self, scores: np.ndarray, factors: Callable[[], np.ndarray], counts: np.ndarray
    ) -> np.ndarray:
        """Return scores with those of the new items in their place; they are overwritten."""
        if self.new_items_ is not None:
            share = 1.0 / np.maximum(counts, 1) if self.future == "next" else self.horizon
            scores[:, self.new_items_.items] = self.new_items_.scores(
                factors(), counts, self.calibration_, share
            )
        return scores
