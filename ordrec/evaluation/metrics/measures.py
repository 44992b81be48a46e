"""The metrics by name, and what each of them measures.

A model that predicts a distribution has no single prediction: a *decision* turns the
distribution into one, and each metric has a decision that is best for it. The names:

=====================  ==========================================  ===========
name                   measured on                                 decision
=====================  ==========================================  ===========
``rmse``, ``mae``      the predicted number, in the data's scale   mean
``tau``                the predicted number                        mean
``int_mae``            the predicted scale value                   median
``rank_mae``           its rank 1..r                               median
``mze``                its rank                                    mode
``macro_mae``          its rank; every true rank weighs the same   median
``off_by_one``         its rank                                    median
``kappa``              its rank                                    mean
``log_loss``, ``rps``  the distribution                            none
``brier``              the distribution                            none
``ece``                the most probable rank of the distribution  none
``ece_cumulative``     the cumulative sums of the distribution     none
``fcp``                the order of a user's test items            mean
``ndcg@k``             the places of a user's test items           mean
``map``, ``mrr``       the places of a user's test items           mean
``precision@k``        the places of a user's test items           mean
``recall@k``           the places of a user's test items           mean
=====================  ==========================================  ===========

A predicted number becomes a scale value by rounding to the nearest one. Places are those in a
ranking of the whole catalogue without the items the user rated in training (see
`ordrec.evaluation.full_catalogue`) or, if requested, of the user's test items alone. For ``ndcg``
the relevance is ``4 (rank - 1) / (r - 1)``, so that scales of any length can be compared (1 to 5
stars: 0 to 4), with gain ``2^rel - 1``; for the other ranking metrics an item is relevant from
relevance 3 on (4 stars of 5). Items without a test rating have no relevance.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics import placed, probability, ranking, rating_errors
from ordrec.ordinal import decisions
from ordrec.ratings import Ratings, Scale

__all__ = [
    "DEFAULT_METRICS",
    "Measure",
    "Outcome",
    "UserSums",
    "decide",
    "higher_is_better",
    "measure_from_name",
    "metric_names",
]

Decision = Literal["mean", "median", "mode"]
Average = Literal["micro", "macro"]

DEFAULT_METRICS = (
    "rmse", "mae", "int_mae", "mze", "log_loss", "rps", "ece", "ndcg@10", "fcp",
)  # fmt: skip

TOP_RELEVANCE = 4.0
RELEVANT_FROM = 3.0


def decide(probabilities: np.ndarray, scale: Scale, decision: str) -> np.ndarray:
    """Return one rating for each distribution: `ordrec.ordinal.decide` with a scale.

    Parameters
    ----------
    probabilities : array of shape (n, n_ranks)
    scale : Scale
    decision : {"mean", "median", "mode"}
        The expected rating (least squared error), the lowest scale value whose cumulative
        probability reaches one half (least absolute error), or the most probable value, the
        lower of two equal ones (least zero-one error).

    Examples
    --------
    >>> p, scale = np.array([[0.4, 0.3, 0.3]]), Scale([1, 2, 3])
    >>> [decide(p, scale, name).round(2).item() for name in ("mean", "median", "mode")]
    [1.9, 2.0, 1.0]
    """
    if decision not in get_args(Decision):
        raise ArgumentError(f'decision must be "mean", "median" or "mode", got {decision!r}')
    return decisions.decide(probabilities, decision, scale.values)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one model predicted for one test part: ratings, distributions or scores alone.

    ``places`` are those of the test items in the catalogue, where they were requested; 0 for users
    for whom the catalogue was not ranked.
    """

    test: Ratings
    ratings: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    scores: np.ndarray | None = None
    places: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> Outcome:
        """Return the outcome for some of the test ratings."""
        columns = (self.ratings, self.probabilities, self.scores, self.places)
        return Outcome(self.test.select(rows), *(None if c is None else c[rows] for c in columns))

    def predicted(self, decision: str) -> np.ndarray:
        """Return the predicted numbers, by ``decision`` where there are distributions."""
        if self.probabilities is not None:
            values = self.test.scale.values
            return decisions.decide(self.probabilities, decision, values)
        assert self.ratings is not None
        return self.ratings

    def order(self, decision: str) -> np.ndarray:
        """Return the numbers by which items are ranked."""
        return self.predicted(decision) if self.scores is None else self.scores


