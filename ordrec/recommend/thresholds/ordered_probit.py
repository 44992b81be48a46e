"""Hierarchical ordered probit: thresholds and scales of each user around common ones.

Equations here, with ``f`` the score of user u for item i, ``n_u``, ``n_i`` counts of ratings:

(1) ``P(r <= k) = Phi((t_uk - f) / s_ui)``
(2) ``log s_ui = c_0 + c_1 log(1 + n_u) + c_2 log(1 + n_i) + p_u + q_i``
(3) ``(t_u,anchor, logarithms of the gaps of t_u, p_u) ~ N(mean, covariance)``
(4) ``q_i ~ N(0, item_sd^2)``
(5) ``s^2 + v`` in place of ``s^2``, with ``v`` the posterior variance of the anchored threshold:
    the average of (1) over what is not known of a user's thresholds

Gaps have logarithms, so that thresholds never cross, and a user who gives whole stars only has
gaps near 0 for the half ones. The covariance says which gaps go together, and is learnt: an EM
algorithm whose E step is the posterior mode of each user's parameters with the curvature there
(Laplace's method, `ordrec.recommend.thresholds.newton`), and whose M step takes the moments of
(3) and (4) and the regressions on the counts in (2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ordrec.errors import DataError
from ordrec.ordinal.thresholds.probabilities import log_interval
from ordrec.recommend.thresholds.newton import curvatures, item_steps, thresholds_from, user_steps

__all__ = ["Layer", "LayerPriors", "curvature", "fit_layer", "fit_person"]

PERSON_STEPS = 12
LEAST_GAP = 0.02  # between common thresholds at the start


@dataclass(frozen=True)
class LayerPriors:
    """Standard deviations of what is personal, in units of scores of 5-star ratings.

    ``gap_sd`` is one of logarithms. They are where learning starts, and count as much as what
    ``weight`` users (or items) tell.
    """

    threshold_sd: float = 0.25
    gap_sd: float = 0.3
    user_sd: float = 0.2
    item_sd: float = 0.15
    weight: float = 20.0

    def covariance(self, n_thresholds: int) -> np.ndarray:
        """Of (3), at the start."""
        gaps = np.full(n_thresholds - 1, self.gap_sd)
        return np.diag(np.concatenate([[self.threshold_sd], gaps, [self.user_sd]]) ** 2)


@dataclass(frozen=True)
class Layer:
    """A fitted layer.

    Attributes
    ----------
    thresholds : (n_ranks - 1,)
        Common thresholds t.
    shifts : (n_users, n_ranks - 1)
        t_u - t; zeros for users without a rating.
    scale : (3,)
        c of (2).
    user_scale, item_scale : arrays
        p_u, with (5), and q_i.
    user_counts, item_counts : arrays
        Ratings behind each user and item.
    n_iter : int
    value : float
        Negative log-likelihood a rating, of those it was fitted to.
    covariance : (n_ranks, n_ranks)
        Of (3).
    anchor : int
    """

    thresholds: np.ndarray
    shifts: np.ndarray
    scale: np.ndarray
    user_scale: np.ndarray
    item_scale: np.ndarray
    user_counts: np.ndarray
    item_counts: np.ndarray
    n_iter: int
    value: float
    covariance: np.ndarray
    anchor: int

    def thresholds_of(self, users: np.ndarray) -> np.ndarray:
        """Ordered thresholds of each user, -1 meaning the common ones."""
        shifts = np.vstack([self.shifts, np.zeros(self.thresholds.size)])
        return np.maximum.accumulate(self.thresholds + shifts[users], axis=1)  # against rounding

    def scale_of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """(2) for pairs of codes, -1 for the unknown."""
        c = self.scale
        n_u = np.append(self.user_counts, 0.0)[users]
        n_i = np.append(self.item_counts, 0.0)[items]
        nobody = _doubt(self.covariance[0, 0], c[0])
        personal = np.append(self.user_scale, nobody)[users]
        personal = personal + np.append(self.item_scale, 0.0)[items]
        return np.exp(c[0] + c[1] * np.log1p(n_u) + c[2] * np.log1p(n_i) + personal)

    def probabilities(self, scores: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """P(rank) for each pair, one column a rank."""
        t = self.thresholds_of(users)
        outer = np.full((scores.size, 1), np.inf)
        edges = np.hstack([-outer, t, outer])
        z = (edges - scores[:, None]) / self.scale_of(users, items)[:, None]
        p = np.exp(log_interval(z[:, :-1], np.maximum(z[:, 1:], z[:, :-1] + 1e-9)))
        return p / p.sum(axis=1, keepdims=True)

    def with_user(self, user: int, shifts: np.ndarray, scale: float, count: int) -> Layer:
        """The same layer with one user's parameters replaced, or added at the end."""
        n_users = max(self.shifts.shape[0], user + 1)
        grown = np.zeros((n_users, self.thresholds.size))
        grown[: self.shifts.shape[0]] = self.shifts
        scales, counts = np.zeros(n_users), np.zeros(n_users)
        scales[: self.user_scale.size] = self.user_scale
        counts[: self.user_counts.size] = self.user_counts
        grown[user], scales[user], counts[user] = shifts, scale, count
        return replace(self, shifts=grown, user_scale=scales, user_counts=counts)


