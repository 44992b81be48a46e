"""Which preset of `RatingPredictor` suits the size of the data.

The constants were fitted to what ``pipelines/speed/bench_memory.py`` measures, which compares the
estimates with the memory that fits take.
"""

from __future__ import annotations

import warnings

from ordrec.data import Ratings
from ordrec.errors import DataError, callers_level
from ordrec.rating.factors.rows import usual_sizes
from ordrec.rating.process.preparation import Preparation, SideFeatures, memory_parts

__all__ = ["chosen_preset", "gigabytes"]

FULL_RATINGS = 300_000  # up to which "full" takes a minute or two
AUTO_GIGABYTES = 3.0  # that "auto" takes at most, unless "large" takes more
SMALLER = {"full": "fast", "fast": "large"}
PRIOR_BYTES = 16  # of a number of the prior of a user or an item
FEATURE_BYTES = 16  # of one of their features, with copies
RATING_BYTES = 60  # of a rating, for the factors
KEPT_RATING_BYTES = 20  # of a rating in fitted factors
POOL_RATING_BYTES = 60  # of a rating in the parts by which the pool is learnt
LEAST_BYTES = 1e7  # of working memory


def chosen_preset(preset: str, ratings: Ratings, limit: float) -> str:
    """The preset itself, or a smaller one, with a warning, if it takes too many gigabytes.

    "auto" wants what is most accurate within a minute or two and `AUTO_GIGABYTES`.

    Raises
    ------
    DataError
        If even the smallest takes too many.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> chosen_preset("auto", synthetic_ratings(50, 40, n_ratings=500), limit=8.0)
    'full'
    """
    wanted = preset
    if preset == "auto":
        wanted = "full" if ratings.n_ratings <= FULL_RATINGS else "fast"
        while AUTO_GIGABYTES < gigabytes(wanted, ratings) <= limit and wanted in SMALLER:
            wanted = SMALLER[wanted]
    size = f"RatingPredictor: {ratings.n_users} users x {ratings.n_items} items take"
    fitting, most = wanted, gigabytes(wanted, ratings)
    needed = most
    while needed > limit:
        if fitting not in SMALLER:
            raise DataError(
                f'{size} {needed:.2g} GB or more, as preset="{fitting}", and max_memory is '
                f"{limit:g}: raise it, leave out users and items with few ratings, or fit "
                "OrdinalFactors to ratings on disk (fit_scan)"
            )
        fitting = SMALLER[fitting]
        needed = gigabytes(fitting, ratings)
    if fitting != wanted:
        warnings.warn(
            f'{size} {most:.2g} GB as preset="{wanted}", and max_memory is {limit:g}: fitted as '
            f'preset="{fitting}"',
            stacklevel=callers_level(),
        )
    return fitting


def gigabytes(preset: str, ratings: Ratings) -> float:
    """Estimate the memory that a fit takes at most, beside that of the ratings.

    The fitted factors, which are small, are kept while the process is solved, and while others are
    fitted, in one direction, to the ratings that are not held out for the pool.
    """
    fitting, kept = _gigabytes_of_factors(ratings)
    if preset == "large":
        return fitting
    fitting += kept / 2.0 + POOL_RATING_BYTES * ratings.n_ratings / 1e9
    config = Preparation(two_sided=preset == "full")
    return max(fitting, kept + sum(memory_parts(ratings, SideFeatures(), config)))


def _gigabytes_of_factors(ratings: Ratings) -> tuple[float, float]:
    """While the factors are fitted, and of fitted ones."""
    n_rows, n_steps = ratings.n_users + ratings.n_items, ratings.scale.n_ranks - 1
    n_factors, pattern = usual_sizes(ratings.n_ratings, n_rows)
    # as `RowPosteriors` and `CompactRows` have them
    posterior = 4.0 * (n_factors * (n_factors + 1) / 2 + n_factors + 2 * n_steps)
    compact = 2.0 * (2 * n_factors + 2 * n_steps)
    n_fits = 4 if ratings.timestamps is not None else 2  # both ways, and with drift
    kept = n_rows * n_fits * compact + KEPT_RATING_BYTES * ratings.n_ratings
    working = n_rows * (posterior + PRIOR_BYTES * (n_factors + n_steps) + FEATURE_BYTES * pattern)
    return (kept + working + RATING_BYTES * ratings.n_ratings + LEAST_BYTES) / 1e9, kept / 1e9
