"""Model selection by cross-validation, as the papers do it, without computing anything twice.

The plain loop builds a Gram matrix for every parameter setting and fold. Here the pairs
(distances or products) are computed once, a Gram matrix once for each kernel parameter, and
folds and costs C share it; along C a solver may start from the previous solution. Several
metrics are measured on the same fits.

Settings that share a kernel are one task on each fold. Behind the steps of a pipeline, whose
features depend on the training part, pairs and Gram matrices are computed once for each fold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import indexable

from ordrec.errors import ArgumentError
from ordrec.kernels import Kernel, Precomputed, kernel_for
from ordrec.ordinal.kernel_model import KernelMixin, check_gram
from ordrec.ordinal.labels import categories_of
from ordrec.runtime.parallel import Engine, run_all
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report

__all__ = ["Tuned", "tune"]

Metric = Literal["mae", "mze"]
Progress = Callable[[int, int, str], None]
KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")
WITH_GAMMA = ("rbf", "poly", "ard")
METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "mae": lambda ranks, truth: float(np.abs(ranks - truth).mean()),
    "mze": lambda ranks, truth: float((ranks != truth).mean()),
}
_LOCK = threading.RLock()  # threads wait for a matrix instead of computing it twice
GRIDS = ("svor-paper", "npsvor-paper", "npsvor-wide")
WIDTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)  # epsilon of NPSVOR
COST_RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0)  # C2 / C1 of NPSVOR
FINE_STEPS = 0.2 * np.arange(-4, 5)  # in log10, around the best of the coarse grid


@dataclass(frozen=True)
class Tuned:
    """The result of `tune`.

    Attributes
    ----------
    best_params : dict
    best_score : float
        Mean error over the folds.
    estimator : estimator
        Fitted to all the data with the best parameters.
    table : DataFrame
        One row per setting, in the order of the search: its parameters, ``stage``, the
        error of each fold and their mean ``score``.
    """

    best_params: dict[str, Any]
    best_score: float
    estimator: Any
    table: pd.DataFrame


@overload
def tune(
    estimator: Any,
    X: Any,
    y: Any,
    grid: str | Mapping[str, Any] = ...,
    *,
    cv: Any = ...,
    metric: Metric = ...,
    n_jobs: int | None = ...,
    engine: Engine | str | None = ...,
    progress: Progress | None = ...,
    verbose: bool | None = ...,
) -> Tuned: ...


@overload
def tune(
    estimator: Any,
    X: Any,
    y: Any,
    grid: str | Mapping[str, Any] = ...,
    *,
    cv: Any = ...,
    metric: Sequence[Metric],
    n_jobs: int | None = ...,
    engine: Engine | str | None = ...,
    progress: Progress | None = ...,
    verbose: bool | None = ...,
) -> dict[str, Tuned]: ...


def tune(
    estimator: Any,
    X: Any,
    y: Any,
    grid: str | Mapping[str, Any] = "svor-paper",
    *,
    cv: Any = 5,
    metric: Metric | Sequence[Metric] = "mae",
    n_jobs: int | None = None,
    engine: Engine | str | None = None,
    progress: Progress | None = None,
    verbose: bool | None = None,
) -> Tuned | dict[str, Tuned]:
    """Choose parameters of a kernel estimator by cross-validation.

    The choice is that of scikit-learn's GridSearchCV on the same folds: the setting with the
    lowest mean error over the folds and, among equals, the first in the order of the grid. Where
    the estimator standardises features (``scaling``), this is done once for all folds.

    Parameters
    ----------
    estimator : KernelMixin or Pipeline
        SVORIM, SVOREX, SVORSLA, NPSVOR or any other with a ``kernel`` parameter; or a
        scikit-learn Pipeline that ends in one, whose other steps are fitted to the training part
        of each fold. Parameters then have the names of the pipeline, such as ``svorim__C``.
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    grid : "svor-paper", "npsvor-paper", "npsvor-wide" or dict
        Chu and Keerthi search log10 C and log10 kappa = log10 (2 gamma) on -3, -2 .. 3, then
        on nine steps of 0.2 around the best of each. Wang et al. search C and gamma on
        10**-3 .. 10**3. "npsvor-wide" goes on from the best of these, for NPSVOR alone: epsilon
        from 0 to 0.5 and C2 / C1 from 0.1 to 10, which helps where NPSVOR is poor. A dict lists
        values for each parameter.
    cv : int or splitter
        As in scikit-learn; a number means stratified folds.
    metric : {"mae", "mze"}, or a sequence of them
        Mean absolute or mean zero-one error of the ranks. For several metrics the fits that
        they have in common are made once.
    n_jobs : int, optional
        How many folds and kernels run at the same time; all cores by default.
    engine : Engine or str, optional
        Where they run, see `ordrec.runtime.parallel`: by default in threads, as the solvers are
        compiled.
        Workers that are processes build the kernel matrices themselves.
    progress : callable, optional
        Called as ``progress(done, total, text)`` after each kernel and fold. The total grows
        when a finer grid follows, as it depends on the results of the first.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Returns
    -------
    Tuned or dict of str to Tuned
        For a sequence of metrics, what was found for each of them: the same as in a search of
        its own.

    Examples
    --------
    >>> from ordrec.ordinal.svor.model import SVORIM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    >>> found = tune(SVORIM(), X, y, {"C": [0.01, 1.0, 100.0], "gamma": [0.01, 0.1, 1.0]}, cv=3)
    >>> sorted(found.best_params), len(found.table), round(found.best_score, 2)
    (['C', 'gamma'], 9, 0.05)
    """
    metrics = [metric] if isinstance(metric, str) else list(metric)
    if not metrics or not set(metrics) <= set(METRICS):
        raise ArgumentError(f'metric must be "mae" or "mze", or a sequence of them, got {metric!r}')
    model, prefix = _last_step(estimator)
    if isinstance(grid, Mapping):
        grid = _without_prefix(grid, prefix)
        if "scaling" in grid:
            raise ArgumentError(
                "scaling cannot be searched, as features are standardised once for all folds: set "
                "it in the estimator"
            )
    search: _Search | _PipelineSearch
    if prefix:
        search = _PipelineSearch(estimator, X, y, cv, metrics)
    else:
        search = _Search(model, X, y, cv, metrics)
    measured = _Measured(search, engine or "threads", n_jobs, progress)
    with showing("tune", verbose):
        found = _found(measured, estimator, grid, X, y)
    return found[metric] if isinstance(metric, str) else found


def _found(
    measured: _Measured, estimator: Any, grid: str | Mapping[str, Any], X: Any, y: Any
) -> dict[str, Tuned]:
    """What the search finds, by metric."""
    model, prefix = _last_step(estimator)
    fitted: list[tuple[dict[str, Any], Any]] = []  # estimators, by their parameters
    found: dict[str, Tuned] = {}
    for name in measured.search.metrics:
        tables: list[pd.DataFrame] = []
        for stage, settings in enumerate(_stages(model, grid, tables)):
            errors = measured.errors(settings)[name]
            table = pd.DataFrame(settings)
            table["stage"] = stage
            for fold in range(errors.shape[1]):
                table[f"fold {fold}"] = errors[:, fold]
            table["score"] = np.average(errors, axis=1)
            tables.append(table)
        winner = int(tables[-1]["score"].to_numpy().argmin())
        best = {prefix + name: value for name, value in settings[winner].items()}
        chosen = next((model for params, model in fitted if params == best), None)
        if chosen is None:
            chosen = clone(estimator).set_params(**best).fit(X, y)
            fitted.append((best, chosen))
        score = float(tables[-1]["score"].iloc[winner])
        table = pd.concat(tables, ignore_index=True)
        named = {each: prefix + each for each in settings[winner]}
        found[name] = Tuned(best, score, chosen, table.rename(columns=named))
    return found


def _last_step(estimator: Any) -> tuple[Any, str]:
    """The estimator whose parameters are searched, and what their names begin with."""
    model, prefix = estimator, ""
    if isinstance(estimator, Pipeline):
        name, model = estimator.steps[-1]
        prefix = f"{name}__"
    if not isinstance(model, KernelMixin):
        raise ArgumentError(
            f"tune searches the parameters of a kernel estimator, such as SVORIM(), or of a "
            f"Pipeline that ends in one, got {type(model).__name__}: for others use scikit-learn's "
            "GridSearchCV"
        )
    return model, prefix


def _without_prefix(grid: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    for name in grid:
        if not name.startswith(prefix):
            raise ArgumentError(
                f"grid: {name!r} is no parameter of the last step of the pipeline: its parameters "
                f"are called {prefix}C and so on"
            )
    return {name.removeprefix(prefix): values for name, values in grid.items()}


class _Measured:
    """The errors of lists of settings by all metrics; a list is fitted once."""

    def __init__(
        self,
        search: _Search | _PipelineSearch,
        engine: Engine | str,
        n_jobs: int | None,
        progress: Progress | None,
    ):
        self.search, self.engine, self.n_jobs, self.progress = search, engine, n_jobs, progress
        self.done = 0
        self.known: list[tuple[list[dict[str, Any]], dict[str, np.ndarray]]] = []

    def errors(self, settings: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """For each metric, an array of shape (n_settings, n_folds)."""
        for fitted, errors in self.known:
            if fitted == settings:
                return errors
        shape = len(settings), len(self.search.folds)
        errors = {metric: np.empty(shape) for metric in self.search.metrics}
        tasks = list(self.search.tasks(settings))
        found = run_all(
            _errors_of,
            tasks,
            shared=(self.search,),
            engine=self.engine,
            n_jobs=self.n_jobs,
            progress=self._report,
            label=repr,
        )
        for task, of_metrics in zip(tasks, found, strict=True):
            for metric, values in of_metrics.items():
                errors[metric][task.rows, task.fold] = values
        self.done += len(tasks)
        self.known.append((settings, errors))
        return errors

    def _report(self, done: int, total: int, text: str) -> None:
        report(self.done + done, self.done + total, text)
        if self.progress is not None:
            self.progress(self.done + done, self.done + total, text)


def _stages(
    estimator: Any, grid: str | Mapping[str, Any], done: list[pd.DataFrame]
) -> Iterator[list[dict[str, Any]]]:
    """Settings of each stage, in the order of ParameterGrid; ``done`` holds the earlier tables."""
    if isinstance(grid, Mapping):
        yield list(ParameterGrid(dict(grid)))
        return
    if grid not in GRIDS:
        names = ", ".join(f'"{name}"' for name in GRIDS)
        raise ArgumentError(f"grid must be {names} or a dict, got {grid!r}")
    parameters = estimator.get_params()
    if grid == "npsvor-wide" and "C2" not in parameters:
        raise ArgumentError(
            f'grid must be another for {type(estimator).__name__}: "npsvor-wide" is for NPSVOR'
        )
    cost = "C" if "C" in parameters else "C1"
    kernel = parameters["kernel"]
    axes = [cost, "gamma"] if kernel in WITH_GAMMA else [cost]
    half = np.log10(2.0) if grid == "svor-paper" else 0.0  # kappa = 2 gamma
    shift = {cost: 0.0, "gamma": -half}
    coarse = np.arange(-3.0, 4.0)
    yield list(ParameterGrid({name: 10.0 ** (coarse + shift[name]) for name in axes}))
    if grid == "svor-paper":
        winner = int(done[0]["score"].to_numpy().argmin())
        centre = {name: np.log10(done[0][name].to_numpy()[winner]) for name in axes}
        fine = {name: 10.0 ** (centre[name] + FINE_STEPS) for name in axes}
        yield list(ParameterGrid(fine))
    if grid == "npsvor-wide":
        best = done[0].iloc[int(done[0]["score"].to_numpy().argmin())]
        chosen = {name: float(best[name]) for name in axes}
        yield [
            chosen | {"C2": chosen[cost] * ratio, "epsilon": width}
            for width in WIDTHS
            for ratio in COST_RATIOS
        ]


class _Task(NamedTuple):
    """The settings that share a kernel, on one fold."""

    kernel: dict[str, Any]
    fold: int
    rows: list[int]  # in the table of settings
    rest: list[dict[str, Any]]  # the other parameters of each setting, ascending

    def __repr__(self) -> str:
        return f"fold {self.fold} of {self.kernel}"


class _Search:
    """The data, their folds, and the pairs that all Gram matrices come from."""

    def __init__(self, estimator: Any, X: Any, y: Any, cv: Any, metrics: list[Any]):
        X, y = indexable(X, y)
        self.X = X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
        blank = clone(estimator)
        # where the estimator scales features, by all rows: the labels play no part in it
        self.X, self.ranks, _ = blank._validate_fit(self.X, y)
        self.classes, self.n_ranks = blank.classes_, blank.n_ranks_
        self.blank = clone(estimator).set_params(scaling=None, classes=self.classes)
        splitter = check_cv(cv, np.asarray(y), classifier=True)
        self.folds = list(splitter.split(self.X, np.asarray(y)))
        self.metrics = metrics
        self._pairs: dict[Any, Any] = {}
        self._full_grams: dict[tuple[Any, ...], np.ndarray] = {}

    def tasks(self, settings: list[dict[str, Any]]) -> Iterator[_Task]:
        """For each kernel and fold, the settings that share it."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row, setting in enumerate(settings):
            kernel = {name: setting[name] for name in KERNEL_PARAMETERS if name in setting}
            groups.setdefault(tuple(kernel.items()), []).append(row)
        for kernel_setting, rows in groups.items():
            rest = [
                {k: v for k, v in settings[row].items() if k not in KERNEL_PARAMETERS}
                for row in rows
            ]
            order = sorted(range(len(rows)), key=[_sortable(part) for part in rest].__getitem__)
            rows, rest = [rows[i] for i in order], [rest[i] for i in order]
            for fold in range(len(self.folds)):
                yield _Task(dict(kernel_setting), fold, rows, rest)

    def grams(self, setting: dict[str, Any], fold: int) -> tuple[np.ndarray, np.ndarray]:
        """Return K(train, train) and K(test, train) of a fold."""
        train, test = self.folds[fold]
        given: dict[str, Any] = {
            name: setting.get(name, getattr(self.blank, name)) for name in KERNEL_PARAMETERS
        }
        choice = given["kernel"]
        if isinstance(choice, str) and choice in WITH_GAMMA and given["gamma"] == "scale":
            kernel = kernel_for(**given, X=self.X[train])  # its width depends on the training part
            pairs = self._pairs_for(choice, kernel)
            return (
                kernel.from_pairs(kernel.take_pairs(pairs, train, train)),
                kernel.from_pairs(kernel.take_pairs(pairs, test, train)),
            )
        K = self._full_gram(setting, given)
        return K[np.ix_(train, train)], K[np.ix_(test, train)]

    def _full_gram(self, setting: dict[str, Any], given: dict[str, Any]) -> np.ndarray:
        """Gram matrix of all rows, kept for the other folds."""
        key = tuple(setting.items())
        with _LOCK:
            if key not in self._full_grams:
                choice = given["kernel"]
                if choice == "precomputed" or isinstance(choice, Precomputed):
                    self._full_grams = {key: check_gram(self.X)}
                else:
                    kernel = kernel_for(**given, X=self.X)
                    self._full_grams = {key: kernel.from_pairs(self._pairs_for(choice, kernel))}
            return self._full_grams[key]

    def _pairs_for(self, choice: Any, kernel: Kernel) -> Any:
        with _LOCK:
            if choice not in self._pairs:
                self._pairs = {choice: kernel.pairs(self.X)}  # one kernel's at a time
            return self._pairs[choice]


