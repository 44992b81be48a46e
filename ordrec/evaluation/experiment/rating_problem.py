"""Ratings as a problem for an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import joblib

from ordrec.evaluation.comparison import evaluate
from ordrec.evaluation.experiment.manifest import ratings_checksum
from ordrec.evaluation.experiment.problems import Problem, Row, seeded
from ordrec.evaluation.metrics.measures import DEFAULT_METRICS
from ordrec.evaluation.splits.base import Split, Splitter
from ordrec.evaluation.splits.ratings import KFold, split_from_name
from ordrec.ratings import Ratings

__all__ = ["RatingsProblem"]


@dataclass(frozen=True)
class RatingsProblem(Problem):
    """Ratings parted by a splitter; models are rating models or their names.

    Parameters
    ----------
    ratings : Ratings
    splitter : str or Splitter
        As in `ordrec.evaluation.split_from_name`.
    decision, candidates : str
        As in `ordrec.evaluation.evaluate`, whose rows of all users are taken over.
    """

    ratings: Ratings
    splitter: str | Splitter = "holdout:0.2"
    decision: str = "auto"
    candidates: Literal["catalogue", "rated"] = "catalogue"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the ratings."""
        return self.ratings.name

    @property
    def split(self) -> str:
        """Name of the split, without the seed."""
        return self._splitter.name

    @property
    def folds(self) -> list[str]:
        """Numbered from 1, whatever a published fold calls itself."""
        return [str(number + 1) for number in range(self._splitter.n_splits)]

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """Those of `ordrec.evaluation.evaluate`."""
        return DEFAULT_METRICS

    @property
    def _splitter(self) -> Splitter:
        if isinstance(self.splitter, str):
            return split_from_name(self.splitter)
        return self.splitter

    def checksum(self) -> str:
        """Of the ratings, the split and how they are measured."""
        how = [repr(self._splitter), self.decision, self.candidates]
        return joblib.hash([ratings_checksum(self.ratings), *how])

    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Rows of `ordrec.evaluation.evaluate`."""
        model = seeded(model, seed)
        one = _OneFold(self._splitter, self._position(fold))
        frame = evaluate(
            self.ratings,
            {"model": model},
            one,
            metrics=metrics,
            decision=self.decision,
            candidates=self.candidates,
            seed=seed,
            n_resamples=0,
            on_error="raise",
        ).frame
        frame = frame[frame["users"] == "all"]
        taken = frame.drop(columns=["data", "model", "split", "fold", "users", "seed"])
        rows = taken.to_dict("records")
        return [{str(column): value for column, value in row.items()} for row in rows]

    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """Cross-validation of the training ratings."""
        part = next(_OneFold(self._splitter, self._position(fold)).split(self.ratings))
        inner = KFold(n_folds, seed=seed)
        return RatingsProblem(part.train_and_given(), inner, self.decision, self.candidates)


@dataclass(frozen=True)
class _OneFold:
    """One fold of another splitter."""

    whole: Splitter
    position: int

    n_splits = 1

    @property
    def name(self) -> str:
        return self.whole.name

    def split(self, ratings: Ratings) -> Iterator[Split]:
        yield from islice(self.whole.split(ratings), self.position, self.position + 1)
