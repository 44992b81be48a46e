"""Intervals of every value, and tests against the best model or a reference of choice.

Users are drawn with replacement, with all their ratings in all folds, and every value of every
model is computed again for each draw. The interval lies between percentiles of the draws. The
difference between a model and the best one, or the reference, is taken within each draw; its
two-sided p-value is twice the share of draws on the other side of zero, adjusted for the number of
models by Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.problems.base import Key, Measurement
from ordrec.evaluation.significance.bootstrap import resampled_ratios
from ordrec.evaluation.significance.rank_tests import holm

__all__ = ["COLUMNS", "against_best"]

COLUMNS = [
    "users", "metric", "average", "model", "value", "low", "high", "against", "difference", "p",
    "adjusted_p", "verdict",
]  # fmt: skip


def against_best(
    measured: Mapping[str, Sequence[Measurement]],
    *,
    against: str | None = None,
    level: float = 0.05,
    n_resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare every model with the best one, or with a reference, by resampling users.

    Parameters
    ----------
    measured : mapping of str to sequence of Measurement
        The folds of each model.
    against : str, optional
        The model that the others are compared with; by default the best by each metric.
    level : float
        Of the tests; intervals have coverage ``1 - level``.
    n_resamples : int
        Number of draws of users; 0 for no comparison.
    seed : int

    Returns
    -------
    DataFrame
        One row per group of users, metric, average and model that was measured on all its
        folds. ``value`` is the mean over the folds, ``low`` and ``high`` bound its interval
        of coverage ``1 - level``; ``difference`` is that to the model ``against``, with ``p``
        and ``adjusted_p``; ``verdict`` is "best", "tied" (not significantly worse than the best)
        or "worse". With a reference it is "reference", "better", "tied" or "worse"; a metric that
        the reference lacks has intervals only, and no verdict.
    """
    # The mean of a model that failed is over fewer folds than those of the others.
    whole = {model: folds for model, folds in measured.items() if not any(f.error for f in folds)}
    keys = list(dict.fromkeys(key for folds in whole.values() for f in folds for key in f.sums))
    found = [
        row
        for users in dict.fromkeys(key[0] for key in keys)
        for row in _of_users(
            [key for key in keys if key[0] == users], whole, against, level, n_resamples, seed
        )
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def _of_users(
    keys: list[Key],
    measured: Mapping[str, Sequence[Measurement]],
    against: str | None,
    level: float,
    n_resamples: int,
    seed: int,
) -> list[dict[str, object]]:
    """Return the rows of all metrics of one group of users, over the same draws."""
    used = [
        (key, model, [fold for fold in folds if key in fold.sums])
        for key in keys
        for model, folds in measured.items()
        if any(key in fold.sums for fold in folds)
    ]
    no_users = np.zeros(0, dtype=np.int64)
    every = np.unique(
        np.concatenate([no_users, *(f.sums[key].users for key, _, folds in used for f in folds)])
    )
    if every.size < 2 or n_resamples < 1:
        return []
    sums = np.zeros((every.size, sum(len(folds) for _, _, folds in used)))
    counts = np.zeros_like(sums)
    owner: list[int] = []
    root: list[bool] = []
    for number, (key, _, folds) in enumerate(used):
        for fold in folds:
            part, column = fold.sums[key], len(owner)
            rows = np.searchsorted(every, part.users)
            sums[rows, column], counts[rows, column] = part.sums, part.counts
            owner.append(number)
            root.append(part.root)
    total = counts.sum(axis=0, keepdims=True)
    whole = np.divide(
        sums.sum(axis=0, keepdims=True), total, out=np.full(total.shape, np.nan), where=total > 0
    )
    draws = resampled_ratios(sums, counts, n_resamples=n_resamples, seed=seed)
    values = _over_folds(whole, np.array(owner), np.array(root))[0]
    drawn = _over_folds(draws, np.array(owner), np.array(root))
    rows_of_key: list[dict[str, object]] = []
    for key in keys:
        mine = [number for number, (other, _, _) in enumerate(used) if other == key]
        names = [used[number][1] for number in mine]
        rows_of_key += _verdicts(key, names, values[mine], drawn[:, mine], against, level)
    return rows_of_key


def _over_folds(ratios: np.ndarray, owner: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return the mean over the folds of each value, one column per value."""
    ratios = ratios.copy()
    ratios[:, root] = np.sqrt(ratios[:, root])
    defined = ~np.isnan(ratios)
    belongs = (owner[:, None] == np.arange(owner.max() + 1)).astype(np.float64)
    count = defined @ belongs
    total = np.where(defined, ratios, 0.0) @ belongs
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _verdicts(
    key: Key,
    models: list[str],
    values: np.ndarray,
    drawn: np.ndarray,
    against: str | None,
    level: float,
) -> list[dict[str, object]]:
    defined_for = np.flatnonzero(np.isfinite(values))  # tau of a constant is undefined
    models, values, drawn = (
        [models[m] for m in defined_for],
        values[defined_for],
        drawn[:, defined_for],
    )
    if not models:
        return []
    users, metric, average = key
    low, high = np.nanquantile(drawn, [level / 2, 1 - level / 2], axis=0)
    p = np.full(len(models), np.nan)
    adjusted, verdict = p.copy(), np.full(len(models), "", dtype=object)
    place = None
    if against is None:
        place = int(np.argmin(as_losses(metric, values)))
    elif against in models:
        place = models.index(against)
    if place is not None:
        losses = as_losses(metric, drawn)
        behind = losses - losses[:, [place]]
        defined = ~np.isnan(behind)
        # Against the best, a model that is ahead in most draws is still not worse.
        other_side = behind <= 0
        is_ahead = np.zeros(len(models), dtype=np.bool_)
        if against is not None:
            is_ahead = as_losses(metric, values) < as_losses(metric, values[place])
            other_side = np.where(is_ahead, behind >= 0, other_side)
        p = np.minimum(
            2 * (1 + (defined & other_side).sum(axis=0)) / (1 + defined.sum(axis=0)), 1.0
        )
        others = np.arange(len(models)) != place
        if others.any():
            adjusted[others] = holm(p[others])
        p[place] = np.nan
        verdict[:] = np.where(adjusted < level, np.where(is_ahead, "better", "worse"), "tied")
        verdict[place] = "best" if against is None else "reference"
    return [
        {
            "users": users,
            "metric": metric,
            "average": average,
            "model": model,
            "value": float(values[m]),
            "low": float(low[m]),
            "high": float(high[m]),
            "against": "" if place is None else models[place],
            "difference": float("nan") if place is None else float(values[m] - values[place]),
            "p": float(p[m]),
            "adjusted_p": float(adjusted[m]),
            "verdict": str(verdict[m]),
        }
        for m, model in enumerate(models)
    ]
