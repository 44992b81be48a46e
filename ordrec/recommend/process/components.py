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
(11) features  one per kernel of side information
(12) time      one per time scale, ``exp(-|t_e - t_f| / tau)``; a rating of unknown time is taken to
     be given at one of the owner's known times, each equally likely: the kernel's mean over these

`COMPONENTS` lists (3) to (12) in the order in which weights, blocks, posterior means and
explanations hold them. A new component is a line there, a default weight in
`ordrec.recommend.process.weights`, and the line that computes it in `row_components` (with its
statistics of one entry in `entry_stats`).

`ordrec.kernels._pairwise` leaves one user out of the same sums, for any sum of products of item
kernels. The loops are not shared, for speed and for the last digits. Medians of nine interleaved
runs on one thread of a busy machine, 65 000 ratings of 672 users and 3000 items: the five sums of
the full square take 0.21 s here, four of them 0.46 s with its `row_moments` (which writes double
precision), and four of half the pairs 0.27 s with its `table_rows`. Its rank-one downdate of (2)
has another order of operations: 2 % of the residual kernel's single-precision numbers change, by
at most 4e-9. Fold-in (`ordrec.recommend.process_model.fold_in`) uses the functions here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ordrec.compiling import inner
from ordrec.recommend.process.pair_sums import (
    ACTIVITY_SUM,
    COMMON_SUM,
    CROSS_SUM,
    N_SUMS,
    OTHER_SUM,
    OWN_SUM,
)

__all__ = [
    "COMPONENTS",
    "N_SMOOTHED",
    "N_STATS",
    "SMOOTHED",
    "SMOOTHED_NAMES",
    "Component",
    "OwnerView",
    "SideWeights",
    "component_names",
    "entry_components",
    "entry_stats",
    "row_components",
    "view_entries",
    "view_owner",
]


class Component(NamedTuple):
    """A kernel component, or a family of components.

    ``smoothed`` says whether it has a smoothing count, ``side`` whether it is on "both" sides or
    on the "item" side alone. A family has one component per name given to `component_names`;
    its members are called ``prefix`` plus that name.
    """

    name: str
    smoothed: bool = False
    side: str = "both"
    family: bool = False
    prefix: str = ""


COMPONENTS = (
    Component("residual", smoothed=True),  # (3)
    Component("implicit", smoothed=True),  # (4)
    Component("squared"),  # (5)
    Component("activity", smoothed=True),  # (6)
    Component("constant"),  # (7)
    Component("slope"),  # (8)
    Component("popularity"),  # (9)
    Component("lowrank"),  # (10)
    Component("features", family=True),  # (11)
    Component("time", side="item", family=True, prefix="time."),  # (12)
)
_SINGLE = tuple(component.name for component in COMPONENTS if not component.family)
SMOOTHED_NAMES = tuple(component.name for component in COMPONENTS if component.smoothed)

# What the compiled loops need of the table: the rows of the components on either side
# (families follow the single ones), and the place of each smoothing count.
RESIDUAL, IMPLICIT, SQUARED, ACTIVITY = map(
    _SINGLE.index, ("residual", "implicit", "squared", "activity")
)
CONSTANT, SLOPE, POPULARITY, LOW_RANK = map(
    _SINGLE.index, ("constant", "slope", "popularity", "lowrank")
)
N_FIXED = len(_SINGLE)
SMOOTHED = tuple(_SINGLE.index(name) for name in SMOOTHED_NAMES)
N_SMOOTHED = len(SMOOTHED)
S_RESIDUAL, S_IMPLICIT, S_ACTIVITY = map(SMOOTHED_NAMES.index, ("residual", "implicit", "activity"))

# Rows of an entry's statistics.
X, SEEN, MEAN, BY_RESIDUAL, BY_IMPLICIT, BY_SQUARED, BY_ACTIVITY, BY_POPULARITY = range(8)
SHRINKAGE = 8  # from here on: s / (S_ee + s) of the smoothed components
N_STATS = SHRINKAGE + N_SMOOTHED

SQUARED_SMOOTHING = 5.0
FAR = 25.0  # a time kernel is 0 beyond this many time scales


