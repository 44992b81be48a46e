"""The three links of a cumulative model: F, its density and the density's slope, in log space.

P(y <= k | x) = F(b_k - f(x)). All three densities are log-concave, so that the log-likelihood of a
rank, ln(F(u) - F(l)), is concave in both ends (Burridge 1981), and Newton's method finds the one
maximum. Infinite ends have density zero.

=========  =====================  =====================  ==========
link       F(z)                   F'(z)                  F''/F'
=========  =====================  =====================  ==========
logit      1 / (1 + exp(-z))      F (1 - F)              1 - 2 F
probit     Phi(z)                 phi(z)                 -z
cloglog    1 - exp(-exp(z))       exp(z - exp(z))        1 - exp(z)
=========  =====================  =====================  ==========
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

from ordrec.ordinal.thresholds.probabilities import log_interval

__all__ = ["LINKS", "density", "interval_derivatives", "log_probability", "relative_slope"]

LINKS = ("logit", "probit", "cloglog")
FAR = 700.0  # beyond it exp overflows


def log_probability(lower: np.ndarray, upper: np.ndarray, link: str) -> np.ndarray:
    """Return ln(F(upper) - F(lower)); either end may be infinite."""
    if link != "cloglog":
        return log_interval(lower, upper, link)
    low, high = np.exp(np.minimum(lower, FAR)), np.exp(np.minimum(upper, FAR))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(np.isposinf(upper), -low, -low + np.log(-np.expm1(low - high)))


def density(z: np.ndarray, link: str) -> np.ndarray:
    """Return F'(z)."""
    return np.exp(_log_density(z, link))


def interval_derivatives(
    lower: np.ndarray, upper: np.ndarray, link: str
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return ln P = ln(F(upper) - F(lower)) and the derivatives of -ln P in the two ends.

    Returns
    -------
    log_p : ndarray
    slopes : (by upper, by lower)
    curves : (by upper twice, by both, by lower twice)
    """
    log_p = log_probability(lower, upper, link)
    # a search refuses a step to probability 0, so that slopes there are not used
    possible = np.where(np.isneginf(log_p), 0.0, log_p)
    at_upper = np.exp(_log_density(upper, link) - possible)
    at_lower = np.exp(_log_density(lower, link) - possible)
    curve_upper = at_upper * (at_upper - relative_slope(upper, link))
    curve_lower = at_lower * (at_lower + relative_slope(lower, link))
    return log_p, (-at_upper, at_lower), (curve_upper, -at_upper * at_lower, curve_lower)


def _log_density(z: np.ndarray, link: str) -> np.ndarray:
    if link == "logit":
        return log_expit(z) + log_expit(-z)
    if link == "probit":
        return -0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(z), -np.inf, z - np.exp(np.minimum(z, FAR)))


def relative_slope(z: np.ndarray, link: str) -> np.ndarray:
    """Return F''(z) / F'(z), zero at an infinite end."""
    if link == "logit":
        return 1.0 - 2.0 * expit(z)
    if link == "probit":
        return np.where(np.isinf(z), 0.0, -z)
    return np.where(np.isinf(z), 0.0, 1.0 - np.exp(np.minimum(z, FAR)))
