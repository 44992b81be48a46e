"""What an evaluation found: one tidy frame that knows how it came about."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ordrec.errors import ArgumentError

__all__ = ["EvaluationResult"]


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationResult:
    """The outcome of `ordrec.evaluation.evaluate`.

    Attributes
    ----------
    frame : DataFrame
        One row a model, fold, metric and average, with the columns ``data model split fold
        metric average decision value n n_test n_cold_users n_cold_items n_cold_ratings given
        fit_seconds predict_seconds seed``. ``average`` is "micro" (pooled over ratings) or
        "macro" (mean over users); ``n`` is how many ratings or users that is; ``decision`` is
        what made a rating of a distribution, "point" for a model without one, "none" where
        the distribution itself is measured; ``n_cold_...`` count what is unseen in training.
    split : str
        The split with all its parameters.
    decision : str
        As asked for.
    seed : int
    models : dict of str
        Each model's name and its parameters.
    """

    frame: pd.DataFrame
    split: str
    decision: str
    seed: int
    models: dict[str, str]

    def summary(self, average: str = "micro") -> pd.DataFrame:
        """Mean over the folds: one row a model, one column a metric, and the seconds.

        A metric that has not the average asked for appears with the one it has
        (`averages` tells which); NaN where a metric does not apply to a model.
        """
        averages = self.averages(average)
        shown = self.frame[self.frame["average"] == self.frame["metric"].map(averages)]
        means = shown.groupby(["model", "metric"])["value"].mean()
        table = means.unstack().reindex(index=list(self.models), columns=list(averages))
        once = self.frame.drop_duplicates(["model", "fold"])
        for what in ("fit", "predict"):
            table[f"{what}_seconds"] = once.groupby("model")[f"{what}_seconds"].mean()
        table.columns.name = None
        return table

    def averages(self, average: str = "micro") -> dict[str, str]:
        """Which average `summary` shows for each metric."""
        if average not in ("micro", "macro"):
            raise ArgumentError(f'average must be "micro" or "macro", got {average!r}')
        available: dict[str, list[str]] = {}
        for metric, has in zip(self.frame["metric"], self.frame["average"], strict=True):
            available.setdefault(metric, []).append(has)
        return {m: average if average in has else has[0] for m, has in available.items()}

    def caption(self, average: str = "micro") -> str:
        """What the numbers of `summary` are: data, split, cold counts, decisions, averages."""
        folds = self.frame.drop_duplicates("fold")
        n_test, users, items, cold = (
            int(folds[f"n_{what}"].sum())
            for what in ("test", "cold_users", "cold_items", "cold_ratings")
        )
        by_average = _listed(self.averages(average))
        decided = self.frame[~self.frame["decision"].isin(["none", "point"])]
        by_decision = _listed(dict(zip(decided["metric"], decided["decision"], strict=True)))
        text = (
            f"{self.frame['data'].iloc[0]}, {self.split}, {len(folds)} "
            f"fold{'s' if len(folds) > 1 else ''}, {n_test} test ratings; unseen in training: "
            f"{users} users, {items} items, {cold} test ratings. Averages: {by_average}."
        )
        if by_decision:
            text += f" Decision {self.decision!r}: {by_decision}."
        if (self.frame["decision"] == "point").any():
            text += " Models without probabilities: their number, rounded where a rank is needed."
        return text

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the frame, all at once or not at all; return the path."""
        return _write(path, self.frame.to_csv(index=False))

    def to_json(self, path: str | os.PathLike[str]) -> Path:
        """Write the frame and how it came about, all at once or not at all; return the path."""
        from ordrec import __version__

        records = json.loads(self.frame.to_json(orient="records", double_precision=15))
        content = {
            "ordrec": __version__,
            "split": self.split,
            "decision": self.decision,
            "seed": self.seed,
            "models": self.models,
            "results": records,
        }
        return _write(path, json.dumps(content, indent=1) + "\n")

    def __repr__(self) -> str:
        return f"<EvaluationResult {self.caption()}\n{self.summary().round(4).to_string()}>"


def _listed(groups: dict[str, str]) -> str:
    """``{"mae": "micro", "fcp": "macro"}`` as ``micro for mae, macro for fcp``."""
    names: dict[str, list[str]] = {}
    for metric, group in groups.items():
        names.setdefault(group, []).append(metric)
    return ", ".join(f"{group} for {' '.join(metrics)}" for group, metrics in names.items())


def _write(path: str | os.PathLike[str], text: str) -> Path:
    """Write to a file beside it first, so that a reader never sees half a file."""
    path = Path(path)
    if not path.parent.is_dir():
        raise ArgumentError(f"{path}: the folder {path.parent} does not exist: make it first")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
    return path
