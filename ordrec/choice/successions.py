"""Which items follow which: counts of ordered pairs in histories, and what is made of them.

With ``pos`` the places of `ordrec.choice.order`, an entry a of a history comes ``lag = pos_a -
pos_b`` places before an entry b. Pairs are counted with weights that fall with the lag:

(1) ``T_ij = sum over users, a of item i, b of item j, 0 < lag <= window, of
    e^(-(max(lag, 1) - 1) / decay)``; two entries of the same time add 1/2 to both directions

(2) ``C_ij = T_ij / sqrt(T_i. T_.j)``, the directed cosine

For what comes directly after, the probability of item j after a history is a mixture over its
newest items, ``p(j | h) = 0.1 q_j + 0.9 sum_a w_a Q[i_a, j] / sum_a w_a`` with ``w_a`` the weights
of (1) and ``q`` the shares of the items. It starts from

(3) ``Q_ij = (T_ij + 20 q_j) / (T_i. + 20)``

and takes one step of EM, in which each pick is shared out among the items that may have led to it:

(4) ``N[i_a, j] += 0.9 w_a Q[i_a, j] / sum_a w_a / p(j | h)``, then (3) with N in place of T

(5) ``lift_ij = log(Q_ij / q_j)``

More steps of EM make worse lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import sparse

from ordrec.choice.order import DatedRows
from ordrec.runtime.compiling import compiled
from ordrec.storage.schema import Array, Table

__all__ = ["DirectedCosines", "counted_pairs", "item_shares", "lag_lifts"]

NEAR_WINDOW, NEAR_DECAY = 15.0, 3.0  # of the lag lifts
FAR_WINDOW, FAR_DECAY = 100.0, 30.0  # of the directed cosines
PRIOR = 20.0  # pseudo-counts of (3)
BACKGROUND = 0.1  # share of popularity in p(j | h)


@dataclass(frozen=True)
class DirectedCosines:
    """The table (2) of a fit, and what was counted since.

    Attributes
    ----------
    table : float32 array of shape (n_weighted_items, n_weighted_items)
        Among the items with weights in EASE whose square tables fit into its ``max_memory``; row:
        the earlier item.
    earlier, later : float64 arrays of shape (n_weighted_items,)
        ``T_i.`` and ``T_.j`` when the table was made.
    added : csr_array of shape (n_weighted_items, n_weighted_items)
        What was added to T since.
    """

    stored: ClassVar = {
        "table": Array("weighted", "weighted", dtype=np.float32),
        "earlier": Array("weighted", low=0.0),
        "later": Array("weighted", low=0.0),
        "added": Table("weighted", "weighted"),
    }

    table: np.ndarray
    earlier: np.ndarray
    later: np.ndarray
    added: sparse.csr_array

    @classmethod
    def of(cls, rows: DatedRows, items: np.ndarray) -> DirectedCosines:
        """Among some items, by code."""
        T = counted_pairs(rows, items, FAR_WINDOW, FAR_DECAY)
        earlier, later = T.sum(axis=1, dtype=np.float64), T.sum(axis=0, dtype=np.float64)
        T /= _root(earlier).astype(np.float32)[:, None]
        T /= _root(later).astype(np.float32)
        return cls(T, earlier, later, sparse.csr_array(T.shape, dtype=np.float64))

    def changed(self, before: DatedRows, after: DatedRows, items: np.ndarray) -> DirectedCosines:
        """Return (2) after some histories have changed; ``items`` are the codes of its rows."""
        own = np.union1d(before.history.indices, after.history.indices)
        place = np.searchsorted(items, own)
        there = place < items.size
        there[there] = items[place[there]] == own[there]
        own, place = own[there], place[there]
        further = counted_pairs(after, own, FAR_WINDOW, FAR_DECAY)
        further -= counted_pairs(before, own, FAR_WINDOW, FAR_DECAY)
        i, j = np.nonzero(further)
        change = sparse.csr_array(
            (further[i, j].astype(np.float64), (place[i], place[j])), shape=self.table.shape
        )
        return replace(self, added=sparse.csr_array(self.added + change))

    def spread(self, weights: sparse.csr_array) -> np.ndarray:
        """Return the products of rows of weights with (2)."""
        if not self.added.nnz:
            return weights.astype(np.float32) @ self.table
        earlier = self.earlier + np.asarray(self.added.sum(axis=1)).ravel()
        later = self.later + np.asarray(self.added.sum(axis=0)).ravel()
        rows = weights @ sparse.diags_array(1.0 / _root(earlier))
        known = sparse.csr_array(rows @ sparse.diags_array(_root(self.earlier)))
        counted = (known.astype(np.float32) @ self.table) * _root(self.later)
        counted += (rows @ self.added).toarray()
        return (counted / _root(later)).astype(np.float32)


def _root(sums: np.ndarray) -> np.ndarray:
    """Square roots of sums of counts, 1 where nothing was counted."""
    return np.sqrt(np.where(sums > 0, sums, 1.0))


def item_shares(counts: np.ndarray) -> np.ndarray:
    """Return the shares of items in all ratings, ``q``, from their numbers of ratings."""
    return (counts + 0.5) / (counts[counts > 0] + 0.5).sum()


def lag_lifts(rows: DatedRows, items: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return (5) among some items, by code; ``shares`` are theirs."""
    q = shares.astype(np.float32)
    Q = _smoothed(counted_pairs(rows, items, NEAR_WINDOW, NEAR_DECAY), q)
    N = np.zeros_like(Q)
    _share_out(*_in_time(rows, items), NEAR_WINDOW, NEAR_DECAY, BACKGROUND, q, Q, N)
    Q = _smoothed(N, q)
    Q /= q
    return np.log(Q, out=Q)