def fit_layer(
    scores: np.ndarray,
    levels: np.ndarray,
    users: np.ndarray,
    items: np.ndarray,
    n_ranks: int,
    n_users: int,
    n_items: int,
    priors: LayerPriors | None = None,
    *,
    max_iter: int = 40,
    tol: float = 2e-3,
) -> Layer:
    """Fit to scores that were made without the rating they stand beside.

    Parameters
    ----------
    scores : ndarray
        Leave-one-out or held-out scores.
    levels : ndarray of int
        Zero-based ranks.
    users, items : ndarray of int
        Codes.
    priors : LayerPriors, optional
    max_iter : int
        Most rounds of EM.
    tol : float
        They end when no mean and no standard deviation of (3) moves further than this.
    """
    priors = priors or LayerPriors()
    order = np.argsort(users, kind="stable")
    f, k = scores[order].astype(np.float64), levels[order].astype(np.int64)
    u, i = users[order].astype(np.int64), items[order].astype(np.int64)
    by_user, by_item = _Group.of(u, n_users), _Group.of(i, n_items)
    mean, anchor = _first_mean(f, k, n_ranks)
    first_mean, first_covariance = mean, priors.covariance(n_ranks - 1)
    covariance, item_variance = first_covariance, priors.item_sd**2
    c_user, c_item = 0.0, 0.0
    eta = np.tile(mean, (n_users, 1))
    spread = np.tile(covariance, (n_users, 1, 1))
    q, q_variance = np.zeros(n_items), np.full(n_items, item_variance)
    log_p, n_iter, known = 0.0, 0, by_user.counts > 0
    means = np.tile(mean, (n_users, 1))
    while n_iter < max_iter:
        n_iter += 1
        log_p = user_steps(
            eta, spread, means, np.linalg.inv(covariance), anchor, f, k, q[i], by_user.start, 1
        )
        item_steps(
            q, q_variance, c_item * by_item.logs, 1.0 / item_variance, eta, anchor, f, k, u,
            by_item.order, by_item.start,
        )  # fmt: skip
        c_item, shift = _item_line(q, q_variance, item_variance, by_item)
        q -= shift
        eta[:, -1] += shift
        c_user = _slope(by_user.logs[known], eta[known, -1])
        residual = eta.copy()
        residual[:, -1] -= c_user * by_user.logs
        before = mean, np.diag(covariance)
        mean = (residual[known].sum(axis=0) + first_mean) / (known.sum() + 1)
        away = residual[known] - mean
        covariance = _pooled(
            first_covariance, priors.weight, spread[known].sum(axis=0) + away.T @ away, known.sum()
        )
        rest = (q - c_item * by_item.logs)[by_item.counts > 0]
        squares = (q_variance[by_item.counts > 0] + rest**2).sum()
        item_variance = _pooled(priors.item_sd**2, priors.weight, squares, rest.size)
        means = np.tile(mean, (n_users, 1))
        means[:, -1] += c_user * by_user.logs
        moved = mean - before[0], np.sqrt(np.diag(covariance)) - np.sqrt(before[1])
        if np.abs(moved).max() < tol:
            break
    t, by_person = np.empty(n_ranks - 1), np.empty((n_users, n_ranks - 1))
    thresholds_from(mean, anchor, t)
    for person in range(n_users):
        thresholds_from(eta[person], anchor, by_person[person])
    constant = mean[-1] - c_user * by_user.centre - c_item * by_item.centre
    return Layer(
        t,
        np.where(known[:, None], by_person - t, 0.0),
        np.array([constant, c_user, c_item]),
        (eta - means)[:, -1] + _doubt(spread[:, 0, 0], eta[:, -1]),
        np.where(by_item.counts > 0, q - c_item * by_item.logs, 0.0),
        by_user.counts,
        by_item.counts,
        n_iter,
        -float(log_p) / max(f.size, 1),
        covariance,
        anchor,
    )


