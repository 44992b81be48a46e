"""Lists of a rating predictor, and the choice model beside it that they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ordrec.ratings import Ratings
from ordrec.recommend.base import codes_of
from ordrec.recommend.choice.mixture import ChoiceMixture
from ordrec.recommend.lists import check_list_length
from ordrec.recommend.recommender.model import Recommender
from ordrec.recommend.top_n import Order, best_items, candidate_items, check_candidates

__all__ = ["ChoiceStage", "ListRequest", "listed_items"]


@dataclass(frozen=True)
class ListRequest:
    """What is asked for; see `RatingPredictor.recommend`."""

    user: Any
    n: int
    order: Order
    candidates: Any
    n_candidates: int

    def __post_init__(self) -> None:
        check_list_length(self.n_candidates, "n_candidates")
        check_candidates(self.candidates)


def listed_items(
    request: ListRequest,
    known: Ratings,
    history: tuple[np.ndarray, np.ndarray],
    choice_stage: ChoiceStage,
    predict_proba: Callable[[Any, Any], np.ndarray],
) -> pd.DataFrame:
    """Return the best items for a user with the given history, from all known ratings."""
    user, candidates = request.user, request.candidates

    def recommender() -> Recommender:
        return choice_stage.recommender(known, user, history, predict_proba)

    if request.order.by == "recommended":
        only = None if isinstance(candidates, str) else candidates
        listed = recommender().recommend(user, request.n, only=only)
        listed = listed.rename(columns={"score": "value"})
        return listed[["item", "value", "expected", "p_pick", "p_like"]]

    def likely() -> pd.Index:
        return pd.Index(recommender().choice_.recommend(user, request.n_candidates)["item"])

    seen, rated = known.item_ids[known.item_counts > 0], known.item_ids.take(history[0])
    items = candidate_items(candidates, seen, rated, likely)
    if len(items) == 0:
        return pd.DataFrame({"item": items, "value": np.zeros(0), "expected": np.zeros(0)})
    p = predict_proba(np.repeat(np.asarray([user]), len(items)), items)
    return best_items(items, p, known.scale.values, request.n, request.order)


class ChoiceStage:
    """A `ChoiceMixture` that is fitted to the training ratings when first needed, and kept.

    Copies of a model share it, so that none of them fits it again. ``training`` returns the
    training ratings.
    """

    def __init__(self, training: Callable[[], Ratings], n_jobs: int | None = None) -> None:
        self._training, self._n_jobs = training, n_jobs
        self._choice: ChoiceMixture | None = None

    def recommender(
        self,
        known: Ratings,
        user: Any,
        history: tuple[np.ndarray, np.ndarray],
        predict_proba: Callable[[Any, Any], np.ndarray],
    ) -> Recommender:
        """Return a recommender that knows a user by the given history.

        Parameters
        ----------
        known : Ratings
        user : id
        history : (items, levels)
            Codes of the items that the user has rated, and the levels.
        predict_proba : callable
            Distributions of pairs of original ids.
        """
        if self._choice is None:
            self._choice = ChoiceMixture(n_jobs=self._n_jobs).fit(self._training())
        items, levels = history
        choice = self._choice
        rated = codes_of(choice.item_ids_, known.item_ids.take(items)) >= 0
        items, levels = items[rated], levels[rated]  # new items say nothing to a choice model
        if items.size:
            frame = pd.DataFrame(
                {
                    "user": [user] * items.size,
                    "item": known.item_ids.take(items),
                    "rating": known.scale.values[levels],
                }
            )
            choice = choice.fold_in(Ratings.from_frame(frame, scale=known.scale))
        return Recommender.of_fitted(choice, _Distributions(predict_proba), choice.calibration_)


class _Distributions:
    """What a recommender needs of a rating model."""

    def __init__(self, predict_proba: Callable[[Any, Any], np.ndarray]):
        self.predict_proba = predict_proba
