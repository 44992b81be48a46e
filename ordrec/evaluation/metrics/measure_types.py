"""How a metric is applied to the outcome of a model: `Measure` and `ListMeasure`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics import ranking, top_lists
from ordrec.evaluation.metrics.outcome import MetricValue, Outcome, UserSums
from ordrec.lists.best import rank_gains
from ordrec.ordinal.uncertainty import shortest_interval, spread

__all__ = [
    "Average",
    "Grades",
    "ListMeasure",
    "Measure",
    "UncertaintyMeasure",
]


Average = Literal["micro", "macro"]
Grades = Literal["relevance", "gain", "pick", "liked", "above middle"]

TOP_RELEVANCE = 4.0
COVERAGE = 0.9  # of intervals
SUMS_OF_LISTS = {
    "novelty": top_lists.novelty_sums,
    "popularity": top_lists.popularity_sums,
    "long tail": top_lists.long_tail_sums,
    "diversity": top_lists.diversity_sums,
}


def graded(test: Ratings, grades: Grades, like: float | None) -> np.ndarray:
    """Return what each test rating is worth to a ranking metric.

    Parameters
    ----------
    test : Ratings
    grades : {"relevance", "gain", "pick", "liked", "above middle"}
        ``4 (rank - 1) / (r - 1)``; ``2^rank - 1``; 1; 1 for a liked item and otherwise 0;
        ``rank - (r + 1) / 2``.
    like : float or None
        The lowest rating that counts as liked; by default the lowest of the top fifth.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> test = synthetic_ratings(3, 4, n_ratings=3, seed=0)
    >>> graded(test, "pick", None).tolist()
    [1.0, 1.0, 1.0]
    """
    scale = test.scale
    if grades == "relevance":
        return TOP_RELEVANCE * test.levels / (scale.n_ranks - 1)
    if grades == "gain":
        return rank_gains(scale.n_ranks)[test.levels]
    if grades == "pick":
        return np.ones(test.n_ratings)
    if grades == "liked":
        return (test.values >= (scale.liked_from if like is None else like)).astype(np.float64)
    return test.ranks - (scale.n_ranks + 1) / 2.0


@dataclass(frozen=True)
class Measure:
    """A metric, and how it is applied to an `Outcome`.

    Attributes
    ----------
    name : str
    kind : {"error", "probability", "ranking"}
    decision : str
        The decision that is best for this metric; empty where none is needed.
    averages : tuple of str
        Which averages exist: "micro" (pooled over ratings), "macro" (mean over users) or both.
    unit : {"number", "value", "rank", ""}
        Whether an error is measured on the predicted number, the scale value nearest to
        it, or the rank of that value.
    options : dict
        Keyword arguments of the metric.
    pooled : {"mean", "root", "pairs", "counts", ""}
        How the micro average follows from the values of the users: their mean weighted by the
        number of ratings, the root of the weighted mean of their squares, the share of
        their pairs, the ratio of the sums of two counts, or none of these.
    metric : callable, optional
        What is computed from the true and the predicted values.
    placed : callable, optional
        What is computed instead from the places of the test items, for most ranking metrics.
    higher_is_better : bool
        Whether a larger value is better.
    ideal : float, optional
        The best value, for a metric of which neither large nor small values are best.
    grades : {"relevance", "gain", "pick", "liked", "above middle"}
        What a ranking metric is given for each test rating, see `graded`.
    like : float, optional
        The lowest rating that counts as liked.
    among_cold : bool
        Whether only items without training ratings are ranked.
    """

    name: str
    kind: Literal["error", "probability", "ranking"]
    metric: Any = None
    decision: str = ""
    averages: tuple[Average, ...] = ("micro", "macro")
    unit: Literal["number", "value", "rank", ""] = ""
    options: dict[str, Any] = field(default_factory=dict)
    pooled: Literal["mean", "root", "pairs", "counts", ""] = ""
    placed: Any = None
    higher_is_better: bool = False
    ideal: float | None = None
    grades: Grades = "relevance"
    like: float | None = None
    among_cold: bool = False

    def applies_to(self, outcome: Outcome) -> bool:
        """Whether the model predicted what this metric needs."""
        if self.among_cold:
            return outcome.cold_places is not None
        if self.kind == "error":
            return outcome.scores is None
        return self.kind == "ranking" or outcome.probabilities is not None

    def over_catalogue(self, outcome: Outcome) -> bool:
        """Whether this metric is measured on places in the catalogue."""
        return self.placed is not None and outcome.places is not None

    def values(self, outcome: Outcome, decision: str) -> list[MetricValue]:
        """Return the value of each average, with what each user adds to it."""
        truth, predicted, users = self._columns(outcome, decision or "mean")
        distinct, counts = np.unique(users, return_counts=True)
        if self.pooled == "counts":
            return [_ratio_of(self._counts(truth, predicted, users, distinct))]
        by_user = np.zeros(0)
        if self.pooled == "pairs":
            right, pairs = ranking.pair_counts.per_group(truth, predicted, users).T
            by_user = np.divide(right, pairs, out=np.full(pairs.size, np.nan), where=pairs > 0)
        elif truth.size and (self.pooled or "macro" in self.averages):
            # Without rows, the catalogue was ranked for none of these users.
            by_user = self._of_rows.per_group(truth, predicted, users, **self.options)
        found = []
        if "micro" in self.averages and self.pooled == "pairs":
            found.append(_ratio_of(UserSums(distinct, right, pairs))._replace(n=truth.size))
        elif "micro" in self.averages:
            value = self._of_rows(truth, predicted, **self.options)
            sums = None
            if self.pooled:
                root = self.pooled == "root"
                added = (by_user**2 if root else by_user) * counts
                sums = UserSums(distinct, added, counts * 1.0, root)
            found.append(MetricValue("micro", value, truth.size, sums))
        if "macro" in self.averages:
            defined = ~np.isnan(by_user)
            sums = UserSums(distinct[defined], by_user[defined], np.ones(int(defined.sum())))
            value = float(sums.sums.mean()) if sums.users.size else float("nan")
            found.append(MetricValue("macro", value, sums.users.size, sums))
        if outcome.propensities is not None and self.pooled in ("mean", "root"):
            found += self._weighted(truth, predicted, users, outcome)
        return found

    def _weighted(
        self, truth: np.ndarray, predicted: np.ndarray, users: np.ndarray, outcome: Outcome
    ) -> list[MetricValue]:
        """Return estimates for all pairs of the users: by inverse propensities, and normalised.

        Schnabel et al. (2016), equations 10 and 11: ``sum (e / p) / (users x items)`` is "ips", and
        ``sum (e / p) / sum (1 / p)`` is "snips".
        """
        root = self.pooled == "root"
        of_rows = self._of_rows.per_group(truth, predicted, np.arange(truth.size), **self.options)
        assert outcome.propensities is not None
        weights = 1.0 / outcome.propensities
        distinct, own = np.unique(users, return_inverse=True)
        errors = np.bincount(own, weights * (of_rows**2 if root else of_rows))
        pairs = {
            "ips": np.full(distinct.size, outcome.test.n_items * 1.0),
            "snips": np.bincount(own, weights),
        }
        found = []
        for average, counts in pairs.items():
            mean = float(errors.sum() / counts.sum())
            value = float(np.sqrt(mean)) if root else mean
            sums = UserSums(distinct, errors, counts, root)
            found.append(MetricValue(average, value, truth.size, sums))
        return found

    def value(self, outcome: Outcome, average: str, decision: str) -> tuple[float, int]:
        """Return the value and the number of ratings (micro) or users (macro) it averages."""
        for found in self.values(outcome, decision):
            if found.average == average:
                return found.value, found.n
        raise ArgumentError(f"{self.name} has no {average} average")

    @property
    def _of_rows(self) -> Any:
        """The metric of the columns that `_columns` returns."""
        return self.metric if self.placed is None else self.placed

    def _counts(
        self, truth: np.ndarray, places: np.ndarray, users: np.ndarray, distinct: np.ndarray
    ) -> UserSums:
        """Return two counts of each user, of which the value is the ratio."""
        if not truth.size:
            return UserSums(distinct, np.zeros(0), np.zeros(0))
        found = self.placed.per_group(truth, places, users, **self.options)
        return UserSums(distinct, found[:, 0], found[:, 1])

    def _columns(
        self, outcome: Outcome, decision: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the true values, the predicted ones, and the users they belong to."""
        test, scale = outcome.test, outcome.test.scale
        if self.kind == "probability":
            assert outcome.probabilities is not None
            return test.levels, outcome.probabilities, test.users
        if self.kind == "ranking":
            grades = graded(test, self.grades, self.like)
            if self.over_catalogue(outcome):
                places = outcome.cold_places if self.among_cold else outcome.places
                assert places is not None
                ranked = places > 0
                return grades[ranked], places[ranked], test.users[ranked]
            order = outcome.order(decision)
            if self.placed is not None:
                order = ranking.places_among_rated(order, test.users)
            return grades, order, test.users
        predicted = outcome.predicted(decision)
        if self.unit == "number":
            return test.values, predicted, test.users
        predicted = scale.nearest(predicted)
        if self.unit == "value":
            return test.values, predicted, test.users
        return test.ranks, scale.ranks_of(predicted), test.users


