"""Whether one model is better than another, or chance could have done it.

The tests are those of scipy, statsmodels and scikit-posthocs; this module arranges what an
experiment measured for them and names the results. Two shapes of input:

* values of two models on the same folds (`signed_rank`, `corrected_t`, `paired_effect`), or on
  folds of their own (`rank_sum`, `cliffs_delta`);
* a frame with one row a data set and one column a model (`friedman`, `nemenyi`,
  `holm_against`), such as `ExperimentResult.means`.

References: Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7
(2006); Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from ordrec.errors import ArgumentError

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


class Comparison(NamedTuple):
    """A test of two models: its statistic, and how probable one as extreme is by chance."""

    statistic: float
    p: float


class Interval(NamedTuple):
    """An estimate between two bounds."""

    low: float
    estimate: float
    high: float


# ---- two models --------------------------------------------------------------------------


def signed_rank(a: Any, b: Any) -> Comparison:
    """Wilcoxon's signed-rank test of values measured on the same folds.

    Equal values count half to each side (Pratt's zeros split in two); if all are equal, p is 1.

    Examples
    --------
    >>> signed_rank([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.4, 0.6, 0.8, 1.0, 1.2]).p
    0.03125
    """
    a, b = _paired(a, b)
    if np.array_equal(a, b):
        return Comparison(0.0, 1.0)
    found = stats.wilcoxon(a, b, zero_method="zsplit")
    return Comparison(float(found.statistic), float(found.pvalue))


def rank_sum(a: Any, b: Any) -> Comparison:
    """Wilcoxon's rank-sum test (Mann and Whitney's U) of values on folds of their own.

    Examples
    --------
    >>> round(rank_sum([1, 2, 3, 4], [5, 6, 7, 8]).p, 4)
    0.0286
    """
    a, b = _sample(a), _sample(b)
    found = stats.mannwhitneyu(a, b, alternative="two-sided")
    return Comparison(float(found.statistic), float(found.pvalue))


def corrected_t(a: Any, b: Any, *, n_train: int, n_test: int) -> Comparison:
    """Paired t-test whose variance allows for training parts that overlap.

    With differences ``d`` of J resampled folds, ``t = mean(d) / sqrt((1/J + n_test/n_train)
    var(d))`` with J - 1 degrees of freedom (Nadeau and Bengio): the plain test takes the
    folds for independent and finds differences that are not there.

    Parameters
    ----------
    a, b : array of float
        Values on the same folds.
    n_train, n_test : int
        Sizes of the two parts of a fold.

    Examples
    --------
    >>> a, b = [0.30, 0.28, 0.31, 0.29], [0.33, 0.32, 0.33, 0.33]
    >>> round(corrected_t(a, b, n_train=75, n_test=25).p, 3)
    0.021
    """
    a, b = _paired(a, b)
    if n_train < 1 or n_test < 1:
        raise ArgumentError(f"a fold has rows in both parts, got {n_train} and {n_test}")
    difference = a - b
    if not difference.any():
        return Comparison(0.0, 1.0)
    variance = difference.var(ddof=1) * (1 / difference.size + n_test / n_train)
    if variance == 0.0:
        return Comparison(float(np.copysign(np.inf, difference.mean())), 0.0)
    t = float(difference.mean() / np.sqrt(variance))
    return Comparison(t, float(2 * stats.t.sf(abs(t), difference.size - 1)))


def paired_effect(a: Any, b: Any) -> float:
    """Cohen's d of paired values, ``mean(a - b) / std(a - b)``: the shift in its own spread.

    Examples
    --------
    >>> round(paired_effect([3.0, 4.0, 6.0], [1.0, 3.0, 3.0]), 4)
    2.0
    """
    a, b = _paired(a, b)
    difference = a - b
    spread = difference.std(ddof=1)
    if spread == 0.0:
        return 0.0 if not difference.any() else float(np.copysign(np.inf, difference.mean()))
    return float(difference.mean() / spread)


def cliffs_delta(a: Any, b: Any) -> float:
    """Cliff's delta, ``P(a > b) - P(a < b)``, from -1 to 1; 0 where neither tends to be larger.

    Examples
    --------
    >>> round(cliffs_delta([1, 2, 3], [0, 2, 2]), 4)
    0.3333
    """
    a, b = _sample(a), _sample(b)
    u = stats.mannwhitneyu(a, b, alternative="two-sided").statistic
    return float(2 * u / (a.size * b.size) - 1)


def bootstrap_interval(
    values: Any,
    clusters: Any = None,
    *,
    level: float = 0.95,
    n_resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a mean when values come in clusters, such as ratings of users.

    Whole clusters are drawn with replacement and the mean is over the values of those drawn,
    so that it is the pooled mean and its interval is as wide as the clusters are unlike.

    Parameters
    ----------
    values : array of float
        Such as the absolute error of each rating, or the difference of two models' errors.
    clusters : array, optional
        The user of each value; without it every value stands alone.
    level : float
    n_resamples : int
    seed : int

    Examples
    --------
    >>> low, mean, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"])
    >>> low, mean, high
    (1.5, 2.5, 3.5)
    """
    values = _sample(values)
    codes = np.arange(values.size) if clusters is None else pd.factorize(np.asarray(clusters))[0]
    if codes.shape != values.shape:
        raise ArgumentError(f"{values.size} values and {codes.size} clusters: one for each value")
    if not 0 < level < 1:
        raise ArgumentError(f"level must lie between 0 and 1, got {level}")
    sums, counts = np.bincount(codes, values), np.bincount(codes).astype(float)
    mean = float(values.mean())
    if sums.size < 2:
        raise ArgumentError("an interval needs values of at least two clusters")
    found = stats.bootstrap(
        (sums, counts),
        lambda s, n, axis: s.sum(axis=axis) / n.sum(axis=axis),
        paired=True,
        vectorized=True,
        confidence_level=level,
        n_resamples=n_resamples,
        batch=max(1, 10_000_000 // sums.size),
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(found.low), mean, float(found.high))


# ---- many models on many data sets -------------------------------------------------------


@dataclass(frozen=True)
class Friedman:
    """Whether several models differ at all over data sets.

    Attributes
    ----------
    chi2, p : float
        Friedman's statistic and its p.
    f, f_p : float
        Iman and Davenport's less conservative form, and its p.
    ranks : Series
        The average rank of each model, 1 the best.
    n_data : int
    """

    chi2: float
    p: float
    f: float
    f_p: float
    ranks: pd.Series
    n_data: int


def average_ranks(scores: pd.DataFrame, *, higher_is_better: bool = False) -> pd.Series:
    """Mean over the data sets of each model's rank, 1 the best, equal ones share.

    Examples
    --------
    >>> average_ranks(pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.2]})).tolist()
    [1.25, 1.75]
    """
    return _complete(scores).rank(axis=1, ascending=not higher_is_better).mean()


def friedman(scores: pd.DataFrame, *, higher_is_better: bool = False) -> Friedman:
    """Friedman's test with Iman and Davenport's correction.

    Parameters
    ----------
    scores : DataFrame
        One row a data set, one column a model; at least three models.
    higher_is_better : bool
    """
    scores = _complete(scores)
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
    """p of each pair of models after Friedman's test, allowing for all pairs (Nemenyi)."""
    import scikit_posthocs  # type: ignore[import-untyped]

    scores = _complete(scores)
    table = scikit_posthocs.posthoc_nemenyi_friedman(scores.to_numpy())
    table.index = table.columns = scores.columns
    return table


def critical_difference(n_models: int, n_data: int, level: float = 0.05) -> float:
    """How far two average ranks must lie apart to differ at this level (Nemenyi).

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
    """p of several tests made comparable to one level by Holm's steps (statsmodels).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    return multipletests(np.asarray(p, dtype=float), method="holm")[1]


def holm_against(scores: pd.DataFrame, control: str) -> pd.DataFrame:
    """Every other model against one: signed-rank tests over the rows, adjusted by Holm.

    Returns
    -------
    DataFrame
        One row a model: ``difference`` (mean of it minus the control's), ``effect``
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
    """On how many data sets a model is better, not different, worse."""

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
    """Count data sets by a Wilcoxon test over the folds of each.

    Parameters
    ----------
    scores : DataFrame
        As `ExperimentResult.scores`: a level ``data`` in the index, one row a fold.
    model, other : str
        Columns.
    level : float
    higher_is_better : bool
    paired : bool
        Signed-rank test of the folds; False takes the rank-sum test.

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


# ---- checks ------------------------------------------------------------------------------


def _sample(values: Any) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size < 2 or not np.isfinite(array).all():
        raise ArgumentError("a test needs at least two finite values of each model")
    return array


def _paired(a: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    first, second = _sample(a), _sample(b)
    if first.shape != second.shape:
        raise ArgumentError(f"paired values must be as many: {first.size} and {second.size}")
    return first, second


def _complete(scores: pd.DataFrame) -> pd.DataFrame:
    holes = scores.isna().any()
    if holes.any():
        raise ArgumentError(
            f"values are missing for {list(scores.columns[holes])}: leave out those models, or the "
            "data sets on which they failed"
        )
    return scores
