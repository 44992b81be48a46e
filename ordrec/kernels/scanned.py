"""Item kernels of ratings that do not fit in memory, summed chunk by chunk.

`Pearson`, `Residual` and `CoRating` rewrite a rating by numbers of its item alone,

(1) ``y_ui = (x_ui - c_i) s_i``, with x the rating, the user-centred rating, or 1,

and normalising changes nothing but ``s_i``, as the norms follow from an item's count, mean and
sum of squared deviations. One pass over the chunks finds these (means and squares of two sets a,
b of ratings are joined by

(2) ``S = S_a + S_b + (mean_a - mean_b)^2 n_a n_b / (n_a + n_b)``,

which loses no digits), another one adds up ``sum_u y_ui y_uj`` of all leaves of a weighted sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ordrec.data import Ratings
from ordrec.data.on_disk.scan import ROWS, RatingsScan
from ordrec.errors import ArgumentError
from ordrec.features.matrix import NO_SPREAD
from ordrec.kernels.base import Kernel
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.expression import Leaf, expression_of
from ordrec.kernels.items.pearson import Pearson, Residual
from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import loop_threads, worker_count

__all__ = ["ItemMoments", "item_moments", "scan_gram"]

ROWS_AT_A_TIME = 64


@dataclass(frozen=True)
class ItemMoments:
    """Count, mean and sum of squared deviations of each item's ratings or residuals.

    Attributes
    ----------
    counts : ndarray of int64
    means, squares : ndarray of float64
        0 for items without a rating.
    raw : ndarray of float64
        Sum of the squares themselves, by which rounding errors are recognised.
    """

    counts: np.ndarray
    means: np.ndarray
    squares: np.ndarray
    raw: np.ndarray

    @classmethod
    def of(cls, items: np.ndarray, x: np.ndarray, n_items: int) -> ItemMoments:
        """The moments of one chunk of ratings."""
        counts = np.bincount(items, minlength=n_items)
        means = np.bincount(items, x, n_items) / np.maximum(counts, 1)
        squares = np.bincount(items, (x - means[items]) ** 2, n_items)
        return cls(counts, means, squares, np.bincount(items, x**2, n_items))

    def __add__(self, other: ItemMoments) -> ItemMoments:
        counts = self.counts + other.counts
        share = other.counts / np.maximum(counts, 1)
        apart = other.means - self.means
        squares = self.squares + other.squares + apart**2 * self.counts * share  # (2)
        return ItemMoments(counts, self.means + apart * share, squares, self.raw + other.raw)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviation of each item (dividing by the count), 0 where all are equal."""
        squares = np.where(self.squares <= NO_SPREAD * self.raw, 0.0, self.squares)
        return np.sqrt(squares / np.maximum(self.counts, 1))


def item_moments(
    scan: RatingsScan, *, user_shrinkage: float | None = None, rows: int = ROWS
) -> ItemMoments:
    """Counts, means and squares of all items, in one pass.

    Parameters
    ----------
    scan : RatingsScan
    user_shrinkage : float, optional
        Subtract each user's damped mean (`RatingMatrix.user_means`); without it the ratings
        are used as they are.
    rows : int
        Size of the chunks.

    Examples
    --------
    >>> import tempfile
    >>> from ordrec.datasets import synthetic_ratings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthetic_ratings(50, 40, n_ratings=500).to_partitions(folder)
    ...     item_moments(Ratings.scan(folder)).counts.sum()
    np.int64(500)
    """
    found = ItemMoments.of(np.zeros(0, dtype=np.int64), np.zeros(0), scan.n_items)
    for chunk in scan.chunks(rows):
        x = chunk.values if user_shrinkage is None else _user_centred(chunk, user_shrinkage)
        found = found + ItemMoments.of(chunk.items, x, scan.n_items)
    return found


