"""Ordered thresholds for the exponential loss, by pooling adjacent violators.

min sum_k A_k exp(t_k) + B_k exp(-t_k) subject to t_1 <= ... <= t_T (Lin & Li 2006, (7)).
Alone, t_k = 1/2 ln(B_k / A_k); a pool of neighbours shares 1/2 ln(sum B / sum A). As
exp(2 t) = sum B / sum A is a mean of the B_k / A_k weighted by A_k, this is isotonic
regression in exp(2 t); here it is done in log space, where hundreds of rounds of boosting
do not overflow.
"""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import compiled

__all__ = ["pooled_thresholds"]


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
