"""One side's covariance: a dense block for each owner, in single precision.

`assemble` builds the blocks, `multiply` applies them to one vector or to a batch, `forms`
gives ``left' (d block) right`` summed over blocks for each component and smoothing count (the
gradient), and `cross` the components between new pairs and the training ratings (prediction,
gradient and explanation alike). All loops run over spans of owners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ordrec.recommend.gram import Side
from ordrec.recommend.pairs import (
    FALL,
    N_SMOOTHED,
    N_STATS,
    SideWeights,
    entry_stats,
    pair_components,
)
from ordrec.recommend.spans import over_spans

__all__ = [
    "Queries",
    "assemble",
    "cross",
    "cross_adjoint",
    "diagonal",
    "forms",
    "group_queries",
    "multiply",
]

SMOOTHED = (0, 1, 3)  # components with a smoothing count


class Queries(NamedTuple):
    """Pairs to predict, grouped by owner.

    ``order`` gives each one's place in the caller's arrays. ``x`` and ``seen`` are the owner's
    own training rating of that entry (0 and 0 if there is none), which the kernel leaves out.
    """

    start: np.ndarray
    order: np.ndarray
    entry: np.ndarray
    time: np.ndarray
    x: np.ndarray
    seen: np.ndarray


def group_queries(side: Side, owners: np.ndarray, entries: np.ndarray, time: np.ndarray) -> Queries:
    """Group pairs by owner, and look up those that are training ratings."""
    n_owners, n_entries = side.start.size - 1, side.gram.shape[0]
    order = np.argsort(owners, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_owners))])
    wanted = owners[order].astype(np.int64) * n_entries + entries[order]
    key = np.repeat(np.arange(n_owners), side.sizes) * n_entries + side.entry
    by_key = np.argsort(key, kind="stable")
    at = np.searchsorted(key, wanted, sorter=by_key)
    place = by_key[np.minimum(at, key.size - 1)]
    seen = key[place] == wanted
    x = np.where(seen, side.x[place], 0.0)
    return Queries(
        start.astype(np.int64),
        order,
        entries[order].astype(np.int64),
        time[order].astype(np.float64),
        x,
        seen.astype(np.float64),
    )


def assemble(side: Side, w: SideWeights, n_jobs: int = 1) -> np.ndarray:
    """All blocks in one array, row by row, owner after owner."""
    sizes = side.sizes
    base = np.concatenate([[0], np.cumsum(sizes * sizes)])
    blocks = np.empty(base[-1], dtype=np.float32)
    over_spans(_assemble, sizes * sizes, n_jobs, side, w, base, blocks)
    return blocks


def diagonal(blocks: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Diagonal of all blocks."""
    base = np.concatenate([[0], np.cumsum(sizes * sizes)])[:-1]
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return blocks[np.repeat(base, sizes) + within * (np.repeat(sizes, sizes) + 1)]