class UserSums(NamedTuple):
    """Contributions of users to a value, ``sum(sums) / sum(counts)``; with ``root`` its root."""

    users: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    root: bool = False


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
    pooled : {"mean", "root", "pairs", ""}
        How the micro average follows from the values of the users: their mean weighted by the
        number of ratings, the root of the weighted mean of their squares, the share of
        their pairs, or none of these.
    placed : callable, optional
        The same metric computed from places in the catalogue.
    higher_is_better : bool
        Whether a larger value is better.
    """

    name: str
    kind: Literal["error", "probability", "ranking"]
    metric: Any
    decision: str = ""
    averages: tuple[Average, ...] = ("micro", "macro")
    unit: Literal["number", "value", "rank", ""] = ""
    options: dict[str, Any] = field(default_factory=dict)
    pooled: Literal["mean", "root", "pairs", ""] = ""
    placed: Any = None
    higher_is_better: bool = False

    def applies_to(self, outcome: Outcome) -> bool:
        """Whether the model predicted what this metric needs."""
        if self.kind == "error":
            return outcome.scores is None
        return self.kind == "ranking" or outcome.probabilities is not None

    def over_catalogue(self, outcome: Outcome) -> bool:
        """Whether this metric is measured on places in the catalogue."""
        return self.placed is not None and outcome.places is not None

    def value(self, outcome: Outcome, average: str, decision: str) -> tuple[float, int]:
        """Return the value and the number of ratings (micro) or users (macro) it averages."""
        truth, predicted, users = self._columns(outcome, decision or "mean")
        if average == "micro":
            if self.pooled == "pairs":
                return ranking.pooled_fcp(truth, predicted, users), truth.size
            return self.metric(truth, predicted, **self.options), truth.size
        values = self._by_user(outcome, truth, predicted, users)
        defined = values[~np.isnan(values)]
        return (float(defined.mean()) if defined.size else float("nan")), int(defined.size)

    def user_sums(self, outcome: Outcome, average: str, decision: str) -> UserSums | None:
        """Return what each user adds to `value`; None where it is not a sum over users."""
        if average == "micro" and not self.pooled:
            return None
        truth, predicted, users = self._columns(outcome, decision or "mean")
        distinct, counts = np.unique(users, return_counts=True)
        if average == "micro" and self.pooled == "pairs":
            right, pairs = ranking.pair_counts.per_group(truth, predicted, users).T
            return UserSums(distinct, right, pairs)
        values = self._by_user(outcome, truth, predicted, users)
        if average == "macro":
            defined = ~np.isnan(values)
            return UserSums(distinct[defined], values[defined], np.ones(int(defined.sum())))
        root = self.pooled == "root"
        return UserSums(distinct, (values**2 if root else values) * counts, counts * 1.0, root)

    def _by_user(
        self, outcome: Outcome, truth: np.ndarray, predicted: np.ndarray, users: np.ndarray
    ) -> np.ndarray:
        if not truth.size:  # the catalogue was ranked for none of these users
            return np.zeros(0)
        metric = self.placed if self.over_catalogue(outcome) else self.metric
        return metric.per_group(truth, predicted, users, **self.options)

    def _columns(
        self, outcome: Outcome, decision: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the true values, the predicted ones, and the users they belong to."""
        test, scale = outcome.test, outcome.test.scale
        if self.kind == "probability":
            assert outcome.probabilities is not None
            return test.levels, outcome.probabilities, test.users
        if self.kind == "ranking":
            relevance = TOP_RELEVANCE * test.levels / (scale.n_ranks - 1)
            if self.over_catalogue(outcome):
                assert outcome.places is not None
                ranked = outcome.places > 0
                return relevance[ranked], outcome.places[ranked], test.users[ranked]
            return relevance, outcome.order(decision), test.users
        predicted = outcome.predicted(decision)
        if self.unit == "number":
            return test.values, predicted, test.users
        predicted = scale.nearest(predicted)
        if self.unit == "value":
            return test.values, predicted, test.users
        return test.ranks, scale.ranks_of(predicted), test.users


_BOTH: tuple[Average, ...] = ("micro", "macro")


