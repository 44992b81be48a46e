"""The rank of a score between thresholds, and the probabilities of ranks for a noisy score.

The probability that a score of unit noise falls between two thresholds is safe in the tails: for
a symmetric distribution function F, ``F(b) - F(a)`` cancels when both ends lie in the upper tail;
there ``F(-a) - F(-b)`` is the same number without the loss. Infinite ends use
the one-sided formula. Everything is in log space, so that nothing underflows.

This is the vectorised form for either link, without derivatives. `ordinal.gpor.likelihood` (all
cumulants of the normal) and `recommend.thresholds.newton` (two derivatives, for a Newton step)
have compiled forms of their own for the probit link; `ordinal.gpor.likelihood` says how far the
three agree and why they are not exchanged.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_ndtr

__all__ = ["log_interval", "rank_probabilities", "ranks_between"]


def ranks_between(latent: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return zero-based ranks: the first j with latent < thresholds[j], else the top rank.

    The thresholds need not be ordered (those of Shashua and Levin may not be).
    """
    below = latent[:, None] < thresholds
    return np.where(below.any(axis=1), below.argmax(axis=1), thresholds.size)


def log_interval(lower: np.ndarray, upper: np.ndarray, link: str = "probit") -> np.ndarray:
    """Return ``log(F(upper) - F(lower))`` for lower <= upper; either may be infinite.

    Examples
    --------
    >>> float(log_interval(np.array([40.0]), np.array([41.0]))[0].round(3))
    -804.608
    """
    log_cdf = log_ndtr if link == "probit" else log_expit
    lower, upper = np.broadcast_arrays(lower, upper)
    mirrored = lower > 0
    low = np.where(mirrored, -upper, lower)
    high = np.where(mirrored, -lower, upper)
    top, bottom = log_cdf(high), log_cdf(low)
    with np.errstate(divide="ignore", invalid="ignore"):
        # log(e^top - e^bottom) = top + log(1 - e^(bottom - top)); one-sided when bottom = -inf
        # and cut at 0, which rounding may exceed where thresholds almost coincide
        below = np.minimum(bottom - top, 0.0)
        gain = np.where(np.isneginf(bottom), 0.0, np.log(-np.expm1(below)))
    return top + gain


def rank_probabilities(
    latent: np.ndarray, thresholds: np.ndarray, scale: np.ndarray | float, link: str = "probit"
) -> np.ndarray:
    """Return P(rank) for each latent score, shape (n, n_ranks); rows sum to one.

    ``scale`` is the noise (one number, or one per score); the thresholds are ordered.
    """
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    z = (edges - np.asarray(latent)[:, None]) / np.reshape(scale, (-1, 1))
    p = np.exp(log_interval(z[:, :-1], z[:, 1:], link))
    return p / p.sum(axis=1, keepdims=True)
