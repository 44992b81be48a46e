"""Hierarchical ordered probit: thresholds and scales of each user around common ones.

Equations here, with ``f`` the score of user u for item i, ``n_u``, ``n_i`` counts of ratings:

(1) ``P(r <= k) = Phi((t_uk - f) / s_ui)``
(2) ``log s_ui = c_0 + c_1 log(1 + n_u) + c_2 log(1 + n_i) + p_u + q_i``
(3) ``(t_u,anchor, logarithms of the gaps of t_u, p_u) ~ N(mean, covariance)``
(4) ``q_i ~ N(0, item_sd^2)``
(5) ``s^2 + v`` in place of ``s^2``, with ``v`` the posterior variance of the anchored threshold:
    the average of (1) over the uncertainty about a user's thresholds

The gaps are modelled by their logarithms, so that thresholds never cross; a user who gives whole
stars only has gaps near 0 for the half ones. The covariance says which gaps vary together, and is
learnt by an EM algorithm. Its E step finds the posterior mode of each user's parameters and the
curvature there (Laplace's method, `ordrec.rating.thresholds.newton`); its M step takes the
moments of (3) and (4) and the regressions on the counts in (2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ordrec.data.groups import Groups
from ordrec.errors import DataError, ModelFileError
from ordrec.ordinal.thresholds.probabilities import log_interval
from ordrec.rating.thresholds.newton import (
    UserRatings,
    curvatures,
    item_steps,
    thresholds_from,
    user_steps,
)
from ordrec.storage.schema import Array, Covariance, Integer, Number

__all__ = ["OrderedProbit", "ProbitPriors", "curvature", "fit_one_user", "fit_ordered_probit"]

ONE_USER_STEPS = 12
LEAST_GAP = 0.02  # between common thresholds at the start


@dataclass(frozen=True)
class ProbitPriors:
    """Standard deviations of the users' and items' parameters, at which learning starts.

    They are in units of scores of 5-star ratings, except ``gap_sd``, ``user_sd`` and ``item_sd``,
    which are those of logarithms. They count as much as ``weight`` users (or items).
    """

    threshold_sd: float = 0.25
    gap_sd: float = 0.3
    user_sd: float = 0.2
    item_sd: float = 0.15
    weight: float = 20.0

    def covariance(self, n_thresholds: int) -> np.ndarray:
        """Return the covariance of (3) at which learning starts."""
        gaps = np.full(n_thresholds - 1, self.gap_sd)
        return np.diag(np.concatenate([[self.threshold_sd], gaps, [self.user_sd]]) ** 2)


@dataclass(frozen=True)
class OrderedProbit:
    """A fitted hierarchical ordered probit.

    Attributes
    ----------
    thresholds : (n_ranks - 1,)
        Common thresholds t.
    shifts : (n_users, n_ranks - 1)
        t_u - t; zeros for users without a rating.
    scale : (3,)
        The coefficients c_0, c_1, c_2 of (2).
    user_scale, item_scale : arrays
        p_u, including (5), and q_i.
    user_counts, item_counts : arrays
        Number of ratings of each user and item.
    n_iter : int
        Rounds of EM.
    value : float
        Negative log-likelihood per rating, of the ratings it was fitted to.
    covariance : (n_ranks, n_ranks)
        The covariance of (3).
    anchor : int
        The threshold that (3) models directly; the others follow from the gaps.
    """

    # within these bounds, the exponentials of log-scales neither overflow nor vanish
    stored: ClassVar = {
        "thresholds": Array("thresholds"),
        "shifts": Array("raters", "thresholds"),
        "scale": Array(3, low=-15.0, high=15.0),
        "user_scale": Array("raters", low=-50.0, high=50.0),
        "item_scale": Array("rated", low=-50.0, high=50.0),
        "user_counts": Array("raters", low=0.0, high=1e7),
        "item_counts": Array("rated", low=0.0, high=1e7),
        "n_iter": Integer(),
        "value": Number(),
        "covariance": Covariance("ranks"),
        "anchor": Integer(low=0),
    }

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

    def check_stored(self) -> None:
        """Check that the anchor is a threshold."""
        if self.anchor >= self.thresholds.size:
            raise ModelFileError(f"the anchor {self.anchor} is not a threshold")

    def thresholds_of(self, users: np.ndarray) -> np.ndarray:
        """Return the ascending thresholds of each user code; for -1 the common ones."""
        shifts = np.vstack([self.shifts, np.zeros(self.thresholds.size)])
        return np.maximum.accumulate(self.thresholds + shifts[users], axis=1)  # against rounding

    def scale_of(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return the scale (2) for pairs of codes, -1 for unknown ids."""
        c = self.scale
        n_u = np.append(self.user_counts, 0.0)[users]
        n_i = np.append(self.item_counts, 0.0)[items]
        unknown_user = _widening(self.covariance[0, 0], c[0])  # (5)
        personal = np.append(self.user_scale, unknown_user)[users]
        personal = personal + np.append(self.item_scale, 0.0)[items]
        return np.exp(c[0] + c[1] * np.log1p(n_u) + c[2] * np.log1p(n_i) + personal)  # (2)

    def probabilities(self, scores: np.ndarray, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return P(rank) for each pair, one column per rank, (1)."""
        t = self.thresholds_of(users)
        outer = np.full((scores.size, 1), np.inf)
        edges = np.hstack([-outer, t, outer])
        z = (edges - scores[:, None]) / self.scale_of(users, items)[:, None]  # (1)
        p = np.exp(log_interval(z[:, :-1], np.maximum(z[:, 1:], z[:, :-1] + 1e-9)))
        return p / p.sum(axis=1, keepdims=True)

    def with_user(self, user: int, shifts: np.ndarray, scale: float, count: int) -> OrderedProbit:
        """Return the probit with one user's parameters replaced, or added at the end."""
        n_users = max(self.shifts.shape[0], user + 1)
        grown = np.zeros((n_users, self.thresholds.size))
        grown[: self.shifts.shape[0]] = self.shifts
        scales, counts = np.zeros(n_users), np.zeros(n_users)
        scales[: self.user_scale.size] = self.user_scale
        counts[: self.user_counts.size] = self.user_counts
        grown[user], scales[user], counts[user] = shifts, scale, count
        return replace(self, shifts=grown, user_scale=scales, user_counts=counts)


def fit_ordered_probit(
    scores: np.ndarray,
    levels: np.ndarray,
    users: np.ndarray,
    items: np.ndarray,
    n_ranks: int,
    n_users: int,
    n_items: int,
    priors: ProbitPriors | None = None,
    *,
    max_iter: int = 40,
    tol: float = 2e-3,
) -> OrderedProbit:
    """Fit the hierarchical ordered probit to scores, each made without the rating it explains.

    Parameters
    ----------
    scores : ndarray
        Leave-one-out or held-out scores.
    levels : ndarray of int
        Zero-based ranks.
    users, items : ndarray of int
        Codes.
    priors : ProbitPriors, optional
    max_iter : int
        Maximum number of rounds of EM.
    tol : float
        EM stops when no mean and no standard deviation of (3) changes by more than this.
    """
    priors = priors or ProbitPriors()
    order = np.argsort(users, kind="stable")
    data = _Data(
        scores[order].astype(np.float64),
        levels[order].astype(np.int64),
        users[order].astype(np.int64),
        items[order].astype(np.int64),
        n_ranks,
        _Group.of(users[order].astype(np.int64), n_users),
        _Group.of(items[order].astype(np.int64), n_items),
    )
    em = _EM.start(data, priors)
    n_iter, log_p = 0, 0.0
    while n_iter < max_iter:
        n_iter += 1
        log_p = em.e_step(data)
        if em.m_step(data, priors) < tol:
            break
    return em.fitted(data, n_iter, log_p)


def fit_one_user(
    probit: OrderedProbit, scores: np.ndarray, levels: np.ndarray, items: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return threshold shifts and log-scale of one more user, everything else held fixed."""
    t, c = probit.thresholds, probit.scale
    if scores.size == 0:
        return np.zeros(t.size), float(_widening(probit.covariance[0, 0], c[0]))
    gaps = np.log(np.maximum(np.diff(t), np.finfo(np.float64).tiny))
    usual = c[0] + c[1] * np.log(scores.size)
    mean = np.concatenate([[t[probit.anchor]], gaps, [usual]])[None]
    n_i, q = np.append(probit.item_counts, 0.0)[items], np.append(probit.item_scale, 0.0)[items]
    eta, covariance = mean.copy(), np.empty((1, mean.size, mean.size))
    try:
        ratings = UserRatings(
            scores.astype(np.float64),
            levels.astype(np.int64),
            np.zeros(scores.size, dtype=np.int64),
            c[2] * np.log1p(n_i) + q,
        )
        precision = np.linalg.inv(probit.covariance)
        user_steps(eta, covariance, mean, precision, probit.anchor, ratings, ONE_USER_STEPS)
    except np.linalg.LinAlgError as error:
        raise DataError(
            f"no thresholds can be fitted to a user's {scores.size} ratings ({error}): the "
            "model's parameters are damaged; fit it again"
        ) from error
    own = thresholds_from(eta[0], probit.anchor)
    return own - t, float(eta[0, -1] - usual + _widening(covariance[0, 0, 0], eta[0, -1]))


def curvature(
    scores: np.ndarray, thresholds: np.ndarray, scale: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the negative second derivative of ``log p`` (1) in the score."""
    return curvatures(scores, thresholds, scale, levels.astype(np.int64))


@dataclass(frozen=True)
class _Data:
    """Scores and levels of ratings, ordered by user, with their groups."""

    scores: np.ndarray
    levels: np.ndarray
    users: np.ndarray
    items: np.ndarray
    n_ranks: int
    by_user: _Group
    by_item: _Group


@dataclass
class _EM:
    """Parameters and posteriors that the EM algorithm updates.

    ``mean``, ``covariance`` and ``item_variance`` are those of (3) and (4), ``c_user`` and
    ``c_item`` the slopes c_1 and c_2 of (2). ``eta`` and ``eta_covariance`` are the posterior modes
    and covariances of the users' parameters, ``prior_means`` their prior means with the regression
    on the counts; ``q`` and ``q_variance`` the same for the items' log-scales.
    """

    anchor: int
    first_mean: np.ndarray
    first_covariance: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    item_variance: float
    c_user: float
    c_item: float
    eta: np.ndarray
    eta_covariance: np.ndarray
    prior_means: np.ndarray
    q: np.ndarray
    q_variance: np.ndarray

    @classmethod
    def start(cls, data: _Data, priors: ProbitPriors) -> _EM:
        n_users, n_items = data.by_user.counts.size, data.by_item.counts.size
        mean, anchor = _first_mean(data.scores, data.levels, data.n_ranks)
        covariance, item_variance = priors.covariance(data.n_ranks - 1), priors.item_sd**2
        return cls(
            anchor, mean, covariance, mean, covariance, item_variance, 0.0, 0.0,
            eta=np.tile(mean, (n_users, 1)),
            eta_covariance=np.tile(covariance, (n_users, 1, 1)),
            prior_means=np.tile(mean, (n_users, 1)),
            q=np.zeros(n_items),
            q_variance=np.full(n_items, item_variance),
        )  # fmt: skip

    def e_step(self, data: _Data) -> float:
        """One Newton step for every user and every item; returns the sum of log p."""
        ratings = UserRatings(data.scores, data.levels, data.users, self.q[data.items])
        precision = np.linalg.inv(self.covariance)
        log_p = user_steps(
            self.eta, self.eta_covariance, self.prior_means, precision, self.anchor, ratings, 1
        )
        item_steps(
            self.q, self.q_variance, self.c_item * data.by_item.logs, 1.0 / self.item_variance,
            self.eta, self.anchor, ratings, data.items,
        )  # fmt: skip
        return log_p

    def m_step(self, data: _Data, priors: ProbitPriors) -> float:
        """New moments of (3) and (4) and slopes of (2); returns how far those of (3) moved."""
        by_user, by_item = data.by_user, data.by_item
        known, rated = by_user.counts > 0, by_item.counts > 0
        self.c_item, shift = _item_line(self.q, self.q_variance, self.item_variance, by_item)
        self.q -= shift
        self.eta[:, -1] += shift
        self.c_user = _slope(by_user.logs[known], self.eta[known, -1])  # (2)
        residual = self.eta.copy()
        residual[:, -1] -= self.c_user * by_user.logs
        before = self.mean, np.diag(self.covariance)
        self.mean = (residual[known].sum(axis=0) + self.first_mean) / (known.sum() + 1)  # (3)
        away = residual[known] - self.mean
        squares = self.eta_covariance[known].sum(axis=0) + away.T @ away
        self.covariance = _pooled(self.first_covariance, priors.weight, squares, known.sum())
        rest = (self.q - self.c_item * by_item.logs)[rated]
        squares = (self.q_variance[rated] + rest**2).sum()
        self.item_variance = _pooled(priors.item_sd**2, priors.weight, squares, rest.size)  # (4)
        self.prior_means = np.tile(self.mean, (by_user.counts.size, 1))
        self.prior_means[:, -1] += self.c_user * by_user.logs
        moved = self.mean - before[0], np.sqrt(np.diag(self.covariance)) - np.sqrt(before[1])
        return float(np.abs(moved).max())

    def fitted(self, data: _Data, n_iter: int, log_p: float) -> OrderedProbit:
        by_user, by_item = data.by_user, data.by_item
        t, by_person = (thresholds_from(eta, self.anchor) for eta in (self.mean, self.eta))
        constant = self.mean[-1] - self.c_user * by_user.centre - self.c_item * by_item.centre
        log_scale = self.eta[:, -1]
        widened = _widening(self.eta_covariance[:, 0, 0], log_scale)  # (5)
        return OrderedProbit(
            t,
            np.where(by_user.counts[:, None] > 0, by_person - t, 0.0),
            np.array([constant, self.c_user, self.c_item]),
            (self.eta - self.prior_means)[:, -1] + widened,
            np.where(by_item.counts > 0, self.q - self.c_item * by_item.logs, 0.0),
            by_user.counts,
            by_item.counts,
            n_iter,
            -log_p / max(data.scores.size, 1),
            self.covariance,
            self.anchor,
        )


@dataclass(frozen=True)
class _Group:
    """Ratings grouped by user or by item.

    ``logs`` are logarithms of the counts minus their ``centre``: a leave-one-out score rests on
    one rating fewer, so this is log(1 + n) of (2) for n - 1 ratings.
    """

    counts: np.ndarray
    order: np.ndarray
    start: np.ndarray
    logs: np.ndarray
    centre: float

    @classmethod
    def of(cls, codes: np.ndarray, n: int) -> _Group:
        groups = Groups.of(codes, n)
        counts = groups.sizes.astype(np.float64)
        logs = np.log(np.maximum(counts, 1.0))
        centre = float(logs[codes].mean()) if codes.size else 0.0
        return cls(counts, groups.order, groups.start, logs - centre, centre)


def _first_mean(scores: np.ndarray, levels: np.ndarray, n_ranks: int) -> tuple[np.ndarray, int]:
    """Starting mean of (3), from normal quantiles of the shares of ratings, and the anchor.

    The anchor is the threshold nearest to the median, which most ratings say something about.
    """
    from scipy.special import ndtri

    share = np.cumsum(np.bincount(levels, minlength=n_ranks) + 0.5)
    share = share[:-1] / share[-1]
    scores = scores if scores.size else np.zeros(1)  # a single rating has no held-out score
    t = ndtri(share) * np.sqrt(scores.var() + 0.6) + scores.mean()
    anchor = int(np.argmin(np.abs(share - 0.5)))
    gaps = np.log(np.maximum(np.diff(t), LEAST_GAP))
    log_scale = np.log(max(scores.std(), 1e-3)) * 0.5 - 0.2
    return np.concatenate([t[anchor : anchor + 1], gaps, [log_scale]]), anchor


def _widening(variance: Any, log_scale: Any) -> Any:
    """How much the log-scale grows if the thresholds have this posterior variance, (5)."""
    return 0.5 * np.log1p(variance * np.exp(-2.0 * log_scale))


def _item_line(
    q: np.ndarray, variance: np.ndarray, prior: float, items: _Group
) -> tuple[float, float]:
    """Slope of the items' log-scales on log counts, and the mean of the residuals.

    Items are weighted by the information in their ratings: for most, q is little more than its
    prior.
    """
    information = np.maximum(1.0 / variance - 1.0 / prior, 0.0)
    weight = np.where(items.counts > 0, information / (1.0 + information * prior), 0.0)
    slope = _slope(items.logs, q, weight)
    total = float(weight.sum())
    rest = q - slope * items.logs
    return slope, float(weight @ rest) / total if total > 0 else 0.0


def _slope(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Slope of the regression line of y on x; 0 if x does not vary."""
    w = np.ones(x.size) if weight is None else weight
    total = float(w.sum())
    if total <= 0.0:
        return 0.0
    x, y = x - w @ x / total, y - w @ y / total
    squares = float(w @ (x * x))
    return float(w @ (x * y)) / squares if squares > 1e-9 * total else 0.0


def _pooled(first: Any, weight: float, squares: Any, count: Any) -> Any:
    """A (co)variance from a sum of squares and a prior value that counts ``weight`` times."""
    return (weight * first + squares) / (weight + count)
