"""Item kernels without one user, computed from the moments of pairs in one pass.

A *leaf* is one component kernel, given by its row in the integer table ``layout`` (``KIND``,
``FIRST``: its first moment, or first factor; ``STOP``: the end of its factors; ``SOURCE``) and in
the table ``numbers`` (``DAMPING``, ``SMOOTH``: negative when it is not normalised). A *term* is a
weighted product of leaves. Most terms are a single leaf and are added up directly from the
moments; only products of several leaves need the values of their leaves.

Columns are taken in chunks, whose moments are gathered first: nothing waits for them, so the
memory brings all pairs of the chunk at the same time, and the leaves find them in the cache.
"""

from __future__ import annotations

import numpy as np

from ordrec.kernels.items.moments import COUNT, centred_product, gather_row
from ordrec.runtime.compiling import compiled, inner

__all__ = ["add_diagonal", "add_leaves", "add_terms", "fill_leaf_vectors", "mirror", "reorder"]

KIND, FIRST, STOP, SOURCE = 0, 1, 2, 3
DAMPING, SMOOTH = 0, 1
FIXED, COUNTS, CENTRED, STANDARDISED, FACTORS = 0, 1, 2, 3, 4

CHUNK, TILE = 128, 32
NO_SPREAD = 1e-10  # of the raw squares: what is left of them by rounding


@compiled
def fill_leaf_vectors(  # type: ignore[no-untyped-def]
    places, own_at, own_entries, diagonal, factors, layout, numbers, c, x, seen, scale
):
    """Means c and own numbers x (0 so far), whether seen, and scales (1 so far) at the given items.

    All are without the user, who has the entries ``own_entries`` of each source: ``own_at`` says
    which one is the item's, -1 if the user did not rate it. ``diagonal`` has the moments of each
    item with itself, that is its number of ratings, sums of squares, sums, and fixed products, of
    all users.
    """
    n_leaves = len(layout)
    for a in range(len(places)):
        p, at = places[a], own_at[a]
        has = at >= 0
        seen[a] = 1.0 if has else 0.0
        count = diagonal[p, COUNT] - seen[a]
        for leaf in range(n_leaves):
            kind, first = layout[leaf, KIND], layout[leaf, FIRST]
            norm = 0.0
            if kind == FIXED:
                norm = diagonal[p, first]
            elif kind == COUNTS:
                norm = count
            elif kind == FACTORS:
                for f in range(first, layout[leaf, STOP]):
                    norm += factors[a, f] ** 2
            else:
                own = own_entries[layout[leaf, SOURCE], at] if has else 0.0
                square, total = diagonal[p, first] - own * own, diagonal[p, first + 1] - own
                damped = count + numbers[leaf, DAMPING]
                mean = total / damped if damped > 0 else 0.0
                c[leaf, a], x[leaf, a] = mean, own
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


@compiled
def add_leaves(  # type: ignore[no-untyped-def]
    out, pairs, rows, columns, first, same, left, right, layout, weights, moments
):
    """Add the weighted single leaves of ``rows`` with ``columns`` to ``out``.

    ``rows`` and ``columns`` are the items as ``pairs`` has them. The rows are those from ``first``
    on of the whole, of which ``left`` has the leaf vectors; ``right`` has those of the columns.
    ``weights`` are those of single leaves other than factors. Where both sides are the ``same``,
    only the lower triangle is computed. ``moments`` is working memory for a chunk.
    """
    for k in range(len(rows)):
        a = first + k
        end = a + 1 if same else len(columns)
        for low in range(0, end, CHUNK):
            width = min(CHUNK, end - low)
            gather_row(pairs, rows[k], columns[low : low + width], width, moments)
            total = out[a, low : low + width]
            _add_leaves(total, moments, low, a, left, right, layout, weights)


@compiled
def add_terms(  # type: ignore[no-untyped-def]
    out, pairs, rows, columns, first, same, left, right, factors, moments
):
    """The same for products of leaves.

    ``factors`` are those of both sides, the other one transposed, the layout of the leaves, and the
    products.
    """
    A, B, layout, terms = factors
    leaves = np.empty((len(layout) + 1, CHUNK), out.dtype)
    for k in range(len(rows)):
        a = first + k
        end = a + 1 if same else len(columns)
        for low in range(0, end, CHUNK):
            width = min(CHUNK, end - low)
            gather_row(pairs, rows[k], columns[low : low + width], width, moments)
            total = out[a, low : low + width]
            _add_terms(total, moments, low, a, left, right, A, B, layout, terms, leaves)


@compiled
def add_diagonal(out, diagonal, places, vectors, A, B, layout, weights, terms):  # type: ignore[no-untyped-def]
    """Add the kernel of each item with itself, whose moments are ``diagonal[places]``."""
    leaves, moments = np.empty((len(layout) + 1, CHUNK)), np.empty((diagonal.shape[1], 1))
    for a in range(len(places)):
        for m in range(diagonal.shape[1]):
            moments[m, 0] = diagonal[places[a], m]
        total = out[a : a + 1]
        _add_leaves(total, moments, a, a, vectors, vectors, layout, weights)
        _add_terms(total, moments, a, a, vectors, vectors, A, B, layout, terms, leaves)


@inner
def _add_leaves(total, moments, low, a, left, right, layout, weights):  # type: ignore[no-untyped-def]
    """Add the weighted single leaves of row a to the chunk of columns from ``low`` on."""
    c, x, seen, scale = left
    c_f, x_f, seen_f, scale_f = right
    width, mine = len(total), seen[a]
    count, theirs = moments[COUNT], seen_f[low : low + width]
    for leaf in range(len(layout)):
        weight = weights[leaf] * scale[leaf, a]
        if weight == 0.0:
            continue
        kind, first = layout[leaf, KIND], layout[leaf, FIRST]
        size = scale_f[leaf, low : low + width]
        if kind in (CENTRED, STANDARDISED):
            P, Q, Q_other = moments[first], moments[first + 1], moments[first + 2]
            mean, own = c[leaf, a], x[leaf, a]
            means, others = c_f[leaf, low : low + width], x_f[leaf, low : low + width]
            for b in range(width):
                value = centred_product(
                    P[b], Q[b], Q_other[b], count[b] - mine * theirs[b],
                    mean, means[b], own, others[b], mine, theirs[b],
                )  # fmt: skip
                total[b] += weight * size[b] * value
        elif kind == COUNTS:
            for b in range(width):
                total[b] += weight * size[b] * (count[b] - mine * theirs[b])
        else:
            fixed = moments[first]
            for b in range(width):
                total[b] += weight * size[b] * fixed[b]


@inner
def _add_terms(total, moments, low, a, left, right, A, B, layout, terms, leaves):  # type: ignore[no-untyped-def]
    """Add products of leaves of row a to the chunk of columns from ``low`` on."""
    weights, start, members, needed = terms
    alone, width = np.zeros(len(layout), moments.dtype), len(total)
    for leaf in needed:
        value = leaves[leaf, :width]
        for b in range(width):
            value[b] = 0.0
        if layout[leaf, KIND] == FACTORS:
            for f in range(layout[leaf, FIRST], layout[leaf, STOP]):
                for b in range(width):
                    value[b] += A[a, f] * B[f, low + b]
            for b in range(width):
                value[b] *= left[3][leaf, a] * right[3][leaf, low + b]
        else:
            alone[leaf] = 1.0
            _add_leaves(value, moments, low, a, left, right, layout, alone)
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
            total[b] += product[b]


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
