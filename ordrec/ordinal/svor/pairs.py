"""The active (sample, threshold) pairs of a problem: the one difference between EXC and IMC.

A pair p = (i, j) is one hinge term ``cap_p [1 - sign_p (f_i - b_j)]_+``, the sign being +1
where sample i should lie above threshold b_j and -1 where below. Explicit constraints (2)
pair a sample with its two neighbouring thresholds, implicit constraints (20) with all of
them. Everything after this file sees pairs only.

Symbols
-------
    alpha_p in [0, cap_p]           multiplier of the pair               (p,)
    beta_i = sum_p sign_p alpha_p   over the pairs of sample i, (8)      (n,)
    f = K beta                      latent scores, (13)                  (n,)
    b                               thresholds                           (T,)
    mu_j, j = 1..T-1                multipliers of b_{j-1} <= b_j, (4)   (T,), mu_0 = 0
    balance_j = sum_p sign_p alpha_p - mu_j + mu_{j+1} = 0, (10), (25)   (T,)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["Pairs", "adjacent_pairs", "all_pairs", "anchored_thresholds", "only_thresholds"]


class Pairs(NamedTuple):
    """Pairs in the order of their samples."""

    sample: np.ndarray  # (p,) int64
    threshold: np.ndarray  # (p,) int64
    sign: np.ndarray  # (p,) +1 or -1
    cap: np.ndarray  # (p,) upper bound of the multiplier: C, times weight, times cost

    def sums(self, values: np.ndarray, n: int) -> np.ndarray:
        """The sum over the pairs of each of n samples."""
        return np.bincount(self.sample, values, n)

    def threshold_sums(self, values: np.ndarray, n_thresholds: int) -> np.ndarray:
        """The sum over the pairs of each threshold."""
        return np.bincount(self.threshold, values, n_thresholds)

    def shortfall(self, f: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What each pair lacks to its margin, 1 - sign (f_i - b_j): the hinge before its cut."""
        return 1.0 - self.sign * (f[self.sample] - b[self.threshold])


def adjacent_pairs(ranks: np.ndarray, n_ranks: int, C: np.ndarray) -> Pairs:
    """Each sample with the thresholds just below and just above its rank, (2)."""
    j = np.arange(n_ranks - 1)
    near = (j == ranks[:, None]) | (j == ranks[:, None] - 1)
    return _pairs(ranks, np.where(near, C[:, None], 0.0))


def all_pairs(ranks: np.ndarray, n_ranks: int, C: np.ndarray, costs: np.ndarray) -> Pairs:
    """Each sample with every threshold, (20); ``costs[k, j]`` is the C_k^j of section 3.1."""
    return _pairs(ranks, C[:, None] * costs[ranks])


def _pairs(ranks: np.ndarray, cap: np.ndarray) -> Pairs:
    """All pairs of positive cap; sample i is above threshold j if its rank is."""
    active = cap > 0
    # columns of one array, for which every loop would be compiled once more
    sample, threshold = map(np.ascontiguousarray, np.nonzero(active))
    sign = np.where(ranks[sample] > threshold, 1.0, -1.0)
    return Pairs(sample, threshold, sign, cap[active])


def anchored_thresholds(pairs: Pairs, n_thresholds: int, ordered: bool) -> np.ndarray:
    """The thresholds that the problem determines, as a mask.

    A threshold with samples on one side only has no balanced multipliers but zero and may
    be moved away for free. With ordering constraints a neighbour can hold it, so only
    those outside all samples are loose: above the lowest threshold with samples below it
    and below the highest one with samples above it, everything is anchored.
    """
    below = np.bincount(pairs.threshold[pairs.sign < 0], minlength=n_thresholds) > 0
    above = np.bincount(pairs.threshold[pairs.sign > 0], minlength=n_thresholds) > 0
    if ordered:
        below = np.maximum.accumulate(below)
        above = np.maximum.accumulate(above[::-1])[::-1]
    return below & above


def only_thresholds(pairs: Pairs, chosen: np.ndarray) -> Pairs:
    """The pairs of the chosen thresholds, which are renumbered."""
    if chosen.all():
        return pairs
    stays = chosen[pairs.threshold]
    number = np.cumsum(chosen) - 1
    sample, threshold, sign, cap = (each[stays] for each in pairs)
    return Pairs(sample, number[threshold], sign, cap)
