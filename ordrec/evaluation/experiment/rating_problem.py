"""`RatingsProblem`: ratings as a problem for an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import joblib

from ordrec.data import Ratings
from ordrec.evaluation.experiment.manifest import ratings_checksum
from ordrec.evaluation.experiment.problems import Problem, Row, seeded
from ordrec.evaluation.measurement import Protocol, measurable_model, measure_fold
from ordrec.evaluation.metrics.measures import DEFAULT_METRICS, measure_from_name
from ordrec.evaluation.splits.base import Split, Splitter
from ordrec.evaluation.splits.ratings import KFold, split_from_name
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["RatingsProblem"]

_NOT_IN_ROWS = ("model", "split", "fold", "users")  # the cell of an experiment has these


@dataclass(frozen=True)
class RatingsProblem(Problem):
    """Ratings with a split; models are rating models or their names.

    Parameters
    ----------
    ratings : Ratings
    splitter : str or Splitter
        As in `ordrec.evaluation.split_from_name`.
    decision, candidates, times : str
        As in `ordrec.evaluation.evaluate`. Values are those for all test users together.
    """

    ratings: Ratings
    splitter: str | Splitter = "holdout:0.2"
    decision: str = "auto"
    candidates: Literal["catalogue", "rated"] = "catalogue"
    times: Literal["unknown", "known"] = "unknown"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the ratings."""
        return self.ratings.name

    @property
    def split(self) -> str:
        """The name of the split, without the seed."""
        return self._splitter.name

    @property
    def folds(self) -> list[str]:
        """The folds, numbered from 1 even where published folds have names."""
        return [str(number + 1) for number in range(self._splitter.n_splits)]

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """The default metrics of `ordrec.evaluation.evaluate`."""
        return DEFAULT_METRICS

    @property
    def _splitter(self) -> Splitter:
        if isinstance(self.splitter, str):
            return split_from_name(self.splitter)
        return self.splitter

    def checksum(self) -> str:
        """Return a hash of the ratings, the split and the protocol."""
        protocol = [repr(self._splitter), self.decision, self.candidates, self.times]
        return joblib.hash([ratings_checksum(self.ratings), *protocol])

    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Fit a copy of the model and return the values for all test users."""
        model = measurable_model("model", seeded(model, seed), seed)
        measures = [measure_from_name(name) for name in dict.fromkeys(metrics)]
        protocol = Protocol(measures, self.decision, self.candidates, seed=seed, times=self.times)
        with one_blas_thread():
            measured = measure_fold("model", model, self._fold(fold), protocol, on_error="raise")
        if not measured.rows:
            raise protocol.none_applies(["model"])
        return [
            {column: value for column, value in row.items() if column not in _NOT_IN_ROWS}
            for row in measured.rows
            if row["users"] == "all"
        ]

    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """Return cross-validation of the training ratings."""
        inner = KFold(n_folds, seed=seed)
        training = self._fold(fold).train_and_given()
        return RatingsProblem(training, inner, self.decision, self.candidates, self.times)

    def _fold(self, fold: str) -> Split:
        folds = self._splitter.split(self.ratings)
        return next(islice(folds, self._position(fold), None))
