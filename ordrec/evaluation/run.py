"""`Experiment` and `evaluate`: measure models on folds, in parallel, resumed after a stop.

An experiment consists of cells: one model on one fold of one problem with one seed. `evaluate` is
an experiment with one problem, a set of ratings, that also tests the models against the best one.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from typing import Any, Literal

import joblib
import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.columns import encode_ids
from ordrec.data.ratings import as_ratings
from ordrec.errors import ArgumentError, StorageError
from ordrec.evaluation.defaults import (
    CANDIDATES,
    COLD_USERS,
    DECISION,
    RANKING_USERS,
    SPLIT,
    TIMES,
)
from ordrec.evaluation.manifest import circumstances
from ordrec.evaluation.metrics.measures import (
    DEFAULT_METRICS,
    LIST_METRICS,
    PICK_METRICS,
    Measure,
    measure_from_name,
    register_measures,
)
from ordrec.evaluation.metrics.own import OwnMetric
from ordrec.evaluation.predictions import PredictedLists, Predictions, predictions_from_frame
from ordrec.evaluation.problems.base import Measurement, Problem, none_applies
from ordrec.evaluation.problems.ratings import RatingsProblem, measurable_model
from ordrec.evaluation.result import CELL, COLUMNS, EvaluationResult
from ordrec.evaluation.significance.against_best import against_best
from ordrec.evaluation.splits.base import Splitter, joined_ratings
from ordrec.evaluation.splits.own import own_parts
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.evaluation.tuning.candidates import Candidates
from ordrec.runtime.parallel import Engine, run
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report
from ordrec.storage.parts import PartStore

__all__ = [
    "Cell",
    "Experiment",
    "Interrupted",
    "evaluate",
    "evaluate_predictions",
    "stored_measurement",
]

Progress = Callable[[int, int, str], None]


class Interrupted(KeyboardInterrupt):
    """Raised after Ctrl-C during an evaluation or a search; ``result`` holds what was finished."""

    def __init__(self, result: Any):
        super().__init__("interrupted")
        self.result = result


@dataclass(frozen=True)
class Cell:
    """Everything that determines a measurement: names for people, hashes for the store.

    Attributes
    ----------
    model, data, split, fold : str
    seed : int
    metrics : list of str
    identity : dict of str
        What else must be equal for a measurement to be used again: the hashes of the model and
        the data, and the versions.
    """

    model: str
    data: str
    split: str
    fold: str
    seed: int
    metrics: list[str] = field(default_factory=list)
    identity: Mapping[str, Any] = field(default_factory=dict)

    @property
    def about(self) -> dict[str, Any]:
        """The columns that name this cell in a result."""
        return {name: getattr(self, name) for name in CELL}


def evaluate(
    ratings: Ratings | pd.DataFrame | Sequence[Any],
    models: Any,
    split: str | Splitter = SPLIT,
    *,
    test: Ratings | pd.DataFrame | Sequence[Any] | None = None,
    valid: Ratings | pd.DataFrame | Sequence[Any] | None = None,
    metrics: Iterable[str | OwnMetric] = DEFAULT_METRICS,
    decision: str = DECISION,
    candidates: Literal["catalogue", "rated"] = CANDIDATES,
    ranking_users: int | Literal["auto", "all"] = RANKING_USERS,
    like: float | None = None,
    times: Literal["unknown", "known"] = TIMES,
    cold_users: int | None = COLD_USERS,
    groups: str | None = None,
    propensity: Literal["popularity"] | pd.DataFrame | None = None,
    against: str | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    engine: Engine | str | None = None,
    n_resamples: int = 2000,
    keep_predictions: bool = False,
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
        A frame is read as by `Ratings.from_frame`. With ``test``, the training part.
    models : str, model, iterable or mapping
        Names for `ordrec.recommend.make_model`, or unfitted models (each fold fits a copy);
        the keys of a mapping name the models in the result. `Candidates` are chosen on each
        training part, and `predictions_from_frame` makes a model of predictions from elsewhere.
    split : str or splitter
        As in `split_from_name`.
    test : Ratings or DataFrame, optional
        A test part of your own, in place of a split; a pair of a user and an item must not be in
        both parts. Lists of training and test parts of equal length are folds.
    valid : Ratings or DataFrame, optional
        A validation part to ``test``: `Candidates` are fitted on the training part and chosen on
        this one. Models are then fitted on both.
    metrics : iterable of str or OwnMetric
        Names for `measure_from_name`, or your own functions. A metric that a model cannot have
        (the log-loss of a model without ``predict_proba``, an error of one that only ranks) is
        omitted for it. For a table without
        ratings, the default is `PICK_METRICS`.
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
        models, drawn at random. "auto" takes all test users if every model scores the whole
        catalogue at once (``scores_block``); otherwise at most as many as make ten million pairs
        of a user and an item, but at least a hundred.
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
        measured separately (column ``users``); with None they never are.
    groups : str, optional
        A column of the table of users, such as "gender": users are also measured separately by its
        values (column ``users``).
    propensity : "popularity" or DataFrame, optional
        With which probability each pair of a user and an item is in the test part, where users
        choose what they rate: from the popularity of items in training, or from a frame with the
        columns user, item and propensity. Errors and losses then also have the averages "ips" and
        "snips", which estimate them for all pairs of the test users: test ratings are weighted by
        the inverse of their propensity, over the number of pairs or over the sum of the weights.
    against : str, optional
        The name of a model with which all others are compared; by default the best by each metric.
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
    keep_predictions : bool
        Whether all predictions for test ratings are kept (`EvaluationResult.predictions`), and
        what is predicted for five users, for a report.
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
    Interrupted
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
    named = _named_models(models, seed)
    if against is not None and against not in named:
        raise ArgumentError(f"against must be one of {', '.join(named)}, got {against!r}")
    table, splitter = _split_ratings(ratings, split, test, valid, seed)
    listed = [model.table["item"] for model in named.values() if isinstance(model, PredictedLists)]
    table = _with_items(table, listed)
    if metrics is DEFAULT_METRICS and not table.has_ratings:
        metrics = PICK_METRICS
    names, own = _named_metrics(metrics)
    problem = RatingsProblem(
        table,
        splitter,
        decision=decision,
        candidates=candidates,
        times=times,
        ranking_users=ranking_users,
        like=like,
        cold_users=cold_users,
        keep_predictions=keep_predictions,
        reseed=False,
        own_metrics=own,
        groups=groups,
        propensity=propensity,
    )
    for name in names:
        measure_from_name(name)
    experiment = Experiment(named, [problem], metrics=names, seeds=[seed], store=store)
    with showing("evaluate", verbose):
        return experiment._run(
            n_jobs=n_jobs,
            engine=engine,
            progress=progress,
            finished=finished,
            on_error=on_error,
            n_resamples=n_resamples,
            record_warnings=False,
            against=against,
        )


def evaluate_predictions(
    predictions: Any,
    test: Ratings | pd.DataFrame,
    *,
    train: Ratings | pd.DataFrame | None = None,
    metrics: Iterable[str] | None = None,
    cold_users: int | None = None,
    on_error: Literal["record", "raise"] = "raise",
    **options: Any,
) -> EvaluationResult:
    """Measure predictions that were made elsewhere, side by side and with intervals.

    Parameters
    ----------
    predictions : DataFrame, Predictions, or mapping of str to these
        A frame is read as by `predictions_from_frame`: predicted ratings, distributions over the
        ratings, or lists. The keys of a mapping name the models in the result; it may hold models
        too, which are fitted on ``train``.
    test : Ratings or DataFrame
        The ratings that were to be predicted; each of them must have its prediction, but a user
        without a list has an empty one.
    train : Ratings or DataFrame, optional
        What the predictions were learnt from. Items that a user has rated there are left out of
        their list, and metrics of how well known listed items are look there.
    metrics : iterable of str, optional
        By default those of `evaluate`; for lists alone ``ndcg@10``, ``recall@10``, ``hit_rate@10``
        and ``coverage@10``.
    cold_users : int, optional
        As in `evaluate`; by default all users are measured together only.
    on_error : {"raise", "record"}
        As in `evaluate`.
    **options
        Further arguments of `evaluate`, such as ``against="surprise"``.

    Returns
    -------
    EvaluationResult

    See Also
    --------
    evaluate : takes `predictions_from_frame` among models that are fitted.

    Examples
    --------
    >>> test = pd.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 3, 1]})
    >>> theirs = pd.DataFrame({"uid": [1, 1, 2], "iid": [7, 8, 7], "est": [4.0, 3.0, 2.0]})
    >>> result = evaluate_predictions({"theirs": theirs}, test, metrics=["mae"])
    >>> print(round(result.summary().loc["theirs", "mae"], 4))
    0.6667
    """
    given = predictions if isinstance(predictions, Mapping) else {"predictions": predictions}
    models = {
        name: each
        if isinstance(each, str) or hasattr(each, "fit")
        else predictions_from_frame(each)
        for name, each in given.items()
    }
    ours = [name for name, model in models.items() if not isinstance(model, Predictions)]
    if ours and train is None:
        raise ArgumentError(f"train= is what {', '.join(ours)} is to be fitted on: give it")
    tested = as_ratings(test)
    if metrics is None:
        only_lists = all(isinstance(model, PredictedLists) for model in models.values())
        metrics = LIST_METRICS if only_lists else DEFAULT_METRICS
    return evaluate(
        tested.select(np.zeros(0, dtype=np.int64)) if train is None else train,
        models,
        test=tested,
        metrics=metrics,
        cold_users=cold_users,
        on_error=on_error,
        **options,
    )


def _split_ratings(
    ratings: Any, split: str | Splitter, test: Any, valid: Any, seed: int
) -> tuple[Ratings, Splitter]:
    """Return all ratings and how they are split, by name or as they were given."""
    if test is None:
        if valid is not None:
            raise ArgumentError("valid= is a part beside test=: give both", parameter="valid")
        chosen = split_from_name(split, random_state=seed) if isinstance(split, str) else split
        return as_ratings(ratings), chosen
    if split != SPLIT:
        raise ArgumentError(
            f"split={split}: the test part is given: leave out split= or test=",
            parameter=("split", "test"),
        )
    return own_parts(ratings, test, valid)


def _named_metrics(metrics: Iterable[Any]) -> tuple[list[str], tuple[Measure, ...]]:
    """Return the names of all metrics, and those of one's own, which are known from now on."""
    names: list[str] = []
    own: list[Measure] = []
    for metric in metrics:
        if isinstance(metric, OwnMetric):
            own.append(metric.measure())
        elif not isinstance(metric, str):
            raise ArgumentError(
                f"metrics must be names or OwnMetric, got {metric!r}: say where its better values "
                'are, as in OwnMetric(function, "higher")'
            )
        names.append(metric if isinstance(metric, str) else own[-1].name)
    if len({measure.name for measure in own}) < len(own):
        raise ArgumentError("two metrics of your own have the same name: give one with name=")
    register_measures(own)
    return list(dict.fromkeys(names)), tuple(own)


