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
"""

from __future__ import annotations

import numpy as np

from ordrec.ordinal.boosting.orboost import bounded_ratio, log_sums, pulls
from ordrec.ordinal.thresholds.best import best_thresholds

__all__ = ["PairLoss"]


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
