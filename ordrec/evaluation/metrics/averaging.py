"""The pooled (micro) and the per-user (macro) form of every metric.

A metric is written once, for rows sorted into segments: it returns one value per segment.
`by_group` turns that into a function ``metric(y_true, y_pred, *, groups=None)``: without
groups everything is one segment (the pooled form), with groups (users, queries) the
values of the groups are averaged with equal weight (the macro form). A group for which
the metric is undefined (NaN) is omitted from that average unless ``undefined=`` gives the value
it counts as (LETOR's tables count a query without relevant documents as 0);
``metric.per_group(y_true, y_pred, groups)`` returns the value of each group.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, overload

import numpy as np

from ordrec.errors import ArgumentError, DataError

__all__ = ["Metric", "by_group", "segment_means", "segment_of_rows", "segment_sums", "segments"]


class Metric(Protocol):
    """The type of a metric made by `by_group`."""

    __name__: str

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        groups: Any = None,
        undefined: float | None = None,
        **options: Any,
    ) -> float:
        """Return the pooled value without groups, otherwise the mean over the groups."""
        ...

    def per_group(self, y_true: Any, y_pred: Any, groups: Any, **options: Any) -> np.ndarray:
        """Return one value per distinct group, in sorted order; NaN where it is undefined."""
        ...

    def of_segments(
        self, y_true: np.ndarray, y_pred: np.ndarray, start: np.ndarray, **options: Any
    ) -> np.ndarray:
        """Return one value per segment of sorted rows: the function that `by_group` was given."""
        ...


@overload
def by_group(segment_values: Callable[..., np.ndarray]) -> Metric: ...
@overload
def by_group(*, pred_ndim: int) -> Callable[[Callable[..., np.ndarray]], Metric]: ...
def by_group(segment_values: Any = None, *, pred_ndim: int = 1) -> Any:
    """Turn a function ``(y_true, y_pred, start, **options) -> values`` into a metric.

    Segment ``g`` of its rows is ``start[g]:start[g + 1]``; no segment is empty. With
    ``pred_ndim=2`` a prediction is a row of numbers.
    """
    if segment_values is None:
        return functools.partial(_metric, pred_ndim=pred_ndim)
    return _metric(segment_values, pred_ndim)


def _metric(segment_values: Callable[..., np.ndarray], pred_ndim: int) -> Metric:
    name = segment_values.__name__

    def per_group(y_true: Any, y_pred: Any, groups: Any, **options: Any) -> np.ndarray:
        true, pred = _checked(y_true, y_pred, pred_ndim, name)
        order, start = segments(groups, true.size)
        return segment_values(true[order], pred[order], start, **options)

    @functools.wraps(segment_values)
    def metric(
        y_true: Any,
        y_pred: Any,
        *,
        groups: Any = None,
        undefined: float | None = None,
        **options: Any,
    ) -> float:
        values = per_group(y_true, y_pred, groups, **options)
        if undefined is not None:
            values = np.where(np.isnan(values), undefined, values)
        defined = values[~np.isnan(values)]
        return float(defined.mean()) if defined.size else float("nan")

    metric.per_group = per_group  # type: ignore[attr-defined]
    metric.of_segments = segment_values  # type: ignore[attr-defined]
    metric.__signature__ = _signature(segment_values)  # type: ignore[attr-defined]
    metric.__annotations__ = {"return": "float"}
    return metric  # type: ignore[return-value]


def segment_sums(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the sum over each segment's rows."""
    return np.add.reduceat(values, start[:-1], axis=0)


def segment_means(values: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the mean over each segment's rows, which are numbers or rows of numbers."""
    return segment_sums(values, start) / np.diff(start)


def segment_of_rows(start: np.ndarray) -> np.ndarray:
    """Return the segment number of each row."""
    return np.repeat(np.arange(start.size - 1), np.diff(start))


def _signature(segment_values: Callable[..., Any]) -> inspect.Signature:
    """Return the signature for callers: ``groups`` and ``undefined`` in place of ``start``."""
    first, second, _, *options = inspect.signature(segment_values).parameters.values()
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in ("groups", "undefined")
    ]
    return inspect.Signature([first, second, *added, *options], return_annotation="float")


def _checked(y_true: Any, y_pred: Any, pred_ndim: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    true, pred = (_as_floats(values, name) for values in (y_true, y_pred))
    if true.ndim != 1 or pred.ndim != pred_ndim:
        raise ArgumentError(
            f"{name}: need one true value and {'one number' if pred_ndim == 1 else 'one row'} per "
            f"prediction, got shapes {true.shape} and {pred.shape}"
        )
    if len(true) != len(pred):
        raise ArgumentError(f"{name}: {len(true)} true values but {len(pred)} predictions")
    if len(true) == 0:
        raise DataError(f"{name}: nothing to measure, there are no rows")
    for what, values in (("true value", true), ("prediction", pred)):
        bad = np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))
        if bad.size:
            raise DataError(
                f"{name}: the {what} of row {bad[0]} is {values[bad[0]]} ({bad.size} in all): "
                "every row needs a finite number"
            )
    return true, pred


def _as_floats(values: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: values must be numbers, all rows of equal length") from None


def segments(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows sorted by group, and where each group starts; None makes one group."""
    if groups is None:
        return np.arange(n_rows), np.array([0, n_rows])
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise ArgumentError(f"groups must name one group per row: {groups.shape} for {n_rows} rows")
    _, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return np.argsort(codes, kind="stable"), np.concatenate([[0], np.cumsum(counts)])