class _PipelineSearch:
    """A search for each fold, in the features that the earlier steps make of its training part."""

    def __init__(self, pipeline: Pipeline, X: Any, y: Any, cv: Any, metrics: list[Any]):
        last = clone(pipeline[-1])
        if last.classes is None:
            last.set_params(classes=categories_of(y))
        X, y = indexable(X, np.asarray(y))
        self.metrics = metrics
        self.folds = list(check_cv(cv, y, classifier=True).split(X, y))
        self.searches = []
        for train, test in self.folds:
            features = X
            if len(pipeline.steps) > 1:
                steps = clone(pipeline[:-1]).fit(_safe_indexing(X, train), y[train])
                features = steps.transform(X)
            self.searches.append(_Search(last, features, y, [(train, test)], metrics))

    def tasks(self, settings: list[dict[str, Any]]) -> Iterator[_Task]:
        """For each kernel and fold, the settings that share it."""
        for fold, search in enumerate(self.searches):
            yield from (task._replace(fold=fold) for task in search.tasks(settings))


def _errors_of(task: _Task, search: _Search | _PipelineSearch) -> dict[str, list[float]]:
    """Errors of all settings of one kernel on one fold, by each metric."""
    if isinstance(search, _PipelineSearch):
        return _errors_of(task._replace(fold=0), search.searches[task.fold])
    train, test = search.folds[task.fold]
    own = search.ranks[train]
    if (own == own[0]).all():  # nothing to fit: whatever the setting, this is all there is to say
        predicted = [np.full(len(test), own[0])] * len(task.rest)
    elif getattr(search.blank, "n_landmarks", None) is None and "n_landmarks" not in task.rest[0]:
        K, held = search.grams(task.kernel, task.fold)
        predicted = _predictions(search.blank, K, own, search.classes, held, task.rest)
    else:
        predicted = _landmark_predictions(search, task)
    truth = search.ranks[test]
    return {
        metric: [METRICS[metric](ranks, truth) for ranks in predicted] for metric in search.metrics
    }


