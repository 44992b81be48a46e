"""Ordinal matrix factorisation with personal steps.

With u a user, i an item, y the zero-based rank of a rating, K the number of ranks and k a step:

(1) ``P(y > k | y >= k) = sigma(eta_uik)``, ``eta_uik = p_u . q_i + s_uk + t_ik``: a rating goes up
    the scale step by step until it stops. ``ln P(y) = sum_{k<y} ln sigma(eta_k) + [y < K - 1] ln
    sigma(-eta_y)`` is a proper likelihood for any values of the steps, which need no order.
(2) ``(p_u, s_u) ~ N(B' a_u, S)`` and ``(q_i, t_i) ~ N(C' c_i, V)``: the prior means depend on who
    rated what and on side data (`row_priors`), and everything in them is learnt.

The posterior of every row is taken as a Gaussian with a full covariance. Each term ``ln
sigma(+-eta)`` with ``eta ~ N(m, v)`` is replaced by a quadratic of weight w and linear
coefficient h:

(3) ``kappa = 1 / sqrt(1 + pi v / 8)``, ``r = sigma(kappa m)``, gradient ``g = 1 - r`` (the step was
    taken) or ``-r`` (it was not), ``h = g + w m``;
(4) ``w = max(kappa r (1 - r), c tanh(xi / 2) / (2 xi))``, ``xi^2 = m^2 + v``: the expected
    curvature, but not below c times that of the bound of Jaakkola and Jordan. With c = 1 in the
    first sweeps and 0.5 later, it converges from any start; with c = 0 it diverged from cold ones.
(5) ``v = tr(E[pp'] E[qq']) - (E[p].E[q])^2 + Var[s_k] + Var[t_k]``: one product of packed triangles
    for each rating.
(6) ``A_u = S^-1 + sum_ik w E[x x']`` with ``x = (q_i, unit_k)``, covariance ``A_u^-1``, mean
    ``A_u^-1 (S^-1 B'a_u + sum_ik (h - w t_ik) x)``; likewise for items, with users in their place.
(7) Dated ratings: ``eta += g_u(time)``, a drift of each user's score on four time scales
    (`drift`), with (8) the sites ``weight sum_k w``, ``pull sum_k (h - w (eta - g))``.
(9) A prediction averages over the posterior: ``P(y > k | y >= k) = sigma(kappa m)``.

The model is fitted twice, up and down the scale, and the two distributions are pooled (their
geometric mean): neither end of the scale is special then, and two fits err less than one.

Sequential logit: Tutz, "Sequential item response models with an ordered response" (1990).
Thresholds of each user: Koren, Sill, "OrdRec" (2011). (4): Jaakkola, Jordan, "Bayesian parameter
estimation via variational methods" (2000). (3), (9): MacKay, "The evidence framework applied to
classification networks" (1992).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.features.side.encoder import SideEncoder, side_encoders
from ordrec.lists.explanation import Influence
from ordrec.lists.groups import ItemGroups, item_groups, with_new_groups
from ordrec.lists.listing import RatingListingModel
from ordrec.lists.titles import item_titles, with_new_titles
from ordrec.models.base import IDENTITY, codes_of, fits, folds_in, replacing_ratings, times_of
from ordrec.models.further_ratings import with_further_ratings
from ordrec.ordinal.decisions import decide
from ordrec.rating.factors.direction import Direction
from ordrec.rating.factors.fit import (
    DIRECTIONS,
    Margins,
    fit_in_memory,
    sample_of_ratings,
)
from ordrec.rating.factors.fold_in import Newcomers
from ordrec.rating.factors.history import RatingHistory
from ordrec.rating.factors.met import MetPairs, learnt_kinds
from ordrec.rating.factors.pattern import RatingPattern
from ordrec.rating.factors.rows import GroupedRatings, usual_sizes
from ordrec.rating.factors.visits import UserBlock
from ordrec.rating.intervals import DistributionModel
from ordrec.runtime.parallel import loop_threads, one_blas_thread, worker_count
from ordrec.runtime.progress import progress
from ordrec.storage.schema import Array, ByName, Member, Numbers, Optional, Part, Parts, Texts

__all__ = ["OrdinalFactors"]

TRIAL_FACTORS = 8  # of the small fits that decide which events are in the pattern
ROUNDING = 1e-9  # below which a coordinate of the pattern is 0


@dataclass(eq=False)
class OrdinalFactors(RatingListingModel, DistributionModel):
    """Ordinal matrix factorisation: a sequential logit with factors and personal steps.

    For data of any size: memory and time grow with the number of ratings. Fits in a few
    sweeps over users and items; the result is the same for any number of threads. Side tables
    and times of the ratings are used if there are any; users and items without ratings are
    predicted from their side data.

    Parameters
    ----------
    n_factors : int, optional
        Number of factors. More factors cost time but not accuracy: useless ones shrink to 0. By
        default 32, or 64 for 200 thousand to 5 million ratings, at least ten for each user and
        item, where they help and are affordable.
    pattern : int, optional
        Number of coordinates of the pattern of who rated what that the priors of users and
        items depend on. By default 32, or 128 where the number of factors is the larger one.
    max_iter : int
        Largest number of sweeps over users and items; fewer are done when they change little.
    symmetric : bool
        Whether a second fit, down the scale, is pooled with the first: more accurate, at twice the
        time, and reversing the scale then reverses the predictions.
    use_time : {"auto", True, False}
        Whether dated ratings are fitted with a drift of each user; "auto" means if the ratings
        have times. Predictions for a given time become more accurate; those without a time are
        those of a fit without times, which is kept as well.
    use_side : {"auto", True, False}
        Whether the columns of the ratings' side tables are used.
    side_kinds : mapping of str to str, optional
        Kinds of side columns, see `ordrec.features.SideEncoder`.
    decision : {"mean", "median", "mode"}
        How `predict` turns a distribution into one rating: by default the expected rating, a float
        with the least squared error; the median has the least absolute error, the mode the fewest
        errors.
    n_jobs : int, optional
        Threads; -1 means all cores.
    random_state : int
        Seed of the starting factors.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    item_factors_ : ndarray of shape (n_items, n_factors)
    user_factors_ : ndarray of shape (n_users, n_factors)
        Posterior means, of the fit up the scale.
    loss_ : ndarray
        Mean negative log-likelihood of training ratings after each sweep.
    side_columns_ : dict
        For "user" and "item": what each side column is used as, or why it is ignored.
    titles_ : list of str or None
        Titles of the items, if the ratings' item table has them.
    event_kinds_ : tuple of str
        The kinds of events that were found in training to help.
    held_out_ : HeldOut or None
        Ratings that `fit_scan` left out.

    Notes
    -----
    An unknown user has the factors and steps of an average user, with the variance of a user
    of whom nothing is known; an unknown item likewise. A user or item with n ratings counts 1 / n
    in this average, because those with few ratings are rated, and rate, differently.

    A fitted model keeps the covariance of a row's factors as variances along axes that all rows
    share, in half precision (`ordrec.rating.factors.rows`).

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> model = OrdinalFactors(n_factors=4, pattern=4).fit(ratings)
    >>> model.predict_proba([0, "stranger"], [3, 3]).shape
    (2, 5)
    """

    stored: ClassVar = IDENTITY | {
        "_pattern": Part(RatingPattern),
        "_history": Part(RatingHistory),
        "_met": Part(MetPairs),
        "_side": ByName(Member(SideEncoder), "user", "item"),
        "_user_side": Array("users", "user_side"),
        "_item_side": Array("items", "item_side"),
        "directions_": Parts(Direction, 1, 2),
        "dated_": Parts(Direction, 0, 1, 2),
        "loss_": Numbers(),
        "titles_": Optional(Texts("items")),
        "item_groups_": Parts(ItemGroups),
        "held_out_": Optional(Part(HeldOut)),
    }

    n_factors: int | None = None
    pattern: int | None = None
    max_iter: int = 30
    symmetric: bool = True
    use_time: bool | Literal["auto"] = "auto"
    use_side: bool | Literal["auto"] = "auto"
    side_kinds: Mapping[str, str] | None = None
    decision: Literal["median", "mode", "mean"] = "mean"
    n_jobs: int | None = None
    random_state: int = 0
    verbose: bool | None = field(default=None, repr=False)
    search_space: ClassVar[dict[str, Any]] = {
        "n_factors": [4, 8, 12, 16, 24, 32],
        "pattern": [0, 8, 16, 32, 64],
        "symmetric": [True, False],
    }
    _counts_weights = True
    _notices_events = True

    @fits
    def fit(self, ratings: Ratings) -> OrdinalFactors:
        """Learn factors, steps and priors; ratings count by their weights, if they have any."""
        self._check_parameters()
        kinds: tuple[str, ...] = ()
        if ratings.events is not None:
            with progress("events"):
                kinds = learnt_kinds(ratings, self._errors, self.random_state)
        return self.fit_with_kinds(ratings, kinds)

    def _errors(self, inner: Ratings, kinds: tuple[str, ...], outer: Ratings) -> np.ndarray:
        """Squared errors of a small fit, in which these kinds of events are in the pattern."""
        n_factors = TRIAL_FACTORS if self.n_factors is None else min(self.n_factors, TRIAL_FACTORS)
        trial = replace(self, n_factors=n_factors, symmetric=False, use_time=False)
        fitted = trial.fit_with_kinds(inner, kinds)
        pairs = outer.user_ids.take(outer.users), outer.item_ids.take(outer.items)
        expected = fitted.predict_proba(*pairs) @ outer.scale.values
        return (expected - outer.values) ** 2

    def fit_with_kinds(self, ratings: Ratings, kinds: tuple[str, ...]) -> OrdinalFactors:
        """Learn from ratings, with these kinds of events in the pattern; return the model."""
        times = self._times(ratings)
        self._remember(ratings)
        self._side = self._encoders(ratings)
        n_factors, pattern = usual_sizes(
            ratings.n_ratings, ratings.n_users + ratings.n_items, self.n_factors, self.pattern
        )
        self._met = MetPairs.of(ratings.events, kinds, ratings.n_items)
        self._pattern = RatingPattern.of(ratings, pattern, self._met)
        self._history = RatingHistory.of(ratings, times)
        block, margins = self._block(ratings, times)
        directions = DIRECTIONS[: 1 + self.symmetric]
        with loop_threads(worker_count(self.n_jobs)) as threads:
            fitted, dated, losses = fit_in_memory(
                block, margins, directions, n_factors, self.random_state, self.max_iter, threads
            )
        self.directions_, self.dated_ = tuple(fitted), tuple(dated)
        self.loss_ = np.array(losses)
        self.titles_ = item_titles(ratings.item_table)
        self.item_groups_ = item_groups(ratings.item_table)
        self.held_out_: HeldOut | None = None
        return self

    def _times(self, ratings: Ratings) -> np.ndarray | None:
        """Return the times to fit a drift to, or None."""
        times = ratings.timestamps if self.use_time else None
        if times is not None and (times > 0).any():
            return times
        if self.use_time is True:
            raise ArgumentError(
                'use_time=True, but the ratings have no times: use "auto"', parameter="use_time"
            )
        return None

    def _block(self, ratings: Ratings, times: np.ndarray | None) -> tuple[UserBlock, Margins]:
        """Return all users as one block, with the features of the priors, and the margins."""
        rated = ratings.levels, ratings.weights
        by_user = GroupedRatings.of_groups(ratings.by_user(), ratings.items, *rated)
        by_item = GroupedRatings.of_groups(ratings.by_item(), ratings.users, *rated)
        self._user_side = self._side_rows("user", ratings.user_table, ratings.user_ids)
        self._item_side = self._side_rows("item", ratings.item_table, ratings.item_ids)
        pairs = self._met.joined(ratings.users, ratings.items)
        of_users = self._pattern.user_features(*pairs, ratings.n_users)
        of_items = self._pattern.item_features(*pairs[::-1], ratings.n_items)
        if times is not None:
            times = times[by_user.order]
        features, n_side = np.hstack([of_users, self._user_side]), self._user_side.shape[1]
        sample = sample_of_ratings(ratings.n_ratings)
        block = UserBlock(by_user, by_item, features, n_side, sample, times)
        item_features = np.hstack([of_items, self._item_side])
        n_item_side, n_ranks = self._item_side.shape[1], ratings.scale.n_ranks
        return block, Margins.of_block(block, item_features, n_item_side, n_ranks)

    def _encoders(self, ratings: Ratings) -> dict[str, SideEncoder]:
        if not self.use_side:
            return {}
        return side_encoders(ratings.user_table, ratings.item_table, self.side_kinds)

    def _side_rows(self, side: str, table: pd.DataFrame | None, ids: pd.Index) -> np.ndarray:
        """Return the features of ids from their side table; zeros where there is none."""
        if side not in self._side:
            return np.zeros((len(ids), 0))
        encoder = self._side[side]
        return encoder.matrix(pd.DataFrame(index=ids) if table is None else table.reindex(ids))

    def _check_parameters(self) -> None:
        for name, least in (("n_factors", 1), ("pattern", 0), ("max_iter", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ArgumentError(f"{name} must be at least {least}, got {value}")
        for name in ("use_time", "use_side"):
            if getattr(self, name) not in ("auto", True, False):
                raise ArgumentError(
                    f'{name} must be "auto", True or False, got {getattr(self, name)!r}'
                )
        if self.decision not in ("median", "mode", "mean"):
            raise ArgumentError(
                f'decision must be "median", "mode" or "mean", got {self.decision!r}'
            )

    # ---- predictions -----------------------------------------------------------------------

    def predict(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return one rating per pair: the expected one, or what ``decision`` says."""
        p = self.predict_proba(users, items, timestamps)
        return decide(p, self.decision, self.scale_.values)

    def predict_proba(self, users: Any, items: Any, timestamps: Any = None) -> np.ndarray:
        """Return distributions, one row per pair and one column per scale value, ascending.

        ``timestamps`` are in seconds since 1970, 0 where unknown.
        """
        user_codes, item_codes = self._codes(users, items)
        times = times_of(timestamps, user_codes.size)
        order = np.argsort(user_codes, kind="stable")  # pairs of one user stand together
        user_codes, item_codes = user_codes[order], item_codes[order]
        p = self._pooled(self.directions_, user_codes, item_codes, None)
        times = times[order]
        rows = np.flatnonzero(times > 0)
        if self.dated_ and rows.size:
            p[rows] = self._pooled(self.dated_, user_codes[rows], item_codes[rows], times[rows])
        result = np.empty_like(p)
        result[order] = p
        return result

    @staticmethod
    def _pooled(
        directions: tuple[Direction, ...],
        users: np.ndarray,
        items: np.ndarray,
        times: np.ndarray | None,
    ) -> np.ndarray:
        """Return the distribution of one direction, or the geometric mean of both."""
        p = directions[0].probabilities(users, items, times)
        for downward in directions[1:]:
            p = np.sqrt(p * downward.probabilities(users, items, times)[:, ::-1])
            p /= p.sum(axis=1, keepdims=True)
        return p

    @property
    def user_factors_(self) -> np.ndarray:
        """Posterior means of the users' factors."""
        return self.directions_[0].users.factors[:-1]

    @property
    def item_factors_(self) -> np.ndarray:
        """Posterior means of the items' factors."""
        return self.directions_[0].items.factors[:-1]

    def known_ratings(self) -> Ratings:
        """Return the ratings of training and those that were folded in, without side tables."""
        self._check_fitted()
        return self._history.as_ratings(self.scale_, self.user_ids_, self.item_ids_)

    def history_of(self, user: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return item codes and levels of a user's ratings; none for an unknown user."""
        self._check_fitted()
        return self._history.of_user(int(codes_of(self.user_ids_, [user])[0]))

    def _listable_items(self) -> np.ndarray:
        # fitted from disk, or without users, a model knows its training ratings by their pattern
        return super()._listable_items() | (np.abs(self._pattern.of_items) > ROUNDING).any(axis=1)

    def _influence(self) -> Influence:
        def influence(user: Any, item: Any, others: Any) -> np.ndarray:
            user_codes, item_codes = self._codes([user] * (len(others) + 1), [item, *others])
            return self.directions_[0].influence(user_codes[0], item_codes[0], item_codes[1:])

        return influence

    def _similarity(self, known: Ratings, code: int) -> np.ndarray:
        return self.directions_[0].correlations(code)

    @property
    def event_kinds_(self) -> tuple[str, ...]:
        """The kinds of events that are in the pattern, since they predict ratings."""
        return self._met.kinds

    @property
    def side_columns_(self) -> dict[str, dict[str, str]]:
        """What each side column is used as, or why it is ignored."""
        return {side: encoder.columns_ for side, encoder in self._side.items()}

    # ---- new users and items -------------------------------------------------------------------

    @folds_in
    def fold_in(self, ratings: Ratings) -> OrdinalFactors:
        """Return a model that also knows the users and items of these ratings.

        The rows of the users who rated and of new items are fitted, (6), and all others are kept.
        Ids without ratings are predicted from their rows of the ratings' side tables. The ratings
        of a known user are replaced by these; `update` adds to them. Weights count as in `fit`.

        Examples
        --------
        >>> from ordrec.datasets import synthetic_ratings
        >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
        >>> model = OrdinalFactors(n_factors=4, pattern=4).fit(ratings)
        >>> frame = pd.DataFrame({"user": ["you", "you"], "item": [3, "new"], "rating": [5, 1]})
        >>> model = model.fold_in(Ratings.from_frame(frame, scale=ratings.scale))
        >>> bool(model.predict_proba(["you"], [3]) @ ratings.scale.values > 3)
        True
        """
        self._check_fitted()
        ratings = ratings.on_scale(self.scale_)
        new_users = ratings.user_ids[codes_of(self.user_ids_, ratings.user_ids) < 0]
        new_items = ratings.item_ids[codes_of(self.item_ids_, ratings.item_ids) < 0]
        model = copy.copy(self)
        model.user_ids_ = self.user_ids_.append(new_users) if len(new_users) else self.user_ids_
        model.item_ids_ = self.item_ids_.append(new_items) if len(new_items) else self.item_ids_
        model.titles_ = with_new_titles(self.titles_, self.item_ids_, ratings.item_table, new_items)
        model.item_groups_ = with_new_groups(self.item_groups_, ratings.item_table, new_items)
        model._pattern = self._pattern.extended(len(new_users), len(new_items))
        for name, table, ids in (
            ("user", ratings.user_table, new_users),
            ("item", ratings.item_table, new_items),
        ):
            known = getattr(self, f"_{name}_side")
            nothing = np.zeros((len(ids), known.shape[1]))
            more = nothing if table is None else self._side_rows(name, table, ids)
            setattr(model, f"_{name}_side", np.vstack([known, more]))
        users = codes_of(model.user_ids_, ratings.user_ids)[ratings.users]
        items = codes_of(model.item_ids_, ratings.item_ids)[ratings.items]
        times = None
        if self.dated_:
            unknown = np.zeros(ratings.n_ratings, np.int64)
            times = unknown if ratings.timestamps is None else ratings.timestamps
        model._history = self._history.replaced(
            users, items, ratings.levels, times, ratings.weights, len(model.user_ids_)
        )
        model._met = self._met.folded_in(ratings, model.user_ids_, model.item_ids_)
        newcomers = Newcomers.of(
            users, items, ratings.levels, times, ratings.weights, model._pattern,
            model._user_side, model._item_side,
            (len(self.user_ids_), len(self.item_ids_)), self.scale_.n_ranks - 1, model._met,
        )  # fmt: skip
        with one_blas_thread():
            for name in ("directions_", "dated_"):
                sides = newcomers, newcomers.reversed()
                old = getattr(self, name)
                joined = tuple(own.join(each) for own, each in zip(sides, old, strict=False))
                setattr(model, name, joined)
        return model

    def update(self, user: Any, item: Any, rating: Any, timestamp: Any = None) -> OrdinalFactors:
        """Return a model with further ratings (or new ones for items already rated).

        Parameters
        ----------
        user, item : id, or sequence of ids
            New users and items are added.
        rating : float or sequence of floats
        timestamp : int or sequence of int, optional
            In seconds since 1970.
        """
        self._check_fitted()
        ids = {"user_ids": self.user_ids_, "item_ids": self.item_ids_}
        known_of = partial(self._history.frame_of, **ids, scale=self.scale_)
        more = with_further_ratings(known_of, user, item, rating, timestamp, self.scale_)
        with replacing_ratings():
            return self.fold_in(more)

    def without_users(self) -> OrdinalFactors:
        """Return a model without its training users, small and quick, to fold others in."""
        self._check_fitted()
        model = copy.copy(self)
        model.user_ids_ = self.user_ids_[:0]
        model._user_side, model._history = self._user_side[:0], RatingHistory.empty(0)
        model._pattern = replace(self._pattern, of_users=self._pattern.of_users[:0])
        model._met = MetPairs.of(None, self._met.kinds, len(self.item_ids_))
        for name in ("directions_", "dated_"):
            bare = tuple(direction.without_users() for direction in getattr(self, name))
            setattr(model, name, bare)
        return model

    # ---- files ---------------------------------------------------------------------------------

    def check_stored(self) -> None:
        """Check that the parts fit together."""
        self._check_parameters()
        self.loss_ = np.array(self.loss_)
        if any(direction.drift is None for direction in self.dated_):
            raise ModelFileError("a fit to dated ratings has no drift of its users")
        if self.dated_ and self._history.items.size and not self._history.times.size:
            raise ModelFileError("the history of dated ratings has no times")
