"""Pair moments of items, and item kernels without one user, in one pass over them.

With x the entries of a *source* (ratings or residuals), over the users v who rated both:

    N_ij = sum_v 1      P_ij = sum_v x_vi x_vj      Q_ij = sum_v x_vi 1[v rated j]

are the *moments* of the pair. Products of entries centred by any item means c follow from
them, also when the means change because a user u leaves:

    S_ij = P_ij - c_j Q_ij - c_i Q_ji + c_i c_j N_ij - e_i e_j,   e_i = x_ui - c_i     (1)

with c the means without u, and e_i = 0 where u did not rate i: a rank-one downdate.

Layout
------
Items are numbered by popularity, so that what most users need lies together. Row p of the
packed triangle holds the pairs (p, q), q <= p, all moments of a pair side by side, padded to a
multiple of four:

    table[p (p + 1) / 2 + q] = N, then P, Q_pq, Q_qp of each source, then fixed products

A *leaf* is one component kernel, given by its row in the integer table (``KIND``, ``FIRST``:
its first moment, or first factor; ``STOP``: the end of its factors; ``SOURCE``) and in the real
one (``DAMPING``, ``SMOOTH``: negative when it is not normalised). A *term* is a weighted product
of leaves. Terms of a single leaf make up the *linear part*: for a row's item i it is

    sum_m table[.., m] R_im C_jm  +  N sum_k X_ik Y_jk  +  sum_f U_if V_jf             (2)

with (1) multiplied out, so that each pair is fetched once and used in one go. The downdates are
in U and V, together with the factors. Only products of leaves are taken leaf by leaf.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "add_diagonal",
    "add_from_block",
    "add_from_table",
    "leaf_vectors",
    "linear_part",
    "reordered",
    "row_moments",
    "table_rows",
]

KIND, FIRST, STOP, SOURCE = 0, 1, 2, 3
DAMPING, SMOOTH = 0, 1
FIXED, COUNTS, CENTRED, STANDARDISED, FACTORS = 0, 1, 2, 3, 4

CHUNK, TILE = 64, 32
NO_SPREAD = 1e-10  # of the raw squares: what is left of them by rounding


@njit(cache=True, nogil=True)
def _add_row(p, limit, slot, item_start, raters, of_item, user_start, rated, of_user, row):  # type: ignore[no-untyped-def]
    """Add the moments of item p with the items that have a slot, numbers up to ``limit``."""
    n_sources = of_item.shape[0]
    for at in range(item_start[p], item_start[p + 1]):
        v = raters[at]
        for b in range(user_start[v], user_start[v + 1]):
            q = rated[b]
            if q > limit:
                break
            k = slot[q]
            if k < 0:
                continue
            row[k, 0] += 1.0
            for s in range(n_sources):
                mine, other = of_item[s, at], of_user[s, b]
                row[k, 1 + 3 * s] += mine * other
                row[k, 2 + 3 * s] += mine
                row[k, 3 + 3 * s] += other


@njit(cache=True, nogil=True)
def table_rows(  # type: ignore[no-untyped-def]
    table, first, stop, item_start, raters, of_item, user_start, rated, of_user
):
    """Rows ``first..stop`` of the packed triangle, summed in double precision."""
    everywhere = np.arange(len(item_start) - 1)
    n_moments = 1 + 3 * of_item.shape[0]
    row = np.empty((stop, n_moments))
    for p in range(first, stop):
        row[: p + 1] = 0.0
        _add_row(p, p, everywhere, item_start, raters, of_item, user_start, rated, of_user, row)
        base = p * (p + 1) // 2
        for q in range(p + 1):
            for m in range(n_moments):
                table[base + q, m] = row[q, m]
            for m in range(n_moments, table.shape[1]):
                table[base + q, m] = 0.0


@njit(cache=True, nogil=True)
def row_moments(  # type: ignore[no-untyped-def]
    block, rows, slot, item_start, raters, of_item, user_start, rated, of_user
):
    """Moments of the given items (rows) with those that have a slot (columns)."""
    last = len(slot) - 1
    for a in range(len(rows)):
        _add_row(
            rows[a],
            last,
            slot,
            item_start,
            raters,
            of_item,
            user_start,
            rated,
            of_user,
            block[a],
        )


@njit(cache=True, nogil=True)
def leaf_vectors(places, own_places, own_entries, diagonal, factors, whole, real):  # type: ignore[no-untyped-def]
    """Means c, downdates e and scales of each leaf at the given items, without the user.

    ``own_places`` (ascending) are the items the user rated, ``own_entries`` his entries of each
    source; ``diagonal`` has the moments of each item with itself, that is its number of
    ratings, sums of squares, sums, and fixed products, of all users.
    """
    n_leaves, n = len(whole), len(places)
    c, e, scale = np.zeros((n_leaves, n)), np.zeros((n_leaves, n)), np.ones((n_leaves, n))
    for a in range(n):
        p = places[a]
        at = np.searchsorted(own_places, p)
        has = at < len(own_places) and own_places[at] == p
        count = diagonal[p, 0] - 1.0 if has else diagonal[p, 0]
        for leaf in range(n_leaves):
            kind, first = whole[leaf, KIND], whole[leaf, FIRST]
            norm = 0.0
            if kind == FIXED:
                norm = diagonal[p, first]
            elif kind == COUNTS:
                norm = count
                if has:
                    e[leaf, a] = 1.0
            elif kind == FACTORS:
                for f in range(first, whole[leaf, STOP]):
                    norm += factors[a, f] ** 2
            else:
                x = own_entries[whole[leaf, SOURCE], at] if has else 0.0
                square, total = diagonal[p, first] - x * x, diagonal[p, first + 1] - x
                damped = count + real[leaf, DAMPING]
                mean = total / damped if damped > 0 else 0.0
                c[leaf, a] = mean
                if has:
                    e[leaf, a] = x - mean
                norm = square - 2 * mean * total + mean * mean * count
                if norm <= NO_SPREAD * diagonal[p, first]:
                    norm = 0.0
                if kind == STANDARDISED:
                    scale[leaf, a] = np.sqrt(count / norm) if norm > 0 else 0.0
                    norm = count if norm > 0 else 0.0
                elif norm == 0.0:
                    scale[leaf, a] = 0.0
            if real[leaf, SMOOTH] >= 0:
                norm += real[leaf, SMOOTH]
                scale[leaf, a] *= 1.0 / np.sqrt(norm) if norm > 0 else 0.0
    return c, e, scale


@njit(cache=True, nogil=True)
def linear_part(vectors, factors, whole, weights, constant, width):  # type: ignore[no-untyped-def]
    """R, X, U and C, Y, V of (2) at some items, the leaves having the given weights.

    R and C are made for pairs that are stored with the row's item first; the last two results
    are the same for pairs stored the other way round.
    """
    c, e, scale = vectors
    n, n_factors = c.shape[1], factors.shape[1]
    rank = len(whole) + n_factors + 1
    R, C = np.zeros((n, width)), np.zeros((n, width))
    n_counts = 4 * (1 + len(whole) // 4)
    X, Y = np.zeros((n, n_counts)), np.zeros((n, n_counts))
    U, V = np.zeros((n, rank)), np.zeros((n, rank))
    U[:, -1], V[:, -1] = constant, 1.0
    for leaf in range(len(whole)):
        kind, P, w = whole[leaf, KIND], whole[leaf, FIRST], weights[leaf]
        if w == 0.0:
            continue
        for a in range(n):
            size = scale[leaf, a]
            if kind == FACTORS:
                for f in range(P, whole[leaf, STOP]):
                    V[a, len(whole) + f] = size * factors[a, f]
                    U[a, len(whole) + f] = w * V[a, len(whole) + f]
                continue
            U[a, leaf], V[a, leaf] = -w * size * e[leaf, a], size * e[leaf, a]
            if kind == COUNTS:
                X[a, leaf], Y[a, leaf] = w * size, size
                continue
            R[a, P], C[a, P] = w * size, size
            if kind != FIXED:
                shift = size * c[leaf, a]
                R[a, P + 1], C[a, P + 1] = w * size, -shift
                R[a, P + 2], C[a, P + 2] = w * shift, -size
                X[a, leaf], Y[a, leaf] = w * shift, shift
    R2, C2 = R.copy(), C.copy()
    for leaf in range(len(whole)):
        P = whole[leaf, FIRST]
        if whole[leaf, KIND] in (CENTRED, STANDARDISED):
            R2[:, P + 1], R2[:, P + 2] = R[:, P + 2], R[:, P + 1]
            C2[:, P + 1], C2[:, P + 2] = C[:, P + 2], C[:, P + 1]
    return (R, X, U), (C, Y, V), R2, C2


@njit(cache=True, nogil=True)
def add_from_table(  # type: ignore[no-untyped-def]
    out, table, rows, columns, same, R, C, R2, C2, X, Y, left, right, A, B, whole, terms
):
    """Add the moments of items ``rows`` with items ``columns``, both ascending, to ``out``.

    ``left`` and ``right`` are the leaf vectors, A and B (transposed) the factors of both sides.
    When both sides are the same, each pair is computed once and mirrored.
    """
    at = np.empty(len(columns), np.uintp)  # unsigned: no index can mean "from the end"
    leaves = np.empty((len(whole) + 1, CHUNK), out.dtype)
    below = 0  # columns up to the row's item; the pairs beyond are stored the other way round
    for a in range(len(rows)):
        p = rows[a]
        end = a + 1 if same else len(columns)
        while below < end and columns[below] <= p:
            below += 1
        for b in range(below):
            at[b] = p * (p + 1) // 2 + columns[b]
        for b in range(below, end):
            at[b] = columns[b] * (columns[b] + 1) // 2 + p
        _add_linear(out[a], table, at, 0, below, R[a], C, X[a], Y)
        _add_linear(out[a], table, at, below, end, R2[a], C2, X[a], Y)
        if len(terms[0]) > 0:
            _add_terms(out[a], table, at, 0, below, 1, a, left, right, A, B, whole, terms, leaves)
            _add_terms(out[a], table, at, below, end, 2, a, left, right, A, B, whole, terms, leaves)
    if same:
        _mirror(out)


@njit(cache=True, nogil=True)
def add_from_block(  # type: ignore[no-untyped-def]
    out, block, first, R, C, X, Y, left, right, A, B, whole, terms
):
    """The same for the rows ``first, first + 1, ...``, whose moments are given."""
    n_columns = block.shape[1]
    at = np.arange(n_columns).astype(np.uintp)
    leaves = np.empty((len(whole) + 1, CHUNK), out.dtype)
    for k in range(block.shape[0]):
        a = first + k
        _add_linear(out[a], block[k], at, 0, n_columns, R[a], C, X[a], Y)
        _add_terms(
            out[a], block[k], at, 0, n_columns, 1, a, left, right, A, B, whole, terms, leaves
        )


@njit(cache=True, nogil=True)
def add_diagonal(out, diagonal, places, R, C, X, Y, vectors, A, B, whole, terms):  # type: ignore[no-untyped-def]
    """Add the moments of each item with itself."""
    at = places.astype(np.uintp)
    leaves = np.empty((len(whole) + 1, CHUNK), out.dtype)
    for a in range(len(places)):
        _add_linear(out, diagonal, at, a, a + 1, R[a], C, X[a], Y)
        _add_terms(out, diagonal, at, a, a + 1, 1, a, vectors, vectors, A, B, whole, terms, leaves)


@njit(cache=True, nogil=True)
def _add_linear(line, table, at, begin, end, R, C, X, Y):  # type: ignore[no-untyped-def]
    """The first two sums of (2) for columns ``begin..end`` of one row.

    The counts of a chunk are read first: nothing waits for them, so the memory can bring
    all pairs of the chunk at the same time.
    """
    counts = np.empty(CHUNK, table.dtype)
    for low in range(begin, end, CHUNK):
        width = min(CHUNK, end - low)
        where, sums = at[low : low + width], line[low : low + width]
        c, y = C[low : low + width], Y[low : low + width]
        for b in range(width):
            counts[b] = table[where[b], 0]
        for b in range(width):
            m, cb, yb = table[where[b]], c[b], y[b]
            total = sums[b]
            for k in range(0, len(R), 4):
                total += (
                    m[k] * R[k] * cb[k]
                    + m[k + 1] * R[k + 1] * cb[k + 1]
                    + m[k + 2] * R[k + 2] * cb[k + 2]
                    + m[k + 3] * R[k + 3] * cb[k + 3]
                )
            weight = X[0] * yb[0] + X[1] * yb[1] + X[2] * yb[2] + X[3] * yb[3]
            for k in range(4, len(X)):
                weight += X[k] * yb[k]
            sums[b] = total + weight * counts[b]


@njit(cache=True, nogil=True)
def _add_terms(  # type: ignore[no-untyped-def]
    line, table, at, begin, end, own, a, left, right, A, B, whole, terms, leaves
):
    """Add the terms to columns ``begin..end`` of row a: every leaf by (1), then their products.

    ``at`` says where in the table the moments of each column are, ``own`` (1 or 2) which of
    the two moments Q there belongs to the row's item. Columns are taken in chunks so that the
    moments, fetched once, serve all leaves from the cache.
    """
    c, e, scale = left
    d, g, other = right
    weights, start, members = terms
    needed = np.unique(members)
    for low in range(begin, end, CHUNK):
        width = min(CHUNK, end - low)
        where, total = at[low : low + width], line[low : low + width]
        for leaf in needed:
            kind, P = whole[leaf, KIND], np.uintp(whole[leaf, FIRST])
            value = leaves[leaf]
            theirs, gone = d[leaf, low : low + width], g[leaf, low : low + width]
            mean, mine = c[leaf, a], e[leaf, a]
            if kind in (CENTRED, STANDARDISED):
                Qa, Qb = P + np.uintp(own), P + np.uintp(3 - own)
                for b in range(width):
                    m = where[b]
                    value[b] = (
                        table[m, P]
                        - theirs[b] * table[m, Qa]
                        - mean * (table[m, Qb] - theirs[b] * table[m, 0])
                        - mine * gone[b]
                    )
            elif kind == FACTORS:
                value[:] = 0.0
                for f in range(P, whole[leaf, STOP]):
                    weight, factor = A[a, f], B[f, low : low + width]
                    for b in range(width):
                        value[b] += weight * factor[b]
            else:
                for b in range(width):
                    value[b] = table[where[b], P] - mine * gone[b]
            mine, theirs = scale[leaf, a], other[leaf, low : low + width]
            for b in range(width):
                value[b] *= mine * theirs[b]
        for t in range(len(weights)):
            product = leaves[-1]
            product[:] = weights[t]
            for k in range(start[t], start[t + 1]):
                value = leaves[members[k]]
                for b in range(width):
                    product[b] *= value[b]
            for b in range(width):
                total[b] += product[b]


@njit(cache=True, nogil=True)
def _mirror(out):  # type: ignore[no-untyped-def]
    """Copy the lower triangle to the upper one, tile by tile."""
    n = len(out)
    for top in range(0, n, TILE):
        for side in range(0, top + 1, TILE):
            for a in range(top, min(top + TILE, n)):
                for b in range(side, min(side + TILE, a)):
                    out[b, a] = out[a, b]


@njit(cache=True, nogil=True)
def reordered(values, row_of, column_of):  # type: ignore[no-untyped-def]
    """``values[row_of][:, column_of]``."""
    out = np.empty((len(row_of), len(column_of)), values.dtype)
    for a in range(len(row_of)):
        line, source = out[a], values[row_of[a]]
        for b in range(len(column_of)):
            line[b] = source[column_of[b]]
    return out
