"""`TableProblem`: a table of ordinal labels as a problem for an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np

from ordrec.data.formats.tables import OrdinalTable
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.metrics import probability, rating_errors
from ordrec.evaluation.problems.base import Problem, Row, result_row, seeded, timed
from ordrec.evaluation.splits.rows import StratifiedKFold

__all__ = ["TableProblem"]

Parts = tuple[np.ndarray, np.ndarray]

MOST_LISTED = 6  # sizes in the name of a split

_RANK_METRICS: dict[str, Callable[..., float]] = {
    "mze": rating_errors.mze,
    "mae": rating_errors.mae,
    "rmse": rating_errors.rmse,
    "macro_mae": rating_errors.macro_mae,
    "off_by_one": rating_errors.off_by_one,
    "kappa": rating_errors.quadratic_kappa,
    "tau": rating_errors.kendall_tau,
}
_PROBABILITY_METRICS: dict[str, Callable[..., float]] = {
    "log_loss": probability.log_loss,
    "rps": probability.ranked_probability_score,
    "brier": probability.brier_score,
    "ece": probability.expected_calibration_error,
}


@dataclass(frozen=True)
class TableProblem(Problem):
    """A table with ordinal labels; models are scikit-learn classifiers or regressors.

    A model with a parameter ``classes`` is given all ranks of the table. The prediction of a
    regressor is rounded to the nearest rank. A model with a method ``for_metric`` is measured by
    what that returns for each metric (`CrossValidated`).

    Parameters
    ----------
    table : OrdinalTable
    parts : list of (train, test) row numbers, optional
        By default the published partitions of the table.
    part_names : sequence of str, optional
        By default "1", "2", ...
    """

    table: OrdinalTable
    parts: Sequence[Parts] | None = None
    part_names: Sequence[str] | None = None
    split_name: str = "published"

    @classmethod
    def drawn(
        cls, table: OrdinalTable, sizes: Sequence[int], trials: int, seed: int = 0
    ) -> TableProblem:
        """Return a problem with ``trials`` random training parts of each of several sizes.

        The other rows are the test part. Every training part has at least two different labels.
        Its size is in the column ``n_train`` of the results, and folds are called ``size/trial``.
        """
        if np.unique(table.y).size < 2:
            raise DataError(f"{table.name}: all labels are equal: there is nothing to learn")
        parts, names = [], []
        for size in sizes:
            if not 2 <= size < table.y.size:
                raise ArgumentError(f"{table.name} has {table.y.size} rows: cannot draw {size}")
            for trial in range(trials):
                rng = np.random.default_rng([seed, size, trial])
                train = rng.permutation(table.y.size)[:size]
                while np.unique(table.y[train]).size < 2:
                    train = rng.permutation(table.y.size)[:size]
                parts.append((np.sort(train), np.setdiff1d(np.arange(table.y.size), train)))
                names.append(f"{size}/{trial + 1}")
        listed = ",".join(map(str, sizes))
        if len(sizes) > MOST_LISTED:
            listed = f"{min(sizes)}..{max(sizes)}"
        return cls(table, parts, names, f"drawn:{listed}")

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the table."""
        return self.table.name

    @property
    def split(self) -> str:
        """The name of the split."""
        return self.split_name

    @property
    def folds(self) -> list[str]:
        """The names of the partitions, numbers from 1 by default."""
        if self.part_names is not None:
            return list(self.part_names)
        count = len(self.table.partitions if self.parts is None else self.parts)
        if not count:
            raise DataError(f"{self.name} has no partitions: give parts=[(train, test), ...]")
        return [str(number + 1) for number in range(count)]

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """The zero-one error and the absolute error of the rank."""
        return ("mze", "mae")

    def checksum(self) -> str:
        """Return a hash of features, labels and partitions."""
        parts = self.table.partitions if self.parts is None else self.parts
        return joblib.hash([self.table.X, self.table.y, self.table.n_ranks, list(parts)])

    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Fit a copy of the model and measure its ranks and, if it has any, its distributions."""
        unknown = set(metrics) - set(_RANK_METRICS) - set(_PROBABILITY_METRICS)
        if unknown:
            known = ", ".join([*_RANK_METRICS, *_PROBABILITY_METRICS])
            raise ArgumentError(f"unknown metrics {sorted(unknown)} for a table: it has {known}")
        train, test = self._rows(fold)
        X, y, n_ranks = self.table.X, self.table.y, self.table.n_ranks
        model = seeded(model, seed, classes=np.arange(1, n_ranks + 1))
        fitted, fit_seconds = timed(lambda: model.fit(X[train], y[train]))
        distribution = None
        if set(metrics) & set(_PROBABILITY_METRICS):
            distribution = _distribution(fitted, X[test], n_ranks)
        rows: list[Row] = []
        measured = None
        for metric in metrics:
            chosen = fitted.for_metric(metric) if hasattr(fitted, "for_metric") else fitted
            if chosen is not measured:
                measured = chosen
                predicted, predict_seconds = timed(partial(chosen.predict, X[test]))
                nearest = np.floor(np.asarray(predicted, dtype=float) + 0.5)
                ranks = np.clip(nearest, 1, n_ranks).astype(np.int64)
            if metric in _RANK_METRICS:
                value = _RANK_METRICS[metric](y[test], ranks)
            elif distribution is not None:
                value = _PROBABILITY_METRICS[metric](y[test] - 1, distribution)
            else:
                continue
            decision = "predict" if metric in _RANK_METRICS else "none"
            rows.append(
                result_row(metric, "micro", decision, value, test.size)
                | {"n_test": int(test.size), "n_train": int(train.size)}
                | {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
            )
        return rows

    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """Return stratified cross-validation of the training rows."""
        rows = self._rows(fold)[0]
        table = OrdinalTable(
            self.table.X[rows],
            self.table.y[rows],
            self.table.feature_names,
            self.table.n_ranks,
            name=self.name,
        )
        splitter = StratifiedKFold(n_folds, seed)
        parts = [(part.train, part.test) for part in splitter.split(table.y)]
        return TableProblem(table, parts, split_name=splitter.name)

    def _rows(self, fold: str) -> Parts:
        position = self._position(fold)
        return self.table.split(position) if self.parts is None else self.parts[position]


def _distribution(fitted: Any, X: np.ndarray, n_ranks: int) -> np.ndarray | None:
    """Return one column per rank, zero for unseen ranks; None if there are no probabilities."""
    try:
        known = fitted.predict_proba(X)
    except AttributeError:  # some models have predict_proba only if a parameter asks for it
        return None
    p = np.zeros((known.shape[0], n_ranks))
    p[:, np.asarray(fitted.classes_, dtype=int) - 1] = known
    return p