def scan_gram(
    scan: RatingsScan,
    kernel: Kernel,
    *,
    items: Any = None,
    user_shrinkage: float = 5.0,
    dtype: Any = "float64",
    memory_bound: int = 1 << 32,
    rows: int = ROWS,
    n_jobs: int | None = None,
) -> np.ndarray:
    """The kernel matrix of items, equal to what the kernel returns for ratings in memory.

    Parameters
    ----------
    scan : RatingsScan
    kernel : Kernel
        A weighted sum of `Pearson`, `Residual`, `CoRating`, each normalised or not, and
        `Constant`.
    items : array of int, optional
        Item codes to which rows and columns are restricted, such as
        ``np.flatnonzero(scan.item_counts >= 50)``; all when omitted.
    user_shrinkage : float
        Damping of the user means that `Residual` subtracts, see `RatingMatrix.user_centred`.
    dtype : {"float64", "float32"}
        Of the result; the sums of a chunk are always taken in double precision.
    memory_bound : int
        Bytes the result may take.
    rows : int
        Size of the chunks.
    n_jobs : int, optional
        Threads; all cores by default. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n_items, n_items)

    Examples
    --------
    >>> import tempfile
    >>> from ordrec.datasets import synthetic_ratings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     synthetic_ratings(50, 40, n_ratings=500).to_partitions(folder)
    ...     K = scan_gram(Ratings.scan(folder), Pearson().normalised(10) + CoRating())
    >>> K.shape
    (40, 40)
    """
    codes = np.arange(scan.n_items) if items is None else np.asarray(items, dtype=np.int64)
    if codes.ndim != 1 or np.unique(codes).size != codes.size or codes.size == 0:
        raise ArgumentError("items must be a list of distinct item codes")
    if codes.min() < 0 or codes.max() >= scan.n_items:
        raise ArgumentError(f"items must be codes in 0..{scan.n_items - 1}")
    size = codes.size**2 * np.dtype(dtype).itemsize
    if np.dtype(dtype) not in (np.dtype("float64"), np.dtype("float32")):
        raise ArgumentError(f'dtype must be "float64" or "float32", got {dtype!r}')
    if size > memory_bound:
        raise ArgumentError(
            f"the kernel of {codes.size} items takes {size / 1e9:.1f} GB, more than memory_bound "
            f'({memory_bound / 1e9:.1f} GB): raise it, pass dtype="float32", or leave rare items '
            "out (items=)"
        )
    leaves, weights, constant = _leaves_of(kernel)
    centres, scales = _rewriting(scan, leaves, user_shrinkage, rows)
    scales *= np.sqrt(weights)[:, None]
    slot = np.full(scan.n_items, -1, dtype=np.int64)
    slot[codes] = np.arange(codes.size)
    gram = np.zeros((codes.size, codes.size), dtype=dtype)
    starts = range(0, codes.size, ROWS_AT_A_TIME)
    with loop_threads(worker_count(n_jobs)) as threads:
        for chunk in scan.chunks(rows):
            part = _rewritten(chunk, leaves, centres, scales, user_shrinkage, slot)
            list(threads.map(partial(_add_rows, gram, ROWS_AT_A_TIME, *part), starts))
        list(threads.map(partial(_mirror, gram, ROWS_AT_A_TIME), starts))
    if constant:
        gram += constant
    return gram


# ---- leaves ----------------------------------------------------------------------------


def _leaves_of(kernel: Kernel) -> tuple[list[Leaf], np.ndarray, float]:
    """Leaves of a weighted sum, their weights, and the constant."""
    expression = expression_of([kernel], None)
    weights, constant = np.zeros(len(expression.leaves)), 0.0
    for t, weight in enumerate(expression.weights):
        members = expression.members[expression.start[t] : expression.start[t + 1]]
        if len(members) > 1:
            raise ArgumentError(
                f"{kernel!r} multiplies kernels, which cannot be summed over users: call "
                "scan_gram for each factor and multiply the matrices"
            )
        if len(members) == 0:
            constant += float(weight)
        else:
            weights[members[0]] += weight
    for leaf in expression.leaves:
        if not isinstance(leaf.kernel, Pearson | Residual | CoRating):
            raise ArgumentError(
                f"{leaf.kernel!r} is not a sum over users: leave it out and add its matrix later"
            )
    return expression.leaves, weights, constant


