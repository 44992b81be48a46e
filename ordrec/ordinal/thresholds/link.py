"""A calibrated ordinal link: probabilities for models that only give a score.

The ordinal form of Platt's scaling: P(y <= k | f) = Phi((t_k - f) / s) with ordered t and
s > 0, fitted by maximum likelihood to scores of samples the model was not trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from ordrec.errors import ModelFileError
from ordrec.ordinal.thresholds.probabilities import log_interval, rank_probabilities
from ordrec.storage.schema import Array, Number

__all__ = ["OrdinalLink", "fit_link"]

GAP_PRIOR = 0.05  # weight of the prior on log-gaps; decides only where a rank has no samples


@dataclass(frozen=True)
class OrdinalLink:
    """Ordered probit on a given score."""

    stored: ClassVar = {"thresholds": Array("thresholds"), "scale": Number(low=1e-300)}

    thresholds: np.ndarray
    scale: float

    def check_stored(self) -> None:
        """Check that the thresholds are in order."""
        if (np.diff(self.thresholds) < 0).any():
            raise ModelFileError("the link's thresholds are not in order")

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return P(rank) for each score, one column per rank."""
        return rank_probabilities(scores, self.thresholds, self.scale)


def fit_link(
    scores: np.ndarray, ranks: np.ndarray, n_ranks: int, weight: np.ndarray | None = None
) -> OrdinalLink:
    """Fit thresholds and scale to held-out scores and their zero-based ranks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.normal(size=4000)
    >>> y = np.digitize(f + 0.5 * rng.normal(size=4000), [-1.0, 1.0])
    >>> link = fit_link(f, y, 3)
    >>> bool(np.allclose(link.thresholds, [-1, 1], atol=0.1)), bool(abs(link.scale - 0.5) < 0.1)
    (True, True)
    """
    deviation = float(scores.std()) or 1.0
    centre = float(scores.mean())
    f = (scores - centre) / deviation
    w = np.ones(f.size) if weight is None else weight / weight.mean()
    share = np.cumsum(np.bincount(ranks, weights=w, minlength=n_ranks) + 0.5)[:-1]
    start = np.quantile(f, np.clip(share / share[-1] * (1 - 0.5 / n_ranks), 0.01, 0.99))
    gaps = np.maximum(np.diff(start), 0.1)
    guess = np.concatenate([[start[0]], np.log(gaps), [-0.5]])
    # in units of the scores' deviation; without bounds, line searches on separable scores diverge
    bounds = [(-50.0, 50.0), *[(-10.0, 4.0)] * gaps.size, (-7.0, 4.0)]
    fit = minimize(
        _negative_log_posterior,
        np.clip(guess, *np.transpose(bounds)),
        args=(f, ranks, w),
        jac=True,
        bounds=bounds,
        method="L-BFGS-B",
    )
    thresholds = np.concatenate([[fit.x[0]], fit.x[0] + np.cumsum(np.exp(fit.x[1:-1]))])
    return OrdinalLink(thresholds * deviation + centre, float(np.exp(fit.x[-1])) * deviation)


def _negative_log_posterior(
    x: np.ndarray, f: np.ndarray, ranks: np.ndarray, w: np.ndarray
) -> tuple[float, np.ndarray]:
    """Value and gradient over (t_1, log gaps, log s)."""
    gaps, scale = np.exp(x[1:-1]), np.exp(x[-1])
    edges = np.concatenate([[-np.inf], [x[0]], x[0] + np.cumsum(gaps), [np.inf]])
    upper, lower = (edges[ranks + 1] - f) / scale, (edges[ranks] - f) / scale
    logp = log_interval(lower, upper)
    at_upper = w * np.exp(_log_pdf(upper) - logp)  # d log p / d upper
    at_lower = w * np.exp(_log_pdf(lower) - logp)
    slope = np.bincount(ranks, at_upper, edges.size - 1)[:-1]  # wrt t_k: upper edge of rank k
    slope -= np.bincount(ranks, at_lower, edges.size - 1)[1:]  # and lower edge of rank k + 1
    tail = np.cumsum(slope[::-1])[::-1] / scale
    finite = np.where(np.isfinite(upper), upper, 0) * at_upper
    finite -= np.where(np.isfinite(lower), lower, 0) * at_lower
    gradient = np.concatenate([[-tail[0]], -tail[1:] * gaps, [finite.sum()]])
    value = -w @ logp
    drift = x[1:-1] - x[1:-1].mean() if gaps.size else x[1:-1]
    value += 0.5 * GAP_PRIOR * (drift @ drift + x[-1] ** 2)
    gradient[1:-1] += GAP_PRIOR * drift
    gradient[-1] += GAP_PRIOR * x[-1]
    return float(value), gradient


def _log_pdf(z: np.ndarray) -> np.ndarray:
    return -0.5 * z * z - 0.5 * np.log(2 * np.pi)
