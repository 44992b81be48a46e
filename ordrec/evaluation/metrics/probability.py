"""Metrics of predicted distributions over the ranks.

All take ``(levels, probabilities, *, groups=None)``: the true zero-based levels 0..r-1 and one
row of r probabilities per rating. In the formulas ``y`` is the true level, ``p_k`` the probability
of level k and ``F_k = p_0 + ... + p_k``; means are over rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.metrics.averaging import by_group, segment_means, segment_of_rows

__all__ = [
    "brier_score",
    "expected_calibration_error",
    "log_loss",
    "ranked_probability_score",
]

LEAST_PROBABILITY = 1e-15


@by_group(pred_ndim=2)
def log_loss(levels: np.ndarray, probabilities: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the negative log-likelihood per rating, ``mean -ln p_y``.

    Probabilities below 1e-15 count as 1e-15, so that one impossible rating costs 34.5 and
    not infinity.

    Examples
    --------
    >>> round(log_loss([0, 1], [[0.5, 0.5], [0.5, 0.5]]), 4)
    0.6931
    """
    rows, p = _checked(levels, probabilities, "log_loss")
    return segment_means(
        -np.log(np.maximum(p[np.arange(rows.size), rows], LEAST_PROBABILITY)), start
    )


@by_group(pred_ndim=2)
def ranked_probability_score(
    levels: np.ndarray, probabilities: np.ndarray, start: np.ndarray
) -> np.ndarray:
    """Return the ranked probability score.

    ``mean 1/(r - 1) sum_{k < r - 1} (F_k - [y <= k])^2`` is the ordinal relative of the Brier
    score: probability two ranks away from the true one costs more than one rank away. For
    certain predictions it is the absolute error over ``r - 1``.

    Examples
    --------
    >>> ranked_probability_score([0], [[0.0, 0.0, 1.0]])
    1.0
    >>> ranked_probability_score([0], [[0.0, 1.0, 0.0]])
    0.5
    """
    rows, p = _checked(levels, probabilities, "ranked_probability_score")
    below, happened = _cumulative(rows, p)
    return segment_means(((below - happened) ** 2).mean(axis=1), start)


@by_group(pred_ndim=2)
def brier_score(levels: np.ndarray, probabilities: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the Brier score over all levels, ``mean sum_k (p_k - [y = k])^2``, between 0 and 2.

    Examples
    --------
    >>> brier_score([0], [[0.0, 1.0]])
    2.0
    """
    rows, p = _checked(levels, probabilities, "brier_score")
    happened = rows[:, None] == np.arange(p.shape[1])
    return segment_means(((p - happened) ** 2).sum(axis=1), start)


@by_group(pred_ndim=2)
def expected_calibration_error(
    levels: np.ndarray,
    probabilities: np.ndarray,
    start: np.ndarray,
    *,
    event: Literal["top", "cumulative"] = "top",
    n_bins: int = 15,
) -> np.ndarray:
    """Return the expected distance between stated probabilities and observed frequencies.

    Pairs ``(q, e)`` of a stated probability and whether it happened are put into ``n_bins``
    equal bins of ``q`` (a bin includes its upper end, the first one also 0); the error is
    ``sum_b (n_b / n) |mean_b q - mean_b e|``. What is paired depends on ``event``:

    ``"top"``
        one pair per row, the largest probability and whether that level was the true one
        (the lower level when two are equally probable): the usual definition;
    ``"cumulative"``
        ``r - 1`` pairs per row, ``(F_k, [y <= k])`` for ``k = 0..r - 2``: every statement "no
        higher than k" that an ordinal model makes.

    Examples
    --------
    >>> expected_calibration_error([0, 0, 1, 1], [[0.5, 0.5]] * 4)
    0.0
    >>> expected_calibration_error([1, 1], [[1.0, 0.0]] * 2, event="cumulative")
    1.0
    """
    if event not in ("top", "cumulative"):
        raise ArgumentError(f'event must be "top" or "cumulative", got {event!r}')
    if n_bins < 1:
        raise ArgumentError(f"n_bins must be at least 1, got {n_bins}")
    rows, p = _checked(levels, probabilities, "expected_calibration_error")
    if event == "top":
        stated, happened = p.max(axis=1)[:, None], (p.argmax(axis=1) == rows)[:, None]
    else:
        stated, happened = _cumulative(rows, p)
    bins = np.clip(np.ceil(stated * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    cells = (segment_of_rows(start)[:, None] * n_bins + bins).ravel()
    gaps = np.bincount(cells, (stated - happened).ravel(), minlength=(start.size - 1) * n_bins)
    return np.abs(gaps).reshape(-1, n_bins).sum(axis=1) / (np.diff(start) * stated.shape[1])


def _cumulative(rows: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``F_k`` and ``[y <= k]`` for all levels except the last."""
    below = np.minimum(np.cumsum(p, axis=1)[:, :-1], 1.0)
    return below, rows[:, None] <= np.arange(p.shape[1] - 1)


def _checked(levels: np.ndarray, p: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    if p.shape[1] < 2:
        raise ArgumentError(f"{name}: need one column of probabilities per level, got {p.shape}")
    wrong = np.flatnonzero((levels < 0) | (levels >= p.shape[1]) | (levels != np.floor(levels)))
    if wrong.size:
        raise DataError(
            f"{name}: {levels[wrong[0]]:g} is not a level 0..{p.shape[1] - 1} "
            f"({wrong.size} in all): pass zero-based levels, as in ratings.levels"
        )
    wrong = np.flatnonzero((p < 0).any(axis=1) | (np.abs(p.sum(axis=1) - 1.0) > 1e-6))
    if wrong.size:
        raise DataError(
            f"{name}: the probabilities {p[wrong[0]].tolist()} are negative or do not sum to 1 "
            f"({wrong.size} in all)"
        )
    return levels.astype(np.int64), p
