"""Moments of pairs of entries: sums over their common owners, any one of whom can be left out.

Ratings belong to *owners* and are of *entries*. Between items the entries are items and their
owners users; between users it is the other way round. A *source* gives every rating a number x
(the rating itself, a residual, ...). Summed over the owners v who rated both entries e and f,

    N_ef = sum_v 1     P_ef = sum_v x_ve x_vf     Q_ef = sum_v x_ve     A_ef = sum_v weight_v

are the *moments* of the pair: N, then P, Q_ef and Q_fe of each source, then A if owners have
weights, then *fixed products*, which are inner products of given feature rows of the entries.

Products of entries that are centred by any means c follow from the moments, also when the means
change because an owner o leaves (`centred_product`):

    S_ef = (P_ef - x_e x_f) - c_f (Q_ef - x_e o_f) - c_e (Q_fe - o_e x_f)
           + c_e c_f (N_ef - o_e o_f)                                                         (1)

with c the means without o, x_e the number of o's own rating of e and o_e = 1 if there is one, and
x_e = o_e = 0 otherwise.

Who asks for what
-----------------
Everybody who needs moments gets them in one of three ways:

* `pair_moments` sums those of all pairs, `common_moments` those of all pairs with a common owner,
  or of all pairs if most have one. Compiled loops read them with `gather_row`: the moments of one
  entry with a list of others. `PairMoments.diagonal` has those of entries with themselves.
* `block_moments` sums those of some rows with some columns only, for the same readers.
* `single_row` sums those of one entry with all others; `sum_row` does so inside compiled loops, and
  lists the entries that occur in the row.

Only `PairMoments` and `gather_row` know how the moments are stored: all moments of a pair side by
side, the pairs (e, f) with f <= e row by row. Of all pairs this is a packed triangle, with the pair
at e (e + 1) / 2 + f; `ItemKernel` numbers its items by popularity, so that what most users need
lies together. Where only pairs with a common owner are stored, a `PairIndex` says which these are:
a bit for each, in words of 64 columns, and how many pairs come before each word. A pair is found by
counting bits, without a search in rows that have most of their words; a pair that is not there has
no common owner, so that its sums are 0 and only its fixed products remain to be computed. To find
a pair like this takes several times as long as to read it, so that all pairs are stored where the
index would save less than half of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ordrec.data.groups import group_starts
from ordrec.kernels.distances import products
from ordrec.runtime.compiling import compiled, inner
from ordrec.runtime.parallel.spans import over_spans

__all__ = [
    "COUNT",
    "OTHER",
    "OWN",
    "PRODUCT",
    "GroupedEntries",
    "PairIndex",
    "PairMoments",
    "block_moments",
    "centred_product",
    "common_moments",
    "expected_bytes",
    "gather_row",
    "group_entries",
    "n_moments",
    "n_pairs",
    "pair_moments",
    "single_row",
    "sum_row",
]

COUNT = 0  # where N is among the moments of a pair
PRODUCT, OWN, OTHER = 1, 2, 3  # P, Q_ef and Q_fe of the first source; three places on for each more

FEATURE_ROWS = 64  # of a fixed product, at a time
CACHE_LINE = 64
WORDS_AT_ONCE = 1 << 20  # of an index, while it is made
COMPLETE = 3  # a row with more than one in so many of its words has all of them
MOST = 0.5  # of all pairs; where more have a common owner, all are stored
SURELY = 0.6  # of the pairs of some rows
SAMPLED_ROWS = 128  # from which the number of pairs with a common owner is estimated
ROWS_AT_ONCE = 8  # of these
INDEX_BYTES = 20  # of a word: its number, its bits and its place

# for counting bits
ONE, SIXTY_THREE = np.uint64(1), np.uint64(63)
ODD_BITS, ODD_PAIRS = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
ODD_HALVES, IN_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


class GroupedEntries(NamedTuple):
    """Ratings grouped by owner, and again by entry.

    Attributes
    ----------
    start : int64 (n_owners + 1,)
        Where each owner's ratings begin.
    entry : int64 (n_ratings,)
        The entry of each rating, ascending within an owner.
    x : float64 (n_sources, n_ratings)
        The numbers of each source, in the same order.
    entry_start : int64 (n_entries + 1,)
        Where each entry's ratings begin.
    owner : int64 (n_ratings,)
        The owner of each rating, ascending within an entry.
    entry_x : float64 (n_sources, n_ratings)
        The numbers of each source, in the order of ``owner``.
    weight : float64 (n_owners,) or empty
        The weight of each owner in A; without weights there is no A.
    """

    start: np.ndarray
    entry: np.ndarray
    x: np.ndarray
    entry_start: np.ndarray
    owner: np.ndarray
    entry_x: np.ndarray
    weight: np.ndarray

    @property
    def n_entries(self) -> int:
        """Number of entries."""
        return self.entry_start.size - 1

    @property
    def cost(self) -> np.ndarray:
        """How many ratings the owners of each entry have together."""
        so_far = np.concatenate([[0], np.cumsum(np.diff(self.start)[self.owner])])
        return np.diff(so_far[self.entry_start])

    def of_entries(self, chosen: np.ndarray) -> GroupedEntries:
        """The ratings of some entries alone, which are numbered by their place in ``chosen``."""
        counts = np.diff(self.entry_start)[chosen]
        ends = np.cumsum(counts)
        at = np.repeat(self.entry_start[chosen] - ends + counts, counts) + np.arange(counts.sum())
        return _by_owner_too(
            self.owner[at],
            np.repeat(np.arange(len(chosen)), counts),
            np.ascontiguousarray(self.entry_x[:, at]),
            self.start.size - 1,
            len(chosen),
            self.weight,
        )


def group_entries(
    owner: np.ndarray,
    entry: np.ndarray,
    x: np.ndarray,
    n_owners: int,
    n_entries: int,
    weight: np.ndarray | None = None,
) -> GroupedEntries:
    """Group ratings, given in any order, by owner and by entry."""
    by_entry = np.lexsort((owner, entry))
    return _by_owner_too(
        owner[by_entry].astype(np.int64),
        entry[by_entry].astype(np.int64),
        np.ascontiguousarray(x[:, by_entry]),
        n_owners,
        n_entries,
        np.zeros(0) if weight is None else weight,
    )


def _by_owner_too(
    owner: np.ndarray,
    entry: np.ndarray,
    x: np.ndarray,
    n_owners: int,
    n_entries: int,
    weight: np.ndarray,
) -> GroupedEntries:
    """Group ratings by owner that are ordered by entry, and by owner within an entry."""
    order = np.argsort(owner, kind="stable")
    start = group_starts(np.bincount(owner, minlength=n_owners))
    entry_start = group_starts(np.bincount(entry, minlength=n_entries))
    return GroupedEntries(
        start, entry[order], np.ascontiguousarray(x[:, order]), entry_start, owner, x, weight
    )


def n_moments(n_sources: int, weighted: bool = False, n_fixed: int = 0) -> int:
    """How many moments a pair has.

    Examples
    --------
    >>> n_moments(1), n_moments(2, weighted=True, n_fixed=3)
    (4, 11)
    """
    return 1 + 3 * n_sources + weighted + n_fixed


def n_pairs(n_entries: int) -> int:
    """How many pairs of entries are stored: (e, f) and (f, e) are one pair."""
    return n_entries * (n_entries + 1) // 2


class PairIndex(NamedTuple):
    """Which pairs (e, f) with f <= e are stored, the diagonal always among them.

    Attributes
    ----------
    start : int64 (n_entries + 1,) or empty
        Where the words of each row begin; empty if there is no index.
    word : int32 (n_words,)
        The number of each word in its row, ascending. Words without pairs are left out, except in
        rows that have all of their words.
    bits : uint64 (n_words,)
        Bit k of word w is set if the pair with f = 64 w + k is stored.
    place : int64 (n_words + 1,)
        How many pairs are stored before each word, and in all.
    """

    start: np.ndarray
    word: np.ndarray
    bits: np.ndarray
    place: np.ndarray


EVERY_PAIR = PairIndex(
    np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint64), np.zeros(0, np.int64)
)


class PairMoments(NamedTuple):
    """Moments of pairs of entries, as they are stored; compiled loops take it as it is.

    Attributes
    ----------
    table : float (n, n_moments)
        One row per pair that is stored.
    n_sources : int
    width : int
        0 where ``table`` has pairs of the triangle. Otherwise the number of columns of a block of
        some rows, of which ``table`` has all pairs, row by row.
    index : PairIndex
        Which pairs of the triangle are stored; empty if all of them are.
    features : float32 (n_entries, n_features)
        With an index: rows of which the fixed products of pairs that are not stored are made.
    edges : int64 (n_fixed + 1,)
        Which of these columns belong to each fixed product.
    """

    table: np.ndarray
    n_sources: int
    width: int = 0
    index: PairIndex = EVERY_PAIR  # type: ignore[assignment]
    features: np.ndarray = np.zeros((0, 0), np.float32)
    edges: np.ndarray = np.zeros(1, np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes that all of this takes."""
        return sum(each.nbytes for each in (self.table, self.features, *self.index))

    def diagonal(self, entries: np.ndarray) -> np.ndarray:
        """The moments of some entries with themselves, one row per entry; not for a block."""
        if self.index.start.size:  # the last pair of each row
            return self.table[self.index.place[self.index.start[entries + 1]] - 1]
        return self.table[entries * (entries + 3) // 2]

    def row(self, entry: int, n_entries: int) -> np.ndarray:
        """The moments of one entry with all entries, one row per entry."""
        out = np.empty((self.table.shape[1], n_entries), self.table.dtype)
        _gather(self, entry, np.arange(n_entries), out)
        return out.T


def pair_moments(
    ratings: GroupedEntries,
    features: Sequence[Any] = (),
    *,
    dtype: Any = np.float64,
    n_jobs: int = 1,
) -> PairMoments:
    """Sum the moments of all pairs of entries.

    Parameters
    ----------
    ratings : GroupedEntries
    features : sequence of matrix (n_entries, n_features)
        Rows whose inner products are the fixed products; dense or sparse.
    dtype : dtype
        Of what is stored; sums are taken in double precision.
    n_jobs : int
        Threads; the moments do not depend on it.

    Examples
    --------
    >>> owner, entry = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> grouped = group_entries(owner, entry, np.array([[5.0, 4.0, 1.0, 2.0]]), 2, 2)
    >>> pair_moments(grouped).row(0, 2)  # N, P, Q_ef and Q_fe
    array([[ 2., 26.,  6.,  6.],
           [ 2., 22.,  6.,  6.]])
    """
    n_entries, n_sources = ratings.n_entries, ratings.x.shape[0]
    n_sums = n_moments(n_sources, ratings.weight.size > 0)
    table = _aligned_zeros(n_pairs(n_entries), n_sums + len(features), np.dtype(dtype))

    def sum_span(first: int, stop: int) -> None:
        workspace = np.zeros((n_entries, n_sums)), np.empty(n_entries + 1, np.int64)
        _sum_triangle(first, stop, ratings, table, *workspace)

    over_spans(sum_span, ratings.cost, n_jobs)
    for first in range(0, n_entries if len(features) else 0, FEATURE_ROWS):
        stop = min(first + FEATURE_ROWS, n_entries)
        for k, rows in enumerate(features, start=n_sums):
            fixed = products(rows[first:stop], rows[:stop])
            for e in range(first, stop):
                own = e * (e + 1) // 2
                table[own : own + e + 1, k] = fixed[e - first, : e + 1]
    return PairMoments(table, n_sources)


def common_moments(
    ratings: GroupedEntries,
    features: Sequence[np.ndarray] = (),
    *,
    dtype: Any = np.float64,
    n_jobs: int = 1,
) -> PairMoments:
    """Sum the moments of all pairs of entries that have a common owner, or of all if most have.

    Parameters are as for `pair_moments`, with dense features.

    Examples
    --------
    >>> owner, entry = np.array([0, 0, 1, 2]), np.array([0, 1, 2, 3])
    >>> grouped = group_entries(owner, entry, np.array([[5.0, 4.0, 1.0, 2.0]]), 3, 4)
    >>> pairs = common_moments(grouped)
    >>> len(pairs.table)  # (0, 0), (1, 0), (1, 1), (2, 2) and (3, 3)
    5
    >>> pairs.row(0, 3)
    array([[ 1., 25.,  5.,  5.],
           [ 1., 20.,  5.,  4.],
           [ 0.,  0.,  0.,  0.]])
    """
    n_entries, n_sources = ratings.n_entries, ratings.x.shape[0]
    n_sums = n_moments(n_sources, ratings.weight.size > 0)
    index = None if _surely_most(ratings) else _common_pairs(ratings, n_jobs)
    if index is None or index.place[-1] > MOST * n_pairs(n_entries):
        return pair_moments(ratings, features, dtype=dtype, n_jobs=n_jobs)
    table = _aligned_zeros(int(index.place[-1]), n_sums + len(features), np.dtype(dtype))

    def sum_span(first: int, stop: int) -> None:
        workspace = np.zeros((n_entries, n_sums)), np.empty(n_entries + 1, np.int64)
        _sum_common(first, stop, ratings, index, table, *workspace)

    over_spans(sum_span, ratings.cost, n_jobs)
    for first in range(0, n_entries if len(features) else 0, FEATURE_ROWS):
        stop = min(first + FEATURE_ROWS, n_entries)
        for k, rows in enumerate(features, start=n_sums):
            fixed = np.ascontiguousarray(products(rows[first:stop], rows[:stop]), np.float32)
            _write_products(first, stop, index, fixed, table, k)
    edges = np.cumsum([0, *(rows.shape[1] for rows in features)], dtype=np.int64)
    together = np.hstack([np.zeros((n_entries, 0)), *features]).astype(np.float32)
    return PairMoments(table, n_sources, 0, index, together, edges)


def expected_bytes(
    owner: np.ndarray, entry: np.ndarray, n_owners: int, n_entries: int, n_sums: int
) -> float:
    """Estimate the bytes of `common_moments` in single precision, with its index.

    Parameters
    ----------
    owner, entry : array
        Of each rating, in any order.
    n_owners, n_entries : int
    n_sums : int
        Numbers that are stored for each pair.

    Examples
    --------
    >>> owner, entry = np.array([0, 0, 1, 2]), np.array([0, 1, 2, 3])
    >>> expected_bytes(owner, entry, 3, 4, n_sums=1)  # five pairs, four words
    100.0
    """
    ones = np.ones(owner.size, np.float32)
    seen = sparse.csr_array((ones, (entry, owner)), shape=(n_entries, n_owners))
    counts = np.bincount(owner, minlength=n_owners)
    bound = np.minimum(seen @ counts, n_entries).astype(np.float64)  # pairs of a row, at most
    rated = np.flatnonzero(bound)
    if rated.size <= SAMPLED_ROWS:
        chosen, times = rated, np.ones(rated.size)
    else:  # rows by their bounds, so that those with many pairs are not left to chance
        so_far = np.cumsum(bound[rated])
        at = (np.arange(SAMPLED_ROWS) + 0.5) * so_far[-1] / SAMPLED_ROWS
        chosen = rated[np.searchsorted(so_far, at)]
        times = so_far[-1] / SAMPLED_ROWS / bound[chosen]
    idle = np.flatnonzero(bound == 0) // 64 + 1  # words up to the diagonal, which is stored
    n_common, n_words = float(idle.size), float(np.where(idle < COMPLETE, idle, 1).sum())
    by_owner = sparse.csr_array(seen.T)
    for first in range(0, chosen.size, ROWS_AT_ONCE):
        own = slice(first, first + ROWS_AT_ONCE)
        found = seen[chosen[own]] @ by_owner
        for k, (e, each) in enumerate(zip(chosen[own], times[own], strict=True)):
            others = found.indices[found.indptr[k] : found.indptr[k + 1]]
            words, most = np.unique(others[others <= e] // 64).size, int(e) // 64 + 1
            n_words += each * (most if COMPLETE * words > most else words)
            n_common += each * (others.size + 1) / 2  # each pair once, and the diagonal
    if n_common > MOST * n_pairs(n_entries):
        return 4.0 * n_sums * n_pairs(n_entries)
    return float(4.0 * n_sums * n_common + INDEX_BYTES * n_words)


def _surely_most(ratings: GroupedEntries) -> bool:
    """Whether some rows have so many pairs with a common owner that the others need no look."""
    rows = np.arange(0, ratings.n_entries, max(ratings.n_entries // SAMPLED_ROWS, 1))
    marks, n_common = np.zeros((1, ratings.n_entries // 64 + 1), np.uint64), 0
    place = np.zeros(marks.size + 1, np.int64)
    for e in rows.tolist():
        marks[:] = 0
        _mark_common(e, e + 1, ratings, marks)
        _count_places(marks[0], place)
        n_common += int(place[-1])
    return n_common > SURELY * float((rows + 1).sum())


def _common_pairs(ratings: GroupedEntries, n_jobs: int) -> PairIndex:
    """Find the pairs with a common owner."""

    def index_span(first: int, stop: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        width = (stop + 63) // 64
        step = max(1, WORDS_AT_ONCE // width)
        return [_marked(ratings, a, min(a + step, stop)) for a in range(first, stop, step)]

    parts = [part for span in over_spans(index_span, ratings.cost, n_jobs) for part in span]
    parts = parts or [(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint64))]
    counts, word, bits = (np.concatenate(each) for each in zip(*parts, strict=True))
    place = np.zeros(bits.size + 1, np.int64)
    _count_places(bits, place)
    return PairIndex(group_starts(counts), word, bits, place)


def _marked(
    ratings: GroupedEntries, first: int, stop: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of words of some rows of a `PairIndex`, the words, and their bits."""
    last = np.arange(first, stop) // 64
    marks = np.zeros((stop - first, int(last[-1]) + 1), np.uint64)
    _mark_common(first, stop, ratings, marks)
    kept = marks != 0
    complete = COMPLETE * kept.sum(axis=1) > last + 1
    kept |= complete[:, None] & (np.arange(marks.shape[1]) <= last[:, None])
    return kept.sum(axis=1), np.nonzero(kept)[1].astype(np.int32), marks[kept]


def block_moments(
    ratings: GroupedEntries,
    rows: np.ndarray,
    columns: np.ndarray,
    features: Sequence[Any] = (),
    dtype: Any = np.float64,
) -> PairMoments:
    """Sum the moments of some entries with others; rows and columns are numbered by their places.

    Parameters are as for `pair_moments`; ``rows`` and ``columns`` are distinct entries.
    """
    n_sources = ratings.x.shape[0]
    n_sums = n_moments(n_sources, ratings.weight.size > 0)
    table = np.empty((len(rows) * len(columns), n_sums + len(features)), dtype)
    workspace = np.zeros((ratings.n_entries, n_sums)), np.empty(ratings.n_entries + 1, np.int64)
    last = int(columns.max(initial=-1))
    _sum_block(rows, columns, last, ratings, table, *workspace)
    for k, each in enumerate(features, start=n_sums):
        table[:, k] = products(each[rows], each[columns]).ravel()
    return PairMoments(table, n_sources, len(columns))


def single_row(ratings: GroupedEntries, n_entries: int) -> np.ndarray:
    """Sum the moments (n_entries, n_moments) of one entry with all others.

    The ratings by entry are those of the one, which need not be among those by owner: this is how
    an entry joins that was not there when the moments of all pairs were summed.
    """
    row = np.zeros((n_entries, n_moments(ratings.x.shape[0], ratings.weight.size > 0)))
    _sum_single(ratings, row, np.empty(n_entries + 1, np.int64))
    return row


def _aligned_zeros(n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    """Zeros whose rows do not straddle more cache lines than they must."""
    size = n_rows * n_columns * dtype.itemsize
    raw = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return raw[offset : offset + size].view(dtype).reshape(n_rows, n_columns)


# ---- the loops -------------------------------------------------------------------------


@inner
def sum_row(first, stop, limit, ratings, row, occurring):  # type: ignore[no-untyped-def]
    """Add the moments of one entry with the entries up to ``limit`` to ``row``, zeros so far.

    The entry is given by its ratings ``first..stop`` in the order by entry. Writes the entries with
    which it has owners in common to ``occurring``, and returns their number.
    """
    start, entry, x, _, owner, entry_x, weight = ratings
    n_sources, n = x.shape[0], 0
    for at in range(first, stop):
        v = owner[at]
        for b in range(start[v], start[v + 1]):
            f = entry[b]
            if f > limit:
                break
            occurring[n] = f  # without a branch, which could not be predicted
            n += row[f, COUNT] == 0.0
            row[f, COUNT] += 1.0
            for s in range(n_sources):
                mine, other = entry_x[s, at], x[s, b]
                row[f, PRODUCT + 3 * s] += mine * other
                row[f, OWN + 3 * s] += mine
                row[f, OTHER + 3 * s] += other
            if weight.size:
                row[f, 1 + 3 * n_sources] += weight[v]
    return n


@compiled
def _sum_triangle(first, stop, ratings, table, row, occurring):  # type: ignore[no-untyped-def]
    """Rows ``first..stop`` of the packed triangle; the last two arguments are working memory."""
    entry_start = ratings.entry_start
    for e in range(first, stop):
        n = sum_row(entry_start[e], entry_start[e + 1], e, ratings, row, occurring)
        own = e * (e + 1) // 2
        for k in range(n):
            f = occurring[k]
            for m in range(row.shape[1]):
                table[own + f, m] = row[f, m]
                row[f, m] = 0.0


@compiled
def _sum_common(first, stop, ratings, index, table, row, occurring):  # type: ignore[no-untyped-def]
    """The same for rows of the pairs in an index."""
    entry_start = ratings.entry_start
    for e in range(first, stop):
        n = sum_row(entry_start[e], entry_start[e + 1], e, ratings, row, occurring)
        for k in range(n):
            f = occurring[k]
            at = place_of(index, e, f)
            for m in range(row.shape[1]):
                table[at, m] = row[f, m]
                row[f, m] = 0.0


@compiled
def _mark_common(first, stop, ratings, marks):  # type: ignore[no-untyped-def]
    """Set the bits of all pairs of some rows with a common owner, and those of the diagonal."""
    start, entry, _, entry_start, owner, _, _ = ratings
    for e in range(first, stop):
        a = e - first
        marks[a, e >> 6] |= ONE << np.uint64(e & 63)
        for at in range(entry_start[e], entry_start[e + 1]):
            v = owner[at]
            for b in range(start[v], start[v + 1]):
                f = entry[b]
                if f > e:
                    break
                marks[a, f >> 6] |= ONE << np.uint64(f & 63)


@inner
def bit_count(bits):  # type: ignore[no-untyped-def]
    """Number of bits that are set: in twos, fours and bytes side by side, then over the bytes."""
    bits = bits - ((bits >> ONE) & ODD_BITS)
    bits = (bits & ODD_PAIRS) + ((bits >> np.uint64(2)) & ODD_PAIRS)
    bits = (bits + (bits >> np.uint64(4))) & ODD_HALVES
    return np.int64((bits * IN_BYTES) >> np.uint64(56))


@compiled
def _count_places(bits, place):  # type: ignore[no-untyped-def]
    for k in range(len(bits)):
        place[k + 1] = place[k] + bit_count(bits[k])


@compiled
def _write_products(first, stop, index, fixed, table, k):  # type: ignore[no-untyped-def]
    """Copy the products of rows ``first..stop`` with all columns to column k of the pairs."""
    start, word, bits, place = index
    for e in range(first, stop):
        for w in range(start[e], start[e + 1]):
            at = place[w]
            for bit in range(64):
                if (bits[w] >> np.uint64(bit)) & ONE:
                    table[at, k] = fixed[e - first, 64 * word[w] + bit]
                    at += 1


@inner
def place_of(index, e, f):  # type: ignore[no-untyped-def]
    """Where the pair (e, f) with f <= e is stored; -1 if it is not."""
    start, word, bits, place = index
    low, stop, wanted = start[e], start[e + 1], f >> 6
    if stop - low == (e >> 6) + 1:
        low += wanted
    else:
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if word[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low == stop or word[low] != wanted:
            return -1
    own, bit = bits[low], ONE << (np.uint64(f) & SIXTY_THREE)
    if not own & bit:
        return -1
    return place[low] + bit_count(own & (bit - ONE))


@compiled
def _sum_block(rows, columns, last, ratings, table, row, occurring):  # type: ignore[no-untyped-def]
    """Moments of rows with columns, of which ``last`` is the last."""
    entry_start = ratings.entry_start
    for a in range(len(rows)):
        e = rows[a]
        n = sum_row(entry_start[e], entry_start[e + 1], last, ratings, row, occurring)
        for b in range(len(columns)):
            for m in range(row.shape[1]):
                table[a * len(columns) + b, m] = row[columns[b], m]
        for k in range(n):
            for m in range(row.shape[1]):
                row[occurring[k], m] = 0.0


@compiled
def _sum_single(ratings, row, occurring):  # type: ignore[no-untyped-def]
    sum_row(0, len(ratings.owner), len(row), ratings, row, occurring)


@inner
def gather_row(pairs, e, entries, n, out):  # type: ignore[no-untyped-def]
    """Write the moments of entry e with the first n of ``entries`` to ``out[moment, place]``.

    They are seen from e: OWN is the sum of e's numbers. ``out`` has moments as rows, so that loops
    over the entries read memory in order.
    """
    table, n_sources, width, index, features, edges = pairs
    rest, last = 1 + 3 * n_sources, table.shape[1]
    for b in range(n):
        f = entries[b]
        swap = 0
        if width > 0:
            place = e * width + f
        elif index.start.size > 0:
            if f <= e:
                place = place_of(index, e, f)
            else:
                place = place_of(index, f, e)
                swap = 1
        elif f <= e:
            place = e * (e + 1) // 2 + f
        else:
            place = f * (f + 1) // 2 + e
            swap = 1
        if place < 0:
            for m in range(last):
                out[m, b] = 0.0
            for k in range(edges.size - 1):
                total = 0.0
                for c in range(edges[k], edges[k + 1]):
                    total += features[e, c] * features[f, c]
                out[last - edges.size + 1 + k, b] = total
            continue
        at = np.uintp(place)  # unsigned: no index can mean "from the end"
        out[COUNT, b] = table[at, COUNT]
        for s in range(n_sources):
            out[PRODUCT + 3 * s, b] = table[at, PRODUCT + 3 * s]
            out[OWN + 3 * s, b] = table[at, OWN + 3 * s + swap]
            out[OTHER + 3 * s, b] = table[at, OTHER + 3 * s - swap]
        for m in range(rest, last):
            out[m, b] = table[at, m]


@compiled
def _gather(pairs, e, entries, out):  # type: ignore[no-untyped-def]
    gather_row(pairs, e, entries, len(entries), out)


@inner
def centred_product(product, own, other, count, c_e, c_f, x_e, x_f, seen_e, seen_f):  # type: ignore[no-untyped-def]
    """(1), from P, Q_ef, Q_fe of a pair and the ``count`` N without the owner's own term."""
    return (
        (product - x_e * x_f)
        - c_f * (own - x_e * seen_f)
        - c_e * (other - seen_e * x_f)
        + c_e * c_f * count
    )
