"""What an experiment measures models on.

A problem has named folds. It fits a fresh copy of a model on the training part of a fold,
measures it on the test part, and can make a smaller problem of a training part alone, which
is what models are selected on.
"""

from __future__ import annotations

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["Problem", "Row", "result_row", "seeded", "timed"]

Row = dict[str, Any]


class Problem(ABC):
    """A data set with its folds."""

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
        """What is measured when nothing else is asked for."""

    @abstractmethod
    def checksum(self) -> str:
        """A hash of the data and the folds."""

    @abstractmethod
    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Fit a copy of the model on the training part and measure it on the test part.

        One row a metric, with ``metric average decision value n n_test fit_seconds
        predict_seconds``. A metric that the model cannot have is left out.
        """

    @abstractmethod
    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """The training part of a fold as a problem with folds of its own."""

    def _position(self, fold: str) -> int:
        if fold not in self.folds:
            raise ArgumentError(f"{self.name} has no fold {fold!r}: it has {self.folds}")
        return self.folds.index(fold)


def seeded(model: Any, seed: int, classes: np.ndarray | None = None) -> Any:
    """A copy with ``random_state`` and, where it is not set, ``classes``, also of its parts."""
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
    """What it returns, and how many seconds it took."""
    start = time.perf_counter()
    done = work()
    return done, time.perf_counter() - start


def result_row(metric: str, average: str, decision: str, value: float, n: int) -> Row:
    """The columns that every problem has in a row."""
    return {
        "metric": metric,
        "average": average,
        "decision": decision,
        "value": float(value),
        "n": int(n),
    }
