"""`evaluate`: fit models on the training parts of a split and measure them on the test parts."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from ordrec import __version__
from ordrec.data import Ratings
from ordrec.data.ratings import as_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation.experiment.manifest import circumstances, ratings_checksum
from ordrec.evaluation.finished_folds import FinishedFolds
from ordrec.evaluation.measurement import FoldMeasurement, Protocol, measurable_model, measure_fold
from ordrec.evaluation.metrics.measures import DEFAULT_METRICS, measure_from_name
from ordrec.evaluation.result import COLUMNS, EvaluationResult
from ordrec.evaluation.significance.against_best import against_best
from ordrec.evaluation.splits.base import Split, Splitter
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.runtime.parallel import Engine, run
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report

__all__ = ["EvaluationInterrupted", "evaluate"]

Progress = Callable[[int, int, str], None]


class EvaluationInterrupted(KeyboardInterrupt):
    """Raised after Ctrl-C during `evaluate`; ``result`` holds the folds that were finished."""

    def __init__(self, result: EvaluationResult):
        super().__init__("interrupted")
        self.result = result


def evaluate(
    ratings: Ratings | pd.DataFrame,
    models: str | Iterable[Any] | Mapping[str, Any],
    split: str | Splitter = "holdout:0.2",
    *,
    metrics: Iterable[str] = DEFAULT_METRICS,
    decision: str = "auto",
    candidates: Literal["catalogue", "rated"] = "catalogue",
    ranking_users: int | Literal["auto", "all"] = "auto",
    like: float | None = None,
    times: Literal["unknown", "known"] = "unknown",
    cold_users: int = 0,
    seed: int = 0,
    n_jobs: int | None = None,
    engine: Engine | str | None = None,
    n_resamples: int = 2000,
    keep_distributions: bool = False,
    on_error: Literal["record", "raise"] = "record",
    store: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    finished: Callable[[EvaluationResult], Any] | None = None,
    verbose: bool | None = None,
) -> EvaluationResult:
    """Fit models on the training part of each fold and measure them on the test part.

    Parameters
    ----------
    ratings : Ratings or DataFrame
        A frame is read as by `Ratings.from_frame`.
    models : str, iterable or mapping
        Names for `ordrec.recommend.make_model`, or unfitted models (each fold fits a copy);
        the keys of a mapping name the models in the result.
    split : str or splitter
        As in `split_from_name`.
    metrics : iterable of str
        Names for `measure_from_name`. A metric that a model cannot have (the log-loss of a
        model without ``predict_proba``, an error of one that only ranks) is omitted for it.
    decision : {"auto", "mean", "median", "mode"}
        What turns a distribution into a rating. "auto" takes for each metric the decision that
        is best for it (see `ordrec.evaluation.metrics.measures`): mean for ``rmse``, median for
        ``int_mae``, mode for ``mze``. Models without ``predict_proba`` give one number, which is
        rounded to the nearest scale value where a metric needs a rank.
    candidates : {"catalogue", "rated"}
        What ranking metrics rank for a user: every item of the data that they have not rated
        in training, or their test items alone, which flatters every model and gives no credit
        for knowing what people choose. ``fcp`` compares pairs of ratings and always uses the
        test items alone.
    ranking_users : int, "auto" or "all"
        The number of test users for whom the catalogue is ranked, the same users for all
        models, drawn at random. "auto" takes all test users for a model that scores the whole
        catalogue at once (``scores_block``); for other models it takes as many as make a million
        pairs of a user and an item, but at least a hundred.
    like : float, optional
        The lowest rating that counts as liked, and as relevant for ``precision``, ``recall``,
        ``map``, ``mrr`` and ``hit_rate``. By default liked ratings are those in the top fifth of
        the scale, and relevant ones those in its top quarter (both from 4 stars of 5 on).
    times : {"unknown", "known"}
        Whether models that can use it are given the time of each test rating. By default they are
        not, as nobody knows beforehand when a rating will be given; the times of the training
        ratings are there in any case.
    cold_users : int
        A user with at most this many training ratings, including those given for fold-in,
        counts as cold. Where a test part has such users, warm and cold users are also
        measured separately (column ``users``).
    seed : int
        For splits given by name, for models given by name that have a ``random_state``, and
        for the draws of users.
    n_jobs : int, optional
        Number of models fitted at the same time; -1 for all processors.
    engine : Engine or str, optional
        Where models are fitted, see `ordrec.runtime.parallel`: in processes by default. Only the
        seconds depend on it.
    n_resamples : int
        Number of draws of users for intervals and tests; 0 for none.
    keep_distributions : bool
        Whether predicted distributions are kept, for reliability diagrams, and what is predicted
        for five users, for a report.
    on_error : {"record", "raise"}
        Whether the error of a model that fails is recorded while the others go on, or its
        exception is raised.
    store : path, optional
        A folder. Each model and fold is kept there as soon as it is measured, and one that is
        there is not measured again: a call that was interrupted goes on where it stopped.
    progress : callable, optional
        Called as ``progress(done, total, text)`` when a fit is started and once at the end.
    finished : callable, optional
        Called with the result so far, without intervals and tests, whenever a model is done with a
        fold.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

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
    With ``times="known"``, a model whose method has a parameter ``timestamps`` receives the times
    of the test ratings.

    A model with ``predict_proba`` and ``scores_block``, such as `Recommender`, is measured on
    ratings by its distributions and on the catalogue by its scores. Where only the test items are
    ranked, its ratings rank them.

    Examples
    --------
    >>> frame = pd.DataFrame({"user": [1, 1, 1, 2, 2, 2, 3, 3], "item": [1, 2, 3, 1, 2, 3, 1, 2],
    ...                       "rating": [5, 4, 3, 4, 3, 2, 5, 4]})
    >>> result = evaluate(Ratings.from_frame(frame), ["mean", "bias"], metrics=["mae"])
    >>> sorted(result.frame["model"].unique())
    ['bias', 'mean']
    """
    ratings = as_ratings(ratings)
    named = _named_models(models, seed)
    if like is not None and not like <= ratings.scale.high:
        raise ArgumentError(
            f"like must not be above the highest rating, {ratings.scale.high:g}, got {like}"
        )
    measures = [measure_from_name(name, like=like) for name in dict.fromkeys(metrics)]
    protocol = Protocol(
        measures, decision, candidates, ranking_users, cold_users, keep_distributions, seed, times
    )
    splitter = split_from_name(split, seed=seed) if isinstance(split, str) else split
    manifest = circumstances() | {
        "models": {name: " ".join(repr(model).split()) for name, model in named.items()},
        "data": {ratings.name: ratings_checksum(ratings)},
        "scale": repr(ratings.scale),
        "split": repr(splitter),
        "decision": decision,
        "liked": "top fifth of the scale" if like is None else f"from {like:g} on",
        "times": _about_times(ratings, times),
        "cold users": f"at most {cold_users} training ratings",
        "seed": seed,
    }
    kept = None
    if store is not None:
        options = {"metrics": [measure.name for measure in measures], "candidates": candidates,
                   "ranking_users": ranking_users, "distributions": keep_distributions}  # fmt: skip
        about = ("data", "split", "decision", "liked", "times", "cold users", "seed")
        identity = options | {key: manifest[key] for key in about} | {"ordrec": __version__}
        kept = FinishedFolds(store, identity, named, (ratings.user_table, ratings.item_table))
    work = _Work(ratings, named, splitter, protocol, on_error, manifest, progress, finished, kept)
    with showing("evaluate", verbose):
        interrupted = work.measure(engine, n_jobs)
    if not any(fold.rows or fold.error for fold in work.measured.values()):
        raise protocol.none_applies(named)
    result = work.result(n_resamples)
    if interrupted:
        raise EvaluationInterrupted(result)
    return result


def _about_times(ratings: Ratings, times: str) -> str:
    """What models know of the times of the test ratings."""
    if ratings.timestamps is None:
        return "the ratings have none"
    return f"those of the test ratings are {times} to the models"


@dataclass
class _Work:
    """All models on all folds, and what has been measured so far, by the number of the task."""

    ratings: Ratings
    models: Mapping[str, Any]
    splitter: Splitter
    protocol: Protocol
    on_error: str
    manifest: dict[str, Any]
    progress: Progress | None = None
    finished: Callable[[EvaluationResult], Any] | None = None
    kept: FinishedFolds | None = None
    measured: dict[int, FoldMeasurement] = field(default_factory=dict)
    _started: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many times a model is measured on a fold."""
        return self.splitter.n_splits * len(self.models)

    def measure(self, engine: Engine | str | None, n_jobs: int | None) -> bool:
        """Measure every model on every fold; return whether Ctrl-C ended it early.

        Raises KeyboardInterrupt where nothing was finished before Ctrl-C.
        """
        interrupted = False
        try:
            for number, fold in run(
                _measure,
                self._tasks(long_first=Engine.of(engine).resolve(n_jobs)[0] != "serial"),
                shared=(self.protocol, self.on_error),
                engine=engine,
                n_jobs=n_jobs,
                label=_label,
            ):
                self.measured[self._started[number]] = fold
                if self.kept is not None:
                    self.kept.put(fold)
                if self.finished is not None and (fold.rows or fold.error):
                    self.finished(self.result(n_resamples=0))
        except KeyboardInterrupt:
            if not self.measured:
                raise
            interrupted = True
        self._tell("done")
        return interrupted

    def _tasks(self, long_first: bool) -> Iterator[tuple[str, Any, Split]]:
        """What is left to do; side by side, the end should not wait for one long fit alone."""
        order = list(enumerate(self.models.items()))
        if long_first:
            order.sort(key=lambda each: not getattr(each[1][1], "takes_long", False))
        for at, fold in enumerate(self.splitter.split(self.ratings)):
            for place, (name, model) in order:
                number = at * len(self.models) + place
                before = None if self.kept is None else self.kept.get(name, fold.fold)
                if before is not None:
                    self.measured[number] = before
                    continue
                self._started.append(number)
                self._tell(f"{name}, fold {fold.fold}")
                yield name, model, fold

    def _tell(self, text: str) -> None:
        report(len(self.measured), self.total, text)
        if self.progress is not None:
            self.progress(len(self.measured), self.total, text)

    def result(self, n_resamples: int) -> EvaluationResult:
        """Return the result of what has been measured so far."""
        measured = [self.measured[number] for number in sorted(self.measured)]
        data, seed, manifest = self.ratings.name, self.protocol.seed, self.manifest
        if len(measured) < self.total:
            manifest = manifest | {"measured": f"{len(measured)} of {self.total}"}
        return EvaluationResult(
            _values_frame(measured, data, seed),
            repr(self.splitter),
            self.protocol.decision,
            seed,
            {name: repr(model) for name, model in self.models.items()},
            against_best(measured, n_resamples=n_resamples, seed=seed),
            _failures_frame(measured, data),
            manifest,
            _joined_distributions(measured),
            {fold.model: fold.examples for fold in reversed(measured) if fold.examples},
        )


