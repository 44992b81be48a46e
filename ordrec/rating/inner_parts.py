"""The part of the training ratings that is held out to learn weights, pools and kinds of events.

All of them hold out the same ratings for the same seed, so that what one has fitted to the others
can be used again.
"""

from __future__ import annotations

import numpy as np

from ordrec.data import Ratings

__all__ = ["HELD_OUT", "held_out_rows", "inner_parts"]

HELD_OUT = 0.15  # of the ratings


def held_out_rows(ratings: Ratings, seed: int) -> np.ndarray:
    """Return which ratings are held out."""
    return np.random.default_rng(seed).random(ratings.n_ratings) < HELD_OUT


def inner_parts(ratings: Ratings, seed: int) -> tuple[Ratings, Ratings]:
    """Return the ratings to fit to, and those held out whose users and items are among them.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> inner, outer = inner_parts(synthetic_ratings(20, 10, n_ratings=100), seed=0)
    >>> inner.n_ratings, outer.n_ratings <= 100 - inner.n_ratings
    (85, True)
    """
    held = held_out_rows(ratings, seed)
    inner, outer = ratings.select(~held), ratings.select(held)
    seen = (inner.user_counts[outer.users] > 0) & (inner.item_counts[outer.items] > 0)
    return inner, outer.select(seen)