def _rewriting(
    scan: RatingsScan, leaves: list[Leaf], user_shrinkage: float, rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """c and s of (1), one row per leaf."""
    kinds = {type(leaf.kernel) for leaf in leaves}
    plain = item_moments(scan, rows=rows) if Pearson in kinds else None
    centred = (
        item_moments(scan, user_shrinkage=user_shrinkage, rows=rows) if Residual in kinds else None
    )
    centres, scales = np.zeros((2, len(leaves), scan.n_items))
    for row, leaf in enumerate(leaves):
        s = np.ones(scan.n_items)
        if isinstance(leaf.kernel, Pearson):
            assert plain is not None
            deviations = plain.deviations
            centres[row] = plain.means
            s = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
            norm = np.where(deviations > 0, scan.item_counts, 0.0)
        elif isinstance(leaf.kernel, Residual):
            assert centred is not None
            damped = np.maximum(centred.counts + leaf.kernel.damping, 1e-300)
            centres[row] = centred.means * centred.counts / damped
            norm = centred.squares + centred.counts * (centred.means - centres[row]) ** 2
        else:
            norm = scan.item_counts.astype(np.float64)
        if leaf.smooth is not None:
            norm = norm + leaf.smooth
            s *= np.divide(1.0, np.sqrt(norm), out=np.zeros_like(norm), where=norm > 0)
        scales[row] = s
    return centres, scales


def _user_centred(chunk: Ratings, shrinkage: float) -> np.ndarray:
    """Ratings minus their users' damped means, see `RatingMatrix.user_centred`."""
    middle = float(chunk.scale.values[0] + chunk.scale.values[-1]) / 2
    off = chunk.values - middle
    total = chunk.user_counts + shrinkage
    means = np.bincount(chunk.users, off, chunk.n_users) / np.where(total > 0, total, 1.0)
    return off - means[chunk.users]


def _rewritten(
    chunk: Ratings,
    leaves: list[Leaf],
    centres: np.ndarray,
    scales: np.ndarray,
    user_shrinkage: float,
    slot: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """The entries y of (1) by item and by user, items numbered by slot; others are dropped."""
    kept = slot[chunk.items] >= 0
    places, users = slot[chunk.items[kept]], chunk.users[kept].astype(np.int64)
    y = np.empty((places.size, len(leaves)))
    for row, leaf in enumerate(leaves):
        if isinstance(leaf.kernel, Residual):
            x = _user_centred(chunk, user_shrinkage)
        else:
            x = chunk.values if isinstance(leaf.kernel, Pearson) else np.ones(chunk.n_ratings)
        own = chunk.items[kept]
        y[:, row] = (x[kept] - centres[row, own]) * scales[row, own]
    n_places = int(slot.max()) + 1
    by_user = np.argsort(users * n_places + places, kind="stable")
    users, places, y = users[by_user], places[by_user], y[by_user]
    by_item = np.argsort(places, kind="stable")
    user_start = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=chunk.n_users))])
    item_start = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=n_places))])
    return item_start, users[by_item], y[by_item], user_start, places, y


# ---- the loops -------------------------------------------------------------------------


@compiled
def _add_rows(gram, n_rows, item_start, raters, of_item, user_start, rated, of_user, first):  # type: ignore[no-untyped-def]
    """Add the products of some rows of the lower triangle, each summed in double precision."""
    n_leaves = of_item.shape[1]
    row = np.zeros(gram.shape[0])
    for p in range(first, min(first + n_rows, gram.shape[0])):
        if item_start[p] == item_start[p + 1]:
            continue
        row[: p + 1] = 0.0
        for at in range(item_start[p], item_start[p + 1]):
            u = raters[at]
            for b in range(user_start[u], user_start[u + 1]):
                q = rated[b]
                if q > p:
                    break
                for leaf in range(n_leaves):
                    row[q] += of_item[at, leaf] * of_user[b, leaf]
        for q in range(p + 1):
            gram[p, q] += row[q]


@compiled
def _mirror(gram, n_rows, first):  # type: ignore[no-untyped-def]
    """Copy columns of the lower triangle to rows of the upper one, a square at a time."""
    n = gram.shape[0]
    stop = min(first + n_rows, n)
    for low in range(first, n, n_rows):
        for q in range(low, min(low + n_rows, n)):
            for p in range(first, min(stop, q)):
                gram[p, q] = gram[q, p]
