"""The recommender with settings that fit quickly."""

from __future__ import annotations

from ordrec.recommend.recommender.model import Recommender
from ordrec.recommend.registry import make_model

__all__ = ["Recommender", "fast_recommender"]


def fast_recommender(n_jobs: int | None = None, random_state: int = 0) -> Recommender:
    """Return an unfitted recommender whose rating model is `RatingPredictor` in its fast preset.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; -1 means all cores.
    random_state : int

    Examples
    --------
    >>> fast_recommender().rating.preset
    'fast'
    """
    rating = make_model("predictor-fast", n_jobs=n_jobs, random_state=random_state)
    return Recommender(rating=rating, n_jobs=n_jobs, random_state=random_state)