def counted_pairs(rows: DatedRows, items: np.ndarray, window: float, decay: float) -> np.ndarray:
    """Return (1) among some items, by code."""
    T = np.zeros((items.size, items.size), dtype=np.float32)
    _count_pairs(*_in_time(rows, items), window, decay, T)
    return T


def _smoothed(T: np.ndarray, q: np.ndarray) -> np.ndarray:
    """(3); the counts are overwritten."""
    total = T.sum(axis=1, dtype=np.float64) + PRIOR
    T += np.float32(PRIOR) * q
    T /= total.astype(np.float32)[:, None]
    return T


def _in_time(rows: DatedRows, items: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, columns among ``items`` and places of the entries, the oldest of a row first."""
    table = rows.history
    column = np.full(table.shape[1], -1, dtype=np.int64)
    column[items] = np.arange(items.size)
    row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    order = np.lexsort((-rows.places, row))
    order = order[column[table.indices[order]] >= 0]
    sizes = np.bincount(row[order], minlength=table.shape[0])
    start = np.concatenate([[0], np.cumsum(sizes)])
    return start, column[table.indices[order]], rows.places[order]


@compiled
def _count_pairs(start, column, place, window, decay, T):  # type: ignore[no-untyped-def]
    """Add the weights of all pairs, (1)."""
    for u in range(start.size - 1):
        for b in range(start[u], start[u + 1]):
            for a in range(b - 1, start[u] - 1, -1):
                lag = place[a] - place[b]
                if lag > window:
                    break
                if lag == 0.0:
                    T[column[a], column[b]] += 0.5
                    T[column[b], column[a]] += 0.5
                elif lag <= 1.0:
                    T[column[a], column[b]] += 1.0
                else:
                    T[column[a], column[b]] += np.exp(-(lag - 1.0) / decay)


@compiled
def _share_out(  # type: ignore[no-untyped-def]
    start, column, place, window, decay, background, q, Q, N
):
    """Add the responsibilities of one step of EM, (4)."""
    for u in range(start.size - 1):
        first, stop = start[u], start[u + 1]
        for b in range(first, stop):
            last = b  # entries up to here have the time of b, or are older
            while last + 1 < stop and place[last + 1] == place[b]:
                last += 1
            j, total, mixed = column[b], 0.0, 0.0
            for a in range(last, first - 1, -1):
                lag = place[a] - place[b]
                if lag > window:
                    break
                if a != b:
                    w = 0.5 if lag == 0.0 else np.exp(-(lag - 1.0) / decay) if lag > 1.0 else 1.0
                    total += w
                    mixed += w * Q[column[a], j]
            if total == 0.0:
                continue
            p = background * q[j] + (1.0 - background) * mixed / total
            for a in range(last, first - 1, -1):
                lag = place[a] - place[b]
                if lag > window:
                    break
                if a != b:
                    w = 0.5 if lag == 0.0 else np.exp(-(lag - 1.0) / decay) if lag > 1.0 else 1.0
                    N[column[a], j] += (1.0 - background) * w * Q[column[a], j] / total / p
