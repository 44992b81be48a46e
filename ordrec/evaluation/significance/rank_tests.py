"""Tests of many models over many data sets, or over other rows on which all were measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ordrec.errors import ArgumentError
from ordrec.evaluation.significance.paired_tests import paired_effect, rank_sum, signed_rank

__all__ = [
    "Friedman",
    "WinDrawLoss",
    "average_ranks",
    "critical_difference",
    "friedman",
    "holm",
    "holm_against",
    "nemenyi",
    "win_draw_loss",
]

DIGITS = 9  # of scores that are ranked, relative to the largest of their row


@dataclass(frozen=True)
class Friedman:
    """Result of a test of whether several models differ over data sets.

    Attributes
    ----------
    chi2, p : float
        Friedman's statistic and its p-value.
    f, f_p : float
        Iman and Davenport's less conservative statistic and its p-value.
    ranks : Series
        The average rank of each model; 1 is best.
    n_data : int
    """

    chi2: float
    p: float
    f: float
    f_p: float
    ranks: pd.Series
    n_data: int


def average_ranks(scores: pd.DataFrame, *, higher_is_better: bool = False) -> pd.Series:
    """Return each model's mean rank over the data sets; 1 is best, ties share a rank.

    Examples
    --------
    >>> average_ranks(pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.2]})).tolist()
    [1.25, 1.75]
    """
    scores = _with_ties(_complete(scores))
    return scores.rank(axis=1, ascending=not higher_is_better).mean()


def friedman(scores: pd.DataFrame, *, higher_is_better: bool = False) -> Friedman:
    """Perform Friedman's test with Iman and Davenport's correction.

    Parameters
    ----------
    scores : DataFrame
        One row per data set, one column per model; at least three models.
    higher_is_better : bool
    """
    scores = _with_ties(_complete(scores))
    n, k = scores.shape
    if n < 2 or k < 3:
        raise ArgumentError(f"Friedman's test needs 2 data sets and 3 models, got {n} and {k}")
    ranks = average_ranks(scores, higher_is_better=higher_is_better)
    if (scores.nunique(axis=1) == 1).all():
        return Friedman(0.0, 1.0, 0.0, 1.0, ranks, n)
    chi2, p = stats.friedmanchisquare(*(scores[model] for model in scores))
    left = n * (k - 1) - chi2
    f = (n - 1) * chi2 / left if left > 0 else np.inf
    f_p = stats.f.sf(f, k - 1, (k - 1) * (n - 1))
    return Friedman(float(chi2), float(p), float(f), float(f_p), ranks, n)


def nemenyi(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the p-value of each pair of models, adjusted for all pairs (Nemenyi's test)."""
    scores = _complete(scores)
    n, k = scores.shape
    ranks = average_ranks(scores).reindex(scores.columns).to_numpy()
    apart = np.abs(ranks[:, None] - ranks) / np.sqrt(k * (k + 1) / (6 * n))
    p = stats.studentized_range.sf(apart * np.sqrt(2), k, np.inf)
    return pd.DataFrame(p, index=scores.columns, columns=scores.columns)


def critical_difference(n_models: int, n_data: int, level: float = 0.05) -> float:
    """Return how far apart two average ranks must be to differ at a level (Nemenyi).

    ``CD = q sqrt(k (k + 1) / (6 N))`` with q the studentised range over sqrt(2).

    Examples
    --------
    >>> round(critical_difference(4, 14), 3)  # Demsar's section 3.2.4 works with 1.25
    1.254
    """
    if n_models < 2 or n_data < 1:
        raise ArgumentError(f"need 2 models and a data set, got {n_models} and {n_data}")
    q = stats.studentized_range.ppf(1 - level, n_models, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_models * (n_models + 1) / (6 * n_data)))


def holm(p: Any) -> np.ndarray:
    """Return p-values of several tests adjusted by Holm's method.

    The k-th smallest of n p-values is multiplied by ``n + 1 - k``, and none is adjusted to less
    than a smaller one. (statsmodels has it too, but collects garbage at every call, which takes
    longer than everything else here.)

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=float)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    return np.minimum(adjusted, 1.0)


def holm_against(scores: pd.DataFrame, control: str) -> pd.DataFrame:
    """Compare every other model with one: signed-rank tests over the rows, adjusted by Holm.

    Returns
    -------
    DataFrame
        One row per model: ``difference`` (its mean minus that of the control), ``effect``
        (`paired_effect`), ``p``, ``adjusted_p``.

    Examples
    --------
    >>> frame = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "b": [2.0, 3, 5, 6, 7, 9]})
    >>> holm_against(frame, "a")["adjusted_p"].tolist()
    [0.03125]
    """
    scores = _complete(scores)
    if control not in scores:
        raise ArgumentError(f"no model is called {control!r}: there are {list(scores)}")
    others = [model for model in scores if model != control]
    if not others:
        raise ArgumentError(f"there is nothing to compare {control!r} with")
    table = pd.DataFrame(
        {
            "difference": [(scores[m] - scores[control]).mean() for m in others],
            "effect": [paired_effect(scores[m], scores[control]) for m in others],
            "p": [signed_rank(scores[m], scores[control]).p for m in others],
        },
        index=pd.Index(others, name="model"),
    )
    return table.assign(adjusted_p=holm(table["p"]))


class WinDrawLoss(NamedTuple):
    """Number of data sets on which a model is better, not different, or worse."""

    wins: int
    draws: int
    losses: int


def win_draw_loss(
    scores: pd.DataFrame,
    model: str,
    other: str,
    *,
    level: float = 0.05,
    higher_is_better: bool = False,
    paired: bool = True,
) -> WinDrawLoss:
    """Count the data sets on which a model wins, draws and loses by a Wilcoxon test.

    Parameters
    ----------
    scores : DataFrame
        As `EvaluationResult.scores`: a level ``data`` in the index, one row per fold.
    model, other : str
        Columns.
    level : float
    higher_is_better : bool
    paired : bool
        Whether to use the signed-rank test over the folds; False uses the rank-sum test.

    Examples
    --------
    >>> index = pd.MultiIndex.from_product([["x", "y"], range(6)], names=["data", "fold"])
    >>> a = np.arange(12.0)
    >>> frame = pd.DataFrame({"a": a, "b": a + np.r_[np.ones(6), np.zeros(6)]}, index=index)
    >>> win_draw_loss(frame, "a", "b")
    WinDrawLoss(wins=1, draws=1, losses=0)
    """
    counts = {"win": 0, "draw": 0, "loss": 0}
    for _, part in scores[[model, other]].dropna().groupby(level="data"):
        a, b = part[model], part[other]
        p = (signed_rank if paired else rank_sum)(a, b).p
        better = (a.mean() > b.mean()) == higher_is_better
        counts["draw" if p >= level else "win" if better else "loss"] += 1
    return WinDrawLoss(counts["win"], counts["draw"], counts["loss"])


def _with_ties(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores of nine digits: equal errors must tie, in whatever order they were summed."""
    size = np.maximum(np.abs(scores.to_numpy(dtype=np.float64)).max(axis=1, keepdims=True), 1e-300)
    return (scores / size).round(DIGITS)


def _complete(scores: pd.DataFrame) -> pd.DataFrame:
    incomplete = scores.isna().any()
    if incomplete.any():
        raise ArgumentError(
            f"values are missing for {list(scores.columns[incomplete])}: leave out those models, "
            "or the data sets on which they failed"
        )
    return scores
