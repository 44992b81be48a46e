"""The part that the results of evaluations and of experiments have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

__all__ = ["TidyResult"]


class TidyResult:
    """Measured values in a tidy frame, what failed, and how the result came about.

    Attributes
    ----------
    frame : DataFrame
        One row per value, with at least the columns ``data model split fold seed metric average
        decision value n n_test fit_seconds predict_seconds``.
    failures : DataFrame
        ``data model split fold error`` of each model that failed on a fold.
    manifest : dict
        Versions, command, models, checksums of the data, seeds.
    """

    frame: pd.DataFrame
    failures: pd.DataFrame
    manifest: dict[str, Any]

    @property
    def complete(self) -> bool:
        """Whether no model failed on any fold."""
        return self.failures.empty

    def available_averages(self) -> dict[str, list[str]]:
        """Return the averages that were measured for each metric, in the order of the frame."""
        pairs = self.frame[["metric", "average"]].drop_duplicates()
        available: dict[str, list[str]] = {}
        for metric, average in zip(pairs["metric"], pairs["average"], strict=True):
            available.setdefault(metric, []).append(average)
        return available

    def _mean_seconds(self, by: Sequence[str]) -> pd.DataFrame:
        """Return the mean seconds to fit and to predict, one row per group of folds."""
        folds = self.frame.drop_duplicates(["data", "model", "fold", "seed"])
        grouped = folds.groupby(list(by), sort=False)
        return grouped[["fit_seconds", "predict_seconds"]].mean()