@dataclass(frozen=True)
class ListMeasure(Measure):
    """A metric of the first items of the lists, not of the places of test items alone.

    Attributes
    ----------
    measured : {"coverage", "gini", "novelty", "popularity", "long tail", "diversity", \
            "pick calibration"}
    """

    measured: Literal[
        "coverage", "gini", "novelty", "popularity", "long tail", "diversity", "pick calibration"
    ] = "coverage"

    @property
    def list_length(self) -> int:
        """How many items of each list are needed."""
        return int(self.options["k"])

    @property
    def needs_p_pick(self) -> bool:
        """Whether the model must say how likely the listed items are picked."""
        return self.measured == "pick calibration"

    def applies_to(self, outcome: Outcome) -> bool:
        """Whether there are lists and, if needed, probabilities of picking."""
        lists = outcome.lists
        if lists is None or (self.measured == "diversity" and lists.item_features is None):
            return False
        if self.measured in ("novelty", "popularity", "long tail") and not lists.n_training_users:
            return False
        return not (self.needs_p_pick and lists.p_pick is None)

    def over_catalogue(self, outcome: Outcome) -> bool:
        """Lists are always made of the catalogue."""
        return True

    def values(self, outcome: Outcome, decision: str) -> list[MetricValue]:
        """Return the value, the number of users whose lists it is measured on, and their sums."""
        lists, k = outcome.lists, self.list_length
        assert lists is not None
        if self.measured in ("coverage", "gini"):
            metric = top_lists.coverage if self.measured == "coverage" else top_lists.gini
            return [MetricValue("micro", metric(lists, k), lists.users.size, None)]
        if self.measured == "pick calibration":
            sums = top_lists.pick_calibration_sums(lists, outcome.test, k)
        else:
            sums = SUMS_OF_LISTS[self.measured](lists, k)
        return [_ratio_of(sums)._replace(n=lists.users.size)]


