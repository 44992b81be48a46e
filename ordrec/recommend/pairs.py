"""Kernel components of one pair of entries, with the owner of the block left out exactly.

For owner o and entries e, f of his block (sums of `ordrec.recommend.gram`, o's own term
taken off each; ``n_e``, ``S_ee`` are the diagonal ones):

(1) ``c_e = sum x_e / (n_e + 1)``, the damped mean of the other owners' ratings
(2) ``S_ef = P_ef - c_f Q_ef - c_e Q_fe + c_e c_f N_ef``
(3) residual   ``S_ef / sqrt((S_ee + s_0)(S_ff + s_0))``
(4) implicit   ``N_ef / sqrt((n_e + s_1)(n_f + s_1))``
(5) squared    the square of (4) with ``s = 5``
(6) activity   ``A_ef / sqrt((A_ee + s_2)(A_ff + s_2))``, co-raters weighted by 1 / activity
(7) constant   ``1``
(8) slope      ``c_e c_f``
(9) popularity ``l_e l_f`` with ``l = log(1 + n)`` standardised
(10) low rank  ``q_e . q_f``, loadings fitted without the owner's fold
(11) one a kernel of side information
(12) one a time scale: ``exp(-|t_e - t_f| / tau)``, 0 where a time is unknown
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ordrec.recommend.gram import N_SUMS

__all__ = ["N_FIXED", "N_SMOOTHED", "SideWeights", "entry_stats", "pair_components"]

N_FIXED = 8  # components (3) to (10); side kernels and time scales follow
N_SMOOTHED = 3  # smoothing counts s_0, s_1, s_2 of (3), (4), (6)
SQUARED_SMOOTHING = 5.0
N_STATS = 11
X, SEEN, MEAN, BY_RESIDUAL, BY_IMPLICIT, BY_SQUARED, BY_ACTIVITY, POPULARITY = range(8)
FALL = 8  # from here: s / (S_ee + s) of the three smoothed components


class SideWeights(NamedTuple):
    """Weights of one side's components, and what is inside them.

    ``weights`` has one number a component, ``smoothing`` holds s_0, s_1, s_2, ``scales`` the
    seconds of the time kernels, ``popularity`` centre and spread of ``log(1 + n)``.
    """

    weights: np.ndarray
    smoothing: np.ndarray
    scales: np.ndarray
    popularity: np.ndarray


@njit(cache=True, nogil=True)
def entry_stats(gram, e, x, seen, activity, w, out):  # type: ignore[no-untyped-def]
    """What (3) to (9) need of one entry, the owner's own rating (x, seen) taken off."""
    n = gram[e, e, 3] - seen
    mean = (gram[e, e, 1] - x) / (n + 1.0)  # (1)
    square = (gram[e, e, 0] - x * x) - 2.0 * mean * (gram[e, e, 1] - x) + mean * mean * n  # (2)
    square = max(square, 0.0)
    weight = max(gram[e, e, 4] - activity * seen, 0.0)
    s = w.smoothing
    out[X] = x
    out[SEEN] = seen
    out[MEAN] = mean
    out[BY_RESIDUAL] = 1.0 / np.sqrt(square + s[0])
    out[BY_IMPLICIT] = 1.0 / np.sqrt(n + s[1])
    out[BY_SQUARED] = 1.0 / np.sqrt(n + SQUARED_SMOOTHING)
    out[BY_ACTIVITY] = 1.0 / np.sqrt(weight + s[2])
    out[POPULARITY] = (np.log1p(max(n, 0.0)) - w.popularity[0]) / w.popularity[1]
    out[FALL] = s[0] / (square + s[0])
    out[FALL + 1] = s[1] / (n + s[1])
    out[FALL + 2] = s[2] / (weight + s[2])


@njit(cache=True, nogil=True)
def pair_components(sums, e, f, activity, q_e, q_f, time_e, time_f, w, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with components (3) to (12) of one pair.

    ``sums`` are the pair's Gram slots, ``e`` and ``f`` the two entries' statistics.
    """
    both = e[SEEN] * f[SEEN]
    n = sums[3] - both
    residual = (
        (sums[0] - e[X] * f[X])
        - f[MEAN] * (sums[1] - e[X] * f[SEEN])
        - e[MEAN] * (sums[2] - e[SEEN] * f[X])
        + e[MEAN] * f[MEAN] * n
    )  # (2)
    out[0] = residual * e[BY_RESIDUAL] * f[BY_RESIDUAL]
    out[1] = n * e[BY_IMPLICIT] * f[BY_IMPLICIT]
    out[2] = (n * e[BY_SQUARED] * f[BY_SQUARED]) ** 2
    out[3] = (sums[4] - activity * both) * e[BY_ACTIVITY] * f[BY_ACTIVITY]
    out[4] = 1.0
    out[5] = e[MEAN] * f[MEAN]
    out[6] = e[POPULARITY] * f[POPULARITY]
    product = 0.0
    for k in range(q_e.size):
        product += q_e[k] * q_f[k]
    out[7] = product
    n_side = sums.size - N_SUMS
    for k in range(n_side):
        out[N_FIXED + k] = sums[N_SUMS + k]
    known = time_e > 0.0 and time_f > 0.0
    for k in range(w.scales.size):
        apart = np.exp(-abs(time_e - time_f) / w.scales[k]) if known else 0.0
        out[N_FIXED + n_side + k] = apart
