"""Rating models on public benchmarks, with three kinds of input.

``ids``: who rated what. ``side``: also the tables of users and items. ``time``: also when ratings
were given, that of the rating to be predicted included, which nobody knows beforehand: numbers of
this kind are comparable only with published ones that know it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation.problems.ratings import RatingsProblem
from ordrec.evaluation.result import EvaluationResult
from ordrec.evaluation.run import Experiment
from ordrec.evaluation.splits.base import Splitter
from ordrec.recommend.registry import make_model

__all__ = [
    "INPUTS",
    "METRICS",
    "benchmark",
    "means_with_errors",
    "rating_model",
    "rmse_in_words",
    "warm_up",
]

INPUTS = ("ids", "side", "time")
METRICS = ("rmse", "mae", "int_mae", "mze", "log_loss", "ece")
PRESETS = ("full", "fast", "large")
PROCESSES = ("process-full", "process-fast")
OWN = (*PRESETS, *PROCESSES, "factors")  # those that know more than ids
FEW_USERS = 30


def rating_model(name: str, inputs: str = "ids", **options: Any) -> Any:
    """Return an unfitted model.

    Parameters
    ----------
    name : str
        ``full``, ``fast`` and ``large`` are presets of `RatingPredictor` (``large``: without the
        process), ``process-full`` and ``process-fast`` those of `ProcessPredictor`, ``factors`` is
        `OrdinalFactors`. Any other name is one of `ordrec.recommend.model_names`, a model that
        knows ids only.
    inputs : {"ids", "side", "time"}
    **options
        Passed to the model.

    Examples
    --------
    >>> rating_model("fast", "side").preset
    'fast'
    """
    from ordrec.rating.factors.model import OrdinalFactors
    from ordrec.rating.predictor import RatingPredictor
    from ordrec.rating.process.model import ProcessPredictor

    if inputs not in INPUTS:
        raise ArgumentError(f"inputs are {', '.join(INPUTS)}, not {inputs!r}")
    known: dict[str, Any] = {
        "use_side": inputs != "ids",
        "use_time": "auto" if inputs == "time" else False,
    }
    if name == "factors":
        return OrdinalFactors(**known, **options)
    if name in PRESETS:
        return RatingPredictor(preset=name, **known, **options)  # type: ignore[arg-type]
    if name in PROCESSES:
        return ProcessPredictor(preset=name.removeprefix("process-"), **known, **options)  # type: ignore[arg-type]
    if inputs != "ids":
        raise ArgumentError(f"the model {name!r} knows ids only")
    return make_model(name, **options)


def benchmark(
    ratings: Ratings,
    splitter: str | Splitter,
    models: Sequence[str],
    inputs: Sequence[str] = INPUTS,
    *,
    store: Path | None = None,
    max_folds: int | None = None,
    jobs: int | None = None,
) -> EvaluationResult:
    """Measure models with all inputs on the folds of a split, over all test ratings equally.

    The models of the result are named ``full, ids``, ``full, side`` and so on, and ``bias`` and
    the like where they know ids only. Only those with the input ``time`` know when a test
    rating was given.
    """
    results = []
    for times in ("unknown", "known"):
        named = {}
        for name in models:
            own = inputs if name in OWN else ("ids",)
            for each in own:
                if (each == "time") == (times == "known"):
                    named[f"{name}, {each}" if name in OWN else name] = rating_model(name, each)
        if named:
            problem = RatingsProblem(ratings, splitter, times=times)  # type: ignore[arg-type]
            experiment = Experiment(
                named, [problem], metrics=METRICS, store=store, max_folds=max_folds
            )
            results.append(experiment.run(n_jobs=jobs))
    result = EvaluationResult.joined(results)
    return replace(result, frame=result.frame[result.frame["average"] == "micro"])


def warm_up(ratings: Ratings, models: Sequence[str], jobs: int | None = None) -> None:
    """Compile, or load, what our models need, on the ratings of a few users."""
    few = ratings.select(ratings.users < FEW_USERS).compact()
    for name in models:
        if name not in OWN:
            continue
        short: dict[str, Any] = {} if name == "factors" else {"max_iter": 1, "refit": True}
        model = rating_model(name, n_jobs=jobs, **short).fit(few)
        model.predict_proba(few.user_ids[:1], few.item_ids[:1])


def means_with_errors(frame: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return means over the folds, with standard errors if there are several, for a report."""
    keys = ["data", "split", "model"]
    grouped = frame.groupby([*keys, "metric"], sort=False)["value"]
    texts = [
        f"{mean:.4f}" if np.isnan(error) else f"{mean:.4f} ± {error:.4f}"
        for mean, error in zip(grouped.mean(), grouped.sem(), strict=True)
    ]
    table = pd.Series(texts, index=grouped.mean().index).unstack(fill_value="")
    order = frame[keys].drop_duplicates()
    shown = [metric for metric in metrics if metric in table]
    return table.reindex(index=pd.MultiIndex.from_frame(order), columns=shown)


def rmse_in_words(frame: pd.DataFrame, where: str = "") -> list[str]:
    """Return a sentence for each data set, split and model: its RMSE, and how many folds."""
    rows = frame[frame["metric"] == "rmse"]
    found = []
    grouped: Any = rows.groupby(["data", "split", "model"], sort=False)
    for (data, split, model), values in grouped:
        mean, n = values["value"].mean(), len(values)
        error = f" ± {values['value'].sem():.4f} over {n} folds" if n > 1 else ""
        knew = ", which knew the time of each test rating" if model.endswith(", time") else ""
        found.append(f"{data}, {where or split}: {model} RMSE {mean:.4f}{error}{knew}")
    return found
