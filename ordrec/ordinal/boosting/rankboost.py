"""RankBoost for ordinal regression, RankBoost-AE (Lin & Li 2006, section 4.1).

The loss (3) runs over all pairs of samples of different rank, but factorises over ranks:

    sum_{y_i > y_j} c_i c_j exp(-(H_i - H_j)) = sum_{a > b} S_a^- S_b^+,
    S_a^- = sum_{y = a} c exp(-H),   S_b^+ = sum_{y = b} c exp(H).

When one sample's score moves by d its part changes as p exp(d) + q exp(-d), as in `orboost`,
with p_n = c_n exp(H_n) sum_{a > y_n} S_a^- and q_n = c_n exp(-H_n) sum_{b < y_n} S_b^+. A
round costs O(n), never O(n^2).

The step minimises the bound of Freund et al. (2003, section 3.2) for differences
h_i - h_j in [-2, 2]: exp(-a d) <= (1 + d/2)/2 exp(-2a) + (1 - d/2)/2 exp(2a), so
4 a = ln (2Z + r) / (2Z - r), Z = sum p = sum q, r = sum h (q - p). It stays finite under
partial matching, where the exact step would not.

The thresholds are those that cost least on the training samples (`best_thresholds`). Sorted by
score, the samples are cut into n_ranks consecutive segments (some perhaps empty),
one for each predicted rank. With D[j, c] the least cost of the first c samples when ranks up
to j are in use,

    D[j, c] = min( D[j - 1, c],  D[j, c - 1] + cost of sample c at rank j ),

so the best cuts are found in O(n n_ranks) after sorting (Lin & Li 2006, section 4.1). Equal
scores are never separated. Where several cuts are equally good, the middle one is taken.
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.boosting.orboost import bounded_ratio, log_sums, pulls
from ordrec.runtime.compiling import compiled

__all__ = ["PairLoss", "best_thresholds"]


class PairLoss:
    """The pairwise loss of one training set, which does not depend on thresholds.

    The thresholds have the least absolute error on the training samples, (4), or make the fewest
    mistakes, as the paper says can be done as well.
    """

    def __init__(
        self, ranks: np.ndarray, n_ranks: int, weight: np.ndarray, *, mistakes: bool = False
    ):
        self.ranks = ranks
        self.n_ranks = n_ranks
        self.weight = weight
        self.log_weight = np.log(weight)
        self.costs = 1.0 - np.eye(n_ranks) if mistakes else None

    def thresholds(self, H: np.ndarray) -> np.ndarray:
        """Return the best thresholds on the training samples, (4)."""
        return best_thresholds(H, self.ranks, self.n_ranks, self.weight, self.costs)

    def pulls(self, H: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return p and q over a common factor, and the logarithm of the loss."""
        up, down = log_sums(H, self.ranks, self.n_ranks, self.log_weight)
        end = np.array([-np.inf])
        above = np.concatenate([np.logaddexp.accumulate(down[::-1])[::-1][1:], end])
        below = np.concatenate([end, np.logaddexp.accumulate(up)[:-1]])
        p, q, log_sum = pulls(H, self.ranks, self.log_weight, above, below)
        return p, q, log_sum - np.log(2.0)  # every pair was counted by both of its samples

    def step(self, h: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        """Return a = 1/4 ln (2Z + r) / (2Z - r)."""
        return 0.25 * bounded_ratio((1.0 + h) @ q + (1.0 - h) @ p, (1.0 - h) @ q + (1.0 + h) @ p)


def best_thresholds(
    scores: np.ndarray,
    ranks: np.ndarray,
    n_ranks: int,
    weight: np.ndarray | None = None,
    costs: np.ndarray | None = None,
) -> np.ndarray:
    """Return the ordered thresholds of least total cost.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    ranks : ndarray of shape (n,)
        Zero-based.
    weight : ndarray of shape (n,), optional
    costs : ndarray of shape (n_ranks, n_ranks), optional
        Cost of predicting the column's rank when the row's rank is true; by default the
        absolute difference of the ranks.

    Examples
    --------
    >>> best_thresholds(np.array([0.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 2]), 3).tolist()
    [1.5, 3.5]
    """
    if costs is None:
        scale = np.arange(n_ranks, dtype=np.float64)
        costs = np.abs(scale[:, None] - scale)
    values, place = np.unique(scores, return_inverse=True)
    count = np.zeros((values.size, n_ranks))
    np.add.at(count, (place, ranks), 1.0 if weight is None else weight)
    cuts = _best_cuts(count @ costs)
    gap = (values[-1] - values[0]) / (values.size - 1) if values.size > 1 else 1.0
    edges = np.concatenate([[values[0] - gap], values, [values[-1] + gap]])
    return 0.5 * (edges[cuts] + edges[cuts + 1])


@compiled
def _best_cuts(cost: np.ndarray) -> np.ndarray:
    """How many of the sorted values lie below each threshold; cost is (n values, n_ranks)."""
    n, n_ranks = cost.shape
    D = np.empty((n_ranks, n + 1))
    alone = np.empty((n_ranks, n + 1))  # cost of the first c values, all at rank j
    for j in range(n_ranks):
        alone[j, 0] = 0.0
        D[j, 0] = 0.0
        for c in range(1, n + 1):
            alone[j, c] = alone[j, c - 1] + cost[c - 1, j]
            D[j, c] = D[j, c - 1] + cost[c - 1, j]
            if j and D[j - 1, c] < D[j, c]:
                D[j, c] = D[j - 1, c]
    cuts = np.empty(n_ranks - 1, dtype=np.int64)
    end = n
    for j in range(n_ranks - 1, 0, -1):
        # every start of segment j that is as good as the best one, up to rounding; the best is
        # looked up here, since D[j, end] was summed in another order
        slack = 1e-9 * (1.0 + D[n_ranks - 1, n])
        least = np.inf
        for c in range(end + 1):
            least = min(least, D[j - 1, c] + alone[j, end] - alone[j, c])
        good = 0
        for c in range(end + 1):
            if D[j - 1, c] + alone[j, end] - alone[j, c] <= least + slack:
                good += 1
        middle = (good + 1) // 2
        for c in range(end + 1):
            if D[j - 1, c] + alone[j, end] - alone[j, c] <= least + slack:
                middle -= 1
                if middle == 0:
                    cuts[j - 1] = c
                    break
        end = cuts[j - 1]
    return cuts
