"""Kernel components between entries, with the owner of the block left out exactly.

For owner o and entries e, f of their block (sums of `ordrec.rating.process.kernel.pair_sums`, each
with o's own term taken off; ``n_e``, ``S_ee`` are the diagonal ones):

(1) ``c_e = sum x_e / (n_e + 1)``, the damped mean of the other owners' ratings
(2) ``S_ef = P_ef - c_f Q_ef - c_e Q_fe + c_e c_f N_ef``, by (1) of `ordrec.kernels.items.moments`
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
`ordrec.rating.process.kernel.weights`, and the line that computes it in `row_components` (with what
it needs of one entry in `entry_numbers`).

Fold-in (`ordrec.rating.process.fold_in`) uses the functions here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ordrec.kernels.items.moments import centred_product
from ordrec.rating.process.kernel.pair_sums import (
    ACTIVITY_SUM,
    COMMON_SUM,
    CROSS_SUM,
    N_SUMS,
    OTHER_SUM,
    OWN_SUM,
)
from ordrec.runtime.compiling import compiled, inner

__all__ = [
    "COMPONENTS",
    "N_NUMBERS",
    "N_SMOOTHED",
    "SHRINKAGE",
    "SMOOTHED",
    "SMOOTHED_NAMES",
    "TIME",
    "Component",
    "Entries",
    "SideWeights",
    "add_mean_times",
    "component_names",
    "entry_numbers",
    "row_components",
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

# Rows of an entry's numbers.
X, SEEN, MEAN, BY_RESIDUAL, BY_IMPLICIT, BY_SQUARED, BY_ACTIVITY, BY_POPULARITY = range(8)
SHRINKAGE = 8  # from here on: s / (S_ee + s) of the smoothed components
TIME = SHRINKAGE + N_SMOOTHED
N_NUMBERS = TIME + 1  # from here on: loadings, then means of the time kernels

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


class Entries(NamedTuple):
    """Entries of several owners, with the numbers of which the components of pairs are made.

    Attributes
    ----------
    start : int64 (n_owners + 1,)
        Where the entries of each owner begin.
    code : int64 (n,)
        The row of each entry in the pair sums.
    numbers : float64 (n_numbers, n)
        See `entry_numbers`.
    """

    start: np.ndarray
    code: np.ndarray
    numbers: np.ndarray


def entry_numbers(
    diag: np.ndarray,
    x: np.ndarray,
    seen: np.ndarray,
    activity: np.ndarray,
    time: np.ndarray,
    loadings: np.ndarray,
    w: SideWeights,
) -> np.ndarray:
    """What (3) to (12) need of each entry, without the owner's own rating (x, where seen).

    ``diag`` are the pair sums of the entries with themselves, ``loadings`` (n, rank) those without
    the owner. The means of (12) over the owner's known times stay 0 until `add_mean_times`.
    """
    rank, n_scales = loadings.shape[1], w.scales.size
    out = np.zeros((N_NUMBERS + rank + n_scales, x.size))
    n = diag[:, COMMON_SUM] - seen
    total = diag[:, OWN_SUM] - x
    mean = total / (n + 1.0)  # (1)
    square = (diag[:, CROSS_SUM] - x * x) - 2.0 * mean * total + mean * mean * n  # (2)
    square = np.maximum(square, 0.0)
    weight = np.maximum(diag[:, ACTIVITY_SUM] - activity * seen, 0.0)
    s_0, s_1, s_2 = w.smoothing[S_RESIDUAL], w.smoothing[S_IMPLICIT], w.smoothing[S_ACTIVITY]
    out[X], out[SEEN], out[MEAN], out[TIME] = x, seen, mean, time
    out[BY_RESIDUAL] = 1.0 / np.sqrt(square + s_0)  # (3)
    out[BY_IMPLICIT] = 1.0 / np.sqrt(n + s_1)  # (4)
    out[BY_SQUARED] = 1.0 / np.sqrt(n + SQUARED_SMOOTHING)  # (5)
    out[BY_ACTIVITY] = 1.0 / np.sqrt(weight + s_2)  # (6)
    out[BY_POPULARITY] = (np.log1p(np.maximum(n, 0.0)) - w.popularity[0]) / w.popularity[1]  # (9)
    out[SHRINKAGE + S_RESIDUAL] = s_0 / (square + s_0)
    out[SHRINKAGE + S_IMPLICIT] = s_1 / (n + s_1)
    out[SHRINKAGE + S_ACTIVITY] = s_2 / (weight + s_2)
    out[N_NUMBERS : N_NUMBERS + rank] = loadings.T  # (10)
    return out


def add_mean_times(rows: Entries, columns: Entries, w: SideWeights) -> None:
    """Write the means of (12) over the known times of each owner's columns, if any are unknown."""
    known = columns.numbers[TIME] > 0.0
    if w.scales.size == 0 or (known.all() and (rows.numbers[TIME] > 0.0).all()):
        return
    owner = np.repeat(np.arange(columns.start.size - 1), np.diff(columns.start))
    count = np.maximum(np.bincount(owner[known], minlength=columns.start.size - 1), 1)
    for entries in (columns,) if rows is columns else (columns, rows):
        means = entries.numbers[-w.scales.size :]
        _mean_kernels(columns.start, columns.numbers[TIME], entries.start,
                      entries.numbers[TIME], w.scales, means)  # fmt: skip
    for mean in columns.numbers[-w.scales.size :]:
        both = np.bincount(owner[known], mean[known], minlength=count.size) / count
        mean[~known] = both[owner[~known]]  # both unknown


