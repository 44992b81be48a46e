"""Row-scaled EASE for many items: every item regressed on the items that say most about it.

The regressions of `ordrec.choice.ease_solver` need a square matrix over all items. Where that is
too large, item j is regressed on a set N of at most ``n_nearest`` other items, and has no weight
from any other:

(1) ``B_Nj = ((Z'Z)_NN + diag(L_N))^-1 (Z'Y)_Nj``

(2) N has the largest ``(Z'Y)_ij^2 / ((Z'Z)_ii + L_i)``, what the error falls by with i alone

With as many nearest items as there are others, (1) is EASE: its column of weights without the
diagonal is the regression on all other items. The inverse of the Gram matrix is never made;
time grows with the number of items, and with the cube of the number of nearest ones.

``Z'Z`` is stored sparse, for the items with the most ratings as long as it fits into memory; only
these have weights on others. ``Z'Y`` is summed up for one item at a time.

Steck, "Markov random fields for collaborative filtering", NeurIPS 2019, section 3.2, where N is a
threshold on correlations. Departures: the row scaling, the ridges, and the order by (2).
Spisak et al., "Scalable approximate nonsymmetric autoencoder for collaborative filtering", RecSys
2023, factorise a sparse Gram matrix as a whole instead.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.linalg.lapack import ADDRESSES, factorise, solve_factorised
from ordrec.models.workplace import over_rows
from ordrec.runtime.compiling import compiled, inner

__all__ = ["NearestProblem", "NearestSolution"]

PAIR_BYTES = 8  # of an entry of the Gram matrix: its column and its value
READ_PER_SEARCH = 15  # entries that are read in the time of one search


class NearestProblem:
    """The regressions on the nearest items, for any number of ridges.

    Parameters
    ----------
    history : csr_array of shape (n_users, n_items)
        ``V``, only items that are to be regressed, with sorted indices.
    row_factors : array of shape (n_users,)
        ``d``, see `ordrec.choice.ease_solver`.
    n_nearest : int
    max_memory : float
        Gigabytes for the Gram matrix.
    n_jobs : int
        Threads.
    """

    def __init__(
        self,
        history: sparse.csr_array,
        row_factors: np.ndarray,
        n_nearest: int,
        max_memory: float,
        n_jobs: int = 1,
    ):
        self.history, self.factors = history, row_factors.astype(np.float64)
        self.n_nearest, self._max_memory, self._n_jobs = n_nearest, max_memory, n_jobs
        self._by_item = sparse.csr_array(history.T)
        sizes = np.diff(history.indptr).astype(np.float64)
        owners = np.repeat(np.arange(history.shape[1]), np.diff(self._by_item.indptr))
        self._cost = np.bincount(
            owners, sizes[self._by_item.indices], minlength=history.shape[1]
        )  # of a row of the Gram matrix

    @cached_property
    def inputs(self) -> np.ndarray:
        """The items that may have weights on others: those with the most ratings, ascending."""
        most = np.argsort(-np.diff(self._by_item.indptr), kind="stable")
        n_items = most.size
        # a row has no more entries than items, and no more than ratings by the item's users
        entries = np.cumsum(np.minimum(self._cost[most], n_items))
        limit = self._max_memory * 1e9 / PAIR_BYTES
        kept = np.arange(1, n_items + 1)
        fitting = np.minimum(entries, kept.astype(np.float64) ** 2) <= limit
        return np.sort(most[: max(int(fitting.sum()), min(n_items, 2))])

    @cached_property
    def place(self) -> np.ndarray:
        """The place of each item among the inputs, -1 for the others."""
        place = np.full(self.history.shape[1], -1, dtype=np.int64)
        place[self.inputs] = np.arange(self.inputs.size)
        return place

    @cached_property
    def gram(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``Z'Z`` among the inputs: where its rows begin, columns and values."""
        shared = self._by_item, self.history, self.factors, self.inputs, self.place
        counts, columns, values = over_rows(
            _gram_rows, self._cost[self.inputs], shared, self._n_jobs
        )
        return np.concatenate([[0], np.cumsum(counts)]), columns, values

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The diagonal of ``Z'Z`` among the inputs."""
        diagonal = np.empty(self.inputs.size)
        _write_diagonal(*self.gram, diagonal)
        return diagonal

    def solve(self, ridges: np.ndarray) -> NearestSolution:
        """Return the solution for these ridges, one per item."""
        width = max(1, min(self.n_nearest, self.inputs.size))
        cost = self._cost + 20.0 * width**2 + width**3 / 3
        shared = (
            self._by_item, self.history, self.factors, self.place, *self.gram, self.diagonal,
            ridges[self.inputs].astype(np.float64), width,
        )  # fmt: skip
        places, weights = over_rows(_regressed_rows, cost, shared, self._n_jobs)
        there = places >= 0
        columns = np.repeat(np.arange(len(places)), there.sum(axis=1))
        entries = weights[there], (self.inputs[places[there]], columns)
        n_items = self.history.shape[1]
        return NearestSolution(self, sparse.csr_array(entries, shape=(n_items, n_items)))


