"""The kernel of item features, such as genres or words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.kernels.distances import dense
from ordrec.kernels.rows import Linear

__all__ = ["Content"]


class Content(Linear):
    """Products of feature rows: genres in common, or tf-idf similarity.

    Rows are items, columns features (dense or sparse, nothing missing).
    ``Content().normalised()`` is the cosine; an item without features has a row of zeros.

    Parameters
    ----------
    name : str
        Which of the tables given to `ItemKernel.fit` the rows come from.

    Examples
    --------
    >>> import numpy as np
    >>> genres = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]])
    >>> Content().normalised()(genres).round(3)
    array([[1.   , 0.707, 0.   ],
           [0.707, 1.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """

    def __init__(self, name: str = "content"):
        self.name = name

    def pairs(self, X: Any, Y: Any = None) -> np.ndarray:
        """The products, in floating point also for flags."""
        return super().pairs(_floating(X), None if Y is None else _floating(Y))

    def diag(self, X: Any) -> np.ndarray:
        """The squared norms."""
        return super().diag(_floating(X))

    def __repr__(self) -> str:
        return f"Content({self.name!r})"


def _floating(X: Any) -> Any:
    return X.astype(np.float64) if hasattr(X, "astype") else dense(X).astype(np.float64)