def _predictions(
    blank: Any,
    K: np.ndarray,
    ranks: np.ndarray,
    classes: np.ndarray,
    held: np.ndarray,
    settings: list[dict[str, Any]],
) -> list[np.ndarray]:
    """Ranks predicted for held-out rows under each setting.

    An estimator with a method ``rank_path`` fits all settings itself, each from the solution of
    the last; any other is fitted to the precomputed matrix for each setting.
    """
    if hasattr(blank, "rank_path"):
        return blank.rank_path(K, ranks, len(classes), held, settings)
    predicted = []
    for setting in settings:
        model = clone(blank).set_params(kernel="precomputed", classes=classes, **setting)
        predicted.append(model.fit(K, classes[ranks]).predict_ranks(held))
    return predicted


def _landmark_predictions(search: _Search, task: _Task) -> list[np.ndarray]:
    """Ranks predicted under each setting where a Gram matrix is to be avoided."""
    train, test = search.folds[task.fold]
    pairwise = search.blank.__sklearn_tags__().input_tags.pairwise
    X, held = search.X[train], search.X[test]
    if pairwise:
        X, held = X[:, train], held[:, train]
    predicted = []
    for setting in task.rest:
        model = clone(search.blank).set_params(classes=search.classes, **task.kernel, **setting)
        predicted.append(model.fit(X, search.classes[search.ranks[train]]).predict_ranks(held))
    return predicted


def _sortable(setting: dict[str, Any]) -> list[tuple[str, str, float]]:
    """A key that sorts settings: numbers by value, anything else by its text."""
    return [
        (name, "", float(value))
        if isinstance(value, (int, float, np.number))
        else (name, str(value), 0.0)
        for name, value in setting.items()
    ]
