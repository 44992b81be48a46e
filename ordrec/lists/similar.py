"""How similar items are: whether the same people rated them."""

from __future__ import annotations

import numpy as np

from ordrec.data import Ratings

__all__ = ["similarity_by_raters"]

DAMPING = 10.0  # raters added to every item, so that two of three shared ones do not count much


def similarity_by_raters(known: Ratings, code: int) -> np.ndarray:
    """Return how similar all items are to one: the cosine of their columns of ratings.

    An unrated item counts as a rating of 0, the lowest rating as 1, the next as 2, and so on.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> similarity_by_raters(ratings, 3).shape
    (40,)
    """
    items = known.matrix("rank")
    own = items[[code]].toarray()[0]
    damping = DAMPING * known.scale.n_ranks**2 / 4
    sizes = np.sqrt(np.asarray(items.multiply(items).sum(axis=1)).ravel() + damping)
    return (items @ own) / (sizes * sizes[code])
