"""From scores of a list to the probability that an item is picked.

A user with ``n`` ratings goes on to pick ``horizon * n`` more items and then stops. The chance that
an item is among all of these picks is taken as

(1) ``pi = sigma(a + b score + c log(n))``

Picks come in any order: if a share ``g`` of all picks has been seen, and a share ``h`` is looked at
next, an item that was not seen so far is among the latter with probability

(2) ``h pi / (1 - g pi)``

The parameters are fitted on histories of which a part was set aside, by the likelihood of (2) with
the shares of that part, the places of a list weighted by ``1 / log2(place + 1)``; with
``g = 1 / (1 + horizon)`` and ``h = horizon / (1 + horizon)``, (2) is then the probability of being
picked next. What this step is wrong by is measured one level down, on parts of the parts that were
not set aside, and divided out. From these two levels it is also known by how much longer histories
add to the hits; another such step gives the hits that lists of the whole histories should have. The
two disagree, since the one does not know how much surer a model gets and the other not of what;
their geometric mean is taken.

Where picks do not come in any order, (2) does not hold. Lists by what was picked last are made from
histories whose last entry, or latest part, was set aside, and (1) itself is fitted as the
probability that an item is in it; the horizon is then given as 0. The ends of histories are not
like what comes before them: the last picks are harder to guess than earlier ones on some data, and
easier on other. For some users, the entries before those set aside are therefore set aside, too,
and the same models list them. By how much a calibration on these is wrong about what came after
them, so much is the calibration taken to be wrong about what comes next, as far as the difference
is more than chance. Where a whole part is set aside, models learn from much less than the final
ones do. How many hits that costs is seen from models that have learnt from still less.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, logit

from ordrec.choice.events import is_event
from ordrec.choice.inner_splits import (
    FEW_USERS,
    INNER_USERS,
    SHARE,
    InnerSplit,
    inner_splits,
)
from ordrec.lists.best import best_columns
from ordrec.storage.schema import Number

if TYPE_CHECKING:
    from ordrec.choice.base import ChoiceModel

__all__ = [
    "TOP",
    "ListedScores",
    "PickCalibration",
    "calibrated_picks",
    "hits_to_come",
    "learnt_calibration",
]

CALIBRATED_PLACES = 50  # of a list, when fitting
USUAL_GROWTH, FEW_HITS = 1.4, 20.0  # of hits when histories get longer by a quarter
USUAL_DRIFT = 0.07  # of the logarithm of hits from one part of histories to the next
TOP = 10  # where expected picks are compared with those there are
TYPICAL_COUNT = 100.0  # ratings of a user, where log(n) is taken as 0


@dataclass(frozen=True)
class ListedScores:
    """Lists made from one part of the histories.

    Attributes
    ----------
    scores : array of shape (n_lists, n_places)
        Best first; where the list is shorter, the lowest of the list, or 0 if that is less.
    counts : array of shape (n_lists,)
        Ratings of each user in the part the lists were made from.
    picked : bool array of shape (n_lists, n_places)
        Whether the item is in the part set aside.
    """

    scores: np.ndarray
    counts: np.ndarray
    picked: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, counts: np.ndarray, held: sparse.csr_array) -> ListedScores:
        """Lists of the best items by scores, and what of them is in the part set aside."""
        best = best_columns(scores, CALIBRATED_PLACES)
        picked = np.zeros(held.shape, dtype=np.bool_)
        picked[np.repeat(np.arange(held.shape[0]), np.diff(held.indptr)), held.indices] = True
        there, best = best >= 0, np.maximum(best, 0)
        listed = np.take_along_axis(scores, best, axis=1).astype(np.float64)
        return cls(
            np.where(there, listed, listed.min(axis=1, keepdims=True, initial=0.0, where=there)),
            counts,
            there & np.take_along_axis(picked, best, axis=1),
        )

    @property
    def hits(self) -> np.ndarray:
        """How many of the first places of each list are in the part set aside."""
        return self.picked[:, :TOP].sum(axis=1)

    def of_rows(self, rows: np.ndarray) -> ListedScores:
        """Some of the lists."""
        return ListedScores(self.scores[rows], self.counts[rows], self.picked[rows])

    @classmethod
    def joined(cls, parts: Sequence[ListedScores]) -> ListedScores:
        """All lists of several parts."""
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.picked for part in parts]),
        )


@dataclass(frozen=True)
class PickCalibration:
    """Parameters of (1), and the factor by which expected picks are divided.

    Parameters
    ----------
    horizon : float
        Future picks, relative to the number of ratings so far; 0 where (1) alone holds.
    intercept, slope, by_count : float
        ``a``, ``b`` and ``c`` of (1).
    bias : float
    """

    stored: ClassVar = {
        "horizon": Number(0.0, 1e6),
        "intercept": Number(-1e6, 1e6),
        "slope": Number(-1e6, 1e6),
        "by_count": Number(-1e6, 1e6),
        "bias": Number(1e-300, 1e6),
    }

    horizon: float = 0.25
    intercept: float = 0.0
    slope: float = 1.0
    by_count: float = 0.0
    bias: float = 1.0

    @classmethod
    def fitted(
        cls, lists: ListedScores, share: float, deeper: ListedScores | None, horizon: float = 0.25
    ) -> PickCalibration:
        """Fit to lists from histories of which a share was set aside.

        ``deeper`` are lists from the rest of these histories, of which the same share was set
        aside once more.
        """
        whole = 1.0 + horizon
        above = (1.0 - share) / whole, share / whole
        calibration = cls(horizon)._fit(lists, *above)
        if deeper is None or not deeper.picked.any() or not lists.hits.any():
            return calibration
        below = above[0] * (1.0 - share), above[0] * share
        lower = cls(horizon)._fit(deeper, *below)
        expected = lower._probabilities(lists.scores[:, :TOP], lists.counts, *above).sum()
        return replace(calibration, bias=float(expected / lists.hits.sum()))

    @classmethod
    def of_latest(cls, lists: ListedScores) -> PickCalibration:
        """Fit (1) alone, to lists from histories whose end was set aside."""
        calibration = cls(0.0)._fit(lists, 0.0, 1.0)
        if not lists.hits.any():
            return calibration
        expected = calibration.p_pick(lists.scores[:, :TOP], lists.counts).sum()
        return replace(calibration, bias=float(expected / lists.hits.sum()))

    def matched(self, lists: ListedScores, scores: np.ndarray, counts: np.ndarray) -> Self:
        """Return the calibration by which other lists of the same users expect as many hits.

        A model that has learnt from all entries may be surer of its lists than the one that lists
        were calibrated with, and be right no more often.

        Parameters
        ----------
        lists : ListedScores
            From histories whose newest entry was set aside.
        scores : array of shape (n_lists, n_places)
            From the whole histories, best first.
        counts : array of shape (n_lists,)
            Ratings of each user.
        """
        hits = int(lists.hits.sum())
        if not hits:
            return self
        expected = float(self.p_pick(scores[:, :TOP], counts).sum())
        return replace(self, bias=self.bias * expected / hits)

    def drifted(self, earlier: ListedScores, later: ListedScores, lower: Self) -> Self:
        """Return the calibration without what another one was wrong by, one part before.

        Parameters
        ----------
        earlier, later : ListedScores
            Of the same users: of one part of their histories, and of the part that came after it.
        lower : PickCalibration
            Fitted to the earlier lists.
        """
        if not earlier.hits.any() or not later.hits.any():
            return self
        expected = float(lower.p_pick(later.scores[:, :TOP], later.counts).sum())
        wrong = _beyond_chance(expected / later.hits.sum(), later, earlier)
        return replace(self, bias=self.bias * wrong)

    def with_more(self, less: ListedScores, lists: ListedScores, power: float) -> Self:
        """Return the calibration for models that have learnt from more than those of some lists.

        Hits are taken to grow by the same factor whenever what is learnt from does.

        Parameters
        ----------
        less, lists : ListedScores
            Of the same part of the same users' histories, by models that have learnt from less, and
            by those of the lists that the calibration is fitted to.
        power : float
            The logarithm of how much more there is to learn from than for these, relative to that
            of how much more that was than for ``less``.
        """
        if not less.hits.any() or not lists.hits.any():
            return self
        growth = _beyond_chance(lists.hits.sum() / less.hits.sum(), lists, less)
        return replace(self, bias=self.bias / growth**power)

    def p_pick(self, scores: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the probability that each item of each list is picked next.

        Parameters
        ----------
        scores : array of shape (n_lists, n_places)
        counts : array of shape (n_lists,)
            Ratings of each user.
        """
        whole = 1.0 + self.horizon
        g, h = (1.0 / whole, self.horizon / whole) if self.horizon else (0.0, 1.0)
        p = self._probabilities(scores, counts, g, h)
        return np.minimum(p / self.bias, 1.0)

    def scores_of(self, p: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return the scores that have these probabilities, by which `p_pick` is undone.

        Minus infinity where scores say nothing of them.

        Examples
        --------
        >>> calibration = PickCalibration(0.25, intercept=-3.0, slope=2.0)
        >>> scores = np.array([[0.5, -1.0]])
        >>> calibration.scores_of(calibration.p_pick(scores, np.array([40])), np.array([40]))
        array([[ 0.5, -1. ]])
        """
        if not self.slope > 0:
            return np.full(p.shape, -np.inf)
        whole = 1.0 + self.horizon
        g, h = (1.0 / whole, self.horizon / whole) if self.horizon else (0.0, 1.0)
        listed = np.clip(p * self.bias, 1e-12, None)
        pi = np.clip(listed / (h + g * listed), 1e-12, 1.0 - 1e-9)
        active = np.log(np.maximum(counts, 1) / TYPICAL_COUNT)[:, None]
        return (logit(pi) - self.intercept - self.by_count * active) / self.slope

    def _probabilities(
        self, scores: np.ndarray, counts: np.ndarray, g: float, h: float
    ) -> np.ndarray:
        active = np.log(np.maximum(counts, 1) / TYPICAL_COUNT)[:, None]
        pi = expit(self.intercept + self.slope * scores + self.by_count * active)  # (1)
        return h * pi / (1.0 - g * pi)  # (2)

    def _fit(self, lists: ListedScores, g: float, h: float) -> PickCalibration:
        weight = 1.0 / np.log2(np.arange(2, lists.scores.shape[1] + 2))
        centre, spread = float(lists.scores.mean()), float(lists.scores.std()) or 1.0
        standard = (lists.scores - centre) / spread

        def loss(theta: np.ndarray) -> float:
            trial = PickCalibration(self.horizon, *theta.tolist())
            p = np.clip(trial._probabilities(standard, lists.counts, g, h), 1e-9, 1 - 1e-9)
            logs = np.where(lists.picked, np.log(p), np.log1p(-p))
            return -float((weight * logs).mean())

        rate = float(lists.picked.mean())
        pi = np.clip(rate / (h + g * rate), 0.01, 0.99)
        start = [np.log(pi / (1 - pi)), 0.5, 0.0]
        intercept, slope, by_count = minimize(loss, start, method="BFGS").x.tolist()
        return replace(
            self,
            intercept=intercept - slope * centre / spread,
            slope=slope / spread,
            by_count=by_count,
        )


def _beyond_chance(ratio: float, one: ListedScores, other: ListedScores) -> float:
    """A ratio that compares the hits of two lists of each user, drawn towards 1.

    Its logarithm is taken to be usually of the size `USUAL_DRIFT`, and to have the standard error
    of that of the ratio of the hits.
    """
    differences = one.hits / one.hits.mean() - other.hits / other.hits.mean()
    usual, chance = USUAL_DRIFT**2, float(np.var(differences)) / differences.size
    return float(ratio) ** (usual / (usual + chance))


def learnt_calibration(
    lists_of: Callable[[InnerSplit], ListedScores],
    final_lists: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    history: sparse.csr_array,
    times: np.ndarray | None,
    rng: np.random.Generator,
    *,
    n_splits: int = 1,
    horizon: float = 0.25,
    events: sparse.csr_array | None = None,
) -> PickCalibration:
    """Calibrate on histories of which a part is set aside, and once more on what is left of these.

    Parameters
    ----------
    lists_of : callable
        Makes the lists of a model that was fitted to the given part of a split.
    final_lists : callable
        Returns the scores of the first ten places of users by code, from their whole histories,
        and how many ratings they have.
    history : csr_array
        With sorted indices.
    times : array or None
        Of the entries: the latest part is set aside, without times a random one.
    rng : Generator
    n_splits : int
        How often a part is set aside.
    horizon : float
    events : csr_array, optional
        The entries of the history that are no picks.
    """
    splits = inner_splits(
        history, n_splits, SHARE, rng, times=times, max_users=INNER_USERS,
        events=is_event(history, events),
    )  # fmt: skip
    deeper = [
        inner_splits(
            split.given, 1, SHARE, rng, times=split.given_times, max_users=INNER_USERS,
            events=is_event(split.given, events),
        )[0]
        for split in splits
    ]  # fmt: skip
    if min(split.rows.size for split in (*splits, *deeper)) < FEW_USERS:
        return PickCalibration(horizon)
    above, below = (
        ListedScores.joined([lists_of(split) for split in part]) for part in (splits, deeper)
    )
    alike = PickCalibration.fitted(above, SHARE, below, SHARE / (1.0 - SHARE))
    expected = float(alike.p_pick(*final_lists(splits[0].rows)).sum(axis=1).mean())
    surer = np.sqrt(expected / hits_to_come(above, below))
    found = PickCalibration.fitted(above, SHARE, below, horizon)
    return replace(found, bias=found.bias * float(surer))


def hits_to_come(above: ListedScores, below: ListedScores) -> float:
    """Return how many hits a list of the whole history should have.

    That is more than ``above`` has by as much as that has more than ``below``. Where there are few
    hits, a usual growth counts for some.
    """
    at_once = above.counts.size / below.counts.size  # lists of a user above, for each below
    hits = float(above.hits.sum()), float(below.hits.sum()) * at_once
    growth = (hits[0] + USUAL_GROWTH * FEW_HITS) / (hits[1] + FEW_HITS)
    return growth * max(hits[0], 1.0) / above.counts.size


def calibrated_picks(
    model: ChoiceModel, history: sparse.csr_array, times: np.ndarray | None, seed: int = 0
) -> PickCalibration:
    """Return the calibration of a choice model that is fitted to these histories.

    A `ChoiceMixture` has been calibrated in training. Any other model is fitted twice more.
    """
    if hasattr(model, "calibration_"):
        return model.calibration_
    return learnt_calibration(
        lambda split: _lists_of_refit(model, split),
        lambda codes: model.listed_scores(codes, TOP),
        history,
        times,
        np.random.default_rng(seed),
        events=model.event_entries,
    )


def _lists_of_refit(model: ChoiceModel, split: InnerSplit) -> ListedScores:
    """Lists of a copy of the model that is fitted to the given part."""
    given, held = split.given, split.held[split.rows]
    fitted = copy.copy(model).learn(given, split.given_times if model._dated else None, None)
    scores, known = fitted.score_users(split.rows), fitted.history_rows(split.rows)
    fitted.item_filter().hide(scores, known)
    return ListedScores.of(scores, np.diff(known.indptr), held)
