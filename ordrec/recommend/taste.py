"""What a rating model says of listed items: expected rating, chance to be liked, and gain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from ordrec.data import Scale
from ordrec.lists.best import rank_gains

__all__ = ["Taste", "taste_of", "times_for"]


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
        Probability that the user likes the item; None for a model that predicts no
        distributions.
    """

    log_gain: np.ndarray
    expected: np.ndarray
    p_like: np.ndarray | None


def taste_of(
    model: Any, users: Any, items: Any, scale: Scale, like: float, timestamp: int | None = None
) -> Taste:
    """Ask a rating model about pairs of original ids, at one time if given.

    ``like`` is the lowest rating that counts as liked.
    """
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
