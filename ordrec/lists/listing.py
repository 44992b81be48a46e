"""Fitted models that list items for users: what they share, and the lists of rating models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.ids import warn_of_other_type
from ordrec.errors import ArgumentError
from ordrec.lists.best import RatingOrder, best_by_rating, best_columns
from ordrec.lists.bulk import item_columns, recommend_all
from ordrec.lists.explanation import Explanation, Influence, explain_rating
from ordrec.lists.filters import (
    CELLS_AT_ONCE,
    ItemFilter,
    check_list_length,
    check_one_user,
    taken,
)
from ordrec.lists.frames import predict_pairs
from ordrec.lists.groups import ItemGroups, caps_of, within_caps
from ordrec.models.base import IdMappedModel, codes_of

__all__ = ["ListingModel", "RatingListingModel", "ids_of_codes", "similarity_by_raters"]


class ListingModel(IdMappedModel):
    """Base of fitted models that list items for users.

    A subclass makes the lists of a block of users (`lists`); frames, lists for everybody and their
    files follow from these.
    """

    titles_: list[str] | None = None
    item_groups_: tuple[ItemGroups, ...] = ()
    item_counts_: np.ndarray
    ordered_by: ClassVar[str]  # what `recommend` orders by

    @abstractmethod
    def lists(
        self, codes: np.ndarray, n: int, listable: ItemFilter, *, timestamp: int | None = None
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the lists of users by code; -1 is a user without ratings.

        Parameters
        ----------
        codes : int array of shape (n_users,)
        n : int
            Length of a list.
        listable : ItemFilter
        timestamp : int, optional
            Time for which the lists are made, in seconds since 1970; models that do not use
            times ignore it.

        Returns
        -------
        items : int array of shape (n_users, at most n)
            Item codes, best first, -1 where there are no more.
        columns : dict of arrays of the same shape
            What the model says of each listed item, ``score`` first.
        """

    def item_filter(
        self,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        at_most: Mapping[str, int] | None = None,
        explore: float = 0.0,
    ) -> ItemFilter:
        """Return which items may be listed: those with scores; see `recommend`."""
        new = self._new_items()
        if not 0 <= explore <= 1:
            raise ArgumentError(
                f"explore must lie between 0 and 1, got {explore}", parameter="explore"
            )
        if explore and not new.any():
            raise ArgumentError(
                f"explore={explore:g}: this {type(self).__name__} has no new items to list: fit a "
                "Recommender to ratings whose item table has items without ratings",
                parameter="explore",
            )
        return ItemFilter.of(
            self.item_ids_, self._listable_items(), exclude=exclude, only=only,
            include_rated=include_rated, user_ids=self.user_ids_,
            caps=caps_of(at_most, self.item_groups_), new=new, explore=explore,
        )  # fmt: skip

    def _listable_items(self) -> np.ndarray:
        """Which items may be listed at all: those with ratings, and new ones that have scores."""
        return (self.item_counts_ > 0) | self._new_items()

    def _new_items(self) -> np.ndarray:
        """Which items without ratings the model can list."""
        return np.zeros(len(self.item_ids_), dtype=np.bool_)

    @abstractmethod
    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the item codes and the levels of a user's ratings; none for an unknown user."""

    def block_size(self) -> int:
        """Return for how many users lists are made at the same time."""
        return max(1, CELLS_AT_ONCE // len(self.item_ids_))

    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        at_most: Mapping[str, int] | None = None,
        explore: float = 0.0,
    ) -> pd.DataFrame:
        """List the n best items for a user.

        Parameters
        ----------
        user : id
            An unknown user gets the list of one without ratings.
        n : int
            The list is shorter if there are not as many items to choose from.
        exclude, only : sequence of item ids, or data frame, optional
            Items that must not be listed; the only ones that may. A frame with columns of users
            and items names pairs: with ``only``, a user without a pair has no list.
        include_rated : bool
            Whether items that the user has rated may be listed.
        at_most : mapping of str to int, optional
            Columns of the item table of training, and how many items of a list may have the same
            category or label: ``{"genre": 3}``.
        explore : float
            The share of the list, rounded up, that is for new items, as far as there are any:
            items of the item table of training that have no ratings. They are also listed where
            their score is high enough.

        Returns
        -------
        DataFrame
            ``item``, ``title`` if known, ``score``, by which the list is ordered, and what else
            the model says of an item: ``p_pick`` is the probability that it is among the user's
            next picks (see `ChoiceMixture`). Its ``attrs["ordered_by"]`` says what the score is.
        """
        self._check_fitted()
        return self._list_of(
            user, n, self.item_filter(exclude, only, include_rated, at_most, explore)
        )

    def _list_of(
        self, user: Any, n: int, listable: ItemFilter, ordered_by: str = "", **options: Any
    ) -> pd.DataFrame:
        """The list of one user; the options are those of `lists`."""
        check_list_length(n)
        check_one_user(user)
        codes = codes_of(self.user_ids_, [user])
        warn_of_other_type(self.user_ids_, [user], codes)
        best, columns = self.lists(codes, n, listable, **options)
        listed = pd.DataFrame(item_columns(self, best, columns))
        listed.attrs["ordered_by"] = ordered_by or self.ordered_by
        return listed

    def recommend_all(
        self,
        n: int = 10,
        users: Any = None,
        *,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        at_most: Mapping[str, int] | None = None,
        explore: float = 0.0,
        **options: Any,
    ) -> pd.DataFrame | Path:
        """Make lists for all users, or for those given; see `ordrec.recommend.recommend_all`.

        ``timestamp``, ``out``, ``overwrite``, ``engine``, ``n_jobs``, ``progress`` are passed on.
        """
        filters: dict[str, Any] = {"exclude": exclude, "only": only, "at_most": at_most}
        filters["explore"] = explore
        return recommend_all(self, n, users, include_rated=include_rated, **filters, **options)

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