def component_names(side: str, kernels: Sequence[str], scales: Sequence[str]) -> list[str]:
    """Names of the components of the "item" or the "user" side, in the order of the arrays.

    ``kernels`` name the kernels of side information, ``scales`` the time scales.

    Examples
    --------
    >>> component_names("item", ["labels"], ["2h"])[-3:]
    ['lowrank', 'labels', 'time.2h']
    """
    members = {"features": kernels, "time": scales}
    names: list[str] = []
    for component in COMPONENTS:
        if component.side in ("both", side):
            of_family = members[component.name] if component.family else [component.name]
            names += [f"{component.prefix}{name}" for name in of_family]
    return names


class SideWeights(NamedTuple):
    """Weights of one side's components, and the parameters inside the components.

    ``weights`` has one number per component, ``smoothing`` one smoothing count per smoothed
    component (s_0, s_1, s_2), ``scales`` the seconds of the time kernels, ``popularity`` the
    centre and the spread of ``log(1 + n)``.
    """

    weights: np.ndarray
    smoothing: np.ndarray
    scales: np.ndarray
    popularity: np.ndarray


class OwnerView(NamedTuple):
    """One owner's training entries: codes, times, statistics (N_STATS, n), loadings (rank, n).

    ``unknown_time`` (n_scales, n) holds (12) between each entry and a rating of unknown time.
    """

    entry: np.ndarray
    time: np.ndarray
    stats: np.ndarray
    loadings: np.ndarray
    activity: float
    unknown_time: np.ndarray


@inner
def view_owner(side, w, o):  # type: ignore[no-untyped-def]
    """The view of one owner, for all rows of their block."""
    own = slice(side.start[o], side.start[o + 1])
    seen = np.ones(side.start[o + 1] - side.start[o])
    return view_entries(
        side, w, side.entry[own], side.x[own], seen, side.time[own], side.activity[o], side.fold[o]
    )


@inner
def view_entries(side, w, entry, x, seen, time, activity, fold):  # type: ignore[no-untyped-def]
    """The view of any entries; the kernel leaves out the ratings ``x``, given where ``seen``."""
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
    return OwnerView(entry, time, stats, loadings, activity, _unknown_time(time, w.scales))


@inner
def _unknown_time(time, scales):  # type: ignore[no-untyped-def]
    """(12) between each time and an unknown one: the kernel's mean over the known times.

    The sums of exponentials run along the sorted times, once forwards and once backwards.
    """
    result = np.zeros((scales.size, time.size))
    order, n = np.empty(time.size, dtype=np.int64), 0
    for b in range(time.size):
        if time[b] > 0.0:
            order[n] = b
            n += 1
    if scales.size == 0 or n == 0:
        return result
    _sort_by(time, order, n)
    for k in range(scales.size):
        before, total = 0.0, 0.0
        for a in range(n):
            if a > 0:
                before *= np.exp(-(time[order[a]] - time[order[a - 1]]) / scales[k])
            before += 1.0
            result[k, order[a]] = before
        after = 0.0
        for a in range(n - 2, -1, -1):
            after = (after + 1.0) * np.exp(-(time[order[a + 1]] - time[order[a]]) / scales[k])
            result[k, order[a]] += after
        for a in range(n):
            result[k, order[a]] /= n
            total += result[k, order[a]]
        for b in range(time.size):
            if not time[b] > 0.0:
                result[k, b] = total / n  # both unknown
    return result


@inner
def _sort_by(key, order, n):  # type: ignore[no-untyped-def]
    """Sort the first n of ``order`` by their keys: a heap, which compiles ten times faster than
    `np.argsort`."""
    for built in range(2 * n):
        if built < n:  # the largest key moves to the front
            root, end = n - 1 - built, n
        else:  # and from there to the end
            root, end = 0, 2 * n - 1 - built
            order[0], order[end] = order[end], order[0]
        child = 2 * root + 1
        while child < end:
            if child + 1 < end and key[order[child + 1]] > key[order[child]]:
                child += 1
            if key[order[child]] <= key[order[root]]:
                break
            order[root], order[child] = order[child], order[root]
            root, child = child, 2 * child + 1


@inner
def _kernel_of_times(time, other, scale):  # type: ignore[no-untyped-def]
    """``exp(-|t_e - t_f| / tau)`` of (12)."""
    apart = abs(time - other) / scale
    return np.exp(-apart) if apart < FAR else 0.0


