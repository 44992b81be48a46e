"""Fit models on the training parts of a split, measure them on the test parts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.experiment.manifest import circumstances, ratings_checksum
from ordrec.evaluation.measurement import FoldMeasurement, Protocol, measure_fold
from ordrec.evaluation.metrics.measures import DEFAULT_METRICS, measure_from_name
from ordrec.evaluation.result import COLUMNS, EvaluationResult
from ordrec.evaluation.significance.against_best import against_best
from ordrec.evaluation.splits.base import Split, Splitter
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.parallel import Engine, run
from ordrec.ratings import Ratings
from ordrec.recommend.registry import make_model

__all__ = ["EvaluationInterrupted", "evaluate"]

Progress = Callable[[int, int, str], None]


class EvaluationInterrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of `evaluate`; ``result`` holds what was finished."""

    def __init__(self, result: EvaluationResult):
        super().__init__("interrupted")
        self.result = result


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
    n_jobs: int | None = None,
    engine: Engine | str | None = None,
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
        best for it (see `ordrec.evaluation.metrics.measures`): mean for ``rmse``, median for
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
    n_jobs : int, optional
        Models fitted at the same time; -1 for all processors.
    engine : Engine or str, optional
        Where they are fitted, see `ordrec.parallel`: in processes by default. Nothing but the
        seconds depends on it.
    n_resamples : int
        Draws of users for intervals and tests; 0 for none.
    keep_distributions : bool
        Whether predicted distributions are kept, for reliability diagrams.
    on_error : {"record", "raise"}
        Whether a model that fails is recorded, with its error, and the others go on; or its
        exception is raised.
    progress : callable, optional
        Called as ``progress(done, total, text)`` when a fit is started and once at the end.

    Returns
    -------
    EvaluationResult

    Raises
    ------
    EvaluationInterrupted
        A KeyboardInterrupt that carries the result of the folds that were finished, if any.

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
    tell = progress if progress is not None else lambda *_: None
    total, interrupted = splitter.n_splits * len(named), False
    found: dict[int, FoldMeasurement] = {}

    def tasks() -> Iterator[tuple[str, Any, Split]]:
        for fold in splitter.split(ratings):
            for name, model in named.items():
                tell(len(found), total, f"{name}, fold {fold.fold}")
                yield name, model, fold

    try:
        shared = protocol, on_error
        options: dict[str, Any] = {"engine": engine, "n_jobs": n_jobs, "label": _label}
        for number, fold in run(_measure, tasks(), shared=shared, **options):
            found[number] = fold
    except KeyboardInterrupt:
        if not found:
            raise
        interrupted = True
    tell(len(found), total, "done")
    measured = [found[number] for number in sorted(found)]
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
    result = EvaluationResult(
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
    if interrupted:
        raise EvaluationInterrupted(result)
    return result


def _measure(task: tuple[str, Any, Split], protocol: Protocol, on_error: str) -> FoldMeasurement:
    """Measure a copy of a model on a fold."""
    name, model, fold = task
    return measure_fold(name, copy.deepcopy(model), fold, protocol, on_error)


def _label(task: tuple[str, Any, Split]) -> str:
    return f"{task[0]}, fold {task[2].fold}"


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