def fit_person(
    layer: Layer, scores: np.ndarray, levels: np.ndarray, items: np.ndarray
) -> tuple[np.ndarray, float]:
    """Threshold shifts and log-scale of one more user, all else held as it is."""
    t, c = layer.thresholds, layer.scale
    if scores.size == 0:
        return np.zeros(t.size), float(_doubt(layer.covariance[0, 0], c[0]))
    gaps = np.log(np.maximum(np.diff(t), np.finfo(np.float64).tiny))
    usual = c[0] + c[1] * np.log(scores.size)
    mean = np.concatenate([[t[layer.anchor]], gaps, [usual]])[None]
    n_i, q = np.append(layer.item_counts, 0.0)[items], np.append(layer.item_scale, 0.0)[items]
    eta, spread = mean.copy(), np.empty((1, mean.size, mean.size))
    try:
        user_steps(
            eta, spread, mean, np.linalg.inv(layer.covariance), layer.anchor,
            scores.astype(np.float64), levels.astype(np.int64), c[2] * np.log1p(n_i) + q,
            np.array([0, scores.size]), PERSON_STEPS,
        )  # fmt: skip
    except np.linalg.LinAlgError as error:
        raise DataError(
            f"no thresholds fit a user's {scores.size} ratings ({error}): the model's numbers are "
            "not those of a fit; fit it again"
        ) from error
    own = np.empty(t.size)
    thresholds_from(eta[0], layer.anchor, own)
    return own - t, float(eta[0, -1] - usual + _doubt(spread[0, 0, 0], eta[0, -1]))


def curvature(
    scores: np.ndarray, thresholds: np.ndarray, scale: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """First derivative of ``log p`` (1) by the score, and minus the second."""
    slope, bend = np.empty(scores.size), np.empty(scores.size)
    curvatures(scores, thresholds, scale, levels.astype(np.int64), slope, bend)
    return slope, bend


@dataclass(frozen=True)
class _Group:
    """Ratings by user or by item.

    ``logs`` are logarithms of the counts less their ``centre``: a score that left its rating out
    rests on one rating less, so it is log(1 + n) of (2) for n - 1 ratings.
    """

    counts: np.ndarray
    order: np.ndarray
    start: np.ndarray
    logs: np.ndarray
    centre: float

    @classmethod
    def of(cls, codes: np.ndarray, n: int) -> _Group:
        counts = np.bincount(codes, minlength=n).astype(np.float64)
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        logs = np.log(np.maximum(counts, 1.0))
        centre = float(logs[codes].mean()) if codes.size else 0.0
        return cls(counts, np.argsort(codes, kind="stable"), start, logs - centre, centre)


def _first_mean(scores: np.ndarray, levels: np.ndarray, n_ranks: int) -> tuple[np.ndarray, int]:
    """Mean of (3) at the start, from normal quantiles of the shares of ratings; the anchor.

    The anchor is the threshold nearest to the median, the one most ratings tell of.
    """
    from scipy.special import ndtri

    share = np.cumsum(np.bincount(levels, minlength=n_ranks) + 0.5)
    share = share[:-1] / share[-1]
    scores = scores if scores.size else np.zeros(1)  # a single rating leaves none held out
    t = ndtri(share) * np.sqrt(scores.var() + 0.6) + scores.mean()
    anchor = int(np.argmin(np.abs(share - 0.5)))
    gaps = np.log(np.maximum(np.diff(t), LEAST_GAP))
    log_scale = np.log(max(scores.std(), 1e-3)) * 0.5 - 0.2
    return np.concatenate([t[anchor : anchor + 1], gaps, [log_scale]]), anchor


def _doubt(variance: Any, log_scale: Any) -> Any:
    """What the log-scale grows by if thresholds are uncertain by this variance: (5)."""
    return 0.5 * np.log1p(variance * np.exp(-2.0 * log_scale))


def _item_line(
    q: np.ndarray, variance: np.ndarray, prior: float, items: _Group
) -> tuple[float, float]:
    """Slope of items' log-scales by log counts, and their mean beyond it.

    An item counts by what its ratings tell: q is little more than its prior for most.
    """
    told = np.maximum(1.0 / variance - 1.0 / prior, 0.0)
    weight = np.where(items.counts > 0, told / (1.0 + told * prior), 0.0)
    slope = _slope(items.logs, q, weight)
    total = float(weight.sum())
    rest = q - slope * items.logs
    return slope, float(weight @ rest) / total if total > 0 else 0.0


def _slope(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Of the regression line of y on x; 0 where x does not vary."""
    w = np.ones(x.size) if weight is None else weight
    total = float(w.sum())
    if total <= 0.0:
        return 0.0
    x, y = x - w @ x / total, y - w @ y / total
    squares = float(w @ (x * x))
    return float(w @ (x * y)) / squares if squares > 1e-9 * total else 0.0


def _pooled(first, weight, squares, count):  # type: ignore[no-untyped-def]
    """A (co)variance from a sum of squares, with a start that counts as ``weight`` more."""
    return (weight * first + squares) / (weight + count)
