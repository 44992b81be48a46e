"""What models of ratings answer alike: lists in any order, and similar items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.ids import warn_of_other_type
from ordrec.errors import ArgumentError
from ordrec.lists.best import Order, best_items, candidate_items, check_candidates
from ordrec.lists.filters import (
    ItemFilter,
    best_columns,
    check_list_length,
    check_one_user,
)
from ordrec.lists.frames import predict_pairs
from ordrec.models.base import IdMappedModel, codes_of
from ordrec.recommend.similar import alike_by_raters

__all__ = ["AnsweringModel", "ListRequest"]


@dataclass(frozen=True)
class ListRequest:
    """What is asked for; see `AnsweringModel.recommend`."""

    user: Any
    n: int
    order: Order
    candidates: Any
    n_candidates: int
    exclude: Any
    only: Any
    include_rated: bool
    timestamp: int | None

    def __post_init__(self) -> None:
        check_list_length(self.n)
        check_list_length(self.n_candidates, "n_candidates")
        check_candidates(self.candidates)

    @property
    def filters(self) -> dict[str, Any]:
        """The options of `ListingModel.recommend`."""
        return {"exclude": self.exclude, "only": self.only, "include_rated": self.include_rated}


class AnsweringModel(IdMappedModel):
    """Base of `OrdinalFactors`, `RatingPredictor` and `Recommender`."""

    titles_: list[str] | None = None
    _time: int | None = None  # for which a recommender makes lists

    @abstractmethod
    def known_ratings(self) -> Ratings:
        """The ratings of training, and those that were folded in, without side tables."""

    @abstractmethod
    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Item codes and levels of a user's ratings; none for an unknown user."""

    @abstractmethod
    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Distributions, one row per pair and one column per scale value, ascending."""

    @abstractmethod
    def explain(self, user: Any, item: Any, timestamp: int | None = None) -> Any:
        """What the expected rating of an item by a user is made of."""

    @abstractmethod
    def _recommended(self, request: ListRequest) -> pd.DataFrame:
        """The list in the order "recommended"."""

    @abstractmethod
    def _likely(self, request: ListRequest) -> pd.Index:
        """The items that the user is likeliest to pick, as many as there are to be candidates."""

    def _alike(self, known: Ratings, code: int) -> np.ndarray:
        """How similar all items are to one."""
        return alike_by_raters(known, code)

    # ---- answers --------------------------------------------------------------------------

    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        by: Literal["recommended", "expected", "p_at_least", "lower_quantile"] = "recommended",
        at_least: float | None = None,
        quantile: float = 0.25,
        candidates: Any = "all",
        n_candidates: int = 200,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        timestamp: int | None = None,
    ) -> pd.DataFrame:
        """List the n best items for a user.

        Parameters
        ----------
        user : id
            An unknown user gets the list of one without ratings.
        n : int
            The list is shorter if there are not as many items to choose from.
        by : {"recommended", "expected", "p_at_least", "lower_quantile"}
            Order as a `Recommender` does, by what the user is likely to pick and what they will
            think of it; or by the expected rating alone, by the probability of ``at_least`` or
            more, or by the rating reached with probability ``1 - quantile`` (ties by the
            expected rating).
        at_least : float, optional
            A rating; by default the lowest of the top two fifths of the scale.
        quantile : float
        candidates : {"all", "likely"} or array-like of item ids
            Items to choose from: all that have a rating, those that the user is likeliest to
            pick (for orders by rating), or the given ones.
        n_candidates : int
            Number of candidates for "likely".
        exclude, only : sequence of item ids, optional
            Items that must not be listed; the only ones that may.
        include_rated : bool
            Whether items that the user has rated may be listed.
        timestamp : int, optional
            Time at which the ratings would be given, in seconds since 1970.

        Returns
        -------
        DataFrame
            ``item``, ``title`` if known, ``score`` (by which the list is ordered) and
            ``expected``, the expected rating, best first; for "recommended" also ``p_pick``, the
            probability that the item is among the user's next picks, and ``p_like``, the
            probability that the user likes it.

        Notes
        -----
        Where no choice model was fitted, as in `OrdinalFactors` and `RatingPredictor`, the one
        behind "recommended" and "likely" is fitted on the first such call, and kept: to the
        ratings of training, or to all that a loaded model knows.
        """
        check_one_user(user)
        self._check_fitted()
        request = ListRequest(
            user, n, Order(by, at_least, quantile), candidates, n_candidates, exclude, only,
            include_rated, timestamp,
        )  # fmt: skip
        if by == "recommended":
            return self._recommended(request)
        known = self.known_ratings()
        items = self._candidates(request, known)
        p = np.zeros((0, self.scale_.n_ranks))
        if len(items):
            users = pd.Index([user]).repeat(len(items))
            p = self._proba_at(timestamp)(users, items)
        return self._titled(best_items(items, p, self.scale_.values, n, request.order))

    def _candidates(self, request: ListRequest, known: Ratings) -> pd.Index:
        """The items to be ordered."""
        codes = self.history_of(request.user)[0]
        rated = known.item_ids.take(codes[:0] if request.include_rated else codes)
        items = candidate_items(
            request.candidates,
            known.item_ids[known.item_counts > 0],
            rated,
            lambda: self._likely(request),
        )
        everything = np.ones(known.n_items, dtype=bool)
        allowed = ItemFilter.of(
            known.item_ids, everything, exclude=request.exclude, only=request.only
        ).allowed
        places = codes_of(known.item_ids, items)
        return items[np.where(places >= 0, allowed[places], request.only is None)]

    def similar_items(self, item: Any, n: int = 10) -> pd.DataFrame:
        """List the items that are most like one: those that the same people like.

        Parameters
        ----------
        item : id
        n : int

        Returns
        -------
        DataFrame
            ``item``, ``title`` if known, and ``similarity``, at most 1, most similar first: the
            correlation of what users think of the two items, beyond what everybody thinks of them.
            It is the lower, the less is known of an item. Without factors (a `Recommender` of
            another rating model), the cosine of the items' columns of ratings.
        """
        check_list_length(n)
        self._check_fitted()
        known = self.known_ratings()
        codes = codes_of(known.item_ids, [item])
        warn_of_other_type(known.item_ids, [item], codes)
        if codes[0] < 0:
            raise ArgumentError(f"item {item!r} is not in the model: nothing is similar to it")
        similarity = self._alike(known, int(codes[0])).copy()
        similarity[known.item_counts == 0] = -np.inf
        similarity[codes[0]] = -np.inf
        best = best_columns(similarity[None], n)[0]
        best = best[best >= 0]
        found = {"item": known.item_ids.take(best), "similarity": similarity[best]}
        return self._titled(pd.DataFrame(found))

    def predict_frame(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Predictions for a table with columns user, item and, optionally, timestamp.

        Returns the pairs with the decided rating, the expected one, the probability of each
        scale value, and whether user and item were known.
        """
        return predict_pairs(self, pairs)

    # ---- shared by the answers ------------------------------------------------------------

    def _proba_at(self, timestamp: int | None) -> Callable[[Any, Any], np.ndarray]:
        """Distributions of pairs at one time."""
        return lambda users, items: self.predict_proba(
            users, items, None if timestamp is None else np.full(len(items), timestamp)
        )

    def _titles_by_id(self) -> dict[Any, str] | None:
        """What the items are called."""
        if self.titles_ is None:
            return None
        return dict(zip(self.item_ids_.tolist(), self.titles_, strict=True))

    def _titled(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with titles next to the items."""
        titles = self._titles_by_id()
        if titles is not None:
            table.insert(1, "title", [titles.get(item, "") for item in table["item"]])
        return table
