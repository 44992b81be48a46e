"""What a rating model says of listed items: expected rating, chance to be liked, and gain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from ordrec.data import Scale
from ordrec.lists.filters import rank_gains

__all__ = ["Taste", "liked_from", "taste_of", "times_for"]

LIKED_SHARE = 0.8  # of the ranks: from 4 of 5 on, from 8 of 10 on


@dataclass(frozen=True)
class Taste:
    """One number per pair of a user and an item.

    Attributes
    ----------
    log_gain : array
        Logarithm of the expected gain ``2^rank - 1``, if the user rates the item.
    expected : array
        The expected rating.
    p_like : array or None
        Probability of a rating in the top of the scale; None for a model that predicts no
        distributions.
    """

    log_gain: np.ndarray
    expected: np.ndarray
    p_like: np.ndarray | None


def liked_from(scale: Scale, like: float | None) -> float:
    """The lowest rating that counts as liked: as given, or the fifth of the scale below the top.

    Where the scale is made of bins, whole bins are liked: this is the end of one.

    Examples
    --------
    >>> liked_from(Scale.regular(1, 5), None), liked_from(Scale.regular(0.5, 5, 0.5), None)
    (4.0, 4.0)
    """
    if like is not None:
        return float(like)
    level = int(np.ceil(LIKED_SHARE * scale.n_ranks)) - 1
    return float(scale.values[level] if scale.edges is None else scale.edges[level])


def taste_of(
    model: Any, users: Any, items: Any, scale: Scale, like: float, timestamp: int | None = None
) -> Taste:
    """Ask a rating model about pairs of original ids, at one time if given."""
    gains = rank_gains(scale.n_ranks)
    when = None if timestamp is None else np.full(len(items), timestamp)
    if hasattr(model, "predict_proba"):
        times = times_for(model.predict_proba, when)
        p = np.asarray(model.predict_proba(users, items, **times), dtype=np.float64)
        p_like = p[:, scale.values >= like].sum(axis=1)
        return Taste(np.log(p @ gains), p @ scale.values, p_like)
    times = times_for(model.predict, when)
    expected = np.asarray(model.predict(users, items, **times), dtype=np.float64)
    return Taste(np.log(np.interp(expected, scale.values, gains)), expected, None)


def times_for(predict: Callable[..., Any], timestamps: Any) -> dict[str, Any]:
    """The times as an argument of a method, for one that takes them."""
    takes = "timestamps" in signature(predict).parameters
    return {"timestamps": timestamps} if takes and timestamps is not None else {}
