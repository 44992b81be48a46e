"""Evaluation results made by hand, for tests of how they are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ordrec.evaluation import EvaluationResult
from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.result import COLUMNS
from ordrec.evaluation.significance.against_best import COLUMNS as COMPARISON_COLUMNS


def made_result(
    values: dict[str, dict[str, float]],
    tied: tuple[tuple[str, str], ...] = (),
    *,
    tested: bool = True,
    cold: int = 0,
    **more: Any,
) -> EvaluationResult:
    """A result of one fold with the values of each metric and model.

    ``tied`` are pairs of metric and model that are not significantly worse than the best; with
    ``cold`` there are also warm and cold users, the latter with so many ratings.
    """
    groups = {"all": 1000} | ({"warm": 1000 - cold, "cold": cold} if cold else {})
    rows, compared = [], []
    for users, n in groups.items():
        for metric, of_model in values.items():
            losses = {m: float(as_losses(metric, v)) for m, v in of_model.items()}
            best = min(losses, key=losses.__getitem__)
            for model, value in of_model.items():
                about = {"users": users, "metric": metric, "model": model, "value": value}
                rows.append(about | {"average": "micro", "n": n})
                verdict = "tied" if (metric, model) in tied else "worse"
                compared.append(
                    about
                    | {
                        "average": "micro",
                        "low": value - 0.02,
                        "high": value + 0.02,
                        "against": best,
                    }
                    | {"verdict": "best" if model == best else verdict}
                )
    shared = {
        "data": "films", "split": "holdout", "fold": "1", "n_test": 1000, "n_cold_users": 0,
        "n_cold_items": 0, "n_cold_ratings": 0, "given": "", "fit_seconds": 1.5,
        "predict_seconds": 0.25, "decision": "mean", "candidates": "", "seed": 0,
    }  # fmt: skip
    frame = pd.DataFrame(rows).assign(**shared)[COLUMNS]
    comparison = pd.DataFrame(compared if tested else [], columns=COMPARISON_COLUMNS)
    models = {model: model for of_model in values.values() for model in of_model}
    manifest = {
        "models": models, "data": {"films": "abc"}, "split": "HoldOut(0.2)", "decision": "auto",
        "seeds": [0], "cold users": "at most 0 training ratings",
    }  # fmt: skip
    none = pd.DataFrame(columns=["data", "model", "split", "fold", "seed", "error"])
    return EvaluationResult(frame, none, manifest, comparison, **more)


def distributions(models: tuple[str, ...], n: int = 200) -> dict[str, Any]:
    """Levels and distributions of five ranks, for each model."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(5), n)
    return {model: (rng.integers(0, 5, n), p) for model in models}