class NearestSolution:
    """The weights, (1)."""

    def __init__(self, problem: NearestProblem, B: sparse.csr_array):
        self._problem, self._B = problem, B

    def weights(self) -> sparse.csr_array:
        """Return ``B``: row the item rated, column the item scored."""
        return self._B

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return the scores of training users."""
        scale = sparse.diags_array(self._problem.factors[rows])
        Z = sparse.csr_array(scale @ self._problem.history[rows]).astype(np.float32)
        return sparse.csr_array(Z @ self._B).toarray()


def _gram_rows(
    span: tuple[int, int], by_item: sparse.csr_array, history: sparse.csr_array,
    factors: np.ndarray, inputs: np.ndarray, place: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Rows of ``Z'Z`` among the inputs: numbers of entries, columns, values."""
    n = inputs.size
    square, touched, counts, columns, values = np.zeros(n), np.zeros(n, np.int64), [], [], []
    arrays = _arrays(by_item, history, factors, place)
    for row in range(*span):
        n_touched = _sum_pairs(inputs[row], True, *arrays, square, touched)
        own = np.sort(touched[:n_touched])
        counts.append(n_touched)
        columns.append(own.astype(np.int32))
        values.append(square[own].astype(np.float32))
        square[own] = 0.0
    return np.array(counts, np.int64), np.concatenate(columns), np.concatenate(values)


def _regressed_rows(
    span: tuple[int, int], by_item: sparse.csr_array, history: sparse.csr_array,
    factors: np.ndarray, place: np.ndarray, start: np.ndarray, columns: np.ndarray,
    values: np.ndarray, diagonal: np.ndarray, ridges: np.ndarray, width: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The places among the inputs and the weights of the nearest items of each item, -1 and 0."""
    first, stop = span
    n = ridges.size
    penalised = diagonal + ridges
    cross, touched, among = np.zeros(n), np.zeros(n, np.int64), np.full(n, -1, np.int32)
    nearest = np.full((stop - first, width), -1, dtype=np.int32)
    weights = np.zeros((stop - first, width), dtype=np.float32)
    arrays = _arrays(by_item, history, factors, place)
    for item in range(first, stop):
        n_touched = _sum_pairs(item, False, *arrays, cross, touched)
        own = touched[:n_touched]
        others = own[own != place[item]]
        gains = cross[others] ** 2 / penalised[others]  # (2)
        others = most_telling(others, gains, width)
        k = others.size
        if k:
            A, right = np.empty((k, k)), cross[others][None].copy()
            _fill_block(others, start, columns, values, ridges, among, A)
            _solve_block(A, right, ADDRESSES)
            nearest[item - first, :k], weights[item - first, :k] = others, right[0]
        cross[own] = 0.0
    return nearest, weights


def most_telling(others: np.ndarray, gains: np.ndarray, width: int) -> np.ndarray:
    """Return the items with the largest gains, ascending; of equal ones the first.

    Examples
    --------
    >>> most_telling(np.array([7, 2, 5, 3]), np.array([0.1, 0.3, 0.1, 0.2]), 3)
    array([2, 3, 5])
    """
    if others.size <= width:
        return np.sort(others)
    # by place where gains are equal, so that ties do not depend on the order in which users come
    least = np.partition(gains, others.size - width)[others.size - width]
    more = others[gains > least]
    equal = np.sort(others[gains == least])[: width - more.size]
    return np.sort(np.concatenate([more, equal]))


def _arrays(
    by_item: sparse.csr_array, history: sparse.csr_array, factors: np.ndarray, place: np.ndarray
) -> tuple[Any, ...]:
    """The arrays of `_sum_pairs`."""
    tables = (by_item.indptr, by_item.indices, by_item.data)
    return (*tables, history.indptr, history.indices, history.data, factors, place)


@compiled
def _sum_pairs(  # type: ignore[no-untyped-def]
    item, squared, item_start, users, user_values, start, items, values, factors, place,
    total, touched,
):  # fmt: skip
    """Add a row of ``Z'Z``, or of ``Z'Y`` transposed, to the total; return the entries' number."""
    n_touched = 0
    for at in range(item_start[item], item_start[item + 1]):
        u = users[at]
        weight = factors[u] * user_values[at]
        if squared:
            weight *= factors[u]
        for k in range(start[u], start[u + 1]):
            i = place[items[k]]
            if i < 0:
                continue
            if total[i] == 0.0:
                touched[n_touched] = i
                n_touched += 1
            total[i] += weight * values[k]
    return n_touched


@compiled
def _write_diagonal(start, columns, values, diagonal):  # type: ignore[no-untyped-def]
    for row in range(diagonal.size):
        diagonal[row] = 0.0
        for at in range(start[row], start[row + 1]):
            if columns[at] == row:
                diagonal[row] = values[at]


@compiled
def _fill_block(chosen, start, columns, values, ridges, among, A):  # type: ignore[no-untyped-def]
    """Write the Gram matrix of chosen inputs, ascending, and their ridges; upper triangle.

    A row is read from its diagonal on, or, where it is long, searched for each column. ``among``
    is -1 for all inputs, and is so again afterwards.
    """
    n = chosen.size
    for p in range(n):
        among[chosen[p]] = p
        for q in range(p, n):
            A[p, q] = 0.0
    for p in range(n):
        end = start[chosen[p] + 1]
        at, searched = start[chosen[p]], False
        for q in range(p, n):
            at = _first_from(columns, at, end, chosen[q])
            searched = end - at >= READ_PER_SEARCH * (n - q)
            if not searched:
                break
            if columns[at] == chosen[q]:
                A[p, q] = values[at]
        while at < end and not searched:
            if among[columns[at]] >= 0:
                A[p, among[columns[at]]] = values[at]
            at += 1
        A[p, p] += ridges[chosen[p]]
    for p in range(n):
        among[chosen[p]] = -1


@inner
def _first_from(columns, low, high, wanted):  # type: ignore[no-untyped-def]
    """Return the first place from ``low`` on whose column is not before the one wanted."""
    while low < high:
        middle = (low + high) // 2
        if columns[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _solve_block(A, right, addresses):  # type: ignore[no-untyped-def]
    """Solve for the weights; they are 0 where the ridge is too small for the rounded sums."""
    if factorise(A, addresses) == 0:
        solve_factorised(A, right, addresses)
    else:
        right[:] = 0.0