def _measure(task: tuple[str, Any, Split], protocol: Protocol, on_error: str) -> FoldMeasurement:
    """Measure a copy of a model on a fold."""
    name, model, fold = task
    return measure_fold(name, copy.deepcopy(model), fold, protocol, on_error)


def _label(task: tuple[str, Any, Split]) -> str:
    return f"{task[0]}, fold {task[2].fold}"


def _values_frame(measured: list[FoldMeasurement], data: str, seed: int) -> pd.DataFrame:
    rows = [row for fold in measured for row in fold.rows]
    frame = pd.DataFrame(rows, columns=[c for c in COLUMNS if c not in ("data", "seed")])
    frame.insert(0, "data", data)
    return frame.assign(seed=seed)


def _failures_frame(measured: list[FoldMeasurement], data: str) -> pd.DataFrame:
    return pd.DataFrame(
        [(data, f.model, f.split, f.fold, f.error) for f in measured if f.error],
        columns=["data", "model", "split", "fold", "error"],
    )


def _joined_distributions(
    measured: list[FoldMeasurement],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the levels and distributions of each model over all folds."""
    kept: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for fold in measured:
        if fold.distributions is not None:
            kept.setdefault(fold.model, []).append(fold.distributions)
    return {
        name: (np.concatenate([y for y, _ in parts]), np.vstack([p for _, p in parts]))
        for name, parts in kept.items()
    }


def _named_models(models: Any, seed: int) -> dict[str, Any]:
    """Return unfitted models by name; those given as registered names are made."""
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
        named[name] = measurable_model(name, model, seed)
    if not named:
        raise ArgumentError("models must hold at least one model")
    return named
