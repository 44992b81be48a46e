"""The errors of parameter settings of kernel estimators on folds; see `ordrec.ordinal.tuning`.

Settings that share a kernel are one task on each fold. The pairs of all rows and the Gram matrix of
a kernel are computed once for all folds; behind the steps of a pipeline, whose features depend on
the training part, once for each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import indexable

from ordrec.kernels import Kernel, Precomputed, kernel_for
from ordrec.ordinal.kernel_model import check_gram
from ordrec.ordinal.labels import categories_of

__all__ = ["METRICS", "WITH_GAMMA", "PipelineSearch", "Search", "Task", "errors_of"]

KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")
WITH_GAMMA = ("rbf", "poly", "ard")
METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "mae": lambda ranks, truth: float(np.abs(ranks - truth).mean()),
    "mze": lambda ranks, truth: float((ranks != truth).mean()),
}
_LOCK = threading.RLock()  # threads wait for a matrix instead of computing it twice


class Task(NamedTuple):
    """The settings that share a kernel, on one fold."""

    kernel: dict[str, Any]
    fold: int
    rows: list[int]  # in the table of settings
    rest: list[dict[str, Any]]  # the other parameters of each setting, ascending

    def __repr__(self) -> str:
        return f"fold {self.fold} of {self.kernel}"


class Search:
    """The data, their folds, and the pairs that all Gram matrices come from."""

    def __init__(self, estimator: Any, X: Any, y: Any, cv: Any, metrics: list[Any]):
        X, y = indexable(X, y)
        self.X = X if hasattr(X, "tocsr") else np.asarray(X, dtype=np.float64)
        blank = clone(estimator)
        # where the estimator scales features, by all rows: the labels play no part in it
        self.X, self.ranks, _ = blank._validate_fit(self.X, y)
        self.classes, self.n_ranks = blank.classes_, blank.n_ranks_
        self.blank = clone(estimator).set_params(scale=None, classes=self.classes)
        splitter = check_cv(cv, np.asarray(y), classifier=True)
        self.folds = list(splitter.split(self.X, np.asarray(y)))
        self.metrics = metrics
        self._pairs: dict[Any, Any] = {}
        self._full_grams: dict[tuple, np.ndarray] = {}

    def tasks(self, settings: list[dict[str, Any]]) -> Iterator[Task]:
        """For each kernel and fold, the settings that share it."""
        groups: dict[tuple, list[int]] = {}
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
                yield Task(dict(kernel_setting), fold, rows, rest)

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


class PipelineSearch:
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
            self.searches.append(Search(last, features, y, [(train, test)], metrics))

    def tasks(self, settings: list[dict[str, Any]]) -> Iterator[Task]:
        """For each kernel and fold, the settings that share it."""
        for fold, search in enumerate(self.searches):
            yield from (task._replace(fold=fold) for task in search.tasks(settings))


def errors_of(task: Task, search: Search | PipelineSearch) -> dict[str, list[float]]:
    """Errors of all settings of one kernel on one fold, by each metric."""
    if isinstance(search, PipelineSearch):
        return errors_of(task._replace(fold=0), search.searches[task.fold])
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


def _landmark_predictions(search: Search, task: Task) -> list[np.ndarray]:
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
