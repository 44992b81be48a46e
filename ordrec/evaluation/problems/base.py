"""`Problem`: a data set with folds on which an experiment measures models.

A problem fits a fresh copy of a model on the training part of a fold and measures it on the test
part. It can also turn a training part into a smaller problem, on which models are selected.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.outcome import UserSums
from ordrec.evaluation.problems.example_users import ExampleUser
from ordrec.runtime.progress import work_clock

__all__ = ["Key", "Measurement", "Problem", "Row", "none_applies", "result_row", "seeded", "timed"]

Row = dict[str, Any]
Key = tuple[str, str, str]  # users, metric, average

SUM_ARRAYS = ("users", "sums", "counts")  # of a `UserSums`


@dataclass(frozen=True)
class Measurement:
    """What was measured of one model on one fold, or the error that was raised instead.

    Attributes
    ----------
    rows : list of dict
        As `Problem.measure` returns them.
    sums : dict
        What each user adds to a value, for values that are means over users or their ratings.
    predictions : dict of str to array, optional
        The test ratings (``users``, ``items``, ``levels``, ``rating``), and what was predicted for
        them, as far as it was: ``prediction``, ``score``, ``place``, ``p``; the ``scale``; and the
        first items of the lists of ranked users, ``list_items`` of ``list_users``.
    examples : list of ExampleUser
    error : str
    commit : str
        The version of the code.
    """

    rows: list[Row] = field(default_factory=list)
    sums: dict[Key, UserSums] = field(default_factory=dict)
    predictions: dict[str, np.ndarray] | None = None
    examples: list[ExampleUser] = field(default_factory=list)
    error: str = ""
    commit: str = ""

    @property
    def distributions(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The levels of the test ratings and the distributions that were predicted for them."""
        kept = self.predictions
        return None if kept is None or "p" not in kept else (kept["levels"], kept["p"])

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays and the metadata from which `from_arrays` restores it."""
        arrays = {
            f"sums.{number}.{name}": np.asarray(getattr(sums, name))
            for number, sums in enumerate(self.sums.values())
            for name in SUM_ARRAYS
        }
        for name, column in (self.predictions or {}).items():
            arrays[f"predicted.{name}"] = column
        # A value that is not defined is None in json.
        rows = [row | {"value": row["value"] if np.isfinite(row["value"]) else None}
                for row in self.rows]  # fmt: skip
        return arrays, {
            "rows": rows,
            "sums": [[*key, bool(sums.root)] for key, sums in self.sums.items()],
            "examples": [user.to_json() for user in self.examples],
            "commit": self.commit,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> Self:
        """Restore a measurement; raises LookupError, TypeError or ValueError if it is damaged."""
        rows = []
        for row in about["rows"]:
            value = float("nan") if row["value"] is None else row["value"]
            if not isinstance(row["metric"], str) or not isinstance(value, int | float):
                raise ValueError("a row has no metric or no value")
            rows.append(row | {"value": value})
        sums = {
            (users, metric, average): UserSums(
                **{name: arrays[f"sums.{number}.{name}"] for name in SUM_ARRAYS}, root=root
            )
            for number, (users, metric, average, root) in enumerate(about["sums"])
        }
        return cls(
            rows,
            sums,
            {
                name.removeprefix("predicted."): array
                for name, array in arrays.items()
                if name.startswith("predicted.")
            }
            or None,
            [ExampleUser.from_json(user) for user in about["examples"]],
            commit=str(about["commit"]),
        )


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

    def measurement(
        self, model: Any, fold: str, metrics: Sequence[str], seed: int, name: str = "model"
    ) -> Measurement:
        """Return the rows of `measure` with what else the problem can tell of this model.

        ``name`` is that of the model in messages.
        """
        return Measurement(self.measure(model, fold, metrics, seed))

    def for_models(self, models: Iterable[Any]) -> Problem:
        """Return the problem with all settled that is to be the same for these models."""
        return self

    def about(self) -> dict[str, Any]:
        """Return what a manifest says of the problem besides its checksum and its split."""
        return {}

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


def none_applies(metrics: Iterable[str], models: Iterable[str]) -> ArgumentError:
    """Return the error for models to which none of the metrics applies."""
    return ArgumentError(
        f"none of the metrics {', '.join(metrics)} applies to "
        f"{', '.join(models)}: a model without predict_proba has no distribution to measure, "
        "one that only ranks has ranking metrics only, and pick_calibration needs lists with "
        "p_pick, such as those of a Recommender"
    )
