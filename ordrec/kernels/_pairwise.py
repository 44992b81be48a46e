"""Pair moments of items, and item kernels without one user, computed in one pass.

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

A *leaf* is one component kernel, given by its row in the integer table ``layout`` (``KIND``,
``FIRST``: its first moment, or first factor; ``STOP``: the end of its factors; ``SOURCE``) and in
the table ``numbers`` (``DAMPING``, ``SMOOTH``: negative when it is not normalised). A *term* is a
weighted product of leaves. Most terms are a single leaf and are added up directly from the
moments; only products of several leaves need the values of their leaves.

Columns are taken in chunks. The counts of a chunk are read first: nothing waits for them, so
the memory brings all pairs of the chunk at the same time, and the leaves find them in the cache.

`ordrec.recommend.process.components` leaves an owner out of the same moments for its fixed set of
components. The loops are not shared, for speed and for the last digits. Five sums over all pairs
take 0.21 s there; four take 0.46 s with `row_moments`, and 0.27 s for half the pairs with
`table_rows` (65 000 ratings, 3000 items, medians on one thread of a busy machine). With (1) in
place of its formula, 2 % of its single-precision numbers change, by at most 4e-9.
"""

from __future__ import annotations

import numpy as np

from ordrec.compiling import compiled

__all__ = [
    "add_diagonal",
    "add_from_block",
    "add_from_table",
    "column_moments",
    "leaf_vectors",
    "mirror",
    "reordered",
    "row_moments",
    "table_rows",
]

KIND, FIRST, STOP, SOURCE = 0, 1, 2, 3
DAMPING, SMOOTH = 0, 1
FIXED, COUNTS, CENTRED, STANDARDISED, FACTORS = 0, 1, 2, 3, 4

CHUNK, TILE = 128, 32
NO_SPREAD = 1e-10  # of the raw squares: what is left of them by rounding


@compiled
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


@compiled
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


@compiled
def row_moments(  # type: ignore[no-untyped-def]
    block, rows, half, slot, item_start, raters, of_item, user_start, rated, of_user
):
    """Moments of the given items (rows) with those that have a slot (columns).

    With ``half``, only those with columns up to the row's own item.
    """
    last = len(slot) - 1
    for a in range(len(rows)):
        _add_row(
            rows[a],
            rows[a] if half else last,
            slot,
            item_start,
            raters,
            of_item,
            user_start,
            rated,
            of_user,
            block[a],
        )


@compiled
def column_moments(  # type: ignore[no-untyped-def]
    block, columns, slot, item_start, raters, of_item, user_start, rated, of_user
):
    """The same moments, summed over the raters of the columns: ``slot`` is that of the rows."""
    n_sources = of_item.shape[0]
    for b in range(len(columns)):
        p = columns[b]
        for at in range(item_start[p], item_start[p + 1]):
            v = raters[at]
            for c in range(user_start[v], user_start[v + 1]):
                k = slot[rated[c]]
                if k < 0:
                    continue
                block[k, b, 0] += 1.0
                for s in range(n_sources):
                    mine, other = of_user[s, c], of_item[s, at]  # mine is the row's
                    block[k, b, 1 + 3 * s] += mine * other
                    block[k, b, 2 + 3 * s] += mine
                    block[k, b, 3 + 3 * s] += other


