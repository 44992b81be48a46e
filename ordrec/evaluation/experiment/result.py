"""The result of an experiment: a tidy frame, the cells that failed, and a manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.experiment.cells import Cell, CellOutcome
from ordrec.evaluation.tidy_result import TidyResult
from ordrec.runtime.files import make_folder, write_text

__all__ = ["ExperimentResult"]

COLUMNS = (
    "data", "model", "split", "fold", "seed", "metric", "average", "decision", "value", "n",
    "n_test", "fit_seconds", "predict_seconds", "chosen", "warnings",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentResult(TidyResult):
    """The result of `Experiment.run`.

    Attributes
    ----------
    frame : DataFrame
        One row per model, data set, fold, seed and metric, in the order of the experiment:
        ``data model split fold seed metric average decision value n n_test fit_seconds
        predict_seconds chosen warnings`` and any further columns of the problem. ``chosen`` is
        the candidate that inner cross-validation selected.
    failures : DataFrame
        ``data model split fold seed error`` of the cells that raised.
    manifest : dict
        Versions, command, models, checksums of the data, seeds, and the commits that the cells
        were computed at (several where a run continued an earlier one).
    """

    frame: pd.DataFrame
    failures: pd.DataFrame
    manifest: dict[str, Any]

    @classmethod
    def from_outcomes(
        cls, outcomes: list[tuple[Cell, CellOutcome]], manifest: dict[str, Any]
    ) -> ExperimentResult:
        """Return the result made of the rows of all cells, in their order."""
        rows = [row for _, outcome in outcomes for row in outcome.rows]
        failed = [cell.about | {"error": o.error} for cell, o in outcomes if o.error]
        names = ["data", "model", "split", "fold", "seed", "error"]
        frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(COLUMNS))
        return cls(frame, pd.DataFrame(failed, columns=names), manifest)

    @classmethod
    def joined(cls, results: Sequence[ExperimentResult]) -> ExperimentResult:
        """Return several results as one; versions, command and time are those of the first.

        Where a data set has another split or protocol in each, both are named.
        """
        manifest = dict(results[0].manifest)
        for other in results[1:]:
            for name in ("models", "data", "splits"):
                manifest[name] = _both(manifest[name], other.manifest[name])
            for name in ("cells", "cells_from_store"):
                manifest[name] += other.manifest[name]
            manifest["commits"] = sorted({*manifest["commits"], *other.manifest["commits"]})
        return cls(
            pd.concat([result.frame for result in results], ignore_index=True),
            pd.concat([result.failures for result in results], ignore_index=True),
            manifest,
        )

    def scores(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Return values for paired comparisons, one column per model.

        There is one row per data set, fold and seed.
        Where the metric has several averages, ``average`` must name one.
        """
        chosen = self._of(metric, average)
        wide = chosen.pivot(index=["data", "fold", "seed"], columns="model", values="value")
        keys = chosen[["data", "fold", "seed"]].drop_duplicates()
        return wide.loc[[tuple(key) for key in keys.to_numpy()], list(chosen["model"].unique())]

    def means(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Return means over folds and seeds: one row per data set, one column per model."""
        return self._by_data(metric, average).mean().loc[self._data_order(metric)]

    def errors(self, metric: str, average: str | None = None) -> pd.DataFrame:
        """Return standard errors of `means`; NaN where there is only one fold and seed."""
        return self._by_data(metric, average).sem().loc[self._data_order(metric)]

    def seconds(self) -> pd.DataFrame:
        """Return mean seconds per cell: rows are model and data, columns fit and predict."""
        return self._mean_seconds(["model", "data"])

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


def _both(first: dict[str, str], second: dict[str, str]) -> dict[str, str]:
    """Return all entries; where both have different texts, one after the other."""
    merged = dict(first)
    for name, text in second.items():
        known = merged.get(name, text)
        merged[name] = known if text in known.split("; ") else f"{known}; {text}"
    return merged