class RatingListingModel(ListingModel):
    """Base of rating models that list, explain and compare items by their distributions.

    `OrdinalFactors`, `RatingPredictor` and `Recommender` inherit from it.
    """

    ordered_by = "expected"

    @abstractmethod
    def known_ratings(self) -> Ratings:
        """Return the ratings of training, and those that were folded in, without side tables."""

    @abstractmethod
    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return distributions, one row per pair and one column per scale value, ascending."""

    def _listable_items(self) -> np.ndarray:
        return self.known_ratings().item_counts > 0

    def _influence(self) -> Influence | None:
        """How much a rating moves the others, if the model knows; see `explain_rating`."""
        return None

    def _similarity(self, known: Ratings, code: int) -> np.ndarray:
        """How similar all items are to one."""
        return similarity_by_raters(known, code)

    # ---- lists ----------------------------------------------------------------------------

    def recommend(
        self,
        user: Any,
        n: int = 10,
        *,
        by: Literal["expected", "p_at_least", "lower_quantile"] = "expected",
        at_least: float | None = None,
        quantile: float = 0.25,
        candidates: Any = "all",
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        at_most: Mapping[str, int] | None = None,
        timestamp: int | None = None,
    ) -> pd.DataFrame:
        """List the n items that a user will rate best, of those that they have not rated.

        A rating model orders by what the user would think of an item, not by whether they would
        pick it: the list begins with what they would like if they tried it. `Recommender` orders
        by both, and makes the better lists of what users pick next.

        Parameters
        ----------
        user : id
            An unknown user gets the list of one without ratings.
        n : int
            The list is shorter if there are not as many items to choose from.
        by : {"expected", "p_at_least", "lower_quantile"}
            Order by the expected rating, by the probability of ``at_least`` or more, or by the
            rating reached with probability ``1 - quantile`` (ties by the expected rating).
        at_least : float, optional
            A rating; by default the lowest that counts as liked, see `Scale.liked_from`.
        quantile : float
        candidates : "all" or array-like of item ids
            Items to choose from: all that have a rating, or the given ones.
        exclude, only : sequence of item ids, or data frame, optional
            Items that must not be listed; the only ones that may. A frame with columns of users
            and items names pairs: with ``only``, a user without a pair has no list.
        include_rated : bool
            Whether items that the user has rated may be listed.
        at_most : mapping of str to int, optional
            Columns of the item table of training, and how many items of a list may have the same
            category or label: ``{"genre": 3}``.
        timestamp : int, optional
            Time at which the ratings would be given, in seconds since 1970.

        Returns
        -------
        DataFrame
            ``item``, ``title`` if known, ``score`` (by which the list is ordered) and
            ``expected``, the expected rating, best first. Its ``attrs["ordered_by"]`` is ``by``.
        """
        self._check_fitted()
        order = RatingOrder(by, at_least, quantile)
        filters: dict[str, Any] = {"exclude": exclude, "only": only, "include_rated": include_rated}
        if isinstance(candidates, str):
            _check_candidates(candidates)
            listable = self.item_filter(**filters, at_most=at_most)
        else:
            listable = ItemFilter.among(
                self.item_ids_, candidates, **filters, user_ids=self.user_ids_,
                caps=caps_of(at_most, self.item_groups_),
            )  # fmt: skip
        return self._list_of(user, n, listable, by, timestamp=timestamp, order=order)

    def block_size(self) -> int:
        """Return for how many users lists are made at the same time."""
        return max(1, CELLS_AT_ONCE // (len(self.item_ids_) * self.scale_.n_ranks))

    def lists(
        self,
        codes: np.ndarray,
        n: int,
        listable: ItemFilter,
        *,
        timestamp: int | None = None,
        order: RatingOrder | None = None,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return lists by ``order``, the expected rating by default; see `ListingModel.lists`."""
        order = order or RatingOrder()
        mask = listable.pairs_allowed(codes) & listable.allowed
        if not listable.include_rated:
            for row in np.flatnonzero(codes >= 0):
                mask[row, self.history_of(self.user_ids_[codes[row]])[0]] = False
        items = np.flatnonzero(mask.any(axis=0))
        p = np.zeros((0, self.scale_.n_ranks))
        if items.size:
            users = ids_of_codes(self.user_ids_, np.repeat(codes, items.size))
            p = self._proba_at(timestamp)(users, self.item_ids_.take(np.tile(items, codes.size)))
        length = len(self.item_ids_) if listable.caps else n
        best, columns = best_by_rating(p, mask[:, items], self.scale_, length, order)
        if listable.caps and items.size:
            places = within_caps(np.where(best >= 0, items[best], -1), listable.caps, n)
            best = taken(best, places)
            columns = {name: taken(values, places) for name, values in columns.items()}
        return np.where(best >= 0, items[best], -1) if items.size else best, columns

    # ---- similar items, explanations and tables -------------------------------------------

    def similar_items(self, item: Any, n: int = 10) -> pd.DataFrame:
        """List the items that are most similar to one: those that the same people like.

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
        similarity = self._similarity(known, int(codes[0])).copy()
        similarity[known.item_counts == 0] = -np.inf
        similarity[codes[0]] = -np.inf
        best = best_columns(similarity[None], n)[0]
        best = best[best >= 0]
        found = {"item": known.item_ids.take(best), "similarity": similarity[best]}
        return self._titled(pd.DataFrame(found))

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

    def predict_frame(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Predict for a table with columns user, item and, optionally, timestamp.

        Returns the pairs with the decided rating, the expected one, the probability of each
        scale value, and whether user and item were known.
        """
        return predict_pairs(self, pairs)

    def _proba_at(self, timestamp: int | None) -> Callable[[Any, Any], np.ndarray]:
        """Distributions of pairs at one time."""
        return lambda users, items: self.predict_proba(
            users, items, None if timestamp is None else np.full(len(items), timestamp)
        )


