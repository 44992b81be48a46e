"""Kernel components between entries, with the owner of the block left out exactly.

For owner o and entries e, f of their block (sums of `ordrec.recommend.process.pair_sums`, each
with o's own term taken off; ``n_e``, ``S_ee`` are the diagonal ones):

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
(12) one a time scale: ``exp(-|t_e - t_f| / tau)``; a rating of unknown time is taken to be given
     at one of the owner's known times, any of them alike: the mean of the kernel over these
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ordrec.recommend.process.pair_sums import N_SUMS

__all__ = [
    "N_FIXED",
    "N_SMOOTHED",
    "N_STATS",
    "OwnerView",
    "SideWeights",
    "entry_stats",
    "row_components",
    "view_entries",
    "view_owner",
]

N_FIXED = 8  # components (3) to (10); side kernels and time scales follow
N_SMOOTHED = 3  # smoothing counts s_0, s_1, s_2 of (3), (4), (6)
SQUARED_SMOOTHING = 5.0
N_STATS = 11
X, SEEN, MEAN, BY_RESIDUAL, BY_IMPLICIT, BY_SQUARED, BY_ACTIVITY, POPULARITY = range(8)
FALL = 8  # from here: s / (S_ee + s) of the three smoothed components
FAR = 25.0  # time scales apart, beyond which a time kernel is 0


class SideWeights(NamedTuple):
    """Weights of one side's components, and what is inside them.

    ``weights`` has one number a component, ``smoothing`` holds s_0, s_1, s_2, ``scales`` the
    seconds of the time kernels, ``popularity`` centre and spread of ``log(1 + n)``.
    """

    weights: np.ndarray
    smoothing: np.ndarray
    scales: np.ndarray
    popularity: np.ndarray


class OwnerView(NamedTuple):
    """One owner's training entries: codes, times, statistics (N_STATS, n), loadings (rank, n).

    ``usual`` (n_scales, n) are the means of (12) between each entry and an unknown time.
    """

    entry: np.ndarray
    time: np.ndarray
    stats: np.ndarray
    loadings: np.ndarray
    activity: float
    usual: np.ndarray


@njit(cache=True, nogil=True)
def view_owner(side, w, o):  # type: ignore[no-untyped-def]
    """What all rows of one owner's block need."""
    own = slice(side.start[o], side.start[o + 1])
    seen = np.ones(side.start[o + 1] - side.start[o])
    return view_entries(
        side, w, side.entry[own], side.x[own], seen, side.time[own], side.activity[o], side.fold[o]
    )


@njit(cache=True, nogil=True)
def view_entries(side, w, entry, x, seen, time, activity, fold):  # type: ignore[no-untyped-def]
    """The same for any entries; x and seen are what the kernel has to leave out."""
    stats = np.empty((N_STATS, entry.size))
    own = np.empty(N_STATS)
    loadings = np.empty((side.loadings.shape[2], entry.size))
    for b in range(entry.size):
        e = entry[b]
        entry_stats(side.gram[e, e], x[b], seen[b], activity, w, own)
        for k in range(N_STATS):
            stats[k, b] = own[k]
        for k in range(loadings.shape[0]):
            loadings[k, b] = side.loadings[fold, e, k]
    return OwnerView(entry, time, stats, loadings, activity, _usual(time, w.scales))


@njit(cache=True, nogil=True)
def _usual(time, scales):  # type: ignore[no-untyped-def]
    """Means of (12) over the known times; sums of exponentials run along the sorted times."""
    result = np.zeros((scales.size, time.size))
    if scales.size == 0 or not (time > 0.0).any():
        return result
    order = np.argsort(time)
    order = order[time[order] > 0.0]
    for k in range(scales.size):
        before = 0.0
        for a in range(order.size):
            if a > 0:
                before *= np.exp(-(time[order[a]] - time[order[a - 1]]) / scales[k])
            before += 1.0
            result[k, order[a]] = before
        after = 0.0
        for a in range(order.size - 2, -1, -1):
            after = (after + 1.0) * np.exp(-(time[order[a + 1]] - time[order[a]]) / scales[k])
            result[k, order[a]] += after
        result[k] /= order.size
        both_unknown = result[k].sum() / order.size
        for b in range(time.size):
            if not time[b] > 0.0:
                result[k, b] = both_unknown
    return result


