"""The metrics by name, and what each of them is measured on.

A model with a distribution has no single prediction: a *decision* makes one of it, and
each metric has the decision that is best for it. The names:

=====================  =========================================  ===========
name                   measured on                                decision
=====================  =========================================  ===========
``rmse``, ``mae``      the predicted number, in the data's scale  mean
``tau``                the predicted number                       mean
``int_mae``            the scale value predicted                  median
``rank_mae``           its rank 1..r                              median
``mze``                its rank                                   mode
``macro_mae``          its rank, every true rank weighs the same  median
``off_by_one``         its rank                                   median
``kappa``              its rank                                   mean
``log_loss``, ``rps``  the distribution                           none
``brier``              the distribution                           none
``ece``                the distribution's most probable rank      none
``ece_cumulative``     the distribution's cumulative sums         none
``ndcg@k``, ``fcp``    the order of a user's test items           mean
``map``, ``mrr``       the order of a user's test items           mean
``precision@k``        the order of a user's test items           mean
``recall@k``           the order of a user's test items           mean
=====================  =========================================  ===========

A predicted number becomes a scale value by rounding to the nearest. Ranking metrics order
the test items that the user rated, not the whole catalogue. For ``ndcg`` the relevance is
``4 (rank - 1) / (r - 1)``, so that scales of any length compare (1 to 5 stars: 0 to 4), with
gain ``2^rel - 1``; for the others an item is relevant from relevance 3 on (4 stars of 5).
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation import errors, probability, ranking
from ordrec.ordinal.decisions import decide as decide_rank
from ordrec.ratings import Ratings, Scale

__all__ = ["DEFAULT_METRICS", "Measure", "Outcome", "decide", "measure_from_name", "metric_names"]

Decision = Literal["mean", "median", "mode"]
Average = Literal["micro", "macro"]

DEFAULT_METRICS = (
    "rmse", "mae", "int_mae", "mze", "log_loss", "rps", "ece", "ndcg@10", "fcp",
)  # fmt: skip

TOP_RELEVANCE = 4.0
RELEVANT_FROM = 3.0


def decide(probabilities: np.ndarray, scale: Scale, decision: str) -> np.ndarray:
    """Make one rating of each distribution.

    Parameters
    ----------
    probabilities : array of shape (n, n_ranks)
    scale : Scale
    decision : {"mean", "median", "mode"}
        The expected rating (least squared error), the lowest scale value that half of the
        probability does not exceed (least absolute error), or the most probable one, the
        lower of two (least zero-one error).

    Examples
    --------
    >>> p = np.array([[0.4, 0.3, 0.3]])
    >>> [decide(p, Scale([1, 2, 3]), how).round(2).item() for how in ("mean", "median", "mode")]
    [1.9, 2.0, 1.0]
    """
    if decision == "mean":
        return probabilities @ scale.values
    if decision == "median":
        return scale.values[decide_rank(probabilities, "median")]
    if decision == "mode":
        return scale.values[decide_rank(probabilities, "mode")]
    raise ArgumentError(f'decision must be "mean", "median" or "mode", got {decision!r}')


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one model said about one test part: ratings, distributions or bare scores."""

    test: Ratings
    ratings: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    scores: np.ndarray | None = None

    def predicted(self, decision: str) -> np.ndarray:
        """The predicted numbers: by decision where there are distributions."""
        if self.probabilities is not None:
            return decide(self.probabilities, self.test.scale, decision)
        assert self.ratings is not None
        return self.ratings

    def order(self, decision: str) -> np.ndarray:
        """The numbers by which items are ranked."""
        return self.predicted(decision) if self.scores is None else self.scores


