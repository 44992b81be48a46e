"""The verdict of an evaluation in two sentences: which model is best, by how much, how surely."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.evaluation.metrics.measures import as_losses, kind_of
from ordrec.evaluation.result import EvaluationResult

__all__ = ["leading_model", "main_metrics", "verdict"]

N_MAIN = 4
WORDS = {
    "error": "predicts ratings best",
    "probability": "knows best how sure it is",
    "ranking": "makes the best lists",
}


def main_metrics(result: EvaluationResult) -> list[str]:
    """Return up to four metrics to be shown first: one of each kind, then others in order."""
    measured = [metric for metric in result.averages() if _n_models(result, metric)]
    first = {kind_of(metric): metric for metric in reversed(measured)}
    wanted = [first[kind] for kind in WORDS if kind in first]
    rest = [metric for metric in measured if metric not in wanted]
    chosen = [*wanted, *rest][:N_MAIN]
    return [metric for metric in measured if metric in chosen]


def leading_model(result: EvaluationResult, metric: str) -> str:
    """Return the model with the best value of a metric."""
    values = result.summary()[metric].dropna()
    return str(as_losses(metric, values).idxmin())


def verdict(result: EvaluationResult) -> list[str]:
    """Return two sentences, about ratings and about lists where both were measured.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.evaluation import evaluate
    >>> result = evaluate(synthetic_ratings(60, 40, n_ratings=1200, seed=0), ["mean", "bias"])
    >>> print(verdict(result)[0])  # doctest: +ELLIPSIS
    bias predicts ratings best: its rmse of ... is ... below that of mean, the next best, which
    is more than chance can explain.
    """
    metrics = main_metrics(result)
    if not metrics:
        return ["Nothing could be measured."]
    kinds = {kind_of(metric): metric for metric in reversed(metrics)}
    described = [kinds[kind] for kind in ("error", "ranking", "probability") if kind in kinds]
    sentences = [_sentence(result, metric) for metric in described[:2]]
    if len(sentences) == 1 and len(result.models) > 1:
        sentences.append(_sweep(result, described[0]))
    return [sentence for sentence in sentences if sentence]


def _sentence(result: EvaluationResult, metric: str) -> str:
    """Who is best by a metric, ahead of whom, and whether that is significant."""
    best = leading_model(result, metric)
    values = result.summary()[metric].dropna()
    if len(values) == 1:
        return f"The {metric} of {best} is {values[best]:.4f}."
    others = values.drop(best)
    following = str(as_losses(metric, others).idxmin())
    apart = values[following] - values[best]
    text = f"{best} {WORDS[kind_of(metric)]}: its {metric} of {values[best]:.4f} is "
    if round(abs(apart), 4) == 0:
        return f"{text}also that of {following}."
    text += f"{abs(apart):.4f} {'below' if apart > 0 else 'above'} that of {following}, the next "
    text += "best"
    standing = _comparison(result, metric)
    if standing.empty:
        return f"{text}."
    if following in standing.index and standing.loc[following, "verdict"] == "worse":
        return f"{text}, which is more than chance can explain."
    tied = [str(model) for model in standing.index[standing["verdict"] == "tied"]]
    if following in tied:
        worse = len(standing) - len(tied) - 1
        behind = f"; {_counted(worse)} significantly worse" if worse else ""
        return f"{text}, which may be chance{behind}."
    return f"{text}."


def _sweep(result: EvaluationResult, metric: str) -> str:
    """By how many of all metrics the best model by one metric is the best."""
    best = leading_model(result, metric)
    metrics = [name for name in result.averages() if _n_models(result, name) > 1]
    if len(metrics) < 2:
        return ""
    won = [name for name in metrics if leading_model(result, name) == best]
    lost = [name for name in metrics if name not in won]
    if not lost:
        return f"It is the best by all {len(metrics)} metrics."
    other = leading_model(result, lost[0])
    return (
        f"It is the best by {len(won)} of {len(metrics)} metrics; by {lost[0]}, {other} is better."
    )


def _counted(n: int) -> str:
    return "one model is" if n == 1 else f"{n} models are"


def _comparison(result: EvaluationResult, metric: str) -> pd.DataFrame:
    """Verdicts against the best model, by model; empty if nothing was tested against it."""
    rows = result.comparison[:0] if result.reference else result.comparison
    average = result.averages()[metric]
    rows = rows[(rows["users"] == "all") & (rows["metric"] == metric)]
    return rows[rows["average"] == average].set_index("model")


def _n_models(result: EvaluationResult, metric: str) -> int:
    return int(np.isfinite(result.summary()[metric]).sum())
