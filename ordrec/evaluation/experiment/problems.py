"""`Problem`: a data set with folds on which an experiment measures models.

A problem fits a fresh copy of a model on the training part of a fold and measures it on the test
part. It can also turn a training part into a smaller problem, on which models are selected.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.runtime.progress import work_clock

__all__ = ["Problem", "Row", "result_row", "seeded", "timed"]

Row = dict[str, Any]


class Problem(ABC):
    """A data set with named folds."""

    name: str

    @property
    @abstractmethod
    def split(self) -> str:
        """How the folds were made."""

    @property
    @abstractmethod
    def folds(self) -> list[str]:
        """The names of the folds."""

    @property
    @abstractmethod
    def default_metrics(self) -> tuple[str, ...]:
        """The metrics that are measured by default."""

    @abstractmethod
    def checksum(self) -> str:
        """Return a hash of the data and the folds."""

    @abstractmethod
    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Fit a copy of the model on the training part and measure it on the test part.

        Returns one row per metric, with ``metric average decision value n n_test fit_seconds
        predict_seconds``. A metric that the model cannot have is omitted.
        """

    @abstractmethod
    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """Return the training part of a fold as a problem with folds of its own."""

    def _position(self, fold: str) -> int:
        if fold not in self.folds:
            raise ArgumentError(f"{self.name} has no fold {fold!r}: it has {self.folds}")
        return self.folds.index(fold)


def seeded(model: Any, seed: int, classes: np.ndarray | None = None) -> Any:
    """Return a copy with ``random_state`` and, if unset, ``classes``, also in nested estimators."""
    if isinstance(model, str):
        return model
    model = copy.deepcopy(model)
    if not hasattr(model, "get_params"):
        if hasattr(model, "random_state"):
            model.random_state = seed
        return model
    for name, value in model.get_params(deep=True).items():
        last = name.rpartition("__")[2]
        if last == "random_state":
            model.set_params(**{name: seed})
        elif last == "classes" and value is None and classes is not None:
            model.set_params(**{name: classes})
    return model


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """Call a function; return its result and the seconds it took, without those of compiling."""
    start = work_clock()
    result = work()
    return result, work_clock() - start


def result_row(metric: str, average: str, decision: str, value: float, n: int) -> Row:
    """Return the columns that the rows of every problem have."""
    return {
        "metric": metric,
        "average": average,
        "decision": decision,
        "value": float(value),
        "n": int(n),
    }