@dataclass(frozen=True)
class Measure:
    """A metric with everything needed to apply it to an `Outcome`.

    Attributes
    ----------
    name : str
    kind : {"error", "probability", "ranking"}
    decision : str
        The decision that is best for it; empty where none is needed.
    averages : tuple of str
        Which of "micro" (pooled over ratings) and "macro" (mean over users) it has.
    unit : {"number", "value", "rank", ""}
        Whether an error is measured on the predicted number, the scale value nearest to
        it, or the rank of that.
    options : dict
        Passed on to the metric.
    """

    name: str
    kind: Literal["error", "probability", "ranking"]
    metric: Any
    decision: str = ""
    averages: tuple[Average, ...] = ("micro", "macro")
    unit: Literal["number", "value", "rank", ""] = ""
    options: dict[str, Any] = field(default_factory=dict)

    def applies_to(self, outcome: Outcome) -> bool:
        """Whether the model said what this metric needs."""
        if self.kind == "error":
            return outcome.scores is None
        return self.kind == "ranking" or outcome.probabilities is not None

    def value(self, outcome: Outcome, average: str, decision: str) -> tuple[float, int]:
        """The value, and the number of ratings (micro) or users (macro) it is a mean of."""
        truth, said = self._columns(outcome, decision or "mean")
        users = outcome.test.users
        if average == "micro":
            if self.kind == "ranking":
                return ranking.pooled_fcp(truth, said, users), truth.size
            return self.metric(truth, said, **self.options), truth.size
        values = self.metric.per_group(truth, said, users, **self.options)
        defined = values[~np.isnan(values)]
        return (float(defined.mean()) if defined.size else float("nan")), int(defined.size)

    def _columns(self, outcome: Outcome, decision: str) -> tuple[np.ndarray, np.ndarray]:
        test, scale = outcome.test, outcome.test.scale
        if self.kind == "probability":
            assert outcome.probabilities is not None
            return test.levels, outcome.probabilities
        if self.kind == "ranking":
            return TOP_RELEVANCE * test.levels / (scale.n_ranks - 1), outcome.order(decision)
        said = outcome.predicted(decision)
        if self.unit == "number":
            return test.values, said
        said = scale.nearest(said)
        return (test.values, said) if self.unit == "value" else (test.ranks, scale.ranks_of(said))


_BOTH: tuple[Average, ...] = ("micro", "macro")
_MACRO: tuple[Average, ...] = ("macro",)
_RELEVANT = {"relevant_from": RELEVANT_FROM}

_MEASURES = {
    measure.name: measure
    for measure in (
        Measure("rmse", "error", errors.rmse, "mean", _BOTH, "number"),
        Measure("mae", "error", errors.mae, "mean", _BOTH, "number"),
        Measure("int_mae", "error", errors.mae, "median", _BOTH, "value"),
        Measure("rank_mae", "error", errors.mae, "median", _BOTH, "rank"),
        Measure("mze", "error", errors.mze, "mode", _BOTH, "rank"),
        Measure("macro_mae", "error", errors.macro_mae, "median", _BOTH, "rank"),
        Measure("off_by_one", "error", errors.off_by_one, "median", _BOTH, "rank"),
        Measure("kappa", "error", errors.quadratic_kappa, "mean", _BOTH, "rank"),
        Measure("tau", "error", errors.kendall_tau, "mean", _BOTH, "number"),
        Measure("log_loss", "probability", probability.log_loss),
        Measure("rps", "probability", probability.ranked_probability_score),
        Measure("brier", "probability", probability.brier_score),
        Measure("ece", "probability", probability.expected_calibration_error, "", ("micro",)),
        Measure(
            "ece_cumulative",
            "probability",
            probability.expected_calibration_error,
            averages=("micro",),
            options={"event": "cumulative"},
        ),
        Measure("ndcg@k", "ranking", ranking.ndcg, "mean", _MACRO),
        Measure("fcp", "ranking", ranking.fcp, "mean", _BOTH),
        Measure("map", "ranking", ranking.mean_average_precision, "mean", _MACRO, "", _RELEVANT),
        Measure("mrr", "ranking", ranking.mean_reciprocal_rank, "mean", _MACRO, "", _RELEVANT),
        Measure("precision@k", "ranking", ranking.precision_at, "mean", _MACRO, "", _RELEVANT),
        Measure("recall@k", "ranking", ranking.recall_at, "mean", _MACRO, "", _RELEVANT),
    )
}


def metric_names() -> list[str]:
    """The names that `measure_from_name` knows; write a number in place of ``k``."""
    return list(_MEASURES)


def measure_from_name(name: str) -> Measure:
    """The measure behind a name such as ``"mae"`` or ``"ndcg@10"``.

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
