"""ORBoost: the exponential loss of margins at thresholds (Lin & Li 2006, sections 4.2, 4.3).

Departures
----------
A score on a threshold belongs to the upper rank
    The paper's rule is H <= theta for the lower one; all threshold models here share one rule.
    Effect: ties alone, which scores of several sigmoids do not have.
Sums are kept in log space
    Exponentials overflow near 2000 rounds. Effect: RankBoost-AE with perceptrons does not fail.
The search for a perceptron takes longer than in the authors' program
    ``PerceptronRCD(published=True)`` searches as that program. Effect: see the two rows of the
    tables.
Trees as members
    ``base="tree"`` is not in the paper, whose Theorem 1 holds for any base learner.
    Effect: place 9 of 15 by MAE on 17 survey sets (`orboost-trees`), behind kernel machines.

With c the sample weights, the loss is

    immediate (5)    sum_n c_n [exp(-rho_L) + exp(-rho_R)]
    all (8)          sum_n c_n sum_k exp(-rho_k)

and, as a function of one sample's score, p exp(d) + q exp(-d) when its score moves by d:

    p_n = c_n exp(H_n) sum_{k in reach, k >= y_n} exp(-theta_k)     thresholds above it
    q_n = c_n exp(-H_n) sum_{k in reach, k < y_n} exp(theta_k)      thresholds below it

(ranks and thresholds from 0; the paper's (6) prints ``theta_{y_n} - 1`` for theta_{y_n - 1}).
The sums over k depend on the rank only. All sums are kept as logarithms; p and q carry a
common factor, which no step depends on: g = p - q is the gradient (weights of the binary
problem), alpha = 1/2 ln(W- / W+) and theta_k = 1/2 ln(B_k / A_k) are ratios.

For the immediate reach the thresholds solve min sum_k A_k exp(t_k) + B_k exp(-t_k) subject to
t_1 <= ... <= t_T (7), by pooling adjacent violators (`pooled_thresholds`). Alone,
t_k = 1/2 ln(B_k / A_k); a pool of neighbours shares 1/2 ln(sum B / sum A). As
exp(2 t) = sum B / sum A is a mean of the B_k / A_k weighted by A_k, this is isotonic
regression in exp(2 t); here it is done in log space, where hundreds of rounds of boosting
do not overflow.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.losses import Reach
from ordrec.runtime.compiling import compiled

__all__ = ["MarginLoss", "bounded_ratio", "log_sums", "pooled_thresholds", "pulls"]

LONGEST = 12.0  # length of a step that would be infinite, as the member makes no mistake


class MarginLoss:
    """The loss of one training set, for either reach; every rank must have samples."""

    def __init__(self, ranks: np.ndarray, n_ranks: int, weight: np.ndarray, reach: Reach):
        self.ranks = ranks
        self.n_ranks = n_ranks
        self.log_weight = np.log(weight)
        self.reach = reach

    def thresholds(self, H: np.ndarray) -> np.ndarray:
        """Return the thresholds that minimise the loss for given scores, (7)."""
        up, down = log_sums(H, self.ranks, self.n_ranks, self.log_weight)
        if self.reach == "immediate":
            return pooled_thresholds(up[:-1], down[1:])
        below = np.logaddexp.accumulate(up)[:-1]
        above = np.logaddexp.accumulate(down[::-1])[::-1][1:]
        return 0.5 * (below - above)

    def pulls(self, H: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return p and q over a common factor, and the logarithm of the loss."""
        end = np.array([-np.inf])
        if self.reach == "immediate":
            above, below = np.concatenate([-theta, end]), np.concatenate([end, theta])
        else:
            above = np.concatenate([np.logaddexp.accumulate(-theta[::-1])[::-1], end])
            below = np.concatenate([end, np.logaddexp.accumulate(theta)])
        return pulls(H, self.ranks, self.log_weight, above, below)

    def step(self, h: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        """Return 1/2 ln(W- / W+), which minimises a bound that is exact for h in {-1, 0, 1}."""
        up, down = np.maximum(h, 0.0), np.maximum(-h, 0.0)
        return 0.5 * bounded_ratio(up @ q + down @ p, up @ p + down @ q)


def bounded_ratio(w_minus: float, w_plus: float) -> float:
    """Return ln(W- / W+), clipped to finite bounds; 0 if both are zero."""
    if w_minus <= 0.0 and w_plus <= 0.0:
        return 0.0
    with np.errstate(divide="ignore"):
        ratio = np.log(w_minus) - np.log(w_plus)
    return float(np.clip(ratio, -2.0 * LONGEST, 2.0 * LONGEST))


@compiled
def log_sums(
    H: np.ndarray, ranks: np.ndarray, n_ranks: int, log_weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ln sum c exp(H) and ln sum c exp(-H) over the samples of each rank."""
    high, low, up, down = np.empty(n_ranks), np.empty(n_ranks), np.empty(n_ranks), np.empty(n_ranks)
    for y in range(n_ranks):
        high[y], low[y], up[y], down[y] = -np.inf, -np.inf, 0.0, 0.0
    for i in range(H.size):
        y = ranks[i]
        high[y] = max(high[y], log_weight[i] + H[i])
        low[y] = max(low[y], log_weight[i] - H[i])
    for i in range(H.size):
        y = ranks[i]
        up[y] += np.exp(log_weight[i] + H[i] - high[y])
        down[y] += np.exp(log_weight[i] - H[i] - low[y])
    for y in range(n_ranks):
        if up[y] > 0.0:
            up[y], down[y] = high[y] + np.log(up[y]), low[y] + np.log(down[y])
        else:
            up[y], down[y] = -np.inf, -np.inf
    return up, down


@compiled
def pulls(
    H: np.ndarray,
    ranks: np.ndarray,
    log_weight: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return c exp(H + above[y]), c exp(-H + below[y]), over the largest, and ln of the sum."""
    top = -np.inf
    for i in range(H.size):
        y = ranks[i]
        top = max(top, log_weight[i] + max(H[i] + above[y], below[y] - H[i]))
    p, q, total = np.empty(H.size), np.empty(H.size), 0.0
    for i in range(H.size):
        y = ranks[i]
        p[i] = np.exp(log_weight[i] + H[i] + above[y] - top)
        q[i] = np.exp(log_weight[i] - H[i] + below[y] - top)
        total += p[i] + q[i]
    return p, q, top + np.log(total)


@compiled
def pooled_thresholds(log_below: np.ndarray, log_above: np.ndarray) -> np.ndarray:
    """Return ordered t from ``log_below = ln B`` and ``log_above = ln A``, both finite.

    Examples
    --------
    >>> pooled_thresholds(np.log([4.0, 1.0, 9.0]), np.log([1.0, 4.0, 1.0])).round(4)
    array([0.    , 0.    , 1.0986])
    """
    n = log_below.size
    below, above = np.empty(n), np.empty(n)
    size = np.zeros(n, dtype=np.int64)
    pools = 0
    for k in range(n):
        below[pools], above[pools], size[pools] = log_below[k], log_above[k], 1
        pools += 1
        while pools > 1 and (
            below[pools - 2] - above[pools - 2] > below[pools - 1] - above[pools - 1]
        ):
            pools -= 1
            below[pools - 1] = np.logaddexp(below[pools - 1], below[pools])
            above[pools - 1] = np.logaddexp(above[pools - 1], above[pools])
            size[pools - 1] += size[pools]
    thresholds = np.empty(n)
    start = 0
    for pool in range(pools):
        thresholds[start : start + size[pool]] = 0.5 * (below[pool] - above[pool])
        start += size[pool]
    return thresholds
