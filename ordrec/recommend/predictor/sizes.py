"""Which preset of `RatingPredictor` suits the size of the data."""

from __future__ import annotations

import warnings

from ordrec.ratings import Ratings
from ordrec.recommend.process_model.preparation import Preparation, memory_needed
from ordrec.recommend.process_model.side_features import SideFeatures

__all__ = ["chosen_preset", "gigabytes"]

FULL_RATINGS = 300_000  # up to which "full" takes a minute or two
SMALLER = {"full": "fast", "fast": "large"}


def chosen_preset(preset: str, ratings: Ratings, limit: float) -> str:
    """The preset itself, or a smaller one, with a warning, if it takes too many gigabytes.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> chosen_preset("auto", synthetic_ratings(50, 40, n_ratings=500), limit=8.0)
    'full'
    """
    wanted = preset
    if preset == "auto":
        wanted = "full" if ratings.n_ratings <= FULL_RATINGS else "fast"
    fitting = wanted
    while fitting in SMALLER and gigabytes(fitting, ratings) > limit:
        fitting = SMALLER[fitting]
    if fitting != wanted and preset != "auto":
        warnings.warn(
            f"RatingPredictor: {ratings.n_users} users x {ratings.n_items} items take "
            f'{gigabytes(wanted, ratings):.1f} GB as preset="{wanted}", and max_memory is '
            f'{limit:g}: fitted as preset="{fitting}"',
            stacklevel=3,
        )
    return fitting


def gigabytes(preset: str, ratings: Ratings) -> float:
    return memory_needed(ratings, SideFeatures(), Preparation(two_sided=preset == "full"))
