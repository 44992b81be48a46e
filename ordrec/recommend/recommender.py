"""Lists of what a user is likely to pick, ordered by what they will think of it.

With ``s_ui`` the logarithmic score of the choice model and ``g(r) = 2^r - 1`` the gain of a rating
of rank r, the items with the best ``s_ui`` are ordered by

(1) ``s_ui + w log E[g(r_ui)]``

``s`` orders like the logarithm of the chance that the item is picked, so that with ``w = 1`` and
calibrated probabilities (1) is the logarithm of the expected gain of listing the item. Measured
on held-out parts of five data sets, a quarter of the second term is best nearly everywhere: the
choice model has learnt from ratings too, and knows part of it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd

from ordrec.choice.base import ChoiceModel
from ordrec.choice.calibration import PickCalibration, calibrated_picks
from ordrec.choice.choosing import Chosen
from ordrec.choice.inner_splits import entry_times
from ordrec.choice.mixture import check_future
from ordrec.choice.ordered import OrderedChoice
from ordrec.data import Ratings
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.lists.best import ORDERS, RatingOrder, best_columns, pair_scores
from ordrec.lists.explanation import Explanation, explain_rating
from ordrec.lists.filters import ItemFilter, check_list_length, taken
from ordrec.lists.listing import RatingListingModel, ids_of_codes
from ordrec.lists.titles import item_titles, with_new_titles
from ordrec.models.base import codes_of, fits, folds_in, replacing_ratings
from ordrec.rating.intervals import DistributionModel
from ordrec.recommend.registry import make_model
from ordrec.recommend.taste import Taste, taste_of, times_for
from ordrec.runtime.parallel import one_blas_thread
from ordrec.runtime.progress import progress, report
from ordrec.storage.schema import Model, Optional, Part, Texts

__all__ = ["Recommender"]

TASTE = 0.25  # w of (1)
CHOICE_SHARE = 0.3  # about which part of the time the choice model takes


@dataclass(eq=False)
class Recommender(RatingListingModel, DistributionModel):
    """Recommends items by what users pick and how they will rate it.

    A choice model says which items a user is likely to pick, a rating model how they would rate
    them; both are fitted to the same ratings.

    Parameters
    ----------
    choice : ChoiceModel or "auto"
        Unfitted; "auto" is an `OrderedChoice`, which chooses in training how to score items, and
        whether the order of a user's ratings counts.
    rating : rating model, "auto" or None
        Unfitted. "auto" is a `RatingPredictor`, whose preset depends on the number of ratings, or
        None for a table without ratings; with None, lists are those of the choice model.
    taste : float or "auto"
        How much the expected gain of a rating counts: ``w`` of (1). 0 orders by the choice model
        alone; "auto" is 0.25.
    like : float, optional
        The lowest rating that counts as liked; by default `Scale.liked_from`, such as 4 of 5
        stars.
    n_candidates : int
        How many items, the likeliest to be picked, are ordered by (1).
    future : {"auto", "next", "latest", "random"}
        What the lists are for, if the choice model is "auto": the next pick of each user, the
        latest part of their ratings, or any part of them. "auto" is the latest part where the
        ratings have times. For an experiment whose test part is drawn at random, choose "random":
        the order of the ratings that are left says nothing about it. `ordrec.evaluation` does so.
    n_jobs : int, optional
        Threads of the models that are made by "auto"; all cores by default.
    random_state : int
        Of the models that are made by "auto".
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    choice_, rating_ : fitted models
    chosen_ : Chosen or None
        What the choice model has chosen, and how good the other candidates were.
    titles_ : list of str or None
        What the items are called, where the ratings' item table has titles.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = Recommender(rating="factors").fit(ratings)
    >>> list(model.recommend(0, n=3).columns)
    ['item', 'score', 'p_pick', 'expected', 'p_like']
    """

    stored: ClassVar = {
        "choice_": Model(),
        "rating_": Optional(Model()),
        "calibration_": Part(PickCalibration),
        "titles_": Optional(Texts("titles")),
    }
    _unstored_parameters = ("choice", "rating", "verbose")

    choice: Any = "auto"
    rating: Any = "auto"
    taste: float | str = "auto"
    like: float | None = None
    n_candidates: int = 200
    future: Literal["auto", "next", "latest", "random"] = "auto"
    n_jobs: int | None = None
    random_state: int = 0
    verbose: bool | None = field(default=None, repr=False)
    search_space: ClassVar[dict[str, Any]] = {
        "taste": (0.02, 1, "log"),
        "n_candidates": [50, 100, 200, 400],
    }
    takes_long = True
    ordered_by = "recommended"
    _counts_weights = True  # its rating model may
    _notices_events = True
    _learns_from_picks = True  # without a rating model

    # ---- learning -------------------------------------------------------------------------

    @fits
    @one_blas_thread()
    def fit(self, ratings: Ratings) -> Self:
        """Fit both models; return the recommender."""
        self._check_parameters()
        self._remember(ratings)
        self.titles_ = item_titles(ratings.item_table)
        self.like_ = ratings.scale.liked_from if self.like is None else float(self.like)
        report(0.0, 1.0, span=CHOICE_SHARE)
        self.choice_ = self._new_choice_model().fit(ratings)
        report(CHOICE_SHARE, 1.0, span=0.0)
        history = self.choice_._history
        times = None if hasattr(self.choice_, "calibration_") else entry_times(ratings, history)
        with progress("calibration"):
            self.calibration_ = calibrated_picks(self.choice_, history, times, self.random_state)
        rating = self._new_rating_model() if ratings.has_ratings or self.rating != "auto" else None
        report(CHOICE_SHARE, 1.0, span=1.0 - CHOICE_SHARE)
        self.rating_: Any = None if rating is None else rating.fit(ratings)
        return self

    @classmethod
    def of_fitted(
        cls, choice: ChoiceModel, rating: Any, calibration: PickCalibration, **parameters: Any
    ) -> Recommender:
        """Make a recommender of two models that were fitted to the same ratings."""
        model = cls(choice, rating, **parameters)
        model.choice_, model.rating_, model.calibration_ = choice, rating, calibration
        model.scale_, model.user_ids_, model.item_ids_ = (
            choice.scale_,
            choice.user_ids_,
            choice.item_ids_,
        )
        model.like_ = choice.scale_.liked_from if model.like is None else float(model.like)
        model.titles_ = getattr(rating, "titles_", None)
        return model

    def _check_parameters(self) -> None:
        if not (self.taste == "auto" or isinstance(self.taste, (int, float))) or (
            self.taste != "auto" and not float(self.taste) >= 0
        ):
            raise ArgumentError(f'taste must be "auto" or a number from 0 up, got {self.taste!r}')
        check_list_length(self.n_candidates)
        check_future(self.future)
        for name in ("choice", "rating"):
            if isinstance(getattr(self, name), type):
                raise ArgumentError(f"{name} must be a model, not a class: write it with ()")

    def _new_choice_model(self) -> ChoiceModel:
        """An unfitted choice model: a copy of the one given, one by name, or by the future."""
        choice = self.choice
        if isinstance(choice, str):
            if choice == "auto":
                return OrderedChoice(
                    self.future, n_jobs=self.n_jobs, random_state=self.random_state
                )
            choice = make_model(choice)
        if not isinstance(choice, ChoiceModel):
            raise ArgumentError(
                f'choice must be "auto" or a choice model such as EASE(), got {choice!r}'
            )
        return copy.deepcopy(choice)

    def _new_rating_model(self) -> Any:
        """An unfitted rating model, or None: as given, by name, or a rating predictor."""
        rating = self.rating
        if rating is None:
            return None
        if isinstance(rating, str):
            if rating != "auto":
                return make_model(rating)
            return make_model("predictor", n_jobs=self.n_jobs, random_state=self.random_state)
        if not hasattr(rating, "predict"):
            raise ArgumentError(
                f'rating must be "auto", None or a rating model, got {type(rating).__name__}, '
                "which does not predict"
            )
        return copy.deepcopy(rating)

    # ---- ratings --------------------------------------------------------------------------

    def predict(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return one rating per pair, by the rating model."""
        predict = self.rating_model().predict
        return predict(users, items, **times_for(predict, timestamps))

    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return one row per pair, one column per scale value, by the rating model."""
        model = self.rating_model()
        if not hasattr(model, "predict_proba"):
            raise ArgumentError(f"{type(model).__name__} predicts no distributions")
        return model.predict_proba(users, items, **times_for(model.predict_proba, timestamps))

    def rating_model(self) -> Any:
        """Return the fitted rating model."""
        self._check_fitted()
        if self.rating_ is None:
            remedy = 'fit one with rating="factors"'
            if self.scale_.only_picks:
                remedy = "it was fitted to a table without ratings"
            raise ArgumentError(
                f"this recommender has no rating model: {remedy}", parameter="Recommender.rating"
            )
        return self.rating_

    @property
    def chosen_(self) -> Chosen | None:
        """What the choice model has chosen in training, if it chooses."""
        return getattr(self.choice_, "chosen_", None)

    def _lists_by_rating(self) -> bool:
        """Whether the rating model itself lists, explains and compares items, new ones too."""
        return isinstance(self.rating_, RatingListingModel)

    def known_ratings(self) -> Ratings:
        """The ratings of training, and those that were folded in, without side tables."""
        self._check_fitted()
        return (self.rating_ if self._lists_by_rating() else self.choice_).known_ratings()

    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the item codes and the levels of a user's ratings; none for an unknown user."""
        self._check_fitted()
        return (self.rating_ if self._lists_by_rating() else self.choice_).history_of(user)

    # ---- scores ---------------------------------------------------------------------------

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Return one score per pair; the higher, the earlier the item comes for the user."""
        user_codes, item_codes = self._codes(users, items)
        result = pair_scores(self._score_block, user_codes, item_codes, self.block_size())
        result[item_codes < 0] = min(result.min(initial=0.0), 0.0) - 1.0
        return result

    def scores_block(self, users: Any) -> np.ndarray:
        """Return the scores of all items for these users, one row per user.

        Items beyond the candidates come after them, in the order of the choice model.
        """
        self._check_fitted()
        return self._score_block(codes_of(self.user_ids_, users))

    def _score_block(self, codes: np.ndarray) -> np.ndarray:
        scores = self.choice_.score_users(codes)
        hidden = scores.copy()
        ItemFilter(self.choice_._listable_items()).hide(hidden, self.choice_.history_rows(codes))
        best = best_columns(hidden, self.n_candidates)
        score, _ = self._with_taste(codes, best, hidden)
        rows, places = np.nonzero(best >= 0)
        others = np.ones(scores.shape, dtype=bool)
        others[rows, best[rows, places]] = False
        # each user's other items, moved as a whole to 1 below the last candidate
        last = score.min(axis=1, initial=np.inf, where=best >= 0)
        first = scores.max(axis=1, initial=-np.inf, where=others)
        scores -= np.where(np.isfinite(last) & np.isfinite(first), first - last + 1.0, 0.0)[:, None]
        scores[rows, best[rows, places]] = score[rows, places]
        return scores

    def _with_taste(
        self,
        codes: np.ndarray,
        best: np.ndarray,
        choice_scores: np.ndarray,
        timestamp: int | None = None,
    ) -> tuple[np.ndarray, Taste | None]:
        """Scores (1) of listed items, and what the rating model says of them."""
        listed = np.take_along_axis(choice_scores, np.maximum(best, 0), axis=1)
        if self.rating_ is None:
            return np.where(best >= 0, listed, -np.inf), None
        rows, places = np.nonzero(best >= 0)
        users = ids_of_codes(self.user_ids_, codes[rows])
        items = self.item_ids_.take(best[rows, places])
        found = taste_of(self.rating_, users, items, self.scale_, self.like_, timestamp)

        def spread(values: np.ndarray | None) -> Any:
            if values is None:
                return None
            table = np.full(best.shape, np.nan)
            table[rows, places] = values
            return table

        taste = Taste(spread(found.log_gain), spread(found.expected), spread(found.p_like))
        weight = TASTE if self.taste == "auto" else float(self.taste)
        return np.where(best >= 0, listed + weight * taste.log_gain, -np.inf), taste

    # ---- lists ----------------------------------------------------------------------------

    def recommend(  # type: ignore[override]
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
        at_most: Mapping[str, int] | None = None,
        explore: float = 0.0,
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
            Order by what the user is likely to pick and what they will think of it, (1); or, as
            the rating model does, by the expected rating alone, by the probability of
            ``at_least`` or more, or by the rating reached with probability ``1 - quantile``.
        at_least : float, optional
            A rating; by default the lowest that counts as liked, see `Scale.liked_from`.
        quantile : float
        candidates : {"all", "likely"} or array-like of item ids
            Items to choose from: all that have a rating, those that the user is likeliest to
            pick (for orders by rating), or the given ones.
        n_candidates : int
            Number of candidates for "likely".
        exclude, only : sequence of item ids, or data frame, optional
            Items that must not be listed; the only ones that may. A frame with columns of users
            and items names pairs: with ``only``, a user without a pair has no list.
        include_rated : bool
            Whether items that the user has rated may be listed.
        at_most : mapping of str to int, optional
            Columns of the item table of training, and how many items of a list may have the same
            category or label: ``{"genre": 3}``.
        explore : float
            For "recommended": the share of the list, rounded up, that is for new items, as far as
            there are any: items of the item table of training that have no ratings. They are also
            listed where their score is high enough.
        timestamp : int, optional
            Time at which the ratings would be given, in seconds since 1970.

        Returns
        -------
        DataFrame
            ``item``, ``title`` if known, ``score`` (by which the list is ordered) and
            ``expected``, the expected rating, best first; for "recommended" also ``p_pick``, the
            probability that the item is among the user's next picks, and ``p_like``, the
            probability that the user likes it. Its ``attrs["ordered_by"]`` is ``by``.
        """
        self._check_fitted()
        check_list_length(n)
        check_list_length(n_candidates, "n_candidates")
        if isinstance(candidates, str) and candidates not in ("all", "likely"):
            raise ArgumentError(
                f'candidates must be "all", "likely" or item ids, got {candidates!r}'
            )
        if by == "recommended":
            listable = self.item_filter(exclude, only, include_rated, at_most, explore)
            if not isinstance(candidates, str):
                among = self.item_filter(only=candidates).allowed
                listable = replace(listable, allowed=listable.allowed & among)
            return self._list_of(user, n, listable, timestamp=timestamp)
        if explore:
            raise ArgumentError(
                f'explore={explore:g} is for by="recommended", got by={by!r}', parameter="explore"
            )
        if by not in ORDERS:
            raise ArgumentError(
                f"by must be one of recommended, {', '.join(ORDERS)}, got {by!r}", parameter="by"
            )
        filters: dict[str, Any] = {"exclude": exclude, "only": only, "include_rated": include_rated}
        filters["at_most"] = at_most
        if isinstance(candidates, str) and candidates == "likely":
            candidates = self.choice_.recommend(user, n_candidates, **filters)["item"]
        recommend = self.rating_.recommend if self._lists_by_rating() else super().recommend
        return recommend(
            user, n, by=by, at_least=at_least, quantile=quantile, candidates=candidates,
            timestamp=timestamp, **filters,
        )  # fmt: skip

    def block_size(self) -> int:
        """Return for how many users lists are made at the same time."""
        return self.choice_.block_size()

    def item_filter(
        self,
        exclude: Any = None,
        only: Any = None,
        include_rated: bool = False,
        at_most: Mapping[str, int] | None = None,
        explore: float = 0.0,
    ) -> ItemFilter:
        """Return which items may be listed; see `recommend`."""
        return self.choice_.item_filter(exclude, only, include_rated, at_most, explore)

    def _new_items(self) -> np.ndarray:
        return self.choice_._new_items()

    def lists(
        self,
        codes: np.ndarray,
        n: int,
        listable: ItemFilter,
        *,
        timestamp: int | None = None,
        order: RatingOrder | None = None,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return lists by (1), or by an order of ratings; see `ListingModel.lists`."""
        if order is not None:
            return super().lists(codes, n, listable, timestamp=timestamp, order=order)
        scores = self.choice_.score_users(codes)
        history = self.choice_.history_rows(codes)
        listable.hide(scores, history, codes)
        candidates, together = listable.candidates(scores, n, self.n_candidates)
        final, taste = self._with_taste(codes, candidates, scores, timestamp)
        places = np.argsort(-final, axis=1, kind="stable")
        if listable.is_plain:
            places = places[:, :n]
        else:
            chosen = listable.chosen(taken(candidates, places), n)
            ordered = np.argsort(~np.take_along_axis(together, places, axis=1), kind="stable")
            n_listed = together.sum(axis=1, keepdims=True)
            others = np.where(np.arange(chosen.shape[1]) < n_listed, ordered[:, :n], -1)
            fewer = (chosen >= 0).sum(axis=1, keepdims=True) < n_listed
            places = taken(places, np.where(fewer, others, chosen))
        best = taken(candidates, places)
        picked = np.take_along_axis(scores, np.maximum(best, 0), axis=1)
        columns = {
            "score": taken(final, places),
            "p_pick": self.calibration_.p_pick(picked, np.diff(history.indptr)),
        }
        if taste is not None:
            columns["expected"] = taken(taste.expected, places)
            if taste.p_like is not None:
                columns["p_like"] = taken(taste.p_like, places)
        return best, columns

    def _similarity(self, known: Ratings, code: int) -> np.ndarray:
        if self._lists_by_rating():
            return self.rating_._similarity(known, code)
        return super()._similarity(known, code)

    # ---- explanations ---------------------------------------------------------------------

    def explain(self, user: Any, item: Any, timestamp: int | None = None) -> Explanation:
        """Explain why an item is recommended to a user: why it is picked, and why it is liked.

        ``timestamp`` is when the rating would be given, in seconds since 1970.
        """
        self._check_fitted()
        known_item = self._known([user], [item])[1]
        if not known_item[0]:
            raise ArgumentError(f"item {item!r} is not in the model: there is nothing to explain")
        pick = self.choice_.reasons(user, item)
        titles = self._titles_by_id() or {}
        if titles:
            pick.insert(1, "title", pick["item"].map(titles))
        p_like = None
        if self.rating_ is None:
            columns = ["source", "id", "rating", "contribution"]
            like = Explanation(None, pd.DataFrame(columns=columns))
        else:
            like = self._explained_rating(user, item, timestamp)
            taste = taste_of(self.rating_, [user], [item], self.scale_, self.like_, timestamp)
            p_like = None if taste.p_like is None else float(taste.p_like[0])
        return replace(
            like, user=user, item=item, title=titles.get(item, ""),
            p_pick=self._p_pick(user, item), p_like=p_like, pick=pick,
        )  # fmt: skip

    def _explained_rating(self, user: Any, item: Any, timestamp: int | None) -> Explanation:
        """What the expected rating is made of."""
        if self._lists_by_rating():
            return self.rating_.explain(user, item, timestamp)
        return explain_rating(
            lambda users, items: (
                taste_of(self.rating_, users, items, self.scale_, self.like_, timestamp).expected
            ),
            self.known_ratings(),
            self.history_of(user),
            self._titles_by_id(),
            user,
            item,
        )

    def _titles_by_id(self) -> dict[Any, str] | None:
        """What the items are called, those included that only the rating model knows."""
        theirs = self.rating_._titles_by_id() if self._lists_by_rating() else None
        return (theirs or {}) | (super()._titles_by_id() or {}) or None

    def _p_pick(self, user: Any, item: Any) -> float:
        """The chance that an item is picked; NaN for one that only the rating model knows."""
        users, items = codes_of(self.user_ids_, [user]), codes_of(self.item_ids_, [item])
        if items[0] < 0:
            return float("nan")
        counts = np.diff(self.choice_.history_rows(users).indptr)
        score = self.choice_.score_users(users)[:, items]
        return float(self.calibration_.p_pick(score, counts)[0, 0])

    def _known(self, users: Any, items: Any) -> tuple[np.ndarray, np.ndarray]:
        """Whether each user and each item is known to one of the models."""
        user_codes, item_codes = codes_of(self.user_ids_, users), codes_of(self.item_ids_, items)
        users_known, items_known = user_codes >= 0, item_codes >= 0
        if hasattr(self.rating_, "_known"):
            theirs = self.rating_._known(users, items)
            users_known, items_known = users_known | theirs[0], items_known | theirs[1]
        return users_known, items_known

    # ---- new users ------------------------------------------------------------------------

    @folds_in
    def fold_in(self, ratings: Ratings) -> Self:
        """Return a recommender that also knows the users of these ratings.

        The ratings of a known user are replaced by these. Nothing else changes. Ratings are read by
        value on the model's scale. New items in their item table can be listed if there were new
        items in training, too.
        """
        self._check_fitted()
        ratings = ratings.on_scale(self.scale_)
        model = copy.copy(self)
        model.choice_ = self.choice_.fold_in(ratings)
        model.user_ids_, model.item_ids_ = model.choice_.user_ids_, model.choice_.item_ids_
        new = model.item_ids_[len(self.item_ids_) :]
        if len(new):
            model.titles_ = with_new_titles(self.titles_, self.item_ids_, ratings.item_table, new)
        if self.rating_ is not None:
            model.rating_ = self._folding_rating_model().fold_in(ratings)
        return model

    def without_users(self) -> Self:
        """Return a recommender without its training users, to fold others in."""
        self._check_fitted()
        model = copy.copy(self)
        model.choice_ = self.choice_.without_users()
        model.user_ids_ = model.choice_.user_ids_
        if hasattr(self.rating_, "without_users"):
            model.rating_ = self.rating_.without_users()
        return model

    @property
    def held_out_(self) -> HeldOut | None:
        """Ratings that `fit_scan` left out."""
        return self.choice_.held_out_

    def _folding_rating_model(self) -> Any:
        if not hasattr(self.rating_, "fold_in"):
            raise ArgumentError(
                f"{type(self.rating_).__name__} cannot take in new users: fit the recommender "
                "with a rating model that can, such as RatingPredictor() or OrdinalFactors()"
            )
        return self.rating_

    def update(self, user: Any, item: Any, rating: Any = None, timestamp: Any = None) -> Self:
        """Return a recommender with further ratings (or new ones for items already rated).

        Parameters
        ----------
        user, item : id, or sequence of ids
            New users are added; new items are added to the rating model if it can take them in,
            but not to the choice model, so that they are listed by rating alone. `fold_in` of
            ratings with an item table adds them to both.
        rating : float or sequence of floats, optional
            None for a model of picks.
        timestamp : int or sequence of int, optional
            In seconds since 1970.
        """
        self._check_fitted()
        model = copy.copy(self)
        model.choice_ = self.choice_.update(user, item, rating, timestamp)
        model.user_ids_ = model.choice_.user_ids_
        if self.rating_ is not None:
            if hasattr(self.rating_, "update"):
                model.rating_ = self.rating_.update(user, item, rating, timestamp)
            else:
                with replacing_ratings():
                    model.rating_ = self._folding_rating_model().fold_in(
                        self.choice_.ratings_with(user, item, rating, timestamp)
                    )
        return model

    # ---- files ----------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check that the models fit together."""
        if not isinstance(self.choice_, ChoiceModel):
            raise ModelFileError("what should be its choice model is another one")
        if self.rating_ is not None:
            if not hasattr(self.rating_, "predict"):
                raise ModelFileError("its rating model does not predict ratings")
            if self.rating_.scale_ != self.choice_.scale_:
                raise ModelFileError("its two models have different scales")
            if not self.choice_.item_ids_.isin(self.rating_.item_ids_).all():  # it may know more
                raise ModelFileError("its two models know different items")
        self._check_parameters()
        self.choice, self.rating = self.choice_, self.rating_
        self.scale_, self.user_ids_ = self.choice_.scale_, self.choice_.user_ids_
        self.item_ids_ = self.choice_.item_ids_
        self.like_ = self.scale_.liked_from if self.like is None else float(self.like)
        if self.titles_ is not None and len(self.titles_) != len(self.item_ids_):
            raise ModelFileError("it has not one title per item")


def fast_recommender(n_jobs: int | None = None, random_state: int = 0) -> Recommender:
    """Return a `Recommender` with the fast preset of the rating predictor."""
    return Recommender(rating="predictor-fast", n_jobs=n_jobs, random_state=random_state)
