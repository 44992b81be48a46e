"""Model selection by cross-validation, as the papers do it, without computing anything twice.

The plain loop builds a Gram matrix for every parameter setting and fold. Here the pairs
(distances or products) are computed once, a Gram matrix once for each kernel parameter, and
folds and costs C share it; along C a solver may start from the previous solution. Several
metrics are measured on the same fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

from ordrec.errors import ArgumentError
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.tuning_folds import METRICS, WITH_GAMMA, PipelineSearch, Search, errors_of
from ordrec.runtime.parallel import Engine, run_all
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report

__all__ = ["Tuned", "tune"]

Metric = Literal["mae", "mze"]
Progress = Callable[[int, int, str], None]
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
    the estimator standardises features (``scale``), this is done once for all folds.

    Parameters
    ----------
    estimator : KernelMixin or Pipeline
        SVORIM, SVOREX, SVORSLA, NPSVOR or any other with a ``kernel`` parameter; or a
        scikit-learn Pipeline that ends in one, whose other steps are fitted to the training part
        of each fold. Parameters then have the names of the pipeline, such as ``svorim__C``.
    X : array or CSR matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    grid : "svor-paper", "npsvor-paper" or dict
        Chu and Keerthi search log10 C and log10 kappa = log10 (2 gamma) on -3, -2 .. 3, then
        on nine steps of 0.2 around the best of each. Wang et al. search C and gamma on
        10**-3 .. 10**3. A dict lists values for each parameter.
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
        raise ValueError(f'metric must be "mae" or "mze", or a sequence of them, got {metric!r}')
    model, prefix = _last_step(estimator)
    if isinstance(grid, Mapping):
        grid = _without_prefix(grid, prefix)
        if "scale" in grid:
            raise ValueError(
                "scale cannot be searched, as features are standardised once for all folds: set "
                "it in the estimator"
            )
    search: Any = (
        PipelineSearch(estimator, X, y, cv, metrics) if prefix else Search(model, X, y, cv, metrics)
    )
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
        search: Search | PipelineSearch,
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
            errors_of,
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
    if grid not in ("svor-paper", "npsvor-paper"):
        raise ValueError(f'grid must be "svor-paper", "npsvor-paper" or a dict, got {grid!r}')
    parameters = estimator.get_params()
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