@inner
def entry_stats(diag, x, seen, activity, w, out):  # type: ignore[no-untyped-def]
    """Statistics of one entry that (3) to (9) need, without the owner's own rating (x, seen).

    ``diag`` are the Gram slots of the entry with itself.
    """
    n = diag[COMMON_SUM] - seen
    mean = (diag[OWN_SUM] - x) / (n + 1.0)  # (1)
    square = (diag[CROSS_SUM] - x * x) - 2.0 * mean * (diag[OWN_SUM] - x) + mean * mean * n  # (2)
    square = max(square, 0.0)
    weight = max(diag[ACTIVITY_SUM] - activity * seen, 0.0)
    s_0, s_1, s_2 = w.smoothing[S_RESIDUAL], w.smoothing[S_IMPLICIT], w.smoothing[S_ACTIVITY]
    out[X] = x
    out[SEEN] = seen
    out[MEAN] = mean
    out[BY_RESIDUAL] = 1.0 / np.sqrt(square + s_0)  # (3)
    out[BY_IMPLICIT] = 1.0 / np.sqrt(n + s_1)  # (4)
    out[BY_SQUARED] = 1.0 / np.sqrt(n + SQUARED_SMOOTHING)  # (5)
    out[BY_ACTIVITY] = 1.0 / np.sqrt(weight + s_2)  # (6)
    out[BY_POPULARITY] = (np.log1p(max(n, 0.0)) - w.popularity[0]) / w.popularity[1]  # (9)
    out[SHRINKAGE + S_RESIDUAL] = s_0 / (square + s_0)
    out[SHRINKAGE + S_IMPLICIT] = s_1 / (n + s_1)
    out[SHRINKAGE + S_ACTIVITY] = s_2 / (weight + s_2)


@inner
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
        common = sums[f, COMMON_SUM] - both
        residual = (
            (sums[f, CROSS_SUM] - x * x_f)
            - mean_f * (sums[f, OWN_SUM] - x * stats[SEEN, b])
            - mean * (sums[f, OTHER_SUM] - seen * x_f)
            + mean * mean_f * common
        )  # (2)
        cosine = common * own[BY_SQUARED] * stats[BY_SQUARED, b]
        out[RESIDUAL, b] = residual * own[BY_RESIDUAL] * stats[BY_RESIDUAL, b]  # (3)
        out[IMPLICIT, b] = common * own[BY_IMPLICIT] * stats[BY_IMPLICIT, b]  # (4)
        out[SQUARED, b] = cosine * cosine  # (5)
        active = sums[f, ACTIVITY_SUM] - owner.activity * both
        out[ACTIVITY, b] = active * own[BY_ACTIVITY] * stats[BY_ACTIVITY, b]  # (6)
        out[CONSTANT, b] = 1.0  # (7)
        out[SLOPE, b] = mean * mean_f  # (8)
        out[POPULARITY, b] = own[BY_POPULARITY] * stats[BY_POPULARITY, b]  # (9)
        out[LOW_RANK, b] = 0.0
        for k in range(n_side):
            out[N_FIXED + k, b] = sums[f, N_SUMS + k]  # (11)
    for k in range(loadings.size):
        for b in range(n):
            out[LOW_RANK, b] += loadings[k] * owner.loadings[k, b]  # (10)
    for k in range(w.scales.size):  # (12)
        scale, c = w.scales[k], n_components - w.scales.size + k
        here = -1.0  # the kernel's mean between this time and the known ones, once it is needed
        for b in range(n):
            if not time > 0.0:
                out[c, b] = owner.unknown_time[k, b]
            elif owner.time[b] > 0.0:
                out[c, b] = _kernel_of_times(time, owner.time[b], scale)
            else:
                if here < 0.0:
                    here = _mean_kernel(time, owner.time, scale)
                out[c, b] = here


@inner
def entry_components(side, w, view, fold, e, time, x, seen, own, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the components of any entry e with a view, ``own`` with its statistics.

    ``x`` and ``seen`` are the owner's own rating of e, which the kernel leaves out.
    """
    entry_stats(side.gram[e, e], x, seen, view.activity, w, own)
    n = view.entry.size
    row_components(side.gram[e], own, side.loadings[fold, e], time, view, n, w, out)


@inner
def _mean_kernel(time, times, scale):  # type: ignore[no-untyped-def]
    """Mean of the time kernel between a time and all known ones."""
    total, count = 0.0, 0
    for other in times:
        if other > 0.0:
            total += _kernel_of_times(time, other, scale)
            count += 1
    return total / max(count, 1)