@compiled
def leaf_vectors(places, own_places, own_entries, diagonal, factors, layout, numbers):  # type: ignore[no-untyped-def]
    """Means c, downdates e and scales of each leaf at the given items, without the user.

    ``own_places`` (ascending) are the items the user rated, ``own_entries`` their entries of each
    source; ``diagonal`` has the moments of each item with itself, that is its number of
    ratings, sums of squares, sums, and fixed products, of all users.
    """
    n_leaves, n = len(layout), len(places)
    c, e, scale = np.zeros((n_leaves, n)), np.zeros((n_leaves, n)), np.ones((n_leaves, n))
    for a in range(n):
        p = places[a]
        at = np.searchsorted(own_places, p)
        has = at < len(own_places) and own_places[at] == p
        count = diagonal[p, 0] - 1.0 if has else diagonal[p, 0]
        for leaf in range(n_leaves):
            kind, first = layout[leaf, KIND], layout[leaf, FIRST]
            norm = 0.0
            if kind == FIXED:
                norm = diagonal[p, first]
            elif kind == COUNTS:
                norm = count
                if has:
                    e[leaf, a] = 1.0
            elif kind == FACTORS:
                for f in range(first, layout[leaf, STOP]):
                    norm += factors[a, f] ** 2
            else:
                x = own_entries[layout[leaf, SOURCE], at] if has else 0.0
                square, total = diagonal[p, first] - x * x, diagonal[p, first + 1] - x
                damped = count + numbers[leaf, DAMPING]
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
            if numbers[leaf, SMOOTH] >= 0:
                norm += numbers[leaf, SMOOTH]
                scale[leaf, a] *= 1.0 / np.sqrt(norm) if norm > 0 else 0.0
    return c, e, scale


@compiled
def add_from_table(out, table, rows, columns, same, left, right, A, B, layout, weights, terms):  # type: ignore[no-untyped-def]
    """Add the kernel of items ``rows`` with items ``columns``, both ascending, to ``out``.

    ``left`` and ``right`` are the leaf vectors, A and B (transposed) the factors of both sides,
    ``weights`` those of single leaves other than factors. When both sides are the same, each
    pair is computed once and mirrored.
    """
    at = np.empty(len(columns), np.uintp)  # unsigned: no index can mean "from the end"
    leaves = np.empty((len(layout) + 1, CHUNK), out.dtype)
    below = 0  # columns up to the row's item; the pairs beyond are stored the other way round
    for a in range(len(rows)):
        p, line = rows[a], out[a]
        end = a + 1 if same else len(columns)
        while below < end and columns[below] <= p:
            below += 1
        for b in range(below):
            at[b] = p * (p + 1) // 2 + columns[b]
        for b in range(below, end):
            at[b] = columns[b] * (columns[b] + 1) // 2 + p
        _add_leaves(line, table, at, 0, below, 1, a, left, right, layout, weights)
        _add_leaves(line, table, at, below, end, 2, a, left, right, layout, weights)
        if len(terms[0]) > 0:
            _add_terms(line, table, at, 0, below, 1, a, left, right, A, B, layout, terms, leaves)
            _add_terms(line, table, at, below, end, 2, a, left, right, A, B, layout, terms, leaves)
    if same:
        mirror(out)


@compiled
def add_from_block(out, block, first, same, left, right, A, B, layout, weights, terms):  # type: ignore[no-untyped-def]
    """The same for the rows ``first, first + 1, ...``, whose moments are given; not mirrored."""
    n_columns = block.shape[1]
    at = np.arange(n_columns).astype(np.uintp)
    leaves = np.empty((len(layout) + 1, CHUNK), out.dtype)
    for k in range(block.shape[0]):
        a = first + k
        end = a + 1 if same else n_columns
        _add_leaves(out[a], block[k], at, 0, end, 1, a, left, right, layout, weights)
        if len(terms[0]) > 0:
            _add_terms(out[a], block[k], at, 0, end, 1, a, left, right, A, B, layout, terms, leaves)


@compiled
def add_diagonal(out, diagonal, places, vectors, A, B, layout, weights, terms):  # type: ignore[no-untyped-def]
    """Add the kernel of each item with itself."""
    at = places.astype(np.uintp)
    leaves = np.empty((len(layout) + 1, CHUNK), out.dtype)
    for a in range(len(places)):
        _add_leaves(out, diagonal, at, a, a + 1, 1, a, vectors, vectors, layout, weights)
        _add_terms(out, diagonal, at, a, a + 1, 1, a, vectors, vectors, A, B, layout, terms, leaves)


