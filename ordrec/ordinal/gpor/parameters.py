"""The parameters of the ordinal likelihood as one vector that an optimiser may move freely.

    rho = (ln sigma, b_1, ln Delta_2, ..., ln Delta_{r-1}),    b_j = b_1 + Delta_2 + ... + Delta_j

Chu and Ghahramani (2005), section 2.2 and appendix A. `GapPrior` is an addition for declared
ranks that no training sample has.
"""

from __future__ import annotations

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["GapPrior", "chain", "pack", "paper_start", "threshold_slopes", "unpack"]


def paper_start(n_ranks: int) -> np.ndarray:
    """Return the paper's starting point: sigma^2 = 1, b_1 = -1, Delta = 2 / r."""
    return np.concatenate([[0.0, -1.0], np.full(n_ranks - 2, np.log(2.0 / n_ranks))])


def pack(noise: float, thresholds: np.ndarray) -> np.ndarray:
    """Return rho for a noise and strictly ascending thresholds."""
    thresholds = np.asarray(thresholds, dtype=np.float64)
    gaps = np.diff(thresholds)
    if thresholds.ndim != 1 or not np.isfinite(thresholds).all() or (gaps <= 0).any():
        raise ArgumentError(f"thresholds must be finite and strictly ascending, got {thresholds}")
    if not (np.isfinite(noise) and noise > 0):
        raise ArgumentError(f"noise must be a positive number, got {noise!r}")
    return np.concatenate([[np.log(noise)], thresholds[:1], np.log(gaps)])


def unpack(rho: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the noise and the thresholds of rho.

    Examples
    --------
    >>> unpack(paper_start(4))
    (1.0, array([-1. , -0.5,  0. ]))
    """
    return float(np.exp(rho[0])), np.cumsum(np.concatenate([rho[1:2], np.exp(rho[2:])]))


def chain(rho: np.ndarray, by_log_noise: float, by_thresholds: np.ndarray) -> np.ndarray:
    """Return the gradient in rho: b_1 moves all thresholds, Delta_j those from j on."""
    tails = np.cumsum(by_thresholds[::-1])[::-1]
    return np.concatenate([[by_log_noise], tails[:1], tails[1:] * np.exp(rho[2:])])


def threshold_slopes(
    ranks: np.ndarray, n_thresholds: int, by_lower: np.ndarray, by_upper: np.ndarray
) -> np.ndarray:
    """Return the slopes in the thresholds: each is a rank's upper edge and the next one's lower."""
    n_ranks = n_thresholds + 1
    above = np.bincount(ranks, by_upper, n_ranks)[:-1]
    return above + np.bincount(ranks, by_lower, n_ranks)[1:]


class GapPrior:
    """A weak prior on the gaps that the data leave open.

    Without a sample of rank j the evidence would shrink its interval to nothing, and without
    one of an outermost rank push that rank's threshold to infinity. Each ln(Delta) that is
    undetermined in this way gets a normal prior of unit variance around the mean of the others (of
    its start where all are open), which weighs about as much as one sample.
    """

    def __init__(self, counts: np.ndarray, start: np.ndarray):
        present = np.flatnonzero(counts)
        low, high = present[0], present[-1]
        inner = np.arange(1, counts.size - 1)  # the ranks that have a gap of their own
        unseen = counts[inner] == 0
        outermost = ((inner <= low) & (low > 0)) | ((inner >= high) & (high < counts.size - 1))
        self.open = unseen | outermost
        self.start = start[2:]

    def __call__(self, rho: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log-density up to a constant, and its gradient in rho."""
        gradient = np.zeros_like(rho)
        if not self.open.any():
            return 0.0, gradient
        logs, settled = rho[2:], ~self.open
        centre = logs[settled].mean() if settled.any() else self.start
        away = np.where(self.open, logs - centre, 0.0)
        gradient[2:] = -away
        if settled.any():
            gradient[2:][settled] = away.sum() / settled.sum()
        return -0.5 * float(away @ away), gradient
