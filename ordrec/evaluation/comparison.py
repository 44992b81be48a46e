"""Fit models on the training parts of a split, measure them on the test parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import joblib
import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.against_best import against_best
from ordrec.evaluation.manifest import circumstances, ratings_checksum
from ordrec.evaluation.measurement import FoldMeasurement, Protocol, measure_fold
from ordrec.evaluation.measures import DEFAULT_METRICS, measure_from_name
from ordrec.evaluation.partition import Split, Splitter
from ordrec.evaluation.result import COLUMNS, EvaluationResult
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
    candidates: Literal["catalogue", "rated"] = "catalogue",
    ranking_users: int | Literal["auto", "all"] = "auto",
    cold_users: int = 0,
    seed: int = 0,
    n_jobs: int = 1,
    n_resamples: int = 2000,
    keep_distributions: bool = False,
    on_error: Literal["record", "raise"] = "record",
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
    candidates : {"catalogue", "rated"}
        What ranking metrics rank for a user: every item of the data that he has not rated in
        training, or his test items alone, which flatters every model and favours none that
        knows what people choose. ``fcp`` is about pairs of ratings and always of the latter.
    ranking_users : int, "auto" or "all"
        For how many test users the catalogue is ranked, the same ones for all models, drawn at
        random; "auto" takes as many as make a million pairs of a user and an item, but a
        hundred at least.
    cold_users : int
        A user with at most so many training ratings, those given for fold-in included, counts
        as cold. Where there are such users in a test part, warm and cold ones are also
        measured apart (column ``users``).
    seed : int
        For splits given by name, for models given by name that have a ``random_state``, and
        for the draws of users.
    n_jobs : int
        Models fitted at the same time, each in a process of its own; -1 for all processors.
        Nothing but the seconds depends on it.
    n_resamples : int
        Draws of users for intervals and tests; 0 for none.
    keep_distributions : bool
        Whether predicted distributions are kept, for reliability diagrams.
    on_error : {"record", "raise"}
        Whether a model that fails is recorded, with its error, and the others go on; or its
        exception is raised.
    progress : callable, optional
        Called as ``progress(done, total, text)`` before each fit (with several jobs: after
        it) and once at the end.

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
    named = _named_models(models, seed)
    measures = [measure_from_name(name) for name in dict.fromkeys(metrics)]
    protocol = Protocol(
        measures, decision, candidates, ranking_users, cold_users, keep_distributions, seed
    )
    splitter = split_from_name(split, seed=seed) if isinstance(split, str) else split
    manifest = circumstances()
    tasks = (
        (name, model, fold) for fold in splitter.split(ratings) for name, model in named.items()
    )
    total = splitter.n_splits * len(named)
    measured = list(_run(tasks, protocol, on_error, n_jobs, total, progress))
    rows = [row for fold in measured for row in fold.rows]
    failed = [fold for fold in measured if fold.error]
    if not rows and not failed:
        raise ArgumentError(
            f"none of the metrics {', '.join(m.name for m in measures)} applies to "
            f"{', '.join(named)}: a model without predict_proba has no distribution to measure, "
            "and one that only ranks has ranking metrics only"
        )
    manifest |= {
        "models": {name: " ".join(repr(model).split()) for name, model in named.items()},
        "data": {ratings.name: ratings_checksum(ratings)},
        "split": repr(splitter),
        "decision": decision,
        "cold users": f"at most {cold_users} training ratings",
        "seed": seed,
    }
    frame = pd.DataFrame(rows, columns=[c for c in COLUMNS if c not in ("data", "seed")])
    frame.insert(0, "data", ratings.name)
    return EvaluationResult(
        frame.assign(seed=seed),
        repr(splitter),
        decision,
        seed,
        {name: repr(model) for name, model in named.items()},
        against_best(measured, n_resamples=n_resamples, seed=seed),
        pd.DataFrame(
            [(ratings.name, f.model, f.split, f.fold, f.error) for f in failed],
            columns=["data", "model", "split", "fold", "error"],
        ),
        manifest,
        _joined_distributions(measured),
    )


def _run(
    tasks: Iterator[tuple[str, Any, Split]],
    protocol: Protocol,
    on_error: str,
    n_jobs: int,
    total: int,
    progress: Progress | None,
) -> Iterator[FoldMeasurement]:
    """Measure the models one after the other, or several at a time, in the order of the tasks."""
    tell = progress if progress is not None else lambda *_: None
    if n_jobs == 0:
        raise ArgumentError("n_jobs must not be 0: give 1, more, or -1 for all processors")
    if n_jobs == 1:
        for done, (name, model, fold) in enumerate(tasks):
            tell(done, total, f"{name}, fold {fold.fold}")
            yield measure_fold(name, copy.deepcopy(model), fold, protocol, on_error)
    else:
        parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
        waiting = (joblib.delayed(measure_fold)(*task, protocol, on_error) for task in tasks)
        for done, found in enumerate(parallel(waiting), start=1):
            tell(done, total, f"{found.model}, fold {found.fold}")
            yield found
    tell(total, total, "done")


def _joined_distributions(
    measured: list[FoldMeasurement],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The levels and distributions of each model over all folds."""
    kept: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for fold in measured:
        if fold.distributions is not None:
            kept.setdefault(fold.model, []).append(fold.distributions)
    return {
        name: (np.concatenate([y for y, _ in parts]), np.vstack([p for _, p in parts]))
        for name, parts in kept.items()
    }


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
    try:
        return make_model(name, random_state=seed)
    except ArgumentError:  # nothing in it is random
        return make_model(name)
