"""The metrics by name, and what each of them measures.

A model that predicts a distribution has no single prediction: a *decision* turns the
distribution into one, and each metric has a decision that is best for it. The names:

====================================  ==========================================  ===========
name                                  measured on                                 decision
====================================  ==========================================  ===========
``rmse``, ``mae``                     the predicted number, in the data's scale   mean
``tau``                               the predicted number                        mean
``int_mae``                           the predicted scale value                   median
``rank_mae``                          its rank 1..r                               median
``mze``                               its rank                                    mode
``macro_mae``                         its rank; every true rank weighs the same   median
``off_by_one``                        its rank                                    median
``kappa``                             its rank                                    mean
``log_loss``, ``rps``                 the distribution                            none
``brier``                             the distribution                            none
``ece``                               the most probable rank of the distribution  none
``ece_cumulative``                    the cumulative sums of the distribution     none
``uncertainty_pearson``               errors, and the distributions' spread       mean
``uncertainty_spearman``              errors, and the distributions' spread       mean
``uncertainty_rpi``                   errors, and the distributions' spread       mean
``uncertainty_auc``                   errors, and the distributions' spread       mean
``uncertainty_rmse_most_certain``     errors, and the distributions' spread       mean
``uncertainty_rmse_least_certain``    errors, and the distributions' spread       mean
``uncertainty_rmse_difference``       errors, and the distributions' spread       mean
``interval_coverage``                 intervals of probability 0.9                none
``interval_size``                     intervals of probability 0.9                none
``fcp``                               the order of a user's test items            mean
``ndcg@k``                            the places of a user's test items           mean
``map``, ``mrr``                      the places of a user's test items           mean
``precision@k``                       the places of a user's test items           mean
``recall@k``                          the places of a user's test items           mean
``hit_rate@k``                        the places of a user's test items           mean
``graded_ndcg@k``                     the places of a user's test items           mean
``pick_ndcg@k``                       the places of a user's test items           mean
``liked_ndcg@k``                      the places of a user's test items           mean
``liked_recall@k``                    the places of a user's test items           mean
``net_ndcg@k``                        the places of a user's test items           mean
``disliked@k``                        the test items in the first k places        mean
``coverage@k``                        the first k items of all lists              mean
``gini@k``                            the first k items of all lists              mean
``novelty@k``                         the first k items of all lists              mean
``popularity@k``                      the first k items of all lists              mean
``long_tail@k``                       the first k items of all lists              mean
``diversity@k``                       the first k items of all lists              mean
``pick_calibration@k``                the first k items of all lists              none
``cold_recall@k``                     the places of a user's cold test items      mean
====================================  ==========================================  ===========

A predicted number becomes a scale value by rounding to the nearest one. Places are those in a
ranking of the whole catalogue without the items the user rated in training (see
`ordrec.evaluation.problems.catalogue`) or, if requested, of the user's test items alone. For
``ndcg`` the relevance is ``4 (rank - 1) / (r - 1)``, so that scales of any length can be compared
(1 to 5 stars: 0 to 4), with gain ``2^rel - 1``; for the other ranking metrics an item is relevant
from relevance 3 on (4 stars of 5). Items without a test rating have no relevance.

Where the scale is made of bins (see `Scale.binned`), ``rmse``, ``mae``, ``tau`` and ``int_mae`` are
measured against the ratings themselves. For all other metrics a rank is a bin, so that their
values depend on the bins; a number has the rank of the bin that it falls into.

Whether a list has what a user goes on to pick, and whether they like it, is measured with other
gains of the test items:

* ``graded_ndcg``: ``2^rank - 1`` (see `ordrec.lists.best.rank_gains`), so that every test
  item counts; ``pick_ndcg``: 1 for every test item.
* ``liked_ndcg``: 1 for a liked item, 0 for others. ``liked_recall``: the liked items in the first
  k places over ``min(k, number of liked items)``. Liked are the ratings in the top fifth of the
  scale (4 stars of 5), or from ``like`` on.
* ``net_ndcg``: ``rank - (r + 1) / 2``, which is negative for a disliked item, over that of the best
  list, which has no such item. ``disliked``: the share of the test items in the first k places
  whose rank is below the middle, pooled over users.
* ``hit_rate``: the share of users with a test item in the first k places.

If ``like`` is given, it also says what is relevant for ``map``, ``mrr``, ``precision``, ``recall``
and ``hit_rate``.

The metrics of uncertainty (see `ordrec.evaluation.metrics.uncertainty`) compare the absolute
errors with the standard deviations of the distributions: their correlations, the reliability
prediction index, how well large errors are recognised (AUC; more than a quarter of the scale's
range: one star of five), and the RMSE of the surest and of the least sure twentieth, and its
difference.
``interval_coverage`` is how often the shortest interval of probability 0.9 contains the rating, at
best 0.9 or a little more; ``interval_size`` its mean number of ranks.

The metrics of lists (see `ordrec.evaluation.metrics.top_lists`) need no test ratings:
``coverage`` is the share of the catalogue that is listed for anybody, ``gini`` tells how unequally
often items are listed, ``novelty`` is the mean of ``-log2`` of the share of training users who
rated the listed items. ``popularity`` is the mean number of training ratings of the listed items,
``long_tail`` the share of listed items outside the short head, which are the most rated items that
have a fifth of all training ratings together (APLT); ``diversity`` is one minus the mean cosine of
two listed items over their side features, and needs a table of items. Neither more nor less
popularity is better by itself: arrows point to what treats rare items more fairly.
``pick_calibration`` is the number of hits in the first k places that a
model expects (the sum of its ``p_pick``) over the number there are: 1 is best.

``cold_recall`` looks at items without training ratings alone, as ``cold-items:0.1`` holds them out:
they are ranked among each other, and the user's test items in the first k places are counted over
``min(k, number of these)``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ordrec.data import Scale
from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics import (
    probability,
    ranking,
    rating_errors,
    uncertainty,
)
from ordrec.evaluation.metrics.measure_types import (
    COVERAGE,
    Average,
    Grades,
    ListMeasure,
    Measure,
    UncertaintyMeasure,
)
from ordrec.evaluation.metrics.outcome import Outcome, UserSums

__all__ = [
    "DEFAULT_METRICS",
    "LIST_METRICS",
    "PICK_METRICS",
    "ListMeasure",
    "Measure",
    "Outcome",
    "UncertaintyMeasure",
    "UserSums",
    "as_losses",
    "direction",
    "higher_is_better",
    "kind_of",
    "measure_from_name",
    "metric_names",
    "register_measures",
]

Decision = Literal["mean", "median", "mode"]

DEFAULT_METRICS = (
    "rmse", "mae", "int_mae", "mze", "log_loss", "rps", "ece", "ndcg@10", "fcp",
)  # fmt: skip

LIST_METRICS = ("ndcg@10", "recall@10", "hit_rate@10", "coverage@10")  # of lists alone
# of tables without ratings
PICK_METRICS = ("ndcg@10", "recall@20", "hit_rate@10", "coverage@10", "pick_calibration@10")

RELEVANT_FROM = 3.0


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


def _of_places(
    name: str,
    metric: Any = ranking.normalised_gain_at.of_places,
    grades: Grades = "relevance",
    *,
    among_cold: bool = False,
    **options: Any,
) -> Measure:
    return Measure(
        name, "ranking", None, "mean", ("macro",), options=options,
        placed=metric, higher_is_better=True, grades=grades, among_cold=among_cold,
    )  # fmt: skip


def _of_lists(name: str, measured: Any, **options: Any) -> ListMeasure:
    return ListMeasure(name, "ranking", None, "mean", ("micro",), measured=measured, **options)


def _of_spread(
    name: str, measured: Any, *, of_intervals: bool = False, higher_is_better: bool = True
) -> UncertaintyMeasure:
    return UncertaintyMeasure(
        name, "probability", None, "" if of_intervals else "mean", ("micro",),
        measured=measured, of_intervals=of_intervals, higher_is_better=higher_is_better,
        ideal=COVERAGE if name == "interval_coverage" else None,
    )  # fmt: skip


def _large_error_auc(errors: np.ndarray, unsure: np.ndarray, scale: Scale) -> float:
    return uncertainty.large_error_auc(errors, unsure, (scale.high - scale.low) / 4.0)


def _rmse_of_part(part: int) -> Any:
    def measured(errors: np.ndarray, unsure: np.ndarray, scale: Scale) -> float:
        if errors.size < uncertainty.PARTS:
            return float("nan")
        return float(uncertainty.quantile_rmse(errors, unsure)[part])

    return measured


def _rmse_spread(errors: np.ndarray, unsure: np.ndarray, scale: Scale) -> float:
    if errors.size < uncertainty.PARTS:
        return float("nan")
    return uncertainty.rmse_spread(errors, unsure)


_MEASURES: dict[str, Measure] = {
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
        _of_spread("uncertainty_pearson", lambda e, u, _: uncertainty.pearson_of_errors(e, u)),
        _of_spread("uncertainty_spearman", lambda e, u, _: uncertainty.spearman_of_errors(e, u)),
        _of_spread("uncertainty_rpi", lambda e, u, _: uncertainty.reliability_index(e, u)),
        _of_spread("uncertainty_auc", _large_error_auc),
        _of_spread("uncertainty_rmse_most_certain", _rmse_of_part(0), higher_is_better=False),
        _of_spread("uncertainty_rmse_least_certain", _rmse_of_part(-1), higher_is_better=False),
        _of_spread("uncertainty_rmse_difference", _rmse_spread),
        _of_spread("interval_coverage", uncertainty.interval_coverage, of_intervals=True),
        _of_spread(
            "interval_size",
            lambda _, levels: uncertainty.interval_size(levels),
            of_intervals=True,
            higher_is_better=False,
        ),
        Measure("fcp", "ranking", ranking.fcp, "mean", pooled="pairs", higher_is_better=True),
        _of_places("ndcg@k", ranking.ndcg.of_places),
        _of_places("map", ranking.mean_average_precision.of_places, relevant_from=RELEVANT_FROM),
        _of_places("mrr", ranking.mean_reciprocal_rank.of_places, relevant_from=RELEVANT_FROM),
        _of_places("precision@k", ranking.precision_at.of_places, relevant_from=RELEVANT_FROM),
        _of_places("recall@k", ranking.recall_at.of_places, relevant_from=RELEVANT_FROM),
        _of_places("hit_rate@k", ranking.hit_rate_at.of_places, "pick"),
        _of_places("graded_ndcg@k", grades="gain"),
        _of_places("pick_ndcg@k", grades="pick"),
        _of_places("liked_ndcg@k", grades="liked"),
        _of_places("liked_recall@k", ranking.capped_recall_at.of_places, "liked"),
        _of_places("net_ndcg@k", grades="above middle"),
        Measure(
            "disliked@k",
            "ranking",
            None,
            "mean",
            ("micro",),
            pooled="counts",
            placed=ranking.disliked_counts,
            grades="above middle",
        ),
        _of_lists("coverage@k", "coverage", higher_is_better=True),
        _of_lists("gini@k", "gini"),
        _of_lists("novelty@k", "novelty", higher_is_better=True),
        _of_lists("popularity@k", "popularity"),
        _of_lists("long_tail@k", "long tail", higher_is_better=True),
        _of_lists("diversity@k", "diversity", higher_is_better=True),
        _of_lists("pick_calibration@k", "pick calibration", ideal=1.0),
        _of_places("cold_recall@k", ranking.capped_recall_at.of_places, "pick", among_cold=True),
    )
}
_OF_QUERIES = ("err", "p")  # measured on judged documents only, see QueryProblem
_RELEVANT_IF_LIKED = ("map", "mrr", "precision@k", "recall@k", "hit_rate@k")


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
    measure = _known(metric)
    if measure is None:
        return metric.partition("@")[0] in _OF_QUERIES
    return measure.higher_is_better


def kind_of(metric: str) -> str:
    """Return what a metric looks at: "error", "probability", "ranking" or another kind.

    Examples
    --------
    >>> kind_of("rmse"), kind_of("err@20")
    ('error', 'ranking')
    """
    if metric.partition("@")[0] in _OF_QUERIES:
        return "ranking"
    return measure_from_name(metric).kind


def direction(metric: str) -> str:
    """Return an arrow that says where better values of a metric are: "↑", "↓", or "→ 1".

    Examples
    --------
    >>> direction("rmse"), direction("ndcg@10"), direction("pick_calibration@10")
    ('↓', '↑', '→ 1')
    """
    measure = _known(metric)
    if measure is not None and measure.ideal is not None:
        return f"→ {measure.ideal:g}"
    return "↑" if higher_is_better(metric) else "↓"


def as_losses(metric: str, values: Any) -> Any:
    """Return numbers that are the lower, the better the values of a metric are.

    Parameters
    ----------
    metric : str
        Lower values of an unknown metric count as better.
    values : array, Series, DataFrame or float

    Examples
    --------
    >>> as_losses("ndcg@10", 0.25), as_losses("mae", 0.25)
    (-0.25, 0.25)
    >>> [round(float(as_losses("pick_calibration@10", value)), 4) for value in (1.25, 0.8)]
    [0.2231, 0.2231]
    """
    measure = _known(metric)
    if measure is not None and measure.ideal is not None:
        with np.errstate(divide="ignore"):
            return np.abs(np.log(values / measure.ideal))
    return -1.0 * values if higher_is_better(metric) else 1.0 * values


_own: dict[str, Measure] = {}  # metrics of one's own, in this process


def register_measures(measures: Iterable[Measure]) -> None:
    """Make metrics of one's own known by their names, in this process.

    Raises
    ------
    ArgumentError
        If one of the library's metrics has the name.
    """
    for measure in measures:
        stem = measure.name.partition("@")[0]
        if stem in _MEASURES or f"{stem}@k" in _MEASURES or stem in _OF_QUERIES:
            raise ArgumentError(
                f"{measure.name!r} is a metric of ordrec: call your own otherwise, with name="
            )
        _own[measure.name] = measure


def _known(metric: str) -> Measure | None:
    if metric in _own:
        return _own[metric]
    stem = metric.partition("@")[0]
    return _MEASURES.get(stem) or _MEASURES.get(f"{stem}@k")


def measure_from_name(name: str, *, like: float | None = None) -> Measure:
    """Return the measure for a name such as ``"mae"`` or ``"ndcg@10"``.

    Parameters
    ----------
    name : str
    like : float, optional
        The lowest rating that counts as liked. If it is given, ``precision``, ``recall``,
        ``map``, ``mrr`` and ``hit_rate`` take liked items as the relevant ones.

    Raises
    ------
    ArgumentError
        For an unknown name, listing the choices.

    Examples
    --------
    >>> measure_from_name("ndcg@5").options
    {'k': 5}
    """
    if name in _own:
        return _own[name]
    if name in _MEASURES and not name.endswith("@k"):
        return _with_like(_MEASURES[name], like)
    stem, _, number = name.partition("@")
    measure = _MEASURES.get(f"{stem}@k")
    if measure is not None and number.isdecimal() and int(number) > 0:
        measure = _with_like(measure, like)
        return replace(measure, name=name, options=measure.options | {"k": int(number)})
    near = difflib.get_close_matches(name, metric_names(), n=1, cutoff=0.5)
    hint = f"did you mean {near[0].replace('@k', '@10')!r}? " if near else ""
    raise ArgumentError(
        f"unknown metric {name!r}: {hint}choose from {', '.join(metric_names())} "
        "(k: a number, as in ndcg@10)"
    )


def _with_like(measure: Measure, like: float | None) -> Measure:
    if like is None:
        return measure
    if measure.name not in _RELEVANT_IF_LIKED:
        return replace(measure, like=like)
    return replace(
        measure, grades="liked", like=like, options=measure.options | {"relevant_from": 1.0}
    )