def _with_items(ratings: Ratings, listed: Sequence[pd.Series]) -> Ratings:
    """Add the items of lists made elsewhere to the catalogue: each holds a place in its list."""
    if not listed:
        return ratings
    items = encode_ids(pd.concat(listed, ignore_index=True), "item")[1]
    if items.isin(ratings.item_ids).all():
        return ratings
    none = ratings.select(np.zeros(0, dtype=np.int64))
    empty = none._replaced(item_ids=items, item_table=None)
    return joined_ratings([ratings, empty])


def _named_models(models: Any, seed: int) -> dict[str, Any]:
    """Return unfitted models by name; those given as registered names are made."""
    if isinstance(models, str | Candidates) or hasattr(models, "fit"):  # one alone
        models = [models]
    if isinstance(models, Mapping):
        pairs = list(models.items())
    else:
        pairs = [(m if isinstance(m, str) else type(m).__name__, m) for m in models]
    named: dict[str, Any] = {}
    for name, model in pairs:
        if name in named:
            raise ArgumentError(f"two models are called {name!r}: name them with a mapping")
        choice = isinstance(model, Candidates)
        named[name] = model if choice else measurable_model(name, model, seed)
    if not named:
        raise ArgumentError("models must hold at least one model")
    return named


class Experiment:
    """Measure every model on every fold of every problem, with every seed.

    Parameters
    ----------
    models : mapping of str to model
        Unfitted models, names of rating models, or `Candidates` to choose from by inner
        cross-validation. Each cell fits a fresh copy.
    problems : iterable of Problem
        `RatingsProblem`, `TableProblem`, `QueryProblem`.
    metrics : sequence of str, optional
        By default those of each problem.
    seeds : sequence of int
        Each is set as the ``random_state`` of models that have one.
    store : path, optional
        Folder for finished cells. A later run reads the same cells from there; cells that
        failed are tried again. If not given, nothing is stored.
    max_folds : int, optional
        Only the first folds of each problem.

    Examples
    --------
    >>> import numpy as np
    >>> from ordrec.datasets import OrdinalTable
    >>> from ordrec.evaluation import TableProblem
    >>> from sklearn.linear_model import Ridge
    >>> X = np.arange(20.0)[:, None]
    >>> table = OrdinalTable(X, np.repeat([1, 2], 10), ["x"], 2, [np.arange(0, 20, 2)])
    >>> result = Experiment({"ridge": Ridge()}, [TableProblem(table)]).run()
    >>> result.frame[["model", "metric", "value"]].values.tolist()
    [['ridge', 'mze', 0.1], ['ridge', 'mae', 0.1]]

    Notes
    -----
    A cell that raises is recorded with its error and the others go on; see
    `EvaluationResult.failures`. Except for the seconds, results do not depend on ``n_jobs``, the
    engine, or where a run was interrupted.
    """

    def __init__(
        self,
        models: Mapping[str, Any],
        problems: Iterable[Problem],
        *,
        metrics: Sequence[str] | None = None,
        seeds: Sequence[int] = (0,),
        store: str | os.PathLike[str] | None = None,
        max_folds: int | None = None,
    ):
        self.models = dict(models)
        self.problems = list(problems)
        self.metrics = None if metrics is None else list(dict.fromkeys(metrics))
        self.seeds = [int(seed) for seed in seeds]
        self.store = None if store is None else PartStore(store)
        self.max_folds = max_folds
        if not self.models or not self.problems or not self.seeds:
            raise ArgumentError("an experiment needs at least one model, one problem and one seed")
        if self.metrics is not None and not self.metrics:
            raise ArgumentError("metrics must hold at least one name")
        if max_folds is not None and max_folds < 1:
            raise ArgumentError(f"max_folds must be at least 1, got {max_folds}")
        names = [problem.name for problem in self.problems]
        if len(set(names)) < len(names):
            raise ArgumentError(f"two problems have the same name: {names}")

    def __len__(self) -> int:
        """Return the number of cells."""
        return sum(len(self._folds(problem)) for problem in self.problems) * (
            len(self.models) * len(self.seeds)
        )

    def run(
        self,
        *,
        n_jobs: int | None = None,
        engine: Engine | str | None = None,
        progress: Progress | None = None,
        verbose: bool | None = None,
    ) -> EvaluationResult:
        """Compute the cells that are not stored yet and return the result of all cells.

        Parameters
        ----------
        n_jobs : int, optional
            Number of cells computed at the same time; -1 for all cores.
        engine : Engine or str, optional
            Where the cells are computed, see `ordrec.runtime.parallel`: in processes by default.
        progress : callable, optional
            Called as ``progress(done, total, text)`` when a cell is started and once at the end.
        verbose : bool, optional
            Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

        Raises
        ------
        Interrupted
            A KeyboardInterrupt that carries the result of the cells that were finished, if any.
        """
        with showing("experiment", verbose):
            return self._run(n_jobs=n_jobs, engine=engine, progress=progress)

    def _run(
        self,
        *,
        n_jobs: int | None,
        engine: Engine | str | None,
        progress: Progress | None,
        finished: Callable[[EvaluationResult], Any] | None = None,
        on_error: Literal["record", "raise"] = "record",
        n_resamples: int = 0,
        record_warnings: bool = True,
        against: str | None = None,
    ) -> EvaluationResult:
        problems = {
            problem.name: problem.for_models(self._all_models()) for problem in self.problems
        }
        work = _Work(self, problems, n_resamples, progress, against)
        side_by_side = Engine.of(engine).resolve(n_jobs)[0] != "serial"
        try:
            for number, found in run(
                _measured,
                work.tasks(long_first=side_by_side),
                shared=(self.models, problems, on_error, record_warnings),
                engine=engine,
                n_jobs=n_jobs,
                label=work.label,
            ):
                work.add(number, found)
                if finished is not None and (found.rows or found.error):
                    finished(work.result(n_resamples=0))
        except KeyboardInterrupt:
            if not work.measured:
                raise
            work.tell("done")
            raise Interrupted(work.result()) from None
        work.tell("done")
        return work.result()

    def _all_models(self) -> Iterator[Any]:
        for model in self.models.values():
            if isinstance(model, Candidates):
                yield from model.models.values()
            else:
                yield model

    def _folds(self, problem: Problem) -> list[str]:
        return problem.folds[: self.max_folds]

    def _metrics(self, problem: Problem) -> list[str]:
        return list(problem.default_metrics) if self.metrics is None else self.metrics


