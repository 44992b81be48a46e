"""Kernels of items by how their ratings vary together."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from ordrec.features.matrix import item_deviations
from ordrec.features.observed import stored_entries
from ordrec.kernels.distances import products, squared_norms
from ordrec.kernels.rows import Linear

__all__ = ["Pearson", "Residual", "RowProducts"]


class RowProducts(Linear):
    """Products of rows, each of which is first transformed without regard to the others.

    A subclass transforms them in ``rows``. The result is a Gram matrix, hence positive
    semidefinite. Missing entries (NaN in a dense array, not stored in a sparse one) count
    as zero *after* the transformation.
    """

    @abstractmethod
    def rows(self, entries: sparse.csr_array) -> sparse.csr_array:
        """The rewritten rows, on the same pattern."""

    def pairs(self, X: Any, Y: Any = None) -> np.ndarray:
        """The products, which are the kernel."""
        return products(self._rewritten(X), None if Y is None else self._rewritten(Y))

    def diag(self, X: Any) -> np.ndarray:
        """The squared norms of the rewritten rows."""
        return squared_norms(self._rewritten(X))

    def _rewritten(self, X: Any) -> Any:
        rows = self.rows(stored_entries(X))
        return rows if sparse.issparse(X) else rows.toarray()


class Pearson(RowProducts):
    """``sum_u z(v,u) z(v',u)``: products of z-scores, a missing rating having z = 0.

    Rows are items, columns users: ``z(v,u) = (r(v,u) - mean(v)) / std(v)`` with mean and
    deviation over the users who rated the item. An item whose ratings are all equal, or that
    has only one, has a row of zeros. ``Pearson().normalised(s)`` divides by
    ``sqrt((n_v + s)(n_v' + s))``: with s = 0 a correlation that counts users who did not rate
    both as indifferent, with s > 0 shrunk for items with few ratings.

    Correlations over the common users alone (pairwise deletion) are not positive
    semidefinite; this is.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0, 3.0], [5.0, np.nan, 1.0], [4.0, 4.0, 4.0]])
    >>> Pearson()(X).round(3)
    array([[ 3.   , -2.449,  0.   ],
           [-2.449,  2.   ,  0.   ],
           [ 0.   ,  0.   ,  0.   ]])
    """

    def rows(self, entries: sparse.csr_array) -> sparse.csr_array:
        """The z-scores."""
        deviations, scale = item_deviations(entries)
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        deviations.data *= np.repeat(inverse, np.diff(entries.indptr))
        return deviations


class Residual(RowProducts):
    """``sum_u (x(v,u) - c(v)) (x(v',u) - c(v'))`` of residuals, missing ones count as zero.

    Rows are items, columns users, entries the ratings minus their users'
    means (`RatingMatrix.user_centred`). ``c(v)`` is the item's damped mean
    ``sum_u x(v,u) / (n_v + damping)``. Normalise it: ``Residual().normalised(100)``.

    Parameters
    ----------
    damping : float
        Count that shrinks the item means towards zero.

    Examples
    --------
    >>> import numpy as np
    >>> Residual(damping=0)(np.array([[1.0, -1.0], [2.0, np.nan], [0.5, -0.5]]))
    array([[2. , 0. , 1. ],
           [0. , 0. , 0. ],
           [1. , 0. , 0.5]])
    """

    def __init__(self, damping: float = 1.0):
        if not (np.isfinite(damping) and damping >= 0):
            raise ValueError(f"damping must be a count of at least 0, got {damping}")
        self.damping = float(damping)

    def rows(self, entries: sparse.csr_array) -> sparse.csr_array:
        """The residuals minus their damped mean."""
        counts = np.diff(entries.indptr)
        of_entry = np.repeat(np.arange(len(counts)), counts)
        sums = np.bincount(of_entry, entries.data, len(counts))
        total = counts + self.damping
        means = np.divide(sums, total, out=np.zeros(len(counts)), where=total > 0)
        return sparse.csr_array(
            (entries.data - means[of_entry], entries.indices, entries.indptr), shape=entries.shape
        )

    def __repr__(self) -> str:
        return f"Residual(damping={self.damping!r})"
