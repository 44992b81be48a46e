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
packed triangle holds the pairs (p, q), q <= p, all moments of a pair side by side:

    table[p (p + 1) / 2 + q] = N, then P, Q_pq, Q_qp of each source, then fixed products

A *leaf* is one component kernel, given by its row in the integer table (``KIND``, ``FIRST``:
its first moment, or first factor; ``STOP``: the end of its factors; ``SOURCE``) and in the real
one (``DAMPING``, ``SMOOTH``: negative when it is not normalised). A *term* is a weighted product
of leaves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "fill_diagonal",
    "fill_from_block",
    "fill_from_table",
    "leaf_vectors",
    "row_moments",
    "table_rows",
]

KIND, FIRST, STOP, SOURCE = 0, 1, 2, 3
DAMPING, SMOOTH = 0, 1
FIXED, COUNTS, CENTRED, STANDARDISED, FACTORS = 0, 1, 2, 3, 4

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
def _value(  # type: ignore[no-untyped-def]
    m, a, b, left, right, A, B, whole, term_weights, term_start, term_leaves, leaf_values
):
    """The kernel of one pair with moments m: leaves by (1), then the sum of terms.

    ``left = (c, e, scale)`` at item a and ``right`` at item b; the moment Q of ``m`` that comes
    first belongs to a.
    """
    c, e, scale = left
    d, g, other = right
    for leaf in range(len(whole)):
        kind, first = whole[leaf, KIND], whole[leaf, FIRST]
        value = 0.0
        if kind == FACTORS:
            for f in range(first, whole[leaf, STOP]):
                value += A[a, f] * B[b, f]
        elif kind >= CENTRED:
            ca, cb = c[leaf, a], d[leaf, b]
            value = m[first] - cb * m[first + 1] - ca * m[first + 2] + ca * cb * m[0]
            value -= e[leaf, a] * g[leaf, b]
        else:
            value = m[first] - e[leaf, a] * g[leaf, b]
        leaf_values[leaf] = value * scale[leaf, a] * other[leaf, b]
    total = 0.0
    for t in range(len(term_weights)):
        product = term_weights[t]
        for k in range(term_start[t], term_start[t + 1]):
            product *= leaf_values[term_leaves[k]]
        total += product
    return total


@njit(cache=True, nogil=True)
def fill_from_table(  # type: ignore[no-untyped-def]
    out,
    table,
    rows,
    columns,
    to_row,
    to_column,
    same,
    left,
    right,
    A,
    B,
    whole,
    weights,
    start,
    leaves,
):
    """Kernel of items ``rows`` with items ``columns``, written to ``out[to_row, to_column]``.

    When both are the same, each pair is computed once.
    """
    values = np.empty(len(whole))
    for a in range(len(rows)):
        p, i = rows[a], to_row[a]
        for b in range(a + 1 if same else len(columns)):
            q, j = columns[b], to_column[b]
            if p >= q:
                m = table[p * (p + 1) // 2 + q]
                value = _value(m, a, b, left, right, A, B, whole, weights, start, leaves, values)
            else:
                m = table[q * (q + 1) // 2 + p]
                value = _value(m, b, a, right, left, B, A, whole, weights, start, leaves, values)
            out[i, j] = value
            if same:
                out[j, i] = value


@njit(cache=True, nogil=True)
def fill_from_block(  # type: ignore[no-untyped-def]
    out, block, first, to_row, to_column, left, right, A, B, whole, weights, start, leaves
):
    """The same for the rows ``first, first + 1, ...``, whose moments are given."""
    values = np.empty(len(whole))
    for k in range(block.shape[0]):
        a = first + k
        for b in range(block.shape[1]):
            out[to_row[a], to_column[b]] = _value(
                block[k, b], a, b, left, right, A, B, whole, weights, start, leaves, values
            )


@njit(cache=True, nogil=True)
def fill_diagonal(out, diagonal, places, vectors, A, whole, weights, start, leaves):  # type: ignore[no-untyped-def]
    """The kernel of each item with itself."""
    values = np.empty(len(whole))
    for a in range(len(places)):
        m = diagonal[places[a]]
        out[a] = _value(m, a, a, vectors, vectors, A, A, whole, weights, start, leaves, values)
