"""Scores that know the order of a history, all on a logarithmic scale.

With ``a`` the entries of a user's history, ``i_a`` their items, ``v_a = rank / n_ranks`` and
``pos_a`` their places (`ordrec.choice.order`), and ``lg(s)_j = log(s_j / mean_k s_k + 0.01)``,
the mean over items with ratings:

========== ======================================================================================
ease       ``lg`` of the scores of `EASE`
ease_near  ``lg`` of ``sum_a v_a (0.05 + 0.95 e^(-pos_a / 5)) B[i_a, j]``, with the same weights B
ease_month the same with ``e^(-days / 30)`` in the place of the bracket
als        ``lg`` of the scores of `ImplicitALS`
als_near   ``lg`` of those of a row that is solved anew for ``v_a (0.1 + 0.9 e^(-pos_a / 10))``
after      ``lg`` of ``sum_a e^(-pos_a / 5) C[i_a, j]``, C the directed cosines
lag_0 ...  sums of the lag lifts over entries with places in [0, 1), [1, 2), [2, 5), [5, 10)
popularity logarithms of the shares of the items in all ratings
week       popularity at the user's newest time, with a half-life of 7 days
month      the same with 30 days
sequence   scores of `ordrec.choice.log_bilinear`; like popularity for items that it lacks
========== ======================================================================================

Weights by recency are divided by the largest of a history. In a history whose entries all have the
same time, ``ease_near`` is then ``ease`` and ``als_near`` is ``als``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy import sparse

from ordrec.choice.als import ImplicitALS
from ordrec.choice.ease import EASE
from ordrec.choice.log_bilinear import LogBilinear
from ordrec.choice.order import DatedRows
from ordrec.choice.successions import DirectedCosines, item_shares, lag_lifts
from ordrec.choice.trend import RatingTimes
from ordrec.storage.arrays import round_to_bytes
from ordrec.storage.schema import Array, Optional, Part

__all__ = ["FEATURES", "HALF_LIVES", "LAGS", "LearntOrder", "OrderedFeatures", "log_shares"]

LAGS = {"lag_0": (0.0, 1.0), "lag_1": (1.0, 2.0), "lag_2": (2.0, 5.0), "lag_5": (5.0, 10.0)}
HALF_LIVES = {"week": 7.0, "month": 30.0}
FEATURES = (
    "ease", "ease_near", "ease_month", "als", "als_near", "popularity", "after", *LAGS, *HALF_LIVES,
    "sequence",
)  # fmt: skip
EASE_FLOOR, EASE_PLACES, EASE_DAYS = 0.05, 5.0, 30.0
ALS_FLOOR, ALS_PLACES = 0.1, 10.0
AFTER_PLACES, NEGLIGIBLE = 5.0, 0.003
FLOOR = 0.01
SMALLEST = 1e-30  # a mean that single precision still divides by; scores below it say nothing
AGAIN = 0.5  # of the steps from a random start, where vectors of a part are there


def log_shares(scores: np.ndarray, n_rated: int) -> np.ndarray:
    """Return ``lg`` of scores, row by row; scores below 0 count as 0, and are overwritten.

    The mean is taken over the ``n_rated`` items that have ratings; all others score 0.
    """
    np.maximum(scores, 0.0, out=scores)
    means = scores.sum(axis=1, keepdims=True, dtype=np.float64) / max(n_rated, 1)
    scores /= np.where(means > SMALLEST, means, 1.0).astype(scores.dtype)
    scores += scores.dtype.type(FLOOR)
    return np.log(scores, out=scores)


@dataclass(frozen=True)
class LearntOrder:
    """What was learnt from the order of histories.

    Tables and vectors are rounded to what a file holds of them, a byte for each number, so that a
    model that was saved and loaded is the same.

    Attributes
    ----------
    cosines : DirectedCosines
    lifts : float32 array of shape (n_weighted_items, n_weighted_items) or None
        Among the items of the cosines; row: the earlier item. None where none of the features
        ``lag_...`` is used.
    rated : RatingTimes
    sequence : LogBilinear or None
        None where the feature of that name is not used.
    """

    stored: ClassVar = {
        "cosines": Part(DirectedCosines),
        "lifts": Optional(Array("weighted", "weighted", dtype=np.float32)),
        "rated": Part(RatingTimes),
        "sequence": Optional(Part(LogBilinear)),
    }

    cosines: DirectedCosines
    lifts: np.ndarray | None
    rated: RatingTimes
    sequence: LogBilinear | None

    @classmethod
    def of(
        cls,
        rows: DatedRows,
        items: np.ndarray,
        counts: np.ndarray,
        rng: np.random.Generator,
        names: Collection[str] = FEATURES,
        near: OrderedFeatures | None = None,
    ) -> LearntOrder:
        """From histories.

        Parameters
        ----------
        rows : DatedRows
        items : int64 array
            Codes of the items of the tables, rising.
        counts : array of shape (n_items,)
            Numbers of ratings.
        rng : Generator
        names : collection of str
            The features that will be asked for.
        near : OrderedFeatures, optional
            Features of a part of the histories, from whose vectors training goes on.
        """
        shares = item_shares(counts)[items]
        lifts, sequence = lag_lifts(rows, items, shares), None
        if "sequence" in names and near is not None and near.order.sequence is not None:
            own = near.ease.block_items
            sequence = near.order.sequence.moved_to(own, items, shares)
            sequence = sequence.trained(rows, items, rng, AGAIN)
        elif "sequence" in names:
            sequence = LogBilinear.start(lifts, shares, rng).trained(rows, items, rng)
        sequence = sequence and sequence.rounded()
        cosines = DirectedCosines.of(rows, items)
        for table in (lifts, cosines.table):
            round_to_bytes(table)
        used = lifts if any(name in names for name in LAGS) else None
        return cls(cosines, used, RatingTimes.of(rows), sequence)

    def changed(self, before: DatedRows, after: DatedRows, items: np.ndarray) -> LearntOrder:
        """Return what is counted anew after some histories have changed, and all else as it was.

        Counted are pairs of items, and ratings and their times; ``items`` are those of the tables.
        """
        return replace(
            self,
            cosines=self.cosines.changed(before, after, items),
            rated=self.rated.changed(before, after),
        )


@dataclass(frozen=True)
class OrderedFeatures:
    """The features of the items for histories.

    Attributes
    ----------
    ease, als : EASE, ImplicitALS
        Fitted.
    order : LearntOrder
    counts : int64 array of shape (n_items,)
        Numbers of ratings.
    """

    ease: EASE
    als: ImplicitALS
    order: LearntOrder
    counts: np.ndarray

    def of(self, name: str, rows: DatedRows) -> np.ndarray:
        """Return one feature of all items, one row per history."""
        return self._computed()[name](rows)

    def block(self, names: Sequence[str], rows: DatedRows, items: np.ndarray) -> np.ndarray:
        """Return features of some items, an array of shape (n_users, n_features, n_items)."""
        shape = rows.history.shape[0], len(names), items.size
        block = np.empty(shape, dtype=np.float32)
        for k, name in enumerate(names):
            block[:, k] = self.of(name, rows)[:, items]
        return block

    def weighted_sum(self, weights: dict[str, float], rows: DatedRows) -> np.ndarray:
        """Return the sum of features with these weights, one row per history."""
        total = np.zeros((rows.history.shape[0], self.counts.size))
        for name, weight in weights.items():
            total += weight * self.of(name, rows)
        return total

    def _computed(self) -> dict[str, Callable[[DatedRows], np.ndarray]]:
        return {
            "ease": self._ease,
            "ease_near": self._ease_near,
            "ease_month": self._ease_month,
            "als": self._als,
            "als_near": self._als_near,
            "popularity": self._popularity,
            "after": self._after,
            **{name: partial(self._lag, *bounds) for name, bounds in LAGS.items()},
            **{name: partial(self._trend, half) for name, half in HALF_LIVES.items()},
            "sequence": self._sequence,
        }

    def _logs(self, scores: np.ndarray) -> np.ndarray:
        """``lg`` of scores."""
        return log_shares(scores, int(np.count_nonzero(self.counts)))

    def _ease(self, rows: DatedRows) -> np.ndarray:
        return self._logs(self.ease.score_histories(rows.history).astype(np.float32))

    def _ease_near(self, rows: DatedRows) -> np.ndarray:
        recent = EASE_FLOOR + (1.0 - EASE_FLOOR) * np.exp(-rows.places / EASE_PLACES)
        return self._ease_of(rows.weighted(recent), rows)

    def _ease_month(self, rows: DatedRows) -> np.ndarray:
        return self._ease_of(rows.weighted(np.exp(-rows.days / EASE_DAYS)), rows)

    def _ease_of(self, weights: sparse.csr_array, rows: DatedRows) -> np.ndarray:
        """``lg`` of the scores of EASE for histories with weighted entries."""
        weighted = sparse.csr_array(
            (weights.data * rows.history.data, weights.indices, weights.indptr), weights.shape
        )
        return self._logs(self.ease.score_histories(weighted).astype(np.float32))

    def _als(self, rows: DatedRows) -> np.ndarray:
        return self._logs(self.als.score_histories(rows.history).astype(np.float32))

    def _als_near(self, rows: DatedRows) -> np.ndarray:
        recent = rows.weighted(ALS_FLOOR + (1.0 - ALS_FLOOR) * np.exp(-rows.places / ALS_PLACES))
        weighted = sparse.csr_array(
            (recent.data * rows.history.data, recent.indices, recent.indptr), recent.shape
        )
        sums = np.asarray(recent.sum(axis=1)).ravel()
        return self._logs(self.als.score_weighted(weighted, sums).astype(np.float32))

    def _popularity(self, rows: DatedRows) -> np.ndarray:
        counts = self.order.rated.counts(self.counts.size)
        logs = np.log(item_shares(counts)).astype(np.float32)
        return np.broadcast_to(logs, (rows.history.shape[0], logs.size))

    def _after(self, rows: DatedRows) -> np.ndarray:
        recent = rows.weighted(np.exp(-rows.places / AFTER_PLACES), NEGLIGIBLE)
        return self._logs(self._spread(recent, self.order.cosines.spread))

    def _lag(self, low: float, high: float, rows: DatedRows) -> np.ndarray:
        lifts = self.order.lifts
        assert lifts is not None
        return self._spread(
            rows.between(low, high), lambda weights: weights.astype(np.float32) @ lifts
        )

    def _trend(self, half_life: float, rows: DatedRows) -> np.ndarray:
        return self.order.rated.log_popularity(rows.newest, half_life, self.counts.size).astype(
            np.float32
        )

    def _sequence(self, rows: DatedRows) -> np.ndarray:
        assert self.order.sequence is not None
        scores, items = self._popularity(rows).copy(), self.ease.block_items
        scores[:, items] = self.order.sequence.scores(rows, items)
        return scores

    def _spread(
        self, weights: sparse.csr_array, product: Callable[[sparse.csr_array], np.ndarray]
    ) -> np.ndarray:
        """Products with a table among some items, as scores of all items."""
        items = self.ease.block_items
        scores = np.zeros(weights.shape, dtype=np.float32)
        scores[:, items] = product(sparse.csr_array(weights[:, items]))
        return scores
