"""One side's covariance: a dense block for each owner, half of it, in 16 bits.

With ``k_c`` the components (3) to (12) of `ordrec.rating.process.kernel.components` for one owner's
entries, ``w_c`` their weights and ``s`` a smoothing count:

(1) block       ``K = sum_c w_c k_c`` between the owner's training ratings
(2) forms       ``left' k_c right``, summed over blocks, for the gradient by the weights
(3)             ``d k_c / d log s = -(s / (S_ee + s) + s / (S_ff + s)) k_c / 2``
(4) cross       ``k_c(query, training) right`` for each query, for means and explanations
(5) adjoint     ``sum_q left_q sum_c w_c k_c(q, training)``

`assemble` builds (1), `multiply` applies the blocks to one vector or to a batch, `quadratic_forms`
computes (2) and (3), `cross` (4) and `cross_adjoint` (5). All of them but `multiply` walk over rows
and columns of each owner (`Walk`). All loops run over spans of owners.

Blocks are symmetric, and stored as lower triangles: row by row, owner after owner, each number as
an integer of 16 bits times the scale of its row (`Blocks`). They are what a fit takes most memory
for, and reading them is most of what a step of conjugate gradients does. Rounding changes a number
by at most 1.5e-5 of the largest in its row, which the noise variance of 1 exceeds by far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ordrec.kernels.items.moments import PairMoments, gather_row
from ordrec.linalg import lapack
from ordrec.rating.process.kernel.components import (
    N_SMOOTHED,
    SHRINKAGE,
    SMOOTHED,
    TIME,
    Entries,
    SideWeights,
    add_mean_times,
    entry_numbers,
    row_components,
)
from ordrec.rating.process.kernel.pair_sums import OwnerSide
from ordrec.runtime.compiling import compiled, compiled_with, inner
from ordrec.runtime.parallel.spans import over_spans

__all__ = [
    "CROSS",
    "Blocks",
    "Output",
    "Queries",
    "Walk",
    "assemble",
    "cross",
    "cross_adjoint",
    "diagonal",
    "diagonal_of_inverses",
    "group_queries",
    "invert",
    "multiply",
    "numbers_of",
    "parts_of_query",
    "quadratic_forms",
    "solve_alone",
    "training_entries",
]

BLOCKS, FORMS, CROSS, ADJOINT, PARTS = range(5)  # purposes of a `Walk`; of the first two, half
AT_ONCE = 1 << 23  # numbers of the blocks that are solved without being kept
TILE = 32  # rows and columns that stay in the cache while a triangle is mirrored
LARGEST = float(np.iinfo(np.int16).max)
REORDERED = {"reassoc", "contract"}  # lets sums be vectorised


class Blocks(NamedTuple):
    """A symmetric matrix for each owner.

    Attributes
    ----------
    start : int64 (n_owners + 1,)
        Where the rows of each owner begin.
    numbers : int16 array
        The lower triangles, row by row.
    scale : float32 (n_rows,)
        What the numbers of each row are multiplied by.
    """

    start: np.ndarray
    numbers: np.ndarray
    scale: np.ndarray

    @classmethod
    def empty(cls, start: np.ndarray) -> Blocks:
        """Room for blocks of these rows."""
        return cls(start, np.empty(_bases(start)[-1], np.int16), np.empty(start[-1], np.float32))

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of each owner."""
        return np.diff(self.start)

    @property
    def base(self) -> np.ndarray:
        """Where the triangle of each owner begins."""
        return _bases(self.start)


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
    n_owners, n_entries = side.start.size - 1, side.n_entries
    order = np.argsort(owners, kind="stable").astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=n_owners))])
    wanted = owners[order].astype(np.int64) * n_entries + entries[order]
    asked = np.flatnonzero(np.diff(start))  # a list asks for few users: the others are not sorted
    sizes = side.sizes[asked]
    own = np.repeat(side.start[asked] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    key = np.repeat(asked, sizes) * n_entries + side.entry[own]
    by_key = np.argsort(key, kind="stable")
    seen, x = np.zeros(wanted.size, dtype=np.bool_), np.zeros(wanted.size)
    if key.size:
        at = np.searchsorted(key, wanted, sorter=by_key)
        place = by_key[np.minimum(at, key.size - 1)]
        seen = key[place] == wanted
        x = np.where(seen, side.x[own[place]], 0.0)
    return Queries(
        start.astype(np.int64),
        order,
        entries[order].astype(np.int64),
        time[order].astype(np.float64),
        x,
        seen.astype(np.float64),
    )


def training_entries(
    side: OwnerSide, w: SideWeights, owners: np.ndarray | None = None
) -> tuple[Entries, np.ndarray]:
    """The training ratings of some owners (all by default), and their places among all."""
    if owners is None:
        owners, start, at = np.arange(side.start.size - 1), side.start, np.arange(side.entry.size)
    else:
        start = np.concatenate([[0], np.cumsum(side.sizes[owners])])
        at = np.repeat(side.start[owners] - start[:-1], side.sizes[owners]) + np.arange(start[-1])
    owner, seen = np.repeat(owners, np.diff(start)), np.ones(at.size)
    numbers = numbers_of(side, w, side.entry[at], side.x[at], seen, side.time[at], owner)
    return Entries(start, side.entry[at], numbers), at


def numbers_of(
    side: OwnerSide,
    w: SideWeights,
    code: np.ndarray,
    x: np.ndarray,
    seen: np.ndarray,
    time: np.ndarray,
    owner: np.ndarray,
) -> np.ndarray:
    """The numbers of entries of given owners; the kernel leaves out the ratings x where seen.

    An owner of code -1 was not in training.
    """
    old = owner >= 0
    activity = np.where(old, side.activity[owner], 0.0)
    loadings = side.loadings[np.where(old, side.fold[owner], 0), code]
    return entry_numbers(side.pairs.diagonal(code), x, seen, activity, time, loadings, w)


def assemble(
    side: OwnerSide, w: SideWeights, n_jobs: int = 1, owners: np.ndarray | None = None
) -> Blocks:
    """Blocks (1) of some owners (all by default)."""
    own, _ = training_entries(side, w, owners)
    blocks = Blocks.empty(own.start)
    activity = side.activity if owners is None else side.activity[owners]
    walk = Walk(side.pairs, activity, w, own, own)
    place = blocks.base
    output = Output(BLOCKS, place=place, blocks=blocks.numbers, scale=blocks.scale)
    walk.run(blocks.sizes**2, output, n_jobs)
    return blocks


def diagonal(blocks: Blocks) -> np.ndarray:
    """Diagonal of all blocks."""
    start, sizes = blocks.start, blocks.sizes
    within = np.arange(start[-1]) - np.repeat(start[:-1], sizes)
    places = np.repeat(blocks.base[:-1], sizes) + within * (within + 3) // 2
    return blocks.numbers[places] * blocks.scale.astype(np.float64)


def multiply(blocks: Blocks, vectors: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Blocks times vectors of shape (n_ratings,) or (n_ratings, n_vectors)."""
    if vectors.ndim == 2:  # faster than a product with whole blocks for fewer than a dozen
        columns = np.ascontiguousarray(vectors.T)
        return np.column_stack([multiply(blocks, column, n_jobs) for column in columns])
    result = np.empty_like(vectors)
    over_spans(_multiply, blocks.sizes**2, n_jobs, blocks, blocks.base, vectors, result)
    return result


def invert(blocks: Blocks, noise: np.ndarray, most: int, n_jobs: int = 1) -> Blocks:
    """``(block + noise)^-1`` of blocks of at most ``most`` rows.

    Larger blocks are cut along their diagonal into equal parts, and what lies between the parts is
    ignored. Computed in the precision of the noise: single is enough to precondition.
    """
    parts = _parts(blocks.start, most)
    result = Blocks.empty(parts)
    base = result.base

    def invert_span(first: int, stop: int) -> None:
        for k, noisy in _noisy_blocks(first, stop, blocks, parts, noise):
            _pack(_inverse(noisy), base[k], parts[k], result.numbers, result.scale)

    over_spans(invert_span, np.diff(parts) ** 3, n_jobs)
    return result


def diagonal_of_inverses(blocks: Blocks, noise: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """Diagonal of ``(block + noise)^-1`` for each block, without keeping the inverses."""
    result, start = np.empty(noise.size), blocks.start

    def diagonal_span(first: int, stop: int) -> None:
        for k, noisy in _noisy_blocks(first, stop, blocks, start, noise):
            diag = lapack.inverse_diagonal(noisy())
            if diag is None:
                diag = np.diagonal(np.linalg.inv(noisy()))  # rounding has made it indefinite
            result[start[k] : start[k + 1]] = diag

    over_spans(diagonal_span, np.diff(start) ** 3, n_jobs)
    return result


def _inverse(noisy: Callable[[], np.ndarray]) -> np.ndarray:
    """The inverse of a block, which is made again if it is not positive definite."""
    inverse = noisy()
    return inverse if lapack.invert(inverse) else np.linalg.inv(noisy())


def solve_alone(
    side: OwnerSide, w: SideWeights, right: np.ndarray, noise: np.ndarray, n_jobs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """``(K + noise)^-1 right`` and the diagonal of the inverse, if K has this side's blocks alone.

    Blocks are made, solved and forgotten a few at a time.
    """
    solution, diag = np.empty(right.size), np.empty(right.size)
    group = (_bases(side.start)[1:] - 1) // AT_ONCE
    for k in np.unique(group):
        owners = np.flatnonzero(group == k)
        at = slice(side.start[owners[0]], side.start[owners[-1] + 1])
        blocks = assemble(side, w, n_jobs, owners)
        _solve_blocks(blocks, right[at], noise[at], solution[at], diag[at], n_jobs)
    return solution, diag


def _solve_blocks(
    blocks: Blocks,
    right: np.ndarray,
    noise: np.ndarray,
    solution: np.ndarray,
    diag: np.ndarray,
    n_jobs: int,
) -> None:
    """Write the solutions, and the diagonals of the inverses."""
    start = blocks.start

    def solve_span(first: int, stop: int) -> None:
        for k, noisy in _noisy_blocks(first, stop, blocks, start, noise):
            inverse, own = _inverse(noisy), slice(start[k], start[k + 1])
            solution[own], diag[own] = inverse @ right[own], np.diagonal(inverse)

    over_spans(solve_span, np.diff(start) ** 3, n_jobs)


def _bases(start: np.ndarray) -> np.ndarray:
    """Where the lower triangle of each block begins."""
    sizes = np.diff(start)
    return np.concatenate([[0], np.cumsum(sizes * (sizes + 1) // 2)])


def _parts(start: np.ndarray, most: int) -> np.ndarray:
    """Where each block begins, or each of its equal parts if it has more than ``most`` rows."""
    sizes = np.diff(start)
    counts = np.maximum(-(-sizes // most), 1)
    owner = np.repeat(np.arange(sizes.size), counts)
    k = np.arange(owner.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.append(start[owner] + sizes[owner] * k // counts[owner], start[-1])


def _noisy_blocks(
    first: int, stop: int, blocks: Blocks, parts: np.ndarray, noise: np.ndarray
) -> Iterator[tuple[int, Callable[[], np.ndarray]]]:
    """What makes each of a span of parts of blocks, with the noise added to its diagonal."""
    base, start = blocks.base, blocks.start
    owner = np.searchsorted(start, parts[first:stop], side="right") - 1

    def noisy(k: int, o: int) -> np.ndarray:
        n = parts[k + 1] - parts[k]
        block = np.empty((n, n), noise.dtype)
        _unpack(blocks, base[o], start[o], parts[k] - start[o], n, block)
        block.ravel()[:: n + 1] += noise[parts[k] : parts[k + 1]]
        return block

    for k, o in zip(range(first, stop), owner.tolist(), strict=True):
        if parts[k + 1] > parts[k]:
            yield k, partial(noisy, k, o)


def quadratic_forms(
    side: OwnerSide, w: SideWeights, left: np.ndarray, right: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """(2) for every component, then (3) for every smoothing count."""
    n_owners = side.start.size - 1
    result = np.zeros((n_owners, w.weights.size + N_SMOOTHED))
    own, _ = training_entries(side, w)
    place = np.repeat(np.arange(n_owners), side.sizes)
    walk = Walk(side.pairs, side.activity, w, own, own)
    walk.run(side.sizes**2, Output(FORMS, place, left, right, out=result), n_jobs)
    return result.sum(axis=0)


def cross(
    side: OwnerSide, w: SideWeights, queries: Queries, right: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """(4) for each query and component, then (3); one row per pair, in the caller's order."""
    result = np.zeros((queries.order.size, w.weights.size + N_SMOOTHED))
    if side.entry.size:
        walk, at, cost = _query_walk(side, w, queries)
        walk.run(cost, Output(CROSS, queries.order, right=right[at], out=result), n_jobs)
    return result


def parts_of_query(side: OwnerSide, w: SideWeights, queries: Queries) -> np.ndarray:
    """Components of a single query with each of its owner's training entries."""
    if side.entry.size == 0:
        return np.zeros((w.weights.size, 0))
    walk, at, _ = _query_walk(side, w, queries)
    return walk.parts(at.size)[0]


def cross_adjoint(
    side: OwnerSide, w: SideWeights, queries: Queries, left: np.ndarray, n_jobs: int = 1
) -> np.ndarray:
    """(5): one number per training rating, in the side's order."""
    result = np.zeros(side.entry.size)
    if side.entry.size:
        walk, at, cost = _query_walk(side, w, queries)
        sums = np.zeros((1, at.size))
        walk.run(cost, Output(ADJOINT, queries.order, left, out=sums), n_jobs)
        result[at] = sums[0]
    return result


def _query_walk(
    side: OwnerSide, w: SideWeights, queries: Queries
) -> tuple[Walk, np.ndarray, np.ndarray]:
    """A walk over queries and the training ratings of their owners; places and costs of these."""
    owners = np.flatnonzero(np.diff(queries.start))
    columns, at = training_entries(side, w, owners)
    owner = np.repeat(owners, np.diff(queries.start)[owners])
    numbers = numbers_of(side, w, queries.entry, queries.x, queries.seen, queries.time, owner)
    rows = Entries(np.append(queries.start[owners], queries.order.size), queries.entry, numbers)
    cost = np.diff(rows.start) * np.diff(columns.start)
    return Walk(side.pairs, side.activity[owners], w, rows, columns), at, cost


class Output(NamedTuple):
    """What a `Walk` reads beside the components, and where it writes; each purpose takes some.

    Attributes
    ----------
    purpose : int
        BLOCKS, FORMS, CROSS, ADJOINT or PARTS.
    place : int64 array
        Where the block of each owner (BLOCKS) or the sums of each row are written.
    left, right : float64 arrays
        One number per row, and one per column.
    blocks : int16 array
        The numbers of all blocks, one after the other.
    scale : float32 array
        That of each row of them.
    out : float64 array, 2-D
        For all purposes but BLOCKS.
    """

    purpose: int
    place: np.ndarray = np.zeros(0, dtype=np.int64)
    left: np.ndarray = np.zeros(0)
    right: np.ndarray = np.zeros(0)
    blocks: np.ndarray = np.zeros(0, dtype=np.int16)
    scale: np.ndarray = np.zeros(0, dtype=np.float32)
    out: np.ndarray = np.zeros((0, 0))


class Walk:
    """All rows of each owner against all of the owner's columns, for one of five purposes.

    Parameters
    ----------
    pairs : PairMoments
        Moments of pairs, from the codes of rows to those of columns.
    activity : array
        One per owner.
    w : SideWeights
    rows, columns : Entries
        The same object for blocks and forms, of which half is enough.
    """

    def __init__(
        self,
        pairs: PairMoments,
        activity: np.ndarray,
        w: SideWeights,
        rows: Entries,
        columns: Entries,
    ):
        add_mean_times(rows, columns, w)
        self.rows, self.columns, self.pairs, self.activity, self.w = (
            rows,
            columns,
            pairs,
            activity,
            w,
        )

    def run(self, cost: np.ndarray, output: Output, n_jobs: int = 1) -> None:
        """Fill what ``output`` has to fill; costs are numbers of pairs of each owner."""
        start, _, numbers = self.columns
        inputs = self.rows, self.columns, self.pairs, self.activity, self.w.weights, self.w.scales

        def walk_span(first: int, stop: int) -> None:
            most = int(np.diff(start[first : stop + 1]).max(initial=0))
            memory = (
                np.empty(most, dtype=np.int64),
                np.empty((numbers.shape[0], most)),
                np.empty((self.pairs.table.shape[1], most)),
                np.empty((self.w.weights.size, most)),
                np.empty(most),
            )
            _walk(first, stop, *inputs, output, memory)

        over_spans(walk_span, cost, n_jobs)

    def parts(self, n_columns: int) -> np.ndarray:
        """Components (row, component, column) of a single owner."""
        n_rows, n_components = self.rows.code.size, self.w.weights.size
        out = np.zeros((n_rows, n_components * n_columns))
        self.run(np.array([out.size]), Output(PARTS, out=out))
        return out.reshape(n_rows, n_components, n_columns)


# ---- the loops -------------------------------------------------------------------------


@compiled
def _walk(first, stop, rows, columns, pairs, activity, weights, scales, output, memory):  # type: ignore[no-untyped-def]
    """The one loop over pairs of entries, for every purpose.

    Compiling it takes 2.6 seconds for each precision of the moments. Each of five loops, one for
    every purpose, would contain all of `row_components` again, and a fit needs four of them.

    ``memory`` is for one owner: codes, numbers, moments and components of the columns, and sums
    over components. Memory of its own would take longer to compile.
    """
    start, code, column_numbers = columns
    row_start, row_code, numbers = rows
    purpose, place, left, right, blocks, scale, out = output
    entry, view, sums, part, total = memory
    n_components, own = weights.size, purpose <= FORMS
    for o in range(first, stop):
        begin, n = start[o], start[o + 1] - start[o]
        for b in range(n):
            entry[b] = code[begin + b]
        for k in range(column_numbers.shape[0]):
            for b in range(n):
                view[k, b] = column_numbers[k, begin + b]
        for q in range(row_start[o], row_start[o + 1]):
            a = q - row_start[o]
            width = a + 1 if own else n
            gather_row(pairs, row_code[q], entry, width, sums)
            row_components(sums, numbers, q, view, activity[o], scales, width, part)
            if own and not numbers[TIME, q] > 0.0:  # an unknown time has a variance of its own
                for c in range(n_components - scales.size, n_components):
                    part[c, a] += 1.0
            if purpose == PARTS:
                for c in range(n_components):
                    for b in range(n):
                        out[q, c * n + b] = part[c, b]
            elif purpose in (BLOCKS, ADJOINT):
                for b in range(width):
                    total[b] = 0.0
                for c in range(n_components):
                    if weights[c] != 0.0:
                        for b in range(width):
                            total[b] += weights[c] * part[c, b]  # (1)
                if purpose == ADJOINT:
                    for b in range(width):
                        out[0, begin + b] += left[place[q]] * total[b]  # (5)
                else:
                    _write_row(total, width, q, place[o] + a * (a + 1) // 2, blocks, scale)
            else:
                for b in range(width):
                    total[b] = right[begin + b]
                    if own:
                        total[b] *= left[q]
                        if b < a:
                            total[b] += left[begin + b] * right[q]
                _add_forms(part, width, numbers, q, view, total, out, place[q])


@inner
def _write_row(row, n, at, place, numbers, scale):  # type: ignore[no-untyped-def]
    """Write the first n numbers of a row as integers, and its scale."""
    most = 0.0
    for b in range(n):
        most = max(most, abs(row[b]))
    scale[at] = most / LARGEST
    inverse = LARGEST / most if most > 0.0 else 0.0
    for b in range(n):
        numbers[place + b] = np.int16(np.rint(inverse * row[b]))


@inner
def _add_forms(part, n, rows, q, view, share, out, to):  # type: ignore[no-untyped-def]
    """Add ``part @ share`` for each component, (2) or (4), and (3) for each smoothing count."""
    n_components = part.shape[0]
    for c in range(n_components):
        total = 0.0
        for b in range(n):
            total += share[b] * part[c, b]
        out[to, c] += total
    for s in range(N_SMOOTHED):
        c, total = SMOOTHED[s], 0.0
        for b in range(n):
            shrunk = rows[SHRINKAGE + s, q] + view[SHRINKAGE + s, b]
            total -= 0.5 * shrunk * share[b] * part[c, b]  # (3)
        out[to, n_components + s] += total


@compiled_with(fastmath=REORDERED)
def _multiply(first, stop, blocks, base, vector, result):  # type: ignore[no-untyped-def]
    start, numbers, scale = blocks
    for o in range(first, stop):
        own, size = vector[start[o] : start[o + 1]], scale[start[o] : start[o + 1]]
        out, at = result[start[o] : start[o + 1]], base[o]
        for a in range(len(own)):  # each number of the triangle counts in its row and its column
            x, total = size[a] * own[a], np.float32(0.0)
            row = numbers[at : at + a + 1]  # slices: loops over them are vectorised
            for b in range(a):
                number = np.float32(row[b])
                total += number * own[b]
                out[b] += x * number
            out[a] = size[a] * total + x * np.float32(row[a])
            at += a + 1


@compiled
def _unpack(blocks, base, begin, skipped, n, out):  # type: ignore[no-untyped-def]
    """Write n rows and columns of the triangle at ``base`` as a whole matrix.

    The first ``skipped`` rows and columns are left out; ``begin`` is the first row among all.
    """
    _, numbers, scale = blocks
    for a in range(n):
        row = skipped + a
        at, size = base + row * (row + 1) // 2 + skipped, scale[begin + row]
        for b in range(a + 1):
            out[a, b] = size * np.float32(numbers[at + b])
    for top in range(0, n, TILE):
        for side in range(0, top + 1, TILE):
            for a in range(top, min(top + TILE, n)):
                for b in range(side, min(side + TILE, a)):
                    out[b, a] = out[a, b]


@compiled
def _pack(block, base, begin, numbers, scale):  # type: ignore[no-untyped-def]
    """Write the lower triangle of a matrix row by row."""
    at = base
    for a in range(len(block)):
        _write_row(block[a], a + 1, begin + a, at, numbers, scale)
        at += a + 1
