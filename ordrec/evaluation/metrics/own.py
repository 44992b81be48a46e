"""Metrics of one's own: a function, where its better values are, and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.metrics.measure_types import ListMeasure, Measure
from ordrec.evaluation.metrics.outcome import MetricValue, Outcome, UserSums

__all__ = ["OwnMetric"]

BETTER = ("higher", "lower")
ON = ("ratings", "distributions", "lists")


@dataclass(frozen=True)
class OwnMetric:
    """A metric of your own for `ordrec.evaluation.evaluate`.

    Parameters
    ----------
    function : callable
        Returns a number, which may be NaN where it is not defined. It takes

        * for ratings: the true and the predicted ratings, as in scikit-learn;
        * for distributions: the true levels, from 0, and an array with a row of probabilities each;
        * for lists: the ids of a user's first ``k`` items, the best first, and a dictionary of the
          user's test ratings by the id of the item.
    better : {"higher", "lower"}
        Where better values are.
    on : {"ratings", "distributions", "lists"}
        What the function is given.
    k : int
        Length of the lists.
    name : str, optional
        In tables; by default that of the function.

    Notes
    -----
    On ratings and distributions, "micro" is the function of all test ratings and "macro" its mean
    over users, which also has intervals and tests. On lists there is the mean over users.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.evaluation import evaluate
    >>> def within_one(true, predicted):
    ...     return float((abs(true - predicted) <= 1).mean())
    >>> ratings = synthetic_ratings(60, 40, n_ratings=1200, seed=0)
    >>> result = evaluate(ratings, ["bias"], metrics=["mae", OwnMetric(within_one, "higher")])
    >>> list(result.averages())
    ['mae', 'within_one']
    """

    function: Callable[..., Any]
    better: Literal["higher", "lower"]
    on: Literal["ratings", "distributions", "lists"] = "ratings"
    k: int = 10
    name: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ArgumentError(f"function must be callable, got {self.function!r}")
        for name, allowed in (("better", BETTER), ("on", ON)):
            if getattr(self, name) not in allowed:
                raise ArgumentError(
                    f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}"
                )
        if self.k < 1:
            raise ArgumentError(f"k must be at least 1, got {self.k}")

    def measure(self) -> Measure:
        """Return the metric as evaluations apply it."""
        name = self.name or str(getattr(self.function, "__name__", type(self.function).__name__))
        higher = self.better == "higher"
        if self.on == "lists":
            return OwnListMeasure(
                name, "ranking", None, "mean", ("macro",), options={"k": self.k},
                higher_is_better=higher, function=self.function,
            )  # fmt: skip
        metric = _Grouped(self.function, name)
        if self.on == "distributions":
            return Measure(name, "probability", metric, higher_is_better=higher)
        return Measure(name, "error", metric, "mean", unit="number", higher_is_better=higher)


@dataclass(frozen=True)
class _Grouped:
    """A function of true and predicted values, also applied to the rows of each user."""

    function: Callable[..., Any]
    name: str

    def __call__(self, true: np.ndarray, predicted: np.ndarray) -> float:
        return _number(self.function(true, predicted), self.name)

    def per_group(self, true: np.ndarray, predicted: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return the value of each distinct group, in sorted order."""
        order = np.argsort(groups, kind="stable")
        _, starts = np.unique(groups[order], return_index=True)
        return np.array([self(true[rows], predicted[rows]) for rows in np.split(order, starts[1:])])


@dataclass(frozen=True)
class OwnListMeasure(ListMeasure):
    """A function of a user's list and test ratings, averaged over users."""

    function: Any = None

    @property
    def needs_p_pick(self) -> bool:
        """Lists alone are enough."""
        return False

    def values(self, outcome: Outcome, decision: str) -> list[MetricValue]:
        """Return the mean over users, with their values."""
        lists, test = outcome.lists, outcome.test
        assert lists is not None
        found = np.empty(lists.users.size)
        for row, (user, items) in enumerate(zip(lists.users, lists.items, strict=True)):
            mine = test.rows_of_user(int(user))
            picked = dict(
                zip(test.item_ids.take(test.items[mine]), test.values[mine].tolist(), strict=True)
            )
            listed = test.item_ids.take(items[: self.list_length][items[: self.list_length] >= 0])
            found[row] = _number(self.function(listed.to_numpy(), picked), self.name)
        defined = ~np.isnan(found)
        sums = UserSums(lists.users[defined], found[defined], np.ones(int(defined.sum())))
        value = float(found[defined].mean()) if defined.any() else float("nan")
        return [MetricValue("macro", value, int(defined.sum()), sums)]


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"metric {name!r} returned {type(value).__name__}: return a number"
        ) from None
