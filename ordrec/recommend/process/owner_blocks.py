"""One side's covariance: a dense block for each owner, in single precision.

With ``k_c`` the components (3) to (12) of `ordrec.recommend.process.components` for one owner's
entries, ``w_c`` their weights and ``s`` a smoothing count:

(1) block       ``K = sum_c w_c k_c`` between the owner's training ratings
(2) forms       ``left' k_c right``, summed over blocks, for the gradient by the weights
(3)             ``d k_c / d log s = -(s / (S_ee + s) + s / (S_ff + s)) k_c / 2``
(4) cross       ``k_c(query, training) right`` for each query, for means and explanations
(5) adjoint     ``sum_q left_q sum_c w_c k_c(q, training)``

`assemble` builds (1), `multiply` applies the blocks to one vector or to a batch, `quadratic_forms`
computes (2) and (3), `cross` (4) and `cross_adjoint` (5). All loops run over spans of owners.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.compiling import compiled, inner
from ordrec.linalg.lapack import (
    ADDRESSES,
    factorise,
    inverse_diagonal_factorised,
    invert_factorised,
)
from ordrec.parallel.spans import over_spans
from ordrec.recommend.process.components import (
    N_SMOOTHED,
    N_STATS,
    SHRINKAGE,
    SMOOTHED,
    SideWeights,
    entry_components,
    row_components,
    view_owner,
)
from ordrec.recommend.process.pair_sums import OwnerSide

__all__ = [
    "Queries",
    "assemble",
    "cross",
    "cross_adjoint",
    "diagonal",
    "diagonal_of_inverses",
    "group_queries",
    "invert",
    "multiply",
    "parts_of_query",
    "quadratic_forms",
]


class Queries(NamedTuple):
    """Pairs to predict, grouped by owner.

    ``order`` gives the place of each pair in the caller's arrays. ``x`` and ``seen`` are the
    owner's own training rating of that entry (0 and 0 if there is none), which the kernel leaves
    out.
    """

    start: np.ndarray
    order: np.ndarray
    entry: np.ndarray
    time: np.ndarray
    x: np.ndarray
    seen: np.ndarray


def group_queries(
    side: OwnerSide, owners: np.ndarray, entries: np.ndarray, time: np.ndarray
) -> Queries:
    """Group pairs by owner, and look up which of them are training ratings."""
    n_owners, n_entries = side.start.size - 1, side.gram.shape[0]
    order = np.argsort(owners, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_owners))])
    wanted = owners[order].astype(np.int64) * n_entries + entries[order]
    key = np.repeat(np.arange(n_owners), side.sizes) * n_entries + side.entry
    by_key = np.argsort(key, kind="stable")
    seen, x = np.zeros(wanted.size, dtype=np.bool_), np.zeros(wanted.size)
    if key.size:
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


def assemble(side: OwnerSide, w: SideWeights, n_jobs: int = 1) -> np.ndarray:
    """Blocks (1) of all owners in one array, row by row, owner after owner."""
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


def invert(blocks: np.ndarray, start: np.ndarray, noise: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """``(block + noise)^-1`` for each block, in the same layout.

    Computed in the precision of the noise: single is enough to precondition.
    """
    sizes = np.diff(start)
    base = np.concatenate([[0], np.cumsum(sizes * sizes)])
    result = np.empty_like(blocks)
    over_spans(_invert, sizes**3, n_jobs, blocks, base, start, noise, ADDRESSES, result)
    owners = np.flatnonzero(sizes)
    for o in owners[np.isnan(result[base[owners]])]:  # rounding has made it indefinite
        inverse = np.linalg.inv(_with_noise(blocks, base, start, noise, o))
        result[base[o] : base[o + 1]] = inverse.ravel()
    return result


def diagonal_of_inverses(
    blocks: np.ndarray, start: np.ndarray, noise: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """Diagonal of ``(block + noise)^-1`` for each block, without keeping the inverses."""
    sizes = np.diff(start)
    base = np.concatenate([[0], np.cumsum(sizes * sizes)])
    result = np.empty(noise.size)
    over_spans(
        _diagonal_of_inverses, sizes**3, n_jobs, blocks, base, start, noise, ADDRESSES, result
    )
    owners = np.flatnonzero(sizes)
    for o in owners[np.isnan(result[start[owners]])]:  # rounding has made it indefinite
        inverse = np.linalg.inv(_with_noise(blocks, base, start, noise, o))
        result[start[o] : start[o + 1]] = np.diagonal(inverse)
    return result


def quadratic_forms(
    side: OwnerSide, w: SideWeights, left: np.ndarray, right: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """(2) for every component, then (3) for every smoothing count."""
    n_terms = w.weights.size + N_SMOOTHED
    result = np.zeros((side.start.size - 1, n_terms))
    over_spans(_quadratic_forms, side.sizes**2, n_jobs, side, w, left, right, result)
    return result.sum(axis=0)


def cross(
    side: OwnerSide, w: SideWeights, queries: Queries, right: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """(4) for each query and component, then (3); one row per pair, in the caller's order."""
    result = np.zeros((queries.order.size, w.weights.size + N_SMOOTHED))
    cost = np.diff(queries.start) * side.sizes
    over_spans(_cross, cost, n_jobs, side, w, queries, right, result)
    return result


