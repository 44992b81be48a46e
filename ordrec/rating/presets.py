"""Which preset of `RatingPredictor` suits the size of the data.

The constants were fitted to what ``pipelines/speed/bench_memory.py`` measures, which compares the
estimates with the memory that fits take.
"""

from __future__ import annotations

import warnings

from ordrec.data import Ratings
from ordrec.errors import callers_level
from ordrec.rating.factors.rows import usual_sizes
from ordrec.rating.pool import HELD_OUT
from ordrec.rating.process.preparation import Preparation, SideFeatures, memory_parts

__all__ = ["chosen_preset", "gigabytes"]

FULL_RATINGS = 300_000  # up to which "full" takes a minute or two
SMALLER = {"full": "fast", "fast": "large"}
POSTERIORS = 4.8  # sets of posteriors of all rows while the factors are fitted, both ways
ROW_BYTES = 5_400  # of a user or an item beside them: priors, temporary ones
FEATURE_BYTES = 32  # of one of their features, with copies
RATING_BYTES = 30  # of a rating, for the factors
PROBE_BYTES = 500  # of a rating, for the vectors of conjugate gradients


def chosen_preset(preset: str, ratings: Ratings, limit: float) -> str:
    """The preset itself, or a smaller one, with a warning, if it takes too many gigabytes.

    "auto" wants what is most accurate within a minute or two, and is held to the same limit.

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
    if fitting != wanted:
        warnings.warn(
            f"RatingPredictor: {ratings.n_users} users x {ratings.n_items} items take "
            f'{gigabytes(wanted, ratings):.1f} GB as preset="{wanted}", and max_memory is '
            f'{limit:g}: fitted as preset="{fitting}"',
            stacklevel=callers_level(),
        )
    return fitting


def gigabytes(preset: str, ratings: Ratings) -> float:
    """Estimate the memory that a fit takes at most, beside that of the ratings.

    To learn the weights of the pool, a second process is fitted to a part of the ratings, while
    the first one keeps its pair sums.
    """
    factors = _gigabytes_of_factors(ratings)
    if preset == "large":
        return factors
    config = Preparation(two_sided=preset == "full")
    sums, blocks = memory_parts(ratings, SideFeatures(), config)
    second = sums + (1.0 - HELD_OUT) ** 2 * blocks
    probes = PROBE_BYTES * ratings.n_ratings / 1e9 if config.two_sided else 0.0
    return factors + probes + sums + max(blocks, second)


def _gigabytes_of_factors(ratings: Ratings) -> float:
    n_rows, n_steps = ratings.n_users + ratings.n_items, ratings.scale.n_ranks - 1
    n_factors, pattern = usual_sizes(ratings.n_ratings, n_rows)
    posterior = 4.0 * (
        n_factors * (n_factors + 1) / 2 + n_factors + 2 * n_steps
    )  # as `RowPosteriors` has it
    rows = (ratings.n_users + ratings.n_items) * (
        POSTERIORS * posterior + ROW_BYTES + FEATURE_BYTES * pattern
    )
    return (rows + RATING_BYTES * ratings.n_ratings) / 1e9
