"""Top-N lists from distributions: what to choose from, and what to order by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.ratings import Ratings

if TYPE_CHECKING:
    from ordrec.recommend.predictor.model import RatingPredictor

__all__ = ["Order", "best_items", "candidate_items"]


@dataclass(frozen=True)
class Order:
    """What a list is ordered by; see `RatingPredictor.recommend`."""

    by: str
    at_least: float | None
    quantile: float

    def __post_init__(self) -> None:
        if self.by not in ("expected", "p_at_least", "lower_quantile"):
            raise ArgumentError(
                f'by must be "expected", "p_at_least" or "lower_quantile", got {self.by!r}'
            )
        if not 0 < self.quantile < 1:
            raise ArgumentError(f"quantile must lie between 0 and 1, got {self.quantile}")

    def values(self, p: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """One number a distribution, the higher the better."""
        if self.by == "expected":
            return p @ scale
        if self.by == "p_at_least":
            top = scale[-max(1, round(0.4 * scale.size))]
            return p[:, scale >= (top if self.at_least is None else self.at_least)].sum(axis=1)
        return scale[(np.cumsum(p, axis=1) < self.quantile - 1e-12).sum(axis=1)]


def candidate_items(
    model: RatingPredictor, user: Any, candidates: Any, n_candidates: int
) -> pd.Index:
    """The items to choose from, those that the user has rated left out."""
    rated, levels, _ = model._history(user)
    if not isinstance(candidates, str):
        items = pd.Index(candidates)
    elif candidates == "all":
        items = model.item_ids_[model.known_items_]
    elif candidates == "implicit":
        if n_candidates < 1:
            raise ArgumentError(f"n_candidates must be at least 1, got {n_candidates}")
        first_stage = model.first_stage_.ranking(lambda: training_ratings(model))
        codes = first_stage.best_for_history(rated, levels + 1.0, n_candidates)
        return model.item_ids_.take(codes)
    else:
        raise ArgumentError(
            f'candidates must be "all", "implicit" or item ids, got {candidates!r}'
        )  # fmt: skip
    return items[~items.isin(model.item_ids_.take(rated))]


def best_items(
    model: RatingPredictor, user: Any, items: pd.Index, n: int, order: Order, timestamp: int | None
) -> pd.DataFrame:
    """The n best of the items: item, value, expected."""
    if len(items) == 0:
        return pd.DataFrame({"item": items, "value": np.zeros(0), "expected": np.zeros(0)})
    times = None if timestamp is None else np.full(len(items), timestamp)
    p = model.predict_proba(np.repeat(np.asarray([user]), len(items)), items, times)
    expected, value = p @ model.scale_.values, order.values(p, model.scale_.values)
    best = np.lexsort((-expected, -value))[:n]
    return pd.DataFrame({"item": items[best], "value": value[best], "expected": expected[best]})


def training_ratings(model: RatingPredictor) -> Ratings:
    """The ratings that a model was fitted to, ordered by user, without times and side tables."""
    data = model.process_.data
    return Ratings(
        data.users, data.items, model.levels_,
        scale=model.scale_, user_ids=model.user_ids_, item_ids=model.item_ids_,
    )  # fmt: skip