class _Work:
    """The cells of an experiment, and what has been measured so far."""

    def __init__(
        self,
        experiment: Experiment,
        problems: Mapping[str, Problem],
        n_resamples: int,
        progress: Progress | None,
        against: str | None = None,
    ):
        self.experiment, self.problems, self.against = experiment, problems, against
        self.store, self.n_resamples, self.progress = experiment.store, n_resamples, progress
        self.manifest = circumstances()
        self.hashes = {name: problem.checksum() for name, problem in problems.items()}
        self.cells = list(self._cells())
        self.measured: dict[int, Measurement] = {}
        self.started: list[int] = []
        for place, cell in enumerate(self.cells):
            stored = None if self.store is None else stored_measurement(self.store, cell)
            if stored is not None:
                self.measured[place] = stored
        self.n_stored = len(self.measured)

    def _cells(self) -> Iterator[Cell]:
        experiment = self.experiment
        identities = {}
        if self.store is not None:
            identities = {name: _identity(name, m) for name, m in experiment.models.items()}
        for data, problem in self.problems.items():
            for fold in experiment._folds(problem):
                for name in experiment.models:
                    identity = {
                        "data": self.hashes[data],
                        "model": identities.get(name, ""),
                        "versions": self.manifest.get("versions", {}),
                    }
                    for seed in experiment.seeds:
                        metrics = experiment._metrics(problem)
                        yield Cell(name, data, problem.split, fold, seed, metrics, identity)

    def tasks(self, long_first: bool) -> Iterator[Cell]:
        """What is left to do; side by side, the end should not wait for one long fit alone."""
        for _, fold in groupby(enumerate(self.cells), lambda each: (each[1].data, each[1].fold)):
            of_fold = list(fold)
            if long_first:
                of_fold.sort(key=lambda each: not self._takes_long(each[1]))
            for place, cell in of_fold:
                if place not in self.measured:
                    self.started.append(place)
                    self.tell(self.label(cell))
                    yield cell

    def _takes_long(self, cell: Cell) -> bool:
        return getattr(self.experiment.models[cell.model], "takes_long", False)

    def label(self, cell: Cell) -> str:
        """The model, the data if there are several sets, and the fold."""
        data = f" on {cell.data}" if len(self.problems) > 1 else ""
        return f"{cell.model}{data}, fold {cell.fold}"

    def tell(self, text: str) -> None:
        """Report how many cells are done."""
        report(len(self.measured), len(self.cells), text)
        if self.progress is not None:
            self.progress(len(self.measured), len(self.cells), text)

    def add(self, number: int, found: Measurement) -> None:
        """Take in, and store, the measurement of the task with this number."""
        place = self.started[number]
        found = replace(found, commit=self.manifest["commit"])
        self.measured[place] = found
        if self.store is None or found.error:
            return
        try:
            self.store.put(asdict(self.cells[place]), *found.to_arrays())
        except StorageError as error:
            raise StorageError(
                f"{error}. {len(self.store)} finished cells are kept in {self.store.path}: "
                "start again to continue"
            ) from error

    def result(self, n_resamples: int | None = None) -> EvaluationResult:
        """Return the result of what has been measured so far."""
        found = [(self.cells[place], self.measured[place]) for place in sorted(self.measured)]
        if found and not any(each.rows or each.error for _, each in found):
            metrics = dict.fromkeys(metric for cell in self.cells for metric in cell.metrics)
            raise none_applies(metrics, self.experiment.models)
        by_model = {
            name: [each for cell, each in found if cell.model == name]
            for name in self.experiment.models
        }
        comparison = against_best(
            by_model,
            against=self.against,
            n_resamples=self.n_resamples if n_resamples is None else n_resamples,
            seed=self.experiment.seeds[0],
        )
        return EvaluationResult(
            _values_frame(found),
            _failures_frame(found),
            self._manifest(found),
            comparison,
            _joined_distributions(found),
            {cell.model: each.examples for cell, each in reversed(found) if each.examples},
            [(cell.model, cell.fold, each) for cell, each in found],
            next(
                (p.ratings for p in self.problems.values() if isinstance(p, RatingsProblem)), None
            ),
        )

    def _manifest(self, found: list[tuple[Cell, Measurement]]) -> dict[str, Any]:
        experiment = self.experiment
        manifest = self.manifest | {
            "models": {name: describe(model) for name, model in experiment.models.items()},
            "data": self.hashes,
            "splits": {name: problem.split for name, problem in self.problems.items()},
            "seeds": experiment.seeds,
            "cells": len(self.cells),
            "cells_from_store": self.n_stored,
            "commits": sorted({each.commit for _, each in found}),
        }
        if len(self.problems) == 1:
            manifest |= next(iter(self.problems.values())).about()
        if self.against is not None:
            manifest["against"] = self.against
        if len(found) < len(self.cells):
            manifest["measured"] = f"{len(found)} of {len(self.cells)}"
        return manifest


