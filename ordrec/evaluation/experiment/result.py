"""What an experiment found: a tidy frame, the cells that failed, and the circumstances."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.experiment.cells import Cell, CellOutcome
from ordrec.files import make_folder, write_text

__all__ = ["ExperimentResult"]

COLUMNS = (
    "data", "model", "split", "fold", "seed", "metric", "average", "decision", "value", "n",
    "n_test", "fit_seconds", "predict_seconds", "chosen", "warnings",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentResult:
    """The outcome of `Experiment.run`.

    Attributes
    ----------
    frame : DataFrame
        One row a model, data set, fold, seed and metric, in the order of the experiment:
        ``data model split fold seed metric average decision value n n_test fit_seconds
        predict_seconds chosen warnings`` and whatever else the problem knows. ``chosen`` is the
        candidate that inner cross-validation took.
    failures : DataFrame
        ``data model split fold seed error`` of the cells that raised.
    manifest : dict
        Versions, command, models, checksums of the data, seeds.
    """

    frame: pd.DataFrame
    failures: pd.DataFrame
    manifest: dict[str, Any]

    @classmethod
    def from_outcomes(
        cls, outcomes: list[tuple[Cell, CellOutcome]], manifest: dict[str, Any]
    ) -> ExperimentResult:
        """Rows of the cells, one below the other."""
        rows = [row for _, outcome in outcomes for row in outcome.rows]
        failed = [cell.about | {"error": o.error} for cell, o in outcomes if o.error]
        names = ["data", "model", "split", "fold", "seed", "error"]
        frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(COLUMNS))
        return cls(frame, pd.DataFrame(failed, columns=names), manifest)

    @classmethod
    def joined(cls, results: Sequence[ExperimentResult]) -> ExperimentResult:
        """Results of several experiments as those of one; the first tells the circumstances."""
        manifest = dict(results[0].manifest)
        for other in results[1:]:
            for name in ("models", "data", "splits"):
                manifest[name] = manifest[name] | other.manifest[name]
            for name in ("cells", "cells_from_store"):
                manifest[name] += other.manifest[name]
        return cls(
            pd.concat([result.frame for result in results], ignore_index=True),
            pd.concat([result.failures for result in results], ignore_index=True),
            manifest,
        )

    @property
    def complete(self) -> bool:
        """Whether no cell failed."""
        return self.failures.empty

    def scores(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """One row a data set, fold and seed, one column a model: what is compared in pairs.

        Where the metric has several averages, name the one that is meant.
        """
        chosen = self._of(metric, average)
        wide = chosen.pivot(index=["data", "fold", "seed"], columns="model", values="value")
        keys = chosen[["data", "fold", "seed"]].drop_duplicates()
        return wide.loc[[tuple(key) for key in keys.to_numpy()], list(chosen["model"].unique())]

    def means(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Mean over folds and seeds: one row a data set, one column a model."""
        return self._by_data(metric, average).mean().loc[self._data_order(metric)]

    def errors(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Standard errors of `means` over folds and seeds; NaN where there is one only."""
        return self._by_data(metric, average).sem().loc[self._data_order(metric)]

    def seconds(self) -> pd.DataFrame:
        """Mean seconds of a cell: rows model and data, columns fit and predict."""
        once = self.frame.drop_duplicates(["data", "model", "fold", "seed"])
        grouped = once.groupby(["model", "data"], sort=False)
        return grouped[["fit_seconds", "predict_seconds"]].mean()

    def write(self, folder: str | Path) -> Path:
        """Write ``results.csv``, ``failures.csv`` and ``manifest.json`` into a folder."""
        folder = make_folder(folder)
        write_text(folder / "results.csv", self.frame.to_csv(index=False))
        write_text(folder / "failures.csv", self.failures.to_csv(index=False))
        write_text(folder / "manifest.json", json.dumps(self.manifest, indent=1) + "\n")
        return folder

    def _of(self, metric: str, average: str | None) -> pd.DataFrame:
        chosen = self.frame[self.frame["metric"] == metric]
        if average is not None:
            chosen = chosen[chosen["average"] == average]
        if chosen.empty:
            known = ", ".join(self.frame["metric"].unique()) or "none at all"
            raise ArgumentError(f"there are no values of {metric!r} here, only of {known}")
        if chosen["average"].nunique() > 1:
            raise ArgumentError(f'{metric} has several averages: ask for "micro" or "macro"')
        return chosen

    def _by_data(self, metric: str, average: str | None) -> Any:
        return self.scores(metric, average).groupby(level="data")

    def _data_order(self, metric: str) -> list[str]:
        return list(self.frame.loc[self.frame["metric"] == metric, "data"].unique())

    def __repr__(self) -> str:
        data, models = self.frame["data"].nunique(), self.frame["model"].nunique()
        return (
            f"<ExperimentResult: {models} models, {data} data sets, {len(self.frame)} values, "
            f"{len(self.failures)} failed cells>"
        )