def multiply(
    blocks: np.ndarray, start: np.ndarray, vectors: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Blocks times vectors of shape (n_ratings,) or (n_ratings, n_vectors)."""
    sizes = np.diff(start)
    base = np.concatenate([[0], np.cumsum(sizes * sizes)])
    result = np.empty_like(vectors)
    function = _multiply_one if vectors.ndim == 1 else _multiply_many
    over_spans(function, sizes * sizes, n_jobs, blocks, base, start, vectors, result)
    return result


def forms(
    side: Side, w: SideWeights, left: np.ndarray, right: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """``left' K_c right`` for every component, then for the derivatives by each ``log s``."""
    n_terms = w.weights.size + N_SMOOTHED
    result = np.zeros((side.start.size - 1, n_terms))
    over_spans(_forms, side.sizes**2, n_jobs, side, w, left, right, result)
    return result.sum(axis=0)


def cross(
    side: Side, w: SideWeights, queries: Queries, right: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """``k_c(query, training) right`` for each query and component, in the queries' order.

    Derivatives by each ``log s`` follow the components.
    """
    result = np.zeros((queries.order.size, w.weights.size + N_SMOOTHED))
    cost = np.diff(queries.start) * side.sizes
    over_spans(_cross, cost, n_jobs, side, w, queries, right, result)
    return result


def cross_adjoint(
    side: Side, w: SideWeights, queries: Queries, left: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """``sum_q left_q k(q, training)``: one number a training rating, in the side's order."""
    result = np.zeros(side.entry.size)
    cost = np.diff(queries.start) * side.sizes
    over_spans(_cross_adjoint, cost, n_jobs, side, w, queries, left, result)
    return result


# ---- the loops -------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _owner_stats(side, w, o):  # type: ignore[no-untyped-def]
    """Statistics of all entries of one owner."""
    first = side.start[o]
    stats = np.empty((side.start[o + 1] - first, N_STATS))
    for a in range(stats.shape[0]):
        k = first + a
        entry_stats(side.gram, side.entry[k], side.x[k], 1.0, side.activity[o], w, stats[a])
    return stats


@njit(cache=True, nogil=True)
def _assemble(first, stop, side, w, base, blocks):  # type: ignore[no-untyped-def]
    part = np.empty(w.weights.size)
    for o in range(first, stop):
        stats = _owner_stats(side, w, o)
        n, begin = stats.shape[0], side.start[o]
        loadings = side.loadings[side.fold[o]]
        for a in range(n):
            e, t_e = side.entry[begin + a], side.time[begin + a]
            for b in range(a + 1):
                f, t_f = side.entry[begin + b], side.time[begin + b]
                pair_components(
                    side.gram[e, f], stats[a], stats[b], side.activity[o],
                    loadings[e], loadings[f], t_e, t_f, w, part,
                )  # fmt: skip
                value = 0.0
                for c in range(part.size):
                    value += w.weights[c] * part[c]
                if a == b and not t_e > 0.0:  # an unknown time is near itself alone
                    for c in range(w.scales.size):
                        value += w.weights[part.size - 1 - c]
                blocks[base[o] + a * n + b] = value
                blocks[base[o] + b * n + a] = value


@njit(cache=True, nogil=True)
def _multiply_one(first, stop, blocks, base, start, vector, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        n = start[o + 1] - start[o]
        block = blocks[base[o] : base[o + 1]].reshape((n, n))
        result[start[o] : start[o + 1]] = np.dot(block, vector[start[o] : start[o + 1]])


@njit(cache=True, nogil=True)
def _multiply_many(first, stop, blocks, base, start, vectors, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        n = start[o + 1] - start[o]
        block = blocks[base[o] : base[o + 1]].reshape((n, n))
        result[start[o] : start[o + 1]] = np.dot(block, vectors[start[o] : start[o + 1]])


@njit(cache=True, nogil=True)
def _forms(first, stop, side, w, left, right, result):  # type: ignore[no-untyped-def]
    n_components = w.weights.size
    part = np.empty(n_components)
    for o in range(first, stop):
        stats = _owner_stats(side, w, o)
        begin = side.start[o]
        loadings = side.loadings[side.fold[o]]
        for a in range(stats.shape[0]):
            e, t_e = side.entry[begin + a], side.time[begin + a]
            for b in range(a + 1):
                f, t_f = side.entry[begin + b], side.time[begin + b]
                pair_components(
                    side.gram[e, f], stats[a], stats[b], side.activity[o],
                    loadings[e], loadings[f], t_e, t_f, w, part,
                )  # fmt: skip
                if a == b:
                    share = left[begin + a] * right[begin + a]
                    if not t_e > 0.0:
                        for c in range(w.scales.size):
                            part[n_components - 1 - c] = 1.0
                else:
                    share = left[begin + a] * right[begin + b] + left[begin + b] * right[begin + a]
                for c in range(n_components):
                    result[o, c] += share * part[c]
                for s in range(N_SMOOTHED):
                    fall = -0.5 * (stats[a, FALL + s] + stats[b, FALL + s])
                    result[o, n_components + s] += share * fall * part[SMOOTHED[s]]


@njit(cache=True, nogil=True)
def _cross(first, stop, side, w, queries, right, result):  # type: ignore[no-untyped-def]
    n_components = w.weights.size
    part = np.empty(n_components)
    own = np.empty(N_STATS)
    for o in range(first, stop):
        if queries.start[o] == queries.start[o + 1]:
            continue
        stats = _owner_stats(side, w, o)
        begin = side.start[o]
        loadings = side.loadings[side.fold[o]]
        for q in range(queries.start[o], queries.start[o + 1]):
            e, t_e, place = queries.entry[q], queries.time[q], queries.order[q]
            entry_stats(side.gram, e, queries.x[q], queries.seen[q], side.activity[o], w, own)
            for b in range(stats.shape[0]):
                f, t_f = side.entry[begin + b], side.time[begin + b]
                pair_components(
                    side.gram[e, f], own, stats[b], side.activity[o],
                    loadings[e], loadings[f], t_e, t_f, w, part,
                )  # fmt: skip
                share = right[begin + b]
                for c in range(n_components):
                    result[place, c] += share * part[c]
                for s in range(N_SMOOTHED):
                    fall = -0.5 * (own[FALL + s] + stats[b, FALL + s])
                    result[place, n_components + s] += share * fall * part[SMOOTHED[s]]


@njit(cache=True, nogil=True)
def _cross_adjoint(first, stop, side, w, queries, left, result):  # type: ignore[no-untyped-def]
    part = np.empty(w.weights.size)
    own = np.empty(N_STATS)
    for o in range(first, stop):
        if queries.start[o] == queries.start[o + 1]:
            continue
        stats = _owner_stats(side, w, o)
        begin = side.start[o]
        loadings = side.loadings[side.fold[o]]
        for q in range(queries.start[o], queries.start[o + 1]):
            e, t_e, share = queries.entry[q], queries.time[q], left[queries.order[q]]
            entry_stats(side.gram, e, queries.x[q], queries.seen[q], side.activity[o], w, own)
            for b in range(stats.shape[0]):
                f, t_f = side.entry[begin + b], side.time[begin + b]
                pair_components(
                    side.gram[e, f], own, stats[b], side.activity[o],
                    loadings[e], loadings[f], t_e, t_f, w, part,
                )  # fmt: skip
                value = 0.0
                for c in range(part.size):
                    value += w.weights[c] * part[c]
                result[begin + b] += share * value
