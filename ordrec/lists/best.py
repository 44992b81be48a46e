"""Top-N lists by predicted ratings: which items to choose from, and how to order them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError

__all__ = ["ORDERS", "Order", "best_items", "candidate_items", "check_candidates"]

ORDERS = ("recommended", "expected", "p_at_least", "lower_quantile")


@dataclass(frozen=True)
class Order:
    """What a list is ordered by; see `AnsweringModel.recommend`."""

    by: str
    at_least: float | None
    quantile: float

    def __post_init__(self) -> None:
        if self.by not in ORDERS:
            raise ArgumentError(f"by must be one of {', '.join(ORDERS)}, got {self.by!r}")
        if not 0 < self.quantile < 1:
            raise ArgumentError(f"quantile must lie between 0 and 1, got {self.quantile}")

    def values(self, p: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """One number per distribution, the higher the better."""
        if self.by == "expected":
            return p @ scale
        if self.by == "p_at_least":
            top = scale[-max(1, round(0.4 * scale.size))]
            return p[:, scale >= (top if self.at_least is None else self.at_least)].sum(axis=1)
        return scale[(np.cumsum(p, axis=1) < self.quantile - 1e-12).sum(axis=1)]


def check_candidates(candidates: Any) -> None:
    """Refuse a word that names no candidates; "implicit" is what version 0.1 called "likely"."""
    if isinstance(candidates, str) and candidates not in ("all", "likely", "implicit"):
        raise ArgumentError(f'candidates must be "all", "likely" or item ids, got {candidates!r}')


def candidate_items(
    candidates: Any, known: pd.Index, rated: pd.Index, likely: Callable[[], pd.Index]
) -> pd.Index:
    """Return the items to choose from, without those that the user has rated.

    Parameters
    ----------
    candidates : {"all", "likely"} or array-like of item ids
    known : Index
        All items with a rating.
    rated : Index
        The items that the user has rated.
    likely : callable
        Gives the unrated items for "likely", best first.
    """
    check_candidates(candidates)
    if isinstance(candidates, str) and candidates != "all":
        return likely()
    items = known if isinstance(candidates, str) else pd.Index(candidates)
    return items[~items.isin(rated)]


def best_items(
    items: pd.Index, p: np.ndarray, scale: np.ndarray, n: int, order: Order
) -> pd.DataFrame:
    """The n best of the items by their distributions ``p``: item, score, expected."""
    expected, score = p @ scale, order.values(p, scale)
    best = np.lexsort((-expected, -score))[:n]
    return pd.DataFrame({"item": items[best], "score": score[best], "expected": expected[best]})
