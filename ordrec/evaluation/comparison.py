"""Fit models on the training parts of a split, measure them on the test parts."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.measures import DEFAULT_METRICS, Measure, Outcome, measure_from_name
from ordrec.evaluation.partition import Split, Splitter
from ordrec.evaluation.result import EvaluationResult
from ordrec.evaluation.splits import split_from_name
from ordrec.ratings import Ratings
from ordrec.recommend.models import make_model

__all__ = ["evaluate"]

Progress = Callable[[int, int, str], None]


def evaluate(
    ratings: Ratings,
    models: str | Iterable[Any] | Mapping[str, Any],
    split: str | Splitter = "holdout:0.2",
    *,
    metrics: Iterable[str] = DEFAULT_METRICS,
    decision: str = "auto",
    seed: int = 0,
    progress: Progress | None = None,
) -> EvaluationResult:
    """Compare models on the same folds.

    Parameters
    ----------
    ratings : Ratings
    models : str, iterable or mapping
        Names for `ordrec.recommend.make_model`, or unfitted models (each fold fits a copy);
        a mapping gives them names of its own.
    split : str or splitter
        As in `split_from_name`.
    metrics : iterable of str
        Names for `measure_from_name`. A metric that a model cannot have (the log-loss of a
        model without ``predict_proba``, an error of one that only ranks) is left out for it.
    decision : {"auto", "mean", "median", "mode"}
        What makes a rating of a distribution. "auto" takes for each metric the one that is
        best for it (see `ordrec.evaluation.measures`): mean for ``rmse``, median for
        ``int_mae``, mode for ``mze``. Models without ``predict_proba`` give one number, which is
        rounded to the nearest scale value where a metric needs a rank.
    seed : int
        For splits given by name, and for models given by name that have a ``random_state``.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each fit and once at the end.

    Returns
    -------
    EvaluationResult

    Notes
    -----
    Where the split holds out whole users and gives some of their ratings, a model with
    ``fold_in`` is fitted without those users and then folds them in; any other model is
    fitted on the training and the given ratings together. The column ``given`` says which.
    A model whose method has a parameter ``timestamps`` is told when the test ratings were
    given, where that is known.

    Examples
    --------
    >>> frame = pd.DataFrame({"user": [1, 1, 1, 2, 2, 2, 3, 3], "item": [1, 2, 3, 1, 2, 3, 1, 2],
    ...                       "rating": [5, 4, 3, 4, 3, 2, 5, 4]})
    >>> result = evaluate(Ratings.from_frame(frame), ["mean", "bias"], metrics=["mae"])
    >>> sorted(result.frame["model"].unique())
    ['bias', 'mean']
    """
    if decision not in ("auto", "mean", "median", "mode"):
        raise ArgumentError(
            f'decision must be "auto", "mean", "median" or "mode", got {decision!r}'
        )
    named = _named_models(models, seed)
    measures = [measure_from_name(name) for name in dict.fromkeys(metrics)]
    if not measures:
        raise ArgumentError("metrics must hold at least one name")
    splitter = split_from_name(split, seed=seed) if isinstance(split, str) else split
    total, done, rows = splitter.n_splits * len(named), 0, []
    for fold in splitter.split(ratings):
        for name, model in named.items():
            if progress is not None:
                progress(done, total, f"{name}, fold {fold.fold}")
            rows += _measure_model(name, copy.deepcopy(model), fold, measures, decision)
            done += 1
    if progress is not None:
        progress(done, total, "done")
    if not rows:
        raise ArgumentError(
            f"none of the metrics {', '.join(m.name for m in measures)} applies to "
            f"{', '.join(named)}: a model without predict_proba has no distribution to measure, "
            "and one that only ranks has ranking metrics only"
        )
    frame = pd.DataFrame(rows)
    frame.insert(0, "data", ratings.name)
    frame["seed"] = seed
    descriptions = {name: repr(model) for name, model in named.items()}
    return EvaluationResult(frame, repr(splitter), decision, seed, descriptions)


def _named_models(models: Any, seed: int) -> dict[str, Any]:
    if isinstance(models, str):
        models = [models]
    if isinstance(models, Mapping):
        pairs = list(models.items())
    else:
        pairs = [(m if isinstance(m, str) else type(m).__name__, m) for m in models]
    named: dict[str, Any] = {}
    for name, model in pairs:
        if name in named:
            raise ArgumentError(f"two models are called {name!r}: name them with a mapping")
        named[name] = _made(model, seed) if isinstance(model, str) else model
        if not hasattr(named[name], "predict") and not hasattr(named[name], "scores"):
            raise ArgumentError(
                f"model {name!r} has neither predict(users, items) nor scores(users, items)"
            )
    if not named:
        raise ArgumentError("models must hold at least one model")
    return named


def _made(name: str, seed: int) -> Any:
    model = make_model(name)
    if "random_state" in inspect.signature(type(model)).parameters:
        model = make_model(name, random_state=seed)
    return model


def _measure_model(
    name: str, model: Any, split: Split, measures: list[Measure], decision: str
) -> list[dict[str, Any]]:
    """Fit, predict, and one row a metric and average."""
    start = time.perf_counter()
    model, given = _fitted(model, split)
    fitted = time.perf_counter()
    outcome = _outcome(name, model, split.test)
    predicted = time.perf_counter()
    about = {
        "model": name,
        "split": split.name,
        "fold": split.fold,
        "n_test": split.test.n_ratings,
        "n_cold_users": split.n_cold_users,
        "n_cold_items": split.n_cold_items,
        "n_cold_ratings": split.n_cold_ratings,
        "given": given,
        "fit_seconds": fitted - start,
        "predict_seconds": predicted - fitted,
    }
    rows = []
    for measure in measures:
        if not measure.applies_to(outcome):
            continue
        chosen = measure.decision if decision == "auto" else decision
        for average in measure.averages:
            value, n = measure.value(outcome, average, chosen)
            rows.append(
                about
                | {
                    "metric": measure.name,
                    "average": average,
                    "decision": _printed(measure, outcome, chosen),
                    "value": value,
                    "n": n,
                }
            )
    return rows


def _fitted(model: Any, split: Split) -> tuple[Any, str]:
    """The fitted model, and how it came to know the ratings given for fold-in."""
    folds_in = split.given is not None and hasattr(model, "fold_in")
    model.fit(split.train if folds_in else split.train_and_given())
    if folds_in:
        return model.fold_in(split.given), "folded in"
    return model, "" if split.given is None else "in training"


def _outcome(name: str, model: Any, test: Ratings) -> Outcome:
    n = test.n_ratings
    if hasattr(model, "predict_proba"):
        shape = (n, test.scale.n_ranks)
        return Outcome(test, probabilities=_answers(name, model.predict_proba, test, shape))
    if hasattr(model, "predict"):
        return Outcome(test, ratings=_answers(name, model.predict, test, (n,)))
    return Outcome(test, scores=_answers(name, model.scores, test, (n,)))


def _answers(
    name: str, method: Callable[..., Any], test: Ratings, shape: tuple[int, ...]
) -> np.ndarray:
    users, items = test.user_ids.take(test.users), test.item_ids.take(test.items)
    dated = "timestamps" in inspect.signature(method).parameters and test.timestamps is not None
    when = {"timestamps": test.timestamps} if dated else {}
    values = np.asarray(method(users, items, **when), dtype=np.float64)
    if values.shape != shape:
        raise DataError(f"model {name!r} answered with shape {values.shape} instead of {shape}")
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise DataError(f"model {name!r} gave {bad} predictions that are not finite numbers")
    return values


def _printed(measure: Measure, outcome: Outcome, decision: str) -> str:
    """The decision as it stands in the table."""
    if measure.kind == "probability":
        return "none"
    return "point" if outcome.probabilities is None else decision
