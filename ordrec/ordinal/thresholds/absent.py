"""Thresholds next to ranks that are declared but have no samples.

A smooth margin loss drives a threshold with samples on one side only to infinity. Between
present ranks, an absent rank is an empty interval: its two thresholds coincide. Below the
lowest present rank (and above the highest) thresholds are placed where the fitted scores
leave room for half a sample, shared evenly by the absent ranks: the Krichevsky-Trofimov
estimate for unseen outcomes. So every threshold is finite, and one star can still be
predicted for a user who never gave it.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

__all__ = ["PresentRanks"]

UNSEEN = 0.5  # samples that all absent ranks at one end together count as


class PresentRanks:
    """The part of a scale that has samples.

    Parameters
    ----------
    ranks : ndarray of shape (n,)
        Zero-based.
    n_ranks : int
        Number of ranks of the declared scale.
    inner : bool
        Whether absent ranks between present ones are removed too (for losses that reach the
        adjacent thresholds only), not just those beyond both ends.

    Attributes
    ----------
    ranks : ndarray
        The same samples on the smaller scale.
    n_ranks : int
        Number of ranks of the smaller scale.
    scale : ndarray of shape (n_ranks,)
        The ranks of the smaller scale, as ranks of the declared one.
    place : ndarray of shape (declared ranks - 1,)
        For each declared threshold, the number of the smaller scale's that it coincides with.
    outer : ndarray of bool, of the same shape
        Whether it lies beyond all present ranks instead.

    Examples
    --------
    >>> part = PresentRanks(np.array([1, 3, 3]), 5, inner=True)
    >>> part.ranks.tolist(), part.n_ranks
    ([0, 1, 1], 2)
    >>> part.all_thresholds(np.zeros(1), np.array([-1.0, 1.0, 1.0])).round(2).tolist()
    [-1.58, 0.0, 0.0, 2.21]
    """

    def __init__(self, ranks: np.ndarray, n_ranks: int, *, inner: bool):
        present = np.unique(ranks)
        scale = present if inner else np.arange(present[0], present[-1] + 1)
        self.scale = scale
        self.ranks = np.searchsorted(scale, ranks)
        self.n_ranks = scale.size
        place = np.searchsorted(scale, np.arange(n_ranks - 1), side="right") - 1
        self.place = np.clip(place, 0, scale.size - 2)
        self._below, self._above = place < 0, place > scale.size - 2
        self.outer = self._below | self._above

    def all_thresholds(
        self,
        thresholds: np.ndarray,
        latent: np.ndarray,
        weight: np.ndarray | None = None,
        steepness: float = 1.0,
    ) -> np.ndarray:
        """Return the thresholds of the declared scale, from those of the present ranks.

        Parameters
        ----------
        latent, weight : ndarray of shape (n,)
            Fitted scores and weights of the training samples.
        steepness : float
            Steepness of the logistic curve from distances to a threshold to probabilities.
        """
        weight = np.ones(latent.size) if weight is None else weight
        full = thresholds[self.place].astype(np.float64)
        if self._below.any():
            share = np.cumsum(self._below[self._below]) / self._below.sum()
            full[self._below] = np.minimum(_tail(latent, weight, steepness, share), thresholds[0])
        if self._above.any():
            share = np.cumsum(self._above[self._above])[::-1] / self._above.sum()
            far = -_tail(-latent, weight, steepness, share)
            full[self._above] = np.maximum(far, thresholds[-1])
        return full


def _tail(
    latent: np.ndarray, weight: np.ndarray, steepness: float, shares: np.ndarray
) -> np.ndarray:
    """b with ``sum weight * expit(steepness (b - latent)) = UNSEEN * share`` for each share."""
    total = weight.sum()

    def surplus(b: float, goal: float) -> float:
        return float(weight @ expit(steepness * (b - latent)) - goal)

    low, high = latent.min(), latent.max()
    places = []
    for share in shares:
        goal = min(UNSEEN * share, 0.5 * share * total)
        reach = (np.log(total / goal) + 1.0) / steepness
        places.append(brentq(surplus, low - reach, high + reach, args=(goal,), xtol=1e-9))
    return np.array(places)
