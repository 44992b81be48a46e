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

`ordrec.rating.process.kernel.components` leaves an owner out of the same moments for its fixed set
of components. The loops are not shared, for speed and for the last digits. Five sums over all
pairs take 0.21 s there; four take 0.46 s with `row_moments`, and 0.27 s for half the pairs with
`table_rows` (65 000 ratings, 3000 items, medians on one thread of a busy machine). With (1) in
place of its formula, 2 % of its single-precision numbers change, by at most 4e-9."""

from __future__ import annotations

import numpy as np

from ordrec.runtime.compiling import compiled, inner

__all__ = [
    "add_diagonal",
    "add_leaves",
    "add_terms",
    "fill_leaf_vectors",
    "mirror",
    "pair_moments",
    "reorder",
    "row_moments",
    "table_rows",
]

KIND, FIRST, STOP, SOURCE = 0, 1, 2, 3
DAMPING, SMOOTH = 0, 1
FIXED, COUNTS, CENTRED, STANDARDISED, FACTORS = 0, 1, 2, 3, 4

CHUNK, TILE = 128, 32
NO_SPREAD = 1e-10  # of the raw squares: what is left of them by rounding


@inner
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
    table, row, first, stop, slot, item_start, raters, of_item, user_start, rated, of_user
):
    """Rows ``first..stop`` of the packed triangle, summed in double precision in ``row``.

    ``slot`` gives every item its own number.
    """
    n_moments = 1 + 3 * of_item.shape[0]
    for p in range(first, stop):
        for q in range(p + 1):
            for m in range(n_moments):
                row[q, m] = 0.0
        _add_row(p, p, slot, item_start, raters, of_item, user_start, rated, of_user, row)
        base = p * (p + 1) // 2
        for q in range(p + 1):
            for m in range(n_moments):
                table[base + q, m] = row[q, m]


@compiled
def row_moments(  # type: ignore[no-untyped-def]
    block, rows, slot, item_start, raters, of_item, user_start, rated, of_user
):
    """Moments of the given items (rows) with those that have a slot (columns)."""
    last = len(slot) - 1
    for a in range(len(rows)):
        _add_row(
            rows[a], last, slot, item_start, raters, of_item, user_start, rated, of_user, block[a]
        )


@compiled
def pair_moments(block, first, stop, start, place, entries):  # type: ignore[no-untyped-def]
    """Moments of the items ``first..stop`` of a list with those of the list up to each.

    The ratings are those of these items alone: user after user, by ``place`` in the list.
    """
    n_sources = entries.shape[0]
    for v in range(len(start) - 1):
        for i in range(start[v], start[v + 1]):
            a = place[i] - first
            if a < 0 or place[i] >= stop:
                continue
            for j in range(start[v], i + 1):
                b = place[j]
                block[a, b, 0] += 1.0
                for s in range(n_sources):
                    mine, other = entries[s, i], entries[s, j]
                    block[a, b, 1 + 3 * s] += mine * other
                    block[a, b, 2 + 3 * s] += mine
                    block[a, b, 3 + 3 * s] += other


@compiled
def fill_leaf_vectors(  # type: ignore[no-untyped-def]
    places, own_at, own_entries, diagonal, factors, layout, numbers, c, e, scale
):
    """Means c, downdates e (0 so far) and scales (1 so far) of each leaf at the given items.

    All are without the user, who has the entries ``own_entries`` of each source: ``own_at`` says
    which one is the item's, -1 if the user did not rate it. ``diagonal`` has the moments of each
    item with itself, that is its number of ratings, sums of squares, sums, and fixed products, of
    all users.
    """
    n_leaves = len(layout)
    for a in range(len(places)):
        p, at = places[a], own_at[a]
        has = at >= 0
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


@inner
def _locate(at, a, p, columns, first, packed, same):  # type: ignore[no-untyped-def]
    """Write where in the table the moments of row a, item p, are; return two ends of columns.

    Columns up to the first end are stored as the row's, those from there to the second the other
    way round.
    """
    end = a + 1 if same else len(columns)
    if not packed:
        for b in range(end):
            at[b] = (a - first) * len(columns) + b
        return end, end
    below = 0
    while below < end and columns[below] <= p:
        at[below] = p * (p + 1) // 2 + columns[below]
        below += 1
    for b in range(below, end):
        at[b] = columns[b] * (columns[b] + 1) // 2 + p
    return below, end


@compiled
def add_leaves(  # type: ignore[no-untyped-def]
    out, at, counts, table, rows, columns, first, stop, packed, same, left, right, layout, weights
):
    """Add the weighted single leaves of items ``rows[first:stop]`` with ``columns`` to ``out``.

    Both are ascending. ``table`` is the triangle if it is ``packed``, and otherwise has the moments
    of just these pairs. ``left`` and ``right`` are the leaf vectors, ``weights`` those of single
    leaves other than factors. When both sides are the same, only the lower triangle is computed.
    ``at`` (unsigned: no index can mean "from the end") and ``counts`` are room.
    """
    for a in range(first, stop):
        below, last = _locate(at, a, rows[a], columns, first, packed, same)
        for half in range(2):  # a loop, as calls with constants would be compiled one by one
            begin, end = half * below, last if half else below
            _add_leaves(
                out[a], 0, table, at, begin, end, 1 + half, a, left, right, layout, weights, counts
            )


@compiled
def add_terms(  # type: ignore[no-untyped-def]
    out, table, rows, columns, first, stop, packed, same, left, right, A, B, layout, terms
):
    """The same for products of leaves; A and B (transposed) are the factors of both sides."""
    at = np.empty(len(columns), np.uintp)
    leaves = np.empty((len(layout) + 1, CHUNK), out.dtype)
    for a in range(first, stop):
        below, last = _locate(at, a, rows[a], columns, first, packed, same)
        for half in range(2):
            begin, end = half * below, last if half else below
            _add_terms(
                out[a], table, at, begin, end, 1 + half, a, left, right, A, B, layout, terms, leaves
            )


@compiled
def add_diagonal(out, diagonal, places, vectors, A, B, layout, weights, terms):  # type: ignore[no-untyped-def]
    """Add the kernel of each item with itself."""
    at = places.astype(np.uintp)
    leaves, counts = np.empty((len(layout) + 1, CHUNK), out.dtype), np.empty(CHUNK, diagonal.dtype)
    for a in range(len(places)):
        for own in range(1, 2):  # a loop, as above
            _add_leaves(
                out, 0, diagonal, at, a, a + 1, own, a, vectors, vectors, layout, weights, counts
            )
            _add_terms(
                out, diagonal, at, a, a + 1, own, a, vectors, vectors, A, B, layout, terms, leaves
            )


@inner
def _add_leaves(  # type: ignore[no-untyped-def]
    line, shift, table, at, begin, end, own, a, left, right, layout, weights, counts
):
    """Add the weighted single leaves to columns ``begin..end`` of row a, by (1).

    ``line`` begins with column ``shift``. ``at`` says where in the table the moments of each
    column are, ``own`` (1 or 2) which of the two moments Q there belongs to the row's item.
    """
    c, e, scale = left
    d, g, other = right
    for low in range(begin, end, CHUNK):
        width = CHUNK if end - low > CHUNK else end - low
        where, total = at[low : low + width], line[low - shift : low - shift + width]
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


@inner
def _add_terms(  # type: ignore[no-untyped-def]
    line, table, at, begin, end, own, a, left, right, A, B, layout, terms, leaves
):
    """Add products of leaves to columns ``begin..end`` of row a."""
    weights, start, members, needed = terms
    alone, counts = np.zeros(len(layout), table.dtype), np.empty(CHUNK, table.dtype)
    for low in range(begin, end, CHUNK):
        width = CHUNK if end - low > CHUNK else end - low
        for leaf in needed:
            value = leaves[leaf]
            for b in range(width):
                value[b] = 0.0
            if layout[leaf, KIND] == FACTORS:
                for f in range(layout[leaf, FIRST], layout[leaf, STOP]):
                    for b in range(width):
                        value[b] += A[a, f] * B[f, low + b]
                for b in range(width):
                    value[b] *= left[2][leaf, a] * right[2][leaf, low + b]
            else:
                alone[leaf] = 1.0
                _add_leaves(
                    value, low, table, at, low, low + width, own, a, left, right, layout, alone,
                    counts,
                )  # fmt: skip
                alone[leaf] = 0.0
        product = leaves[len(layout)]
        for t in range(len(weights)):
            for b in range(width):
                product[b] = weights[t]
            for k in range(start[t], start[t + 1]):
                value = leaves[members[k]]
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
def reorder(values, row_of, column_of, out):  # type: ignore[no-untyped-def]
    """Write ``values[row_of][:, column_of]``."""
    for a in range(len(row_of)):
        line, source = out[a], values[row_of[a]]
        for b in range(len(column_of)):
            line[b] = source[column_of[b]]
