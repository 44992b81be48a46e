"""Tests of whether one model is better than another or the difference is due to chance.

The tests are those of scipy and scikit-posthocs; these modules bring the values of
an experiment into the form they need and name the results:

* values of two models on the same folds (`signed_rank`, `corrected_t`, `paired_effect`), or on
  folds of their own (`rank_sum`, `cliffs_delta`);
* a frame with one row per data set and one column per model (`friedman`, `nemenyi`,
  `holm_against`), such as `EvaluationResult.means`.

References: Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7
(2006); Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52 (2003).
"""

from __future__ import annotations

from ordrec.evaluation.significance.bootstrap import Interval, bootstrap_interval
from ordrec.evaluation.significance.paired_tests import (
    Comparison,
    cliffs_delta,
    corrected_t,
    paired_effect,
    rank_sum,
    signed_rank,
)
from ordrec.evaluation.significance.rank_tests import (
    Friedman,
    WinDrawLoss,
    average_ranks,
    critical_difference,
    friedman,
    holm,
    holm_against,
    nemenyi,
    win_draw_loss,
)

__all__ = [
    "Comparison",
    "Friedman",
    "Interval",
    "WinDrawLoss",
    "average_ranks",
    "bootstrap_interval",
    "cliffs_delta",
    "corrected_t",
    "critical_difference",
    "friedman",
    "holm",
    "holm_against",
    "nemenyi",
    "paired_effect",
    "rank_sum",
    "signed_rank",
    "win_draw_loss",
]