@compiled
def _mean_kernels(start, time, row_start, row_time, scales, out):  # type: ignore[no-untyped-def]
    """Mean of the time kernels between each row and all known times of its owner."""
    for o in range(start.size - 1):
        for q in range(row_start[o], row_start[o + 1]):
            for k in range(scales.size):
                total, count = 0.0, 0
                for b in range(start[o], start[o + 1]):
                    if time[b] > 0.0:
                        total += _kernel_of_times(row_time[q], time[b], scales[k])
                        count += 1
                out[k, q] = total / max(count, 1)


@inner
def _kernel_of_times(time, other, scale):  # type: ignore[no-untyped-def]
    """``exp(-|t_e - t_f| / tau)`` of (12)."""
    apart = abs(time - other) / scale
    return np.exp(-apart) if apart < FAR else 0.0


@inner
def row_components(sums, rows, q, view, activity, scales, n, out):  # type: ignore[no-untyped-def]
    """Fill ``out[c, b]`` with components (3) to (12) of row q and an owner's first n entries.

    ``sums`` are the moments of these pairs, as `gather_row` writes them; ``view`` has the numbers
    of the owner's entries.
    """
    x, seen, mean, time = rows[X, q], rows[SEEN, q], rows[MEAN, q], rows[TIME, q]
    by_residual, by_implicit = rows[BY_RESIDUAL, q], rows[BY_IMPLICIT, q]
    by_squared, by_activity = rows[BY_SQUARED, q], rows[BY_ACTIVITY, q]
    popularity = rows[BY_POPULARITY, q]
    for b in range(n):
        seen_f, mean_f = view[SEEN, b], view[MEAN, b]
        both = seen * seen_f
        common = sums[COMMON_SUM, b] - both
        residual = centred_product(
            sums[CROSS_SUM, b], sums[OWN_SUM, b], sums[OTHER_SUM, b], common,
            mean, mean_f, x, view[X, b], seen, seen_f,
        )  # fmt: skip
        cosine = common * by_squared * view[BY_SQUARED, b]
        out[RESIDUAL, b] = residual * by_residual * view[BY_RESIDUAL, b]  # (3)
        out[IMPLICIT, b] = common * by_implicit * view[BY_IMPLICIT, b]  # (4)
        out[SQUARED, b] = cosine * cosine  # (5)
        active = sums[ACTIVITY_SUM, b] - activity * both
        out[ACTIVITY, b] = active * by_activity * view[BY_ACTIVITY, b]  # (6)
        out[CONSTANT, b] = 1.0  # (7)
        out[SLOPE, b] = mean * mean_f  # (8)
        out[POPULARITY, b] = popularity * view[BY_POPULARITY, b]  # (9)
        out[LOW_RANK, b] = 0.0
        for k in range(sums.shape[0] - N_SUMS):
            out[N_FIXED + k, b] = sums[N_SUMS + k, b]  # (11)
    means = view.shape[0] - scales.size
    for k in range(N_NUMBERS, means):
        for b in range(n):
            out[LOW_RANK, b] += rows[k, q] * view[k, b]  # (10)
    for k in range(scales.size):  # (12)
        c = out.shape[0] - scales.size + k
        for b in range(n):
            if not time > 0.0:
                out[c, b] = view[means + k, b]
            elif view[TIME, b] > 0.0:
                out[c, b] = _kernel_of_times(time, view[TIME, b], scales[k])
            else:
                out[c, b] = rows[means + k, q]