def stored_measurement(store: PartStore, cell: Cell) -> Measurement | None:
    """Return what is stored of a cell; None if there is nothing, or its file is damaged."""
    found = store.get(asdict(cell))
    if found is None:
        return None
    try:
        stored = Measurement.from_arrays(*found)
    except (LookupError, TypeError, ValueError):
        return None
    about = cell.about.items()
    ours = all(row.get(name) == value for row in stored.rows for name, value in about)
    return stored if ours else None


def describe(model: Any) -> str:
    """Return a one-line description of a model."""
    if isinstance(model, Candidates):
        first = next(iter(model.models.values()))
        return (
            f"best of {len(model.models)} x {type(first).__name__} by {model.metric}, "
            f"{model.n_folds} inner folds"
        )
    return " ".join(repr(model).split())


def _identity(name: str, model: Any) -> str:
    """Return a hash of a model's parameters that is the same in every process."""
    try:
        return joblib.hash(model)
    except Exception as error:
        raise ArgumentError(
            f"model {name!r} cannot be pickled, so that what was measured cannot be stored under "
            f"a name of its own ({error}): use functions of a module instead of lambdas"
        ) from error


def _measured(
    cell: Cell,
    models: Mapping[str, Any],
    problems: Mapping[str, Problem],
    on_error: str,
    record_warnings: bool,
) -> Measurement:
    """Fit and measure one cell; an exception is recorded unless it is to be raised."""
    model, problem = models[cell.model], problems[cell.data]
    extra = {}
    try:
        with warnings.catch_warnings(record=True) if record_warnings else nullcontext([]) as caught:
            if record_warnings:
                warnings.simplefilter("always")
            chosen = ""
            if isinstance(model, Candidates):
                inner = problem.training(cell.fold, model.n_folds, cell.seed)
                chosen = model.choose(inner, cell.seed)
                model = model.models[chosen]
            found = problem.measurement(model, cell.fold, cell.metrics, cell.seed, cell.model)
    except Exception as error:  # any exception of a model: the other cells go on
        if on_error == "raise":
            raise
        return Measurement(error=f"{type(error).__name__}: {error}")
    if record_warnings or chosen:
        extra["chosen"] = chosen
    if record_warnings:
        messages = sorted({f"{w.category.__name__}: {w.message}" for w in caught or []})
        extra["warnings"] = "; ".join(messages)
    return replace(found, rows=[cell.about | row | extra for row in found.rows])


def _values_frame(found: list[tuple[Cell, Measurement]]) -> pd.DataFrame:
    rows = [row for _, each in found for row in each.rows]
    if not rows:
        return pd.DataFrame(columns=COLUMNS)
    frame = pd.DataFrame(rows)
    further = [column for column in frame if column not in COLUMNS]
    return frame[[column for column in COLUMNS if column in frame] + further]


def _failures_frame(found: list[tuple[Cell, Measurement]]) -> pd.DataFrame:
    failed = [cell.about | {"error": each.error} for cell, each in found if each.error]
    return pd.DataFrame(failed, columns=[*CELL, "error"])


def _joined_distributions(
    found: list[tuple[Cell, Measurement]],
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the levels and distributions of each model over all folds."""
    of_models: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for cell, each in found:
        if each.distributions is not None:
            of_models.setdefault(cell.model, []).append(each.distributions)
    joined = {}
    for name, parts in of_models.items():
        n_ranks = max(p.shape[1] for _, p in parts)  # folds of a fine scale have their own bins
        padded = [np.pad(p, ((0, 0), (0, n_ranks - p.shape[1]))) for _, p in parts]
        joined[name] = np.concatenate([y for y, _ in parts]), np.vstack(padded)
    return joined
