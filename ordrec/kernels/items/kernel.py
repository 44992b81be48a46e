"""`ItemKernel`: one set of pair moments for all users; each user's kernel leaves them out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.errors import ArgumentError, DataError
from ordrec.features.matrix import RatingMatrix, item_deviations
from ordrec.kernels.base import Kernel
from ordrec.kernels.distances import products, squared_norms
from ordrec.kernels.items import moments as _pairwise
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.expression import Plan, expression_of
from ordrec.kernels.items.low_rank import LowRank
from ordrec.kernels.items.pearson import Pearson, Residual
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["ItemKernel"]

log = logging.getLogger(__name__)

ROWS_AT_A_TIME = 64
BLOCK_BYTES = 1 << 21  # of moments at a time: what stays in the cache
CACHE_LINE = 64


class ItemKernel:
    """A kernel between items that leaves the ratings of the user out for whom it is evaluated.

    ``fit`` builds the pair moments of all items once; ``for_user`` returns the kernel exactly
    as it would be had the user's ratings never been there, item means and deviations included,
    by a rank-one downdate on the items asked for (see ``_pairwise``). The cost is one look-up
    per pair.

    Parameters
    ----------
    components : Kernel or sequence of Kernel
        Sums and products of `Pearson`, `Residual`, `CoRating`, `Content`, `LowRank` and
        `Constant`, each normalised or not. `Pearson` and `CoRating` see the ratings, `Residual`
        sees them minus their users' damped means, `Content` the feature table of its name,
        `LowRank` makes its own factors.
    weights : sequence of float, optional
        One per component; 1 when omitted.
    user_shrinkage : float
        Damping of the user means of `Residual`, see `RatingMatrix.user_means`.
    dtype : {"float64", "float32"}
        Of the moments and of the result. Sums are always taken in double precision.
    memory_bound : int
        Bytes the moments of all pairs may take. Above it they are not stored: ``for_user`` sums
        those of the items asked for, block by block, at the price of a pass over the ratings of
        these items. The result is the same; the log says which way was taken.
    n_jobs : int, optional
        Threads of ``fit``; all cores by default.

    Examples
    --------
    >>> from scipy import sparse
    >>> from ordrec.features.matrix import RatingMatrix
    >>> ratings = RatingMatrix(sparse.csr_array([[5., 4., 1.], [4., 5., 2.], [1., 2., 5.]]))
    >>> kernel = ItemKernel([Pearson().normalised(), CoRating()], weights=[1.0, 0.5]).fit(ratings)
    >>> kernel.for_user(0, [0, 1, 2]).round(3)
    array([[2., 2., 0.],
           [2., 2., 0.],
           [0., 0., 2.]])
    """

    def __init__(
        self,
        components: Kernel | Sequence[Kernel],
        weights: Sequence[float] | None = None,
        *,
        user_shrinkage: float = 5.0,
        dtype: Any = "float64",
        memory_bound: int = 1 << 30,
        n_jobs: int | None = None,
    ):
        parts = [components] if isinstance(components, Kernel) else list(components)
        self.components = parts
        self.weights = weights
        self.user_shrinkage = user_shrinkage
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.dtype("float64"), np.dtype("float32")):
            raise ArgumentError(f'dtype must be "float64" or "float32", got {dtype!r}')
        self.memory_bound = memory_bound
        self.n_jobs = n_jobs
        self._expression = expression_of(parts, weights)

    def fit(self, matrix: RatingMatrix, features: Mapping[str, Any] | None = None) -> ItemKernel:
        """Build the moments of all pairs of items.

        Parameters
        ----------
        matrix : RatingMatrix
            Training ratings.
        features : mapping of str to matrix (n_items, n_features), optional
            The tables of the `Content` components, by name.
        """
        self.n_items_, self.n_users_ = matrix.shape
        by_popularity = np.argsort(-matrix.item_counts, kind="stable")
        self._code = by_popularity
        self._place = np.empty(self.n_items_, dtype=np.int64)
        self._place[by_popularity] = np.arange(self.n_items_)
        self._read_ratings(matrix, by_popularity)
        self._read_leaves(matrix, features or {}, by_popularity)
        self._sum_diagonal()
        n_pairs = self.n_items_ * (self.n_items_ + 1) // 2
        size = n_pairs * self._diagonal.shape[1] * self.dtype.itemsize
        self._table = np.empty((0, 0), dtype=self.dtype)
        if size <= self.memory_bound:
            self._table = _aligned(n_pairs, self._diagonal.shape[1], self.dtype)
            self._sum_table()
        log.info(
            "item kernel of %d items, %d moments per pair: %s (%.0f MB, bound %.0f MB)",
            self.n_items_,
            self._diagonal.shape[1],
            "all pairs stored" if self.stored_ else "blocks summed on demand",
            size / 1e6,
            self.memory_bound / 1e6,
        )
        return self

    @property
    def stored_(self) -> bool:
        """Whether the moments of all pairs are held in memory."""
        return self._table.size > 0

    def items_of(self, user: int) -> np.ndarray:
        """Codes of the items the user rated, those with the most ratings first."""
        return self._code[self._rated[slice(*self._user_start[user : user + 2])]]

    def for_user(self, user: int | None, items: Any = None, others: Any = None) -> np.ndarray:
        """The kernel of some items without the user's ratings.

        Parameters
        ----------
        user : int or None
            User code; None for a user who is not in the training ratings.
        items : sequence of int, optional
            Item codes of the rows; `items_of` the user when omitted.
        others : sequence of int, optional
            Item codes of the columns; those of the rows when omitted.

        Returns
        -------
        ndarray of shape (n_items, n_others)
        """
        return self._evaluate(user, items, others, None)

    def parts_for_user(self, user: int | None, items: Any = None, others: Any = None) -> np.ndarray:
        """The weighted components of `for_user` one by one, shape (n_components, ...)."""
        parts = range(len(self.components))
        return np.stack([self._evaluate(user, items, others, part) for part in parts])

    def diag_for_user(self, user: int | None, items: Any = None) -> np.ndarray:
        """The kernel of each item with itself, without the user's ratings."""
        self._check_fitted()
        places = self._places(user, items)
        A, vectors = self._side(user, places)
        U, V = self._factor_sides(A, vectors, A, vectors, self._plan)
        out = np.einsum("ij,ij->i", U, V, dtype=np.float64)
        rest = self._leaf_layout, self._moment_weights(self._plan), self._plan.products
        B = np.ascontiguousarray(A.T)
        _pairwise.add_diagonal(out, self._diagonal, places, vectors, A, B, *rest)
        return out.astype(self.dtype, copy=False)

    # ---- fitting -------------------------------------------------------------------------

    def _read_ratings(self, matrix: RatingMatrix, by_popularity: np.ndarray) -> None:
        """The ratings by item and by user, items numbered by popularity; entries of each source."""
        kinds = {type(leaf.kernel) for leaf in self._expression.leaves}
        # z-scores do not notice that the item means are off, but rounding errors do.
        makers = {
            Pearson: lambda: item_deviations(matrix.values)[0],
            Residual: lambda: matrix.user_centred(self.user_shrinkage),
        }
        self._sources = [kind for kind in makers if kind in kinds]
        ratings = matrix.values[by_popularity]
        self._item_start = ratings.indptr.astype(np.int64)
        self._raters = ratings.indices.astype(np.int64)
        self._of_item = np.empty((len(self._sources), ratings.nnz))
        for s, kind in enumerate(self._sources):
            self._of_item[s] = makers[kind]()[by_popularity].data
        by_user = np.argsort(self._raters, kind="stable")
        places = np.repeat(np.arange(self.n_items_), np.diff(self._item_start))
        self._rated = places[by_user]
        self._of_user = np.ascontiguousarray(self._of_item[:, by_user])
        self._user_start = np.concatenate([[0], np.cumsum(matrix.user_counts)]).astype(np.int64)
        # how many ratings the raters of each item have together
        so_far = np.concatenate([[0], np.cumsum(np.diff(self._user_start)[self._raters])])
        self._reach = np.diff(so_far[self._item_start])

    def _read_leaves(
        self, matrix: RatingMatrix, features: Mapping[str, Any], by_popularity: np.ndarray
    ) -> None:
        """Fill the tables that describe the leaves to the compiled loops."""
        leaves = self._expression.leaves
        leaf_layout = np.zeros((len(leaves), 4), dtype=np.int64)
        leaf_numbers = np.zeros((len(leaves), 2))
        self._content: list[Any] = []
        self._factors: list[np.ndarray] = []
        fixed: dict[str, int] = {}
        n_factors = 0
        for row, (leaf, settings) in enumerate(zip(leaves, leaf_numbers, strict=True)):
            kernel = leaf.kernel
            settings[_pairwise.SMOOTH] = -1.0 if leaf.smooth is None else leaf.smooth
            if isinstance(kernel, Pearson | Residual):
                source = self._sources.index(type(kernel))
                if isinstance(kernel, Residual):
                    settings[_pairwise.DAMPING] = kernel.damping
                    leaf_layout[row] = _pairwise.CENTRED, 1 + 3 * source, 0, source
                else:
                    leaf_layout[row] = _pairwise.STANDARDISED, 1 + 3 * source, 0, source
            elif isinstance(kernel, CoRating):
                leaf_layout[row] = _pairwise.COUNTS, 0, 0, 0
            elif isinstance(kernel, Content):
                if kernel.name not in fixed:
                    fixed[kernel.name] = len(self._content)
                    table = _feature_table(kernel, features, self.n_items_)
                    self._content.append(table[by_popularity])
                first = 1 + 3 * len(self._sources) + fixed[kernel.name]
                leaf_layout[row] = _pairwise.FIXED, first, 0, 0
            elif isinstance(kernel, LowRank):
                self._factors.append(kernel.factors(matrix)[:, by_popularity])
                leaf_layout[row] = _pairwise.FACTORS, n_factors, n_factors + kernel.rank, 0
                n_factors += kernel.rank
        self._leaf_layout, self._leaf_numbers = leaf_layout, leaf_numbers
        factors = leaf_layout[:, _pairwise.KIND] == _pairwise.FACTORS
        self._slots = np.where(
            factors, -1 - np.arange(len(leaves)), leaf_layout[:, _pairwise.FIRST]
        )
        self._plan = self._expression.plan(self._slots)

    def _sum_diagonal(self) -> None:
        """The moments of each item with itself."""
        n_sources = len(self._sources)
        diagonal = np.zeros((self.n_items_, 1 + 3 * n_sources + len(self._content)))
        counts = np.diff(self._item_start)
        places = np.repeat(np.arange(self.n_items_), counts)
        diagonal[:, 0] = counts
        for s, entries in enumerate(self._of_item):
            diagonal[:, 1 + 3 * s] = np.bincount(places, entries**2, self.n_items_)
            sums = np.bincount(places, entries, self.n_items_)
            diagonal[:, 2 + 3 * s] = diagonal[:, 3 + 3 * s] = sums
        for k, table in enumerate(self._content):
            diagonal[:, 1 + 3 * n_sources + k] = squared_norms(table)
        self._diagonal = diagonal

    def _sum_table(self) -> None:
        """The moments of all pairs, in threads, each with rows of its own."""
        everywhere = np.arange(self.n_items_)

        def sum_rows(first: int) -> None:
            stop = min(first + ROWS_AT_A_TIME, self.n_items_)
            n_sums = 1 + 3 * len(self._sources)
            row = np.empty((stop, n_sums))
            _pairwise.table_rows(self._table, row, first, stop, everywhere, *self._ratings())
            for k, table in enumerate(self._content):
                G = products(table[first:stop], table[:stop])
                for p in range(first, stop):
                    base = p * (p + 1) // 2
                    self._table[base : base + p + 1, n_sums + k] = G[p - first, : p + 1]

        starts = range(0, self.n_items_, ROWS_AT_A_TIME)
        with loop_threads(worker_count(self.n_jobs)) as threads:
            list(threads.map(sum_rows, starts))

    def _ratings(self) -> tuple[np.ndarray, ...]:
        by_item = self._item_start, self._raters, self._of_item
        return *by_item, self._user_start, self._rated, self._of_user

    # ---- a user's kernel -----------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "_plan"):
            raise ArgumentError("this ItemKernel is not fitted: call fit(matrix) first")

    def _places(self, user: int | None, items: Any) -> np.ndarray:
        """Numbers by popularity of the items asked for."""
        if user is not None and not 0 <= user < self.n_users_:
            raise ArgumentError(f"user must be a code in 0..{self.n_users_ - 1} or None")
        if items is None:
            if user is None:
                raise ArgumentError("pass items: without a user there are no rated items to use")
            return self._rated[slice(*self._user_start[user : user + 2])]
        codes = np.asarray(items, dtype=np.int64)
        if codes.ndim != 1 or (codes.size and not 0 <= codes.min() <= codes.max() < self.n_items_):
            raise ArgumentError(f"items must be a list of codes in 0..{self.n_items_ - 1}")
        return self._place[codes]

    def _side(self, user: int | None, places: np.ndarray) -> tuple[np.ndarray, Any]:
        """Factors and leaf vectors of some items, without the user."""
        sets = [
            factors[-1 if user is None else user % (len(factors) - 1), places]
            for factors in self._factors
        ]
        A = np.concatenate(sets, axis=1) if sets else np.empty((len(places), 0))
        own = slice(0, 0) if user is None else slice(*self._user_start[user : user + 2])
        rated = self._rated[own]
        at = np.searchsorted(rated, places)
        own_at = np.where(np.append(rated, -1)[at] == places, at, -1)
        shape = len(self._leaf_layout), len(places)
        vectors = np.zeros(shape), np.zeros(shape), np.ones(shape)
        _pairwise.fill_leaf_vectors(
            places,
            own_at,
            np.ascontiguousarray(self._of_user[:, own]),
            self._diagonal,
            A,
            self._leaf_layout,
            self._leaf_numbers,
            *vectors,
        )
        return A, vectors

    def _moment_weights(self, plan: Plan) -> np.ndarray:
        """Weights of the single leaves that are made of moments."""
        factors = self._leaf_layout[:, _pairwise.KIND] == _pairwise.FACTORS
        return np.where(factors, 0.0, plan.linear)

    def _factor_sides(
        self, A: np.ndarray, left: Any, B: np.ndarray, right: Any, plan: Plan
    ) -> tuple[np.ndarray, np.ndarray]:
        """U and V so that U V' is the constant plus the single leaves made of factors."""
        U = np.zeros((len(A), A.shape[1] + 1), dtype=self.dtype)
        V = np.zeros((len(B), B.shape[1] + 1), dtype=self.dtype)
        U[:, -1], V[:, -1] = plan.constant, 1.0
        for leaf in np.flatnonzero(self._leaf_layout[:, _pairwise.KIND] == _pairwise.FACTORS):
            part = slice(*self._leaf_layout[leaf, [_pairwise.FIRST, _pairwise.STOP]])
            U[:, part] = A[:, part] * (plan.linear[leaf] * left[2][leaf])[:, None]
            V[:, part] = B[:, part] * right[2][leaf][:, None]
        return U, V

    def _evaluate(self, user: int | None, items: Any, others: Any, part: int | None) -> np.ndarray:
        """The kernel, or one of its parts.

        Moments on demand are summed over the raters of the rows: a user has rated few items, and
        the catalogue is large.
        """
        self._check_fitted()
        places = self._places(user, items)
        if others is None:
            return self._by_popularity(user, places, None, part)
        columns = self._places(user, others)
        if self.stored_ or self._reach[places].sum() <= self._reach[columns].sum():
            return self._by_popularity(user, places, columns, part)
        return np.ascontiguousarray(self._by_popularity(user, columns, places, part).T)

    def _by_popularity(
        self, user: int | None, items: np.ndarray, others: np.ndarray | None, part: int | None
    ) -> np.ndarray:
        """The kernel of places, computed in order of popularity, then as it was asked for."""
        plan = self._plan if part is None else self._expression.plan(self._slots, part)
        rows, row_of = _ascending(items)
        A, left = self._side(user, rows)
        same = others is None
        columns, column_of, B, right = rows, row_of, A, left
        if others is not None:
            columns, column_of = _ascending(others)
            B, right = self._side(user, columns)
        U, V = self._factor_sides(A, left, B, right, plan)
        out = U @ V.T
        left, right = self._cast(left), self._cast(right)
        weights = self._moment_weights(plan).astype(self.dtype)
        factors = A, np.ascontiguousarray(B.T), self._leaf_layout
        room = np.empty(len(columns), np.uintp), np.empty(_pairwise.CHUNK, self.dtype)
        for first, stop, table in self._moments(rows, columns, same):
            where = rows, columns, first, stop, self.stored_, same, left, right
            _pairwise.add_leaves(out, *room, table, *where, self._leaf_layout, weights)
            if plan.products[0].size:
                _pairwise.add_terms(out, table, *where, *factors, plan.products)
        if same:
            _pairwise.mirror(out)
        if row_of is None and column_of is None:
            return out
        row_of = np.arange(len(rows)) if row_of is None else row_of
        column_of = np.arange(len(columns)) if column_of is None else column_of
        ordered = np.empty((len(row_of), len(column_of)), out.dtype)
        _pairwise.reorder(out, row_of, column_of, ordered)
        return ordered

    def _cast(self, vectors: Any) -> Any:
        return tuple(v.astype(self.dtype, copy=False) for v in vectors)

    def _moments(self, rows: np.ndarray, columns: np.ndarray, same: bool) -> Any:
        """First and last row, and a table with the moments of their pairs, until all rows are done.

        The table is the stored one for all rows, or is computed for some rows at a time; half of
        it, from the ratings of these items alone, if both sides are the same.
        """
        if self.stored_:
            yield 0, len(rows), self._table
            return
        n_moments = self._diagonal.shape[1]
        step = max(1, BLOCK_BYTES // max(1, 8 * n_moments * len(columns)))
        slots, own = self._slots_of(columns), self._ratings_of(rows) if same else None
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            block = np.zeros((len(part), len(columns), n_moments))
            if own is not None:
                _pairwise.pair_moments(block, first, first + len(part), *own)
            else:
                _pairwise.row_moments(block, part, slots, *self._ratings())
            for k, table in enumerate(self._content):
                G = products(table[part], table[columns])
                block[:, :, 1 + 3 * len(self._sources) + k] = G
            table = block.reshape(-1, n_moments).astype(self.dtype, copy=False)
            yield first, first + len(part), table

    def _ratings_of(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The ratings of some items: where each user's begin, positions of the items, entries."""
        counts = np.diff(self._item_start)[places]
        ends = np.cumsum(counts)
        at = np.repeat(self._item_start[places] - ends + counts, counts) + np.arange(counts.sum())
        by_user = np.argsort(self._raters[at], kind="stable")
        start = np.searchsorted(self._raters[at][by_user], np.arange(self.n_users_ + 1))
        position = np.repeat(np.arange(len(places)), counts)[by_user]
        return start, position, np.ascontiguousarray(self._of_item[:, at[by_user]])

    def _slots_of(self, places: np.ndarray) -> np.ndarray:
        """The position of each item among these, -1 for all others."""
        slot = np.full(self.n_items_, -1, dtype=np.int64)
        slot[places] = np.arange(len(places))
        return slot


def _ascending(places: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The distinct places in order, and the position of each given one (None if they are those)."""
    if (places[1:] > places[:-1]).all():
        return places, None
    distinct, position = np.unique(places, return_inverse=True)
    return distinct, position


def _aligned(n_rows: int, n_columns: int, dtype: np.dtype) -> np.ndarray:
    """An empty array whose rows do not straddle more cache lines than they must."""
    size = n_rows * n_columns * dtype.itemsize
    raw = np.empty(size + CACHE_LINE, dtype=np.uint8)
    offset = -raw.ctypes.data % CACHE_LINE
    return raw[offset : offset + size].view(dtype).reshape(n_rows, n_columns)


def _feature_table(kernel: Content, features: Mapping[str, Any], n_items: int) -> Any:
    """The feature rows of a content kernel, checked."""
    if kernel.name not in features:
        raise ArgumentError(
            f"{kernel!r} needs its feature table: fit(matrix, features={{{kernel.name!r}: ...}})"
        )
    table = features[kernel.name]
    if sparse.issparse(table):
        table = sparse.csr_array(table, dtype=np.float64)
        entries = table.data
    else:
        table = np.ascontiguousarray(table, dtype=np.float64)
        entries = table
    if table.ndim != 2 or table.shape[0] != n_items:
        raise DataError(
            f"features {kernel.name!r} have the shape {table.shape}; one row for each of the "
            f"{n_items} items is needed"
        )
    if not np.isfinite(entries).all():
        raise DataError(f"features {kernel.name!r} contain NaN or infinite values")
    return table