def _error(
    name: str,
    metric: Any,
    decision: Decision,
    unit: Literal["number", "value", "rank"],
    pooled: Any,
    *,
    higher_is_better: bool = False,
) -> Measure:
    return Measure(
        name,
        "error",
        metric,
        decision,
        _BOTH,
        unit,
        pooled=pooled,
        higher_is_better=higher_is_better,
    )


def _of_places(name: str, metric: Any, placed: Any, **options: Any) -> Measure:
    return Measure(
        name,
        "ranking",
        metric,
        "mean",
        ("macro",),
        options=options,
        placed=placed,
        higher_is_better=True,
    )


_MEASURES = {
    measure.name: measure
    for measure in (
        _error("rmse", rating_errors.rmse, "mean", "number", "root"),
        _error("mae", rating_errors.mae, "mean", "number", "mean"),
        _error("int_mae", rating_errors.mae, "median", "value", "mean"),
        _error("rank_mae", rating_errors.mae, "median", "rank", "mean"),
        _error("mze", rating_errors.mze, "mode", "rank", "mean"),
        _error("macro_mae", rating_errors.macro_mae, "median", "rank", ""),
        _error(
            "off_by_one", rating_errors.off_by_one, "median", "rank", "mean", higher_is_better=True
        ),
        _error("kappa", rating_errors.quadratic_kappa, "mean", "rank", "", higher_is_better=True),
        _error("tau", rating_errors.kendall_tau, "mean", "number", "", higher_is_better=True),
        Measure("log_loss", "probability", probability.log_loss, pooled="mean"),
        Measure("rps", "probability", probability.ranked_probability_score, pooled="mean"),
        Measure("brier", "probability", probability.brier_score, pooled="mean"),
        Measure("ece", "probability", probability.expected_calibration_error, "", ("micro",)),
        Measure(
            "ece_cumulative",
            "probability",
            probability.expected_calibration_error,
            averages=("micro",),
            options={"event": "cumulative"},
        ),
        _of_places("ndcg@k", ranking.ndcg, placed.placed_ndcg),
        Measure("fcp", "ranking", ranking.fcp, "mean", pooled="pairs", higher_is_better=True),
        _of_places(
            "map",
            ranking.mean_average_precision,
            placed.placed_average_precision,
            relevant_from=RELEVANT_FROM,
        ),
        _of_places(
            "mrr",
            ranking.mean_reciprocal_rank,
            placed.placed_reciprocal_rank,
            relevant_from=RELEVANT_FROM,
        ),
        _of_places(
            "precision@k",
            ranking.precision_at,
            placed.placed_precision,
            relevant_from=RELEVANT_FROM,
        ),
        _of_places(
            "recall@k", ranking.recall_at, placed.placed_recall, relevant_from=RELEVANT_FROM
        ),
    )
}


def metric_names() -> list[str]:
    """Return the names that `measure_from_name` knows; write a number in place of ``k``."""
    return list(_MEASURES)


def higher_is_better(metric: str) -> bool:
    """Return whether a larger value of a metric is the better one; False for unknown names.

    Examples
    --------
    >>> higher_is_better("ndcg@10"), higher_is_better("mae")
    (True, False)
    """
    stem = metric.partition("@")[0]
    measure = _MEASURES.get(stem) or _MEASURES.get(f"{stem}@k")
    return measure is not None and measure.higher_is_better


def measure_from_name(name: str) -> Measure:
    """Return the measure for a name such as ``"mae"`` or ``"ndcg@10"``.

    Raises
    ------
    ArgumentError
        For an unknown name, listing the choices.

    Examples
    --------
    >>> measure_from_name("ndcg@5").options
    {'k': 5}
    """
    if name in _MEASURES and not name.endswith("@k"):
        return _MEASURES[name]
    stem, _, number = name.partition("@")
    measure = _MEASURES.get(f"{stem}@k")
    if measure is not None and number.isdecimal() and int(number) > 0:
        return replace(measure, name=name, options=measure.options | {"k": int(number)})
    near = difflib.get_close_matches(name, metric_names(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0].replace('@k', '@10')!r}? " if near else ""
    raise ArgumentError(
        f"unknown metric {name!r}: {hint}choose from {', '.join(metric_names())} "
        "(k: a number, as in ndcg@10)"
    )
