"""Lists of a rating model, and the choice model beside it that they need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.base import histories
from ordrec.data import Ratings
from ordrec.lists.explanation import Explanation, Influence, explain_rating
from ordrec.models.base import codes_of
from ordrec.recommend.answering import AnsweringModel, ListRequest

if TYPE_CHECKING:
    from ordrec.choice.mixture import ChoiceMixture
    from ordrec.recommend.recommender import Recommender

__all__ = ["ChoiceStage", "RatingAnswers"]


class ChoiceStage:
    """A `ChoiceMixture` that is fitted to the training ratings when first needed, and kept.

    Copies of a model share it, so that none of them fits it again. ``training`` returns the
    training ratings.
    """

    def __init__(self, training: Callable[[], Ratings], n_jobs: int | None = None) -> None:
        self._training, self._n_jobs = training, n_jobs
        self._choice: ChoiceMixture | None = None

    def recommender(self, model: AnsweringModel, known: Ratings) -> Recommender:
        """Return a recommender of a rating model that knows users by the given ratings."""
        # a rating model alone need not wait for these to be imported
        from ordrec.choice.mixture import ChoiceMixture
        from ordrec.recommend.recommender import Recommender

        if self._choice is None:
            training = self._training().without_weights()  # what was picked was picked
            self._choice = ChoiceMixture(n_jobs=self._n_jobs).fit(training)
        changed = _changed(self._choice, known.without_weights())
        choice = self._choice.fold_in(changed) if changed.n_ratings else self._choice
        recommender = Recommender.of_fitted(choice, model, choice.calibration_)
        if model.titles_ is not None:
            recommender.titles_ = model.titles_[: len(choice.item_ids_)]  # new items come last
        return recommender


def _changed(choice: ChoiceMixture, known: Ratings) -> Ratings:
    """The ratings of the users whose history is not the one that the choice model knows."""
    items = codes_of(choice.item_ids_, known.item_ids)
    known = known.select(items[known.items] >= 0)  # new items say nothing to a choice model
    raters = np.flatnonzero(known.user_counts)
    own = histories(known)[raters]
    shape = len(raters), len(choice.item_ids_)
    own = sparse.csr_array((own.data, items[own.indices], own.indptr), shape=shape)
    before = choice.history_of(codes_of(choice.user_ids_, known.user_ids.take(raters)))
    changed = np.zeros(known.n_users, dtype=bool)
    changed[raters] = np.abs(own - before).sum(axis=1) > 0
    return known.select(changed[known.users])


class RatingAnswers(AnsweringModel):
    """Base of rating models that make lists and explain: `OrdinalFactors`, `RatingPredictor`."""

    choice_stage_: ChoiceStage

    def _influence(self) -> Influence | None:
        """How much ratings move each other, where that can be said; see `explain_rating`."""
        return None

    def explain(self, user: Any, item: Any, timestamp: int | None = None) -> Explanation:
        """Explain the expected rating of an item by a user as a sum; see `Explanation`.

        ``timestamp`` is when the rating would be given, in seconds since 1970.
        """
        self._codes([user], [item])
        proba = self._proba_at(timestamp)
        return explain_rating(
            lambda users, items: proba(users, items) @ self.scale_.values,
            self.known_ratings(),
            self.history_of(user),
            self._titles_by_id(),
            user,
            item,
            self._influence(),
        )

    def recommend_all(
        self,
        n: int = 10,
        users: Any = None,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        **options: Any,
    ) -> pd.DataFrame | Path:
        """Make lists for all users, or for those given; see `ordrec.recommend.recommend_all`.

        ``out``, ``engine``, ``n_jobs`` and ``progress`` are handed on.
        """
        self._check_fitted()
        whole = self.choice_stage_.recommender(self, self.known_ratings())
        return whole.recommend_all(
            n, users, exclude=exclude, only=only, include_rated=include_rated, **options
        )

    def _recommender_for(self, user: Any) -> Recommender:
        """A recommender that knows one user as this model does."""
        known = self.known_ratings()
        code = int(codes_of(known.user_ids, [user])[0])
        return self.choice_stage_.recommender(self, known.select(known.users == code))

    def _recommended(self, request: ListRequest) -> pd.DataFrame:
        return self._recommender_for(request.user)._recommended(request)

    def _likely(self, request: ListRequest) -> pd.Index:
        return self._recommender_for(request.user)._likely(request)