@compiled
def _add_leaves(line, table, at, begin, end, own, a, left, right, layout, weights):  # type: ignore[no-untyped-def]
    """Add the weighted single leaves to columns ``begin..end`` of row a, by (1).

    ``at`` says where in the table the moments of each column are, ``own`` (1 or 2) which of
    the two moments Q there belongs to the row's item.
    """
    c, e, scale = left
    d, g, other = right
    counts = np.empty(CHUNK, table.dtype)
    for low in range(begin, end, CHUNK):
        width = min(CHUNK, end - low)
        where, total = at[low : low + width], line[low : low + width]
        for b in range(width):
            counts[b] = table[where[b], 0]
        for leaf in range(len(layout)):
            weight = weights[leaf] * scale[leaf, a]
            if weight == 0.0:
                continue
            kind, P = layout[leaf, KIND], np.uintp(layout[leaf, FIRST])
            mean, mine, size = c[leaf, a], e[leaf, a], other[leaf, low : low + width]
            theirs, gone = d[leaf, low : low + width], g[leaf, low : low + width]
            if kind in (CENTRED, STANDARDISED):
                Qa, Qb = P + np.uintp(own), P + np.uintp(3 - own)
                for b in range(width):
                    m = where[b]
                    value = (
                        (table[m, P] - mean * table[m, Qb])
                        - theirs[b] * (table[m, Qa] - mean * counts[b])
                        - mine * gone[b]
                    )
                    total[b] += weight * size[b] * value
            elif kind == COUNTS:
                for b in range(width):
                    total[b] += weight * size[b] * (counts[b] - mine * gone[b])
            else:
                for b in range(width):
                    total[b] += weight * size[b] * table[where[b], P]


@compiled
def _add_terms(  # type: ignore[no-untyped-def]
    line, table, at, begin, end, own, a, left, right, A, B, layout, terms, leaves
):
    """Add products of leaves to columns ``begin..end`` of row a."""
    weights, start, members = terms
    needed = np.unique(members)
    alone = np.zeros(len(layout), table.dtype)
    for low in range(begin, end, CHUNK):
        width = min(CHUNK, end - low)
        for leaf in needed:
            value = leaves[leaf, :width]
            value[:] = 0.0
            if layout[leaf, KIND] == FACTORS:
                for f in range(layout[leaf, FIRST], layout[leaf, STOP]):
                    for b in range(width):
                        value[b] += A[a, f] * B[f, low + b]
                for b in range(width):
                    value[b] *= left[2][leaf, a] * right[2][leaf, low + b]
            else:
                alone[:] = 0.0
                alone[leaf] = 1.0
                part = (
                    right[0][:, low : low + width],
                    right[1][:, low : low + width],
                    right[2][:, low : low + width],
                )
                here = at[low : low + width]
                _add_leaves(value, table, here, 0, width, own, a, left, part, layout, alone)
        product = leaves[-1, :width]
        for t in range(len(weights)):
            product[:] = weights[t]
            for k in range(start[t], start[t + 1]):
                value = leaves[members[k], :width]
                for b in range(width):
                    product[b] *= value[b]
            for b in range(width):
                line[low + b] += product[b]


@compiled
def mirror(out):  # type: ignore[no-untyped-def]
    """Copy the lower triangle to the upper one, tile by tile."""
    n = len(out)
    for top in range(0, n, TILE):
        for side in range(0, top + 1, TILE):
            for a in range(top, min(top + TILE, n)):
                for b in range(side, min(side + TILE, a)):
                    out[b, a] = out[a, b]


@compiled
def reordered(values, row_of, column_of):  # type: ignore[no-untyped-def]
    """``values[row_of][:, column_of]``."""
    out = np.empty((len(row_of), len(column_of)), values.dtype)
    for a in range(len(row_of)):
        line, source = out[a], values[row_of[a]]
        for b in range(len(column_of)):
            line[b] = source[column_of[b]]
    return out