def parts_of_query(side: OwnerSide, w: SideWeights, owner: int, queries: Queries) -> np.ndarray:
    """Components of a single query with each of its owner's training entries."""
    part = np.zeros((w.weights.size, int(side.start[owner + 1] - side.start[owner])))
    if part.shape[1]:
        _parts_of_query(side, w, owner, queries, part)
    return part


def cross_adjoint(
    side: OwnerSide, w: SideWeights, queries: Queries, left: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """(5): one number per training rating, in the side's order."""
    result = np.zeros(side.entry.size)
    cost = np.diff(queries.start) * side.sizes
    over_spans(_cross_adjoint, cost, n_jobs, side, w, queries, left, result)
    return result


# ---- the loops -------------------------------------------------------------------------


@inner
def _own_row(side, w, owner, o, a, n, out):  # type: ignore[no-untyped-def]
    """Components of training entry ``a`` of owner o with the owner's first n entries."""
    e = owner.entry[a]
    loadings = side.loadings[side.fold[o], e]
    row_components(side.gram[e], owner.stats[:, a], loadings, owner.time[a], owner, n, w, out)
    if n > a and not owner.time[a] > 0.0:  # a rating of unknown time has a variance of its own
        for c in range(w.scales.size):
            out[out.shape[0] - 1 - c, a] += 1.0


@inner
def _query_row(side, w, owner, o, queries, q, own, out):  # type: ignore[no-untyped-def]
    """Components of query q with all entries of its owner o; also its statistics ``own``."""
    entry_components(
        side, w, owner, side.fold[o], queries.entry[q], queries.time[q], queries.x[q],
        queries.seen[q], own, out,
    )  # fmt: skip


@compiled
def _assemble(first, stop, side, w, base, blocks):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        owner = view_owner(side, w, o)
        n = owner.entry.size
        part = np.empty((w.weights.size, n))
        row = np.empty(n)
        block = blocks[base[o] : base[o + 1]].reshape((n, n))
        for a in range(n):
            _own_row(side, w, owner, o, a, a + 1, part)
            for b in range(a + 1):
                row[b] = 0.0
            for c in range(w.weights.size):
                weight = w.weights[c]
                if weight != 0.0:
                    for b in range(a + 1):
                        row[b] += weight * part[c, b]  # (1)
            for b in range(a + 1):
                block[a, b] = row[b]
                block[b, a] = row[b]


@compiled
def _multiply_one(first, stop, blocks, base, start, vector, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        n = start[o + 1] - start[o]
        block = blocks[base[o] : base[o + 1]].reshape((n, n))
        x, product = vector[start[o] : start[o + 1]], result[start[o] : start[o + 1]]
        for b in range(n):
            product[b] = 0.0
        for a in range(n):  # by rows of the symmetric block: contiguous, and vectorised
            for b in range(n):
                product[b] += x[a] * block[a, b]


@compiled
def _multiply_many(first, stop, blocks, base, start, vectors, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        n = start[o + 1] - start[o]
        block = blocks[base[o] : base[o + 1]].reshape((n, n))
        np.dot(block, vectors[start[o] : start[o + 1]], result[start[o] : start[o + 1]])


@compiled
def _with_noise(blocks, base, start, noise, o):  # type: ignore[no-untyped-def]
    """A copy of owner o's block with the noise added to its diagonal."""
    n = start[o + 1] - start[o]
    block = blocks[base[o] : base[o + 1]].reshape((n, n)).astype(noise.dtype)
    for a in range(n):
        block[a, a] += noise[start[o] + a]
    return block


@compiled
def _invert(first, stop, blocks, base, start, noise, addresses, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        if start[o] < start[o + 1]:
            inverse = _with_noise(blocks, base, start, noise, o)
            if factorise(inverse, addresses) == 0:
                invert_factorised(inverse, addresses)
            else:
                inverse[0, 0] = np.nan
            n = inverse.shape[0]
            for a in range(n):
                for b in range(n):
                    result[base[o] + a * n + b] = inverse[a, b]


@compiled
def _diagonal_of_inverses(first, stop, blocks, base, start, noise, addresses, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        if start[o] < start[o + 1]:
            factor = _with_noise(blocks, base, start, noise, o)
            if factorise(factor, addresses) == 0:
                diag = inverse_diagonal_factorised(factor, addresses)
                for a in range(diag.size):
                    result[start[o] + a] = diag[a]
            else:
                result[start[o]] = np.nan


@inner
def _add_quadratic_forms(part, n, own, stats, share, result):  # type: ignore[no-untyped-def]
    """Add ``part @ share`` for each component, (2) or (4), and (3) for each smoothing count."""
    n_components = part.shape[0]
    for c in range(n_components):
        total = 0.0
        for b in range(n):
            total += share[b] * part[c, b]
        result[c] += total
    for s in range(N_SMOOTHED):
        c, total = SMOOTHED[s], 0.0
        for b in range(n):
            shrunk = own[SHRINKAGE + s] + stats[SHRINKAGE + s, b]
            total -= 0.5 * shrunk * share[b] * part[c, b]  # (3)
        result[n_components + s] += total


@compiled
def _quadratic_forms(first, stop, side, w, left, right, result):  # type: ignore[no-untyped-def]
    for o in range(first, stop):
        owner = view_owner(side, w, o)
        n, begin = owner.entry.size, side.start[o]
        part = np.empty((w.weights.size, n))
        share = np.empty(n)
        for a in range(n):
            _own_row(side, w, owner, o, a, a + 1, part)
            l_a, r_a = left[begin + a], right[begin + a]
            for b in range(a):
                share[b] = l_a * right[begin + b] + left[begin + b] * r_a
            share[a] = l_a * r_a
            _add_quadratic_forms(part, a + 1, owner.stats[:, a], owner.stats, share, result[o])


@compiled
def _parts_of_query(side, w, o, queries, part):  # type: ignore[no-untyped-def]
    _query_row(side, w, view_owner(side, w, o), o, queries, 0, np.empty(N_STATS), part)


@compiled
def _cross(first, stop, side, w, queries, right, result):  # type: ignore[no-untyped-def]
    own = np.empty(N_STATS)
    for o in range(first, stop):
        if queries.start[o] == queries.start[o + 1] or side.start[o] == side.start[o + 1]:
            continue
        owner = view_owner(side, w, o)
        n, begin = owner.entry.size, side.start[o]
        part = np.empty((w.weights.size, n))
        share = right[begin : begin + n]
        for q in range(queries.start[o], queries.start[o + 1]):
            _query_row(side, w, owner, o, queries, q, own, part)
            _add_quadratic_forms(part, n, own, owner.stats, share, result[queries.order[q]])


@compiled
def _cross_adjoint(first, stop, side, w, queries, left, result):  # type: ignore[no-untyped-def]
    own = np.empty(N_STATS)
    for o in range(first, stop):
        if queries.start[o] == queries.start[o + 1] or side.start[o] == side.start[o + 1]:
            continue
        owner = view_owner(side, w, o)
        n, begin = owner.entry.size, side.start[o]
        part = np.empty((w.weights.size, n))
        for q in range(queries.start[o], queries.start[o + 1]):
            _query_row(side, w, owner, o, queries, q, own, part)
            share = left[queries.order[q]]
            for c in range(w.weights.size):
                for b in range(n):
                    result[begin + b] += share * w.weights[c] * part[c, b]  # (5)