@dataclass(frozen=True)
class UncertaintyMeasure(Measure):
    """A metric of how well the spread of distributions tells the size of errors.

    See `ordrec.evaluation.metrics.uncertainty`.

    Attributes
    ----------
    measured : callable
        Takes the absolute errors of the predicted ratings, the standard deviations of the
        distributions, and the scale.
    of_intervals : bool
        Whether ``measured`` takes the true levels, and the first and last level of the shortest
        intervals of probability 0.9 instead.
    """

    measured: Any = None
    of_intervals: bool = False

    def values(self, outcome: Outcome, decision: str) -> list[MetricValue]:
        """Return the value and the number of ratings; it is not a sum over users."""
        test, p = outcome.test, outcome.probabilities
        assert p is not None
        if self.of_intervals:
            value = self.measured(test.levels, shortest_interval(p, COVERAGE))
        else:
            errors = np.abs(test.values - outcome.predicted(decision or "mean"))
            scale_values = np.asarray(test.scale.values, dtype=np.float64)
            value = self.measured(errors, spread(p, scale_values), test.scale)
        return [MetricValue("micro", value, test.n_ratings, None)]


def _ratio_of(sums: UserSums) -> MetricValue:
    """Return the ratio of the sums, with the second of them as the number."""
    total = float(sums.counts.sum())
    value = float(sums.sums.sum()) / total if total else float("nan")
    return MetricValue("micro", value, int(total), sums)