@njit(cache=True, nogil=True)
def _kernel_of_times(time, other, scale):  # type: ignore[no-untyped-def]
    apart = abs(time - other) / scale
    return np.exp(-apart) if apart < FAR else 0.0


@njit(cache=True, nogil=True)
def entry_stats(diag, x, seen, activity, w, out):  # type: ignore[no-untyped-def]
    """What (3) to (9) need of one entry, the owner's own rating (x, seen) taken off.

    ``diag`` are the Gram slots of the entry with itself.
    """
    n = diag[3] - seen
    mean = (diag[1] - x) / (n + 1.0)  # (1)
    square = (diag[0] - x * x) - 2.0 * mean * (diag[1] - x) + mean * mean * n  # (2)
    square = max(square, 0.0)
    weight = max(diag[4] - activity * seen, 0.0)
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
def row_components(sums, own, loadings, time, owner, n, w, out):  # type: ignore[no-untyped-def]
    """Fill ``out[c, b]`` with components (3) to (12) of one entry and the owner's first n.

    ``sums`` is the entry's row of the Gram, ``own`` its statistics, ``loadings`` its loadings.
    """
    stats, entry = owner.stats, owner.entry
    x, seen, mean = own[X], own[SEEN], own[MEAN]
    n_side, n_components = sums.shape[1] - N_SUMS, out.shape[0]
    for b in range(n):
        f = entry[b]
        x_f, both, mean_f = stats[X, b], seen * stats[SEEN, b], stats[MEAN, b]
        common = sums[f, 3] - both
        residual = (
            (sums[f, 0] - x * x_f)
            - mean_f * (sums[f, 1] - x * stats[SEEN, b])
            - mean * (sums[f, 2] - seen * x_f)
            + mean * mean_f * common
        )  # (2)
        cosine = common * own[BY_SQUARED] * stats[BY_SQUARED, b]
        out[0, b] = residual * own[BY_RESIDUAL] * stats[BY_RESIDUAL, b]
        out[1, b] = common * own[BY_IMPLICIT] * stats[BY_IMPLICIT, b]
        out[2, b] = cosine * cosine
        active = sums[f, 4] - owner.activity * both
        out[3, b] = active * own[BY_ACTIVITY] * stats[BY_ACTIVITY, b]
        out[4, b] = 1.0
        out[5, b] = mean * mean_f
        out[6, b] = own[POPULARITY] * stats[POPULARITY, b]
        out[7, b] = 0.0
        for k in range(n_side):
            out[N_FIXED + k, b] = sums[f, N_SUMS + k]
    for k in range(loadings.size):
        for b in range(n):
            out[7, b] += loadings[k] * owner.loadings[k, b]
    for k in range(w.scales.size):
        scale, c = w.scales[k], n_components - w.scales.size + k
        here = -1.0  # mean of the kernel between this time and the known ones, when it is needed
        for b in range(n):
            if not time > 0.0:
                out[c, b] = owner.usual[k, b]
            elif owner.time[b] > 0.0:
                out[c, b] = _kernel_of_times(time, owner.time[b], scale)
            else:
                if here < 0.0:
                    here = _mean_kernel(time, owner.time, scale)
                out[c, b] = here


@njit(cache=True, nogil=True)
def _mean_kernel(time, times, scale):  # type: ignore[no-untyped-def]
    total, count = 0.0, 0
    for other in times:
        if other > 0.0:
            total += _kernel_of_times(time, other, scale)
            count += 1
    return total / max(count, 1)