def ids_of_codes(ids: pd.Index, codes: np.ndarray) -> pd.Index:
    """Return the ids of codes; NaN, which no model knows, where a code is -1.

    Examples
    --------
    >>> ids_of_codes(pd.Index([10, 20]), np.array([1, -1])).tolist()
    [20, nan]
    """
    known = codes >= 0
    if known.all():
        return ids.take(codes)
    found = np.full(codes.size, np.nan, dtype=object)
    found[known] = ids.take(codes[known])
    return pd.Index(found, dtype=object)


def _check_candidates(candidates: str) -> None:
    if candidates == "likely":
        raise ArgumentError(
            'candidates="likely": only a Recommender knows what users are likely to pick'
        )
    if candidates != "all":
        raise ArgumentError(f'candidates must be "all" or item ids, got {candidates!r}')


DAMPING = 10.0  # raters added to every item, so that two of three shared ones do not count much


def similarity_by_raters(known: Ratings, code: int) -> np.ndarray:
    """Return how similar all items are to one: the cosine of their columns of ratings.

    An unrated item counts as a rating of 0, the lowest rating as 1, the next as 2, and so on.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> similarity_by_raters(ratings, 3).shape
    (40,)
    """
    items = known.matrix("rank")
    own = items[[code]].toarray()[0]
    damping = DAMPING * known.scale.n_ranks**2 / 4
    sizes = np.sqrt(np.asarray(items.multiply(items).sum(axis=1)).ravel() + damping)
    return (items @ own) / (sizes * sizes[code])
