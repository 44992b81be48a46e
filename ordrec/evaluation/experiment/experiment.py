"""`Experiment`: models x problems x folds x seeds, in parallel, resumed after a stop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import joblib

from ordrec import __version__
from ordrec.errors import ArgumentError, StorageError
from ordrec.evaluation.experiment.cells import Cell, CellOutcome, CellStore
from ordrec.evaluation.experiment.manifest import circumstances
from ordrec.evaluation.experiment.problems import Problem
from ordrec.evaluation.experiment.result import ExperimentResult
from ordrec.evaluation.experiment.selection import Candidates
from ordrec.runtime.parallel import Engine, run
from ordrec.runtime.progress import progress as showing
from ordrec.runtime.progress import report

__all__ = ["Experiment"]

Progress = Callable[[int, int, str], None]


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
    `ExperimentResult.failures`. Except for the seconds, results do not depend on ``n_jobs``, the
    engine, or where a run was interrupted.
    """

    def __init__(
        self,
        models: Mapping[str, Any],
        problems: Iterable[Problem],
        *,
        metrics: Sequence[str] | None = None,
        seeds: Sequence[int] = (0,),
        store: Any = None,
        max_folds: int | None = None,
    ):
        self.models = dict(models)
        self.problems = list(problems)
        self.metrics = None if metrics is None else list(dict.fromkeys(metrics))
        self.seeds = [int(seed) for seed in seeds]
        self.store = None if store is None else CellStore(store)
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

    def run(
        self,
        *,
        n_jobs: int | None = None,
        engine: Engine | str | None = None,
        progress: Progress | None = None,
        verbose: bool | None = None,
    ) -> ExperimentResult:
        """Compute the cells that are not stored yet and return the result of all cells.

        Parameters
        ----------
        n_jobs : int, optional
            Number of cells computed at the same time; -1 for all cores.
        engine : Engine or str, optional
            Where the cells are computed, see `ordrec.runtime.parallel`: in processes by default.
        progress : callable, optional
            Called as ``progress(done, total, text)`` after each cell.
        verbose : bool, optional
            Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.
        """
        with showing("experiment", verbose):
            return self._run(n_jobs, engine, progress)

    def _run(
        self, n_jobs: int | None, engine: Engine | str | None, progress: Progress | None
    ) -> ExperimentResult:
        manifest = circumstances()
        hashes = {problem.name: problem.checksum() for problem in self.problems}
        identities = {name: _identity(name, model) for name, model in self.models.items()}
        cells = list(self._cells(hashes, identities))
        outcomes: dict[str, CellOutcome] = {}
        for cell in cells:
            stored = None if self.store is None else self.store.get(cell)
            if stored is not None and not stored.error:
                outcomes[cell.key] = stored
        missing = [cell for cell in cells if cell.key not in outcomes]
        metrics = {problem.name: self._metrics(problem) for problem in self.problems}
        problems = {problem.name: problem for problem in self.problems}
        report(len(outcomes), len(cells))
        for number, outcome in run(
            _run_cell,
            missing,
            shared=(self.models, problems, metrics),
            engine=engine,
            n_jobs=n_jobs,
            label=_label,
        ):
            outcome = replace(outcome, commit=manifest["commit"])
            self._keep(missing[number], outcome)
            outcomes[missing[number].key] = outcome
            report(len(outcomes), len(cells), _label(missing[number]))
            if progress is not None:
                progress(len(outcomes), len(cells), _label(missing[number]))
        manifest |= {
            "models": {name: describe(model) for name, model in self.models.items()},
            "data": hashes,
            "splits": {problem.name: problem.split for problem in self.problems},
            "seeds": self.seeds,
            "cells": len(cells),
            "cells_from_store": len(cells) - len(missing),
            "commits": sorted({outcome.commit for outcome in outcomes.values()}),
        }
        return ExperimentResult.from_outcomes(
            [(cell, outcomes[cell.key]) for cell in cells], manifest
        )

    def __len__(self) -> int:
        """Return the number of cells."""
        return sum(len(self._folds(problem)) for problem in self.problems) * (
            len(self.models) * len(self.seeds)
        )

    def _keep(self, cell: Cell, outcome: CellOutcome) -> None:
        if self.store is None:
            return
        try:
            self.store.put(cell, outcome)
        except StorageError as error:
            raise StorageError(
                f"{error}. {len(self.store)} finished cells are kept in {self.store.folder}: "
                "start again to continue"
            ) from error

    def _folds(self, problem: Problem) -> list[str]:
        return problem.folds[: self.max_folds]

    def _metrics(self, problem: Problem) -> list[str]:
        return list(problem.default_metrics) if self.metrics is None else self.metrics

    def _cells(self, hashes: Mapping[str, str], identities: Mapping[str, str]) -> Iterator[Cell]:
        for problem in self.problems:
            for fold in self._folds(problem):
                for name in self.models:
                    identity = {
                        "data": hashes[problem.name],
                        "model": identities[name],
                        "metrics": " ".join(self._metrics(problem)),
                        "ordrec": __version__,
                    }
                    for seed in self.seeds:
                        yield Cell(name, problem.name, problem.split, fold, seed, identity)


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
            f"model {name!r} cannot be pickled, so it can neither be stored under a name nor run "
            f"in another process ({error}): use functions of a module instead of lambdas"
        ) from error


def _label(cell: Cell) -> str:
    return f"{cell.model} on {cell.data}"


def _run_cell(
    cell: Cell,
    models: Mapping[str, Any],
    problems: Mapping[str, Problem],
    metrics: Mapping[str, list[str]],
) -> CellOutcome:
    """Fit and measure one cell; an exception is recorded as its outcome."""
    model, problem = models[cell.model], problems[cell.data]
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            chosen = ""
            if isinstance(model, Candidates):
                chosen = model.choose(
                    problem.training(cell.fold, model.n_folds, cell.seed), cell.seed
                )
                model = model.models[chosen]
            rows = problem.measure(model, cell.fold, metrics[cell.data], cell.seed)
        messages = "; ".join(sorted({f"{w.category.__name__}: {w.message}" for w in caught}))
        extra = {"chosen": chosen, "warnings": messages}
        return CellOutcome([cell.about | row | extra for row in rows])
    except Exception as error:  # any exception of a model: the other cells go on
        return CellOutcome([], f"{type(error).__name__}: {error}")
