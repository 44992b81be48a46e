"""The kernel of which users rated which items, whatever the rating."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.items.pearson import RowProducts
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["CoRating", "als_item_factors"]


class CoRating(RowProducts):
    """The number of users who rated both items.

    Which items people choose to rate says as much about items as the ratings do.
    ``CoRating().normalised(s)`` is the cosine of the rating patterns, shrunk by a count.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 5.0, np.nan], [np.nan, 2.0, 3.0]])
    >>> CoRating()(X)
    array([[2., 1.],
           [1., 2.]])
    """

    def rows(self, entries: sparse.csr_array) -> sparse.csr_array:
        """Ones where there is a rating."""
        return sparse.csr_array(
            (np.ones(entries.nnz), entries.indices, entries.indptr), shape=entries.shape
        )


def als_item_factors(
    matrix: RatingMatrix, n_factors: int = 32, *, n_iter: int = 15, random_state: int = 0
) -> np.ndarray:
    """Item factors of who rated what, by the alternating least squares of `implicit`.

    For the kernel `LowRank`: two items are similar when the same kind of users chose them, even
    if no user chose both.

    Returns
    -------
    ndarray of shape (n_items, n_factors)
    """
    from implicit.cpu.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        factors=n_factors,
        iterations=n_iter,
        dtype=np.float64,
        random_state=random_state,
        num_threads=1,
    )
    chosen = sparse.csr_matrix(matrix.indicator().T)
    with one_blas_thread():
        model.fit(chosen, show_progress=False)
    return np.asarray(model.item_factors, dtype=np.float64)
