"""`ItemKernel`: one set of pair moments for all users; each user's kernel leaves them out."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.errors import ArgumentError, DataError
from ordrec.features.matrix import RatingMatrix, item_deviations
from ordrec.kernels.base import Kernel
from ordrec.kernels.distances import squared_norms
from ordrec.kernels.items import leaves as leaf_loops
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.expression import Plan, expression_of
from ordrec.kernels.items.low_rank import LowRank
from ordrec.kernels.items.moments import (
    OTHER,
    OWN,
    PRODUCT,
    GroupedEntries,
    PairMoments,
    block_moments,
    n_moments,
    n_pairs,
    pair_moments,
)
from ordrec.kernels.items.pearson import Pearson, Residual
from ordrec.runtime.parallel import worker_count

__all__ = ["ItemKernel"]

log = logging.getLogger(__name__)

BLOCK_BYTES = 1 << 21  # of moments at a time: what stays in the cache


class ItemKernel:
    """A kernel between items that leaves the ratings of the user out for whom it is evaluated.

    ``fit`` builds the pair moments of all items once; ``for_user`` returns the kernel exactly
    as it would be had the user's ratings never been there, item means and deviations included,
    by a rank-one downdate on the items asked for (see `ordrec.kernels.items.moments`). The cost is
    one look-up per pair.

    Parameters
    ----------
    components : Kernel or sequence of Kernel
        Sums and products of `Pearson`, `Residual`, `CoRating`, `Content`, `LowRank` and
        `Constant`, each normalised or not. `Pearson` and `CoRating` see the ratings, `Residual`
        sees them minus their users' damped means, `Content` the feature table of its name,
        `LowRank` makes its own factors.
    weights : sequence of float, optional
        One per component; 1 when omitted.
    user_damping : float
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
        user_damping: float = 5.0,
        dtype: Any = "float64",
        memory_bound: int = 1 << 30,
        n_jobs: int | None = None,
    ):
        parts = [components] if isinstance(components, Kernel) else list(components)
        self.components = parts
        self.weights = weights
        self.user_damping = user_damping
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
        size = n_pairs(self.n_items_) * self._diagonal.shape[1] * self.dtype.itemsize
        self._pairs: PairMoments | None = None
        if size <= self.memory_bound:
            self._pairs = pair_moments(
                self._ratings, self._content, dtype=self.dtype, n_jobs=worker_count(self.n_jobs)
            )
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
        return self._pairs is not None

    def items_of(self, user: int) -> np.ndarray:
        """Codes of the items the user rated, those with the most ratings first."""
        return self._code[self._ratings.entry[self._own(user)]]

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
        leaf_loops.add_diagonal(out, self._diagonal, places, vectors, A, B, *rest)
        return out.astype(self.dtype, copy=False)

    # ---- fitting -------------------------------------------------------------------------

    def _read_ratings(self, matrix: RatingMatrix, by_popularity: np.ndarray) -> None:
        """The ratings by item and by user, items numbered by popularity; entries of each source."""
        kinds = {type(leaf.kernel) for leaf in self._expression.leaves}
        # z-scores do not notice that the item means are off, but rounding errors do.
        makers = {
            Pearson: lambda: item_deviations(matrix.values)[0],
            Residual: lambda: matrix.user_centred(self.user_damping),
        }
        self._sources = [kind for kind in makers if kind in kinds]
        ratings = matrix.values[by_popularity]
        start, users = ratings.indptr.astype(np.int64), ratings.indices.astype(np.int64)
        of_item = np.empty((len(self._sources), ratings.nnz))
        for s, kind in enumerate(self._sources):
            of_item[s] = makers[kind]()[by_popularity].data
        by_user = np.argsort(users, kind="stable")
        items = np.repeat(np.arange(self.n_items_), np.diff(start))[by_user]
        user_start = np.concatenate([[0], np.cumsum(matrix.user_counts)]).astype(np.int64)
        of_user = np.ascontiguousarray(of_item[:, by_user])
        self._ratings = GroupedEntries(
            user_start, items, of_user, start, users, of_item, np.zeros(0)
        )
        self._cost = self._ratings.cost

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
            settings[leaf_loops.SMOOTH] = -1.0 if leaf.smooth is None else leaf.smooth
            if isinstance(kernel, Pearson | Residual):
                source = self._sources.index(type(kernel))
                if isinstance(kernel, Residual):
                    settings[leaf_loops.DAMPING] = kernel.damping
                    leaf_layout[row] = leaf_loops.CENTRED, PRODUCT + 3 * source, 0, source
                else:
                    leaf_layout[row] = leaf_loops.STANDARDISED, PRODUCT + 3 * source, 0, source
            elif isinstance(kernel, CoRating):
                leaf_layout[row] = leaf_loops.COUNTS, 0, 0, 0
            elif isinstance(kernel, Content):
                if kernel.name not in fixed:
                    fixed[kernel.name] = len(self._content)
                    table = _feature_table(kernel, features, self.n_items_)
                    self._content.append(table[by_popularity])
                first = n_moments(len(self._sources)) + fixed[kernel.name]
                leaf_layout[row] = leaf_loops.FIXED, first, 0, 0
            elif isinstance(kernel, LowRank):
                self._factors.append(kernel.factors(matrix)[:, by_popularity])
                leaf_layout[row] = leaf_loops.FACTORS, n_factors, n_factors + kernel.n_factors, 0
                n_factors += kernel.n_factors
        self._leaf_layout, self._leaf_numbers = leaf_layout, leaf_numbers
        factors = leaf_layout[:, leaf_loops.KIND] == leaf_loops.FACTORS
        self._slots = np.where(
            factors, -1 - np.arange(len(leaves)), leaf_layout[:, leaf_loops.FIRST]
        )
        self._plan = self._expression.plan(self._slots)

    def _sum_diagonal(self) -> None:
        """The moments of each item with itself, in double precision."""
        n_sources, n_items = len(self._sources), self.n_items_
        diagonal = np.zeros((n_items, n_moments(n_sources, n_fixed=len(self._content))))
        counts = np.diff(self._ratings.entry_start)
        places = np.repeat(np.arange(n_items), counts)
        diagonal[:, 0] = counts
        for s, x in enumerate(self._ratings.entry_x):
            diagonal[:, PRODUCT + 3 * s] = np.bincount(places, x**2, n_items)
            sums = np.bincount(places, x, n_items)
            diagonal[:, OWN + 3 * s] = diagonal[:, OTHER + 3 * s] = sums
        for k, table in enumerate(self._content, start=n_moments(n_sources)):
            diagonal[:, k] = squared_norms(table)
        self._diagonal = diagonal

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
            return self._ratings.entry[self._own(user)]
        codes = np.asarray(items, dtype=np.int64)
        if codes.ndim != 1 or (codes.size and not 0 <= codes.min() <= codes.max() < self.n_items_):
            raise ArgumentError(f"items must be a list of codes in 0..{self.n_items_ - 1}")
        return self._place[codes]

    def _own(self, user: int | None) -> slice:
        """Where the ratings of a user are among those grouped by user."""
        return slice(0, 0) if user is None else slice(*self._ratings.start[user : user + 2])

    def _side(self, user: int | None, places: np.ndarray) -> tuple[np.ndarray, Any]:
        """Factors and leaf vectors of some items, without the user."""
        sets = [
            factors[-1 if user is None else user % (len(factors) - 1), places]
            for factors in self._factors
        ]
        A = np.concatenate(sets, axis=1) if sets else np.empty((len(places), 0))
        own = self._own(user)
        rated = self._ratings.entry[own]
        at = np.searchsorted(rated, places)
        own_at = np.where(np.append(rated, -1)[at] == places, at, -1)
        shape = len(self._leaf_layout), len(places)
        vectors = np.zeros(shape), np.zeros(shape), np.zeros(len(places)), np.ones(shape)
        leaf_loops.fill_leaf_vectors(
            places,
            own_at,
            np.ascontiguousarray(self._ratings.x[:, own]),
            self._diagonal,
            A,
            self._leaf_layout,
            self._leaf_numbers,
            *vectors,
        )
        return A, vectors

    def _moment_weights(self, plan: Plan) -> np.ndarray:
        """Weights of the single leaves that are made of moments."""
        factors = self._leaf_layout[:, leaf_loops.KIND] == leaf_loops.FACTORS
        return np.where(factors, 0.0, plan.linear)

    def _factor_sides(
        self, A: np.ndarray, left: Any, B: np.ndarray, right: Any, plan: Plan
    ) -> tuple[np.ndarray, np.ndarray]:
        """U and V so that U V' is the constant plus the single leaves made of factors."""
        U = np.zeros((len(A), A.shape[1] + 1), dtype=self.dtype)
        V = np.zeros((len(B), B.shape[1] + 1), dtype=self.dtype)
        U[:, -1], V[:, -1] = plan.constant, 1.0
        for leaf in np.flatnonzero(self._leaf_layout[:, leaf_loops.KIND] == leaf_loops.FACTORS):
            part = slice(*self._leaf_layout[leaf, [leaf_loops.FIRST, leaf_loops.STOP]])
            U[:, part] = A[:, part] * (plan.linear[leaf] * left[3][leaf])[:, None]
            V[:, part] = B[:, part] * right[3][leaf][:, None]
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
        if self.stored_ or self._cost[places].sum() <= self._cost[columns].sum():
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
        factors = A, np.ascontiguousarray(B.T), self._leaf_layout, plan.products
        moments = np.empty((self._diagonal.shape[1], leaf_loops.CHUNK), self.dtype)
        for first, *block in self._blocks(rows, columns, same):
            where = *block, first, same, left, right
            leaf_loops.add_leaves(out, *where, self._leaf_layout, weights, moments)
            if plan.products[0].size:
                leaf_loops.add_terms(out, *where, factors, moments)
        if same:
            leaf_loops.mirror(out)
        if row_of is None and column_of is None:
            return out
        row_of = np.arange(len(rows)) if row_of is None else row_of
        column_of = np.arange(len(columns)) if column_of is None else column_of
        ordered = np.empty((len(row_of), len(column_of)), out.dtype)
        leaf_loops.reorder(out, row_of, column_of, ordered)
        return ordered

    def _cast(self, vectors: Any) -> Any:
        return tuple(v.astype(self.dtype, copy=False) for v in vectors)

    def _blocks(
        self, rows: np.ndarray, columns: np.ndarray, same: bool
    ) -> Iterator[tuple[int, PairMoments, np.ndarray, np.ndarray]]:
        """The first of some rows, the moments of their pairs, and the rows and columns of these.

        Moments that are stored serve all rows. Otherwise they are summed for some rows at a time;
        if both sides are the same, from the ratings of these items alone, up to the last row.
        """
        if self._pairs is not None:
            yield 0, self._pairs, rows, columns
            return
        ratings, features = self._ratings, self._content
        if same:
            ratings, features = ratings.of_entries(rows), [table[rows] for table in features]
            rows = columns = np.arange(len(rows))
        step = max(1, BLOCK_BYTES // max(1, 8 * self._diagonal.shape[1] * len(columns)))
        for first in range(0, len(rows), step):
            part = rows[first : first + step]
            needed = columns[: first + step] if same else columns
            pairs = block_moments(ratings, part, needed, features, self.dtype)
            yield first, pairs, np.arange(len(part)), np.arange(len(needed))


def _ascending(places: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """The distinct places in order, and the position of each given one (None if they are those)."""
    if (places[1:] > places[:-1]).all():
        return places, None
    distinct, position = np.unique(places, return_inverse=True)
    return distinct, position


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
