"""`QueryProblem`: judged documents of queries as a problem for an experiment."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics import ranking
from ordrec.evaluation.metrics.averaging import Metric, segments
from ordrec.evaluation.problems.base import Problem, Row, result_row, seeded, timed

__all__ = ["QueryProblem", "query_measure"]

MEASURES: Mapping[str, Metric] = {
    "ndcg": ranking.ndcg,
    "map": ranking.mean_average_precision,
    "mrr": ranking.mean_reciprocal_rank,
    "err": ranking.expected_reciprocal_rank,
    "p": ranking.precision_at,
    "precision": ranking.precision_at,
    "recall": ranking.recall_at,
}
CUT = ("ndcg", "err", "p", "precision", "recall")  # those that look at the first k documents


@dataclass(frozen=True)
class QueryProblem(Problem):
    """Judged documents of queries; models have ``fit(X, y, queries)``, ``scores(X, queries)``.

    Parameters
    ----------
    X : array of shape (n_pairs, n_features), or sequence of texts
    y : array of int
        Grades, 0 for not relevant.
    queries : array
        The query of each pair.
    parts : list of (train, validation, test) row numbers
        An empty validation part where there is none.
    name : str
    discount : {"log2", "letor"}
        The discount of NDCG, see `ordrec.evaluation.ndcg`. A query without relevant
        documents counts 0.
    documents : array, optional
        The name of each pair's document, for `ranking`; row numbers by default.
    """

    X: Any
    y: np.ndarray
    queries: np.ndarray
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
    name: str = "queries"
    split_name: str = "published"
    discount: str = "letor"
    documents: np.ndarray | None = None

    @classmethod
    def from_letor(cls, letor: Any) -> QueryProblem:
        """Return the problem with the five standard folds of a `ordrec.datasets.Letor`."""
        return cls(
            letor.X,
            letor.y,
            letor.queries,
            list(letor.folds()),
            letor.name,
            "letor-folds",
            documents=letor.documents if letor.is_named else None,
        )

    @property
    def split(self) -> str:
        """The name of the split."""
        return self.split_name

    @property
    def folds(self) -> list[str]:
        """The folds, numbered from 1."""
        return [str(number + 1) for number in range(len(self.parts))]

    @property
    def default_metrics(self) -> tuple[str, ...]:
        """NDCG at 1, 5 and 10, MAP, precision at 10."""
        return ("ndcg@1", "ndcg@5", "ndcg@10", "map", "precision@10")

    def checksum(self) -> str:
        """Return a hash of features, grades, queries and parts."""
        return joblib.hash([self.X, self.y, self.queries, list(self.parts), self.discount])

    def measure(self, model: Any, fold: str, metrics: Sequence[str], seed: int) -> list[Row]:
        """Fit a copy of the model and return means of ranking metrics over the test queries."""
        measures = {metric: query_measure(metric, discount=self.discount) for metric in metrics}
        train, _, test = self.parts[self._position(fold)]
        y, queries = np.asarray(self.y), np.asarray(self.queries)
        scores, fit_seconds, predict_seconds = self._scores(model, train, test, seed)
        n_queries = int(np.unique(queries[test]).size)
        return [
            result_row(
                metric,
                "macro",
                "score",
                value(y[test], scores, queries[test]).mean(),
                n_queries,
            )
            | {"n_test": int(test.size)}
            | {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
            for metric, value in measures.items()
        ]

    def ranking(self, model: Any, fold: str, seed: int = 0) -> pd.DataFrame:
        """Fit a copy of the model and rank the test documents of a fold.

        Returns
        -------
        DataFrame
            ``query document score rank grade``, as `ordrec.documents.trec` takes it, in
            the order that `measure` uses: ties are broken in the same random order.
        """
        train, _, test = self.parts[self._position(fold)]
        scores, _, _ = self._scores(model, train, test, seed)
        order, start = segments(np.asarray(self.queries)[test], test.size)
        best_first = order[ranking.best_first(scores[order], start)]
        rows = test[best_first]
        names = np.arange(len(self.y)) if self.documents is None else self.documents
        return pd.DataFrame(
            {
                "query": np.asarray(self.queries)[rows],
                "document": names[rows],
                "score": scores[best_first],
                "rank": ranking.ranks_in(start).astype(np.int64),
                "grade": np.asarray(self.y)[rows],
            }
        )

    def _scores(
        self, model: Any, train: np.ndarray, test: np.ndarray, seed: int
    ) -> tuple[np.ndarray, float, float]:
        """Return scores of the test rows, seconds to fit and seconds to score."""
        y, queries = np.asarray(self.y), np.asarray(self.queries)
        model = seeded(model, seed)
        X_train, X_test = _rows_of(self.X, train), _rows_of(self.X, test)
        fitted, fit_seconds = timed(lambda: model.fit(X_train, y[train], queries[train]))
        scores, predict_seconds = timed(lambda: fitted.scores(X_test, queries[test]))
        return np.asarray(scores, dtype=np.float64), fit_seconds, predict_seconds

    def training(self, fold: str, n_folds: int, seed: int) -> Problem:
        """Return the validation part if there is one, otherwise cross-validation by queries."""
        train, validation, _ = self.parts[self._position(fold)]
        no_rows = np.array([], dtype=np.int64)
        if validation.size:
            parts = [(train, no_rows, validation)]
            return QueryProblem(
                self.X, self.y, self.queries, parts, self.name, "validation", self.discount
            )
        distinct = np.unique(np.asarray(self.queries)[train])
        fold_of_query = np.random.default_rng(seed).permutation(distinct.size) % n_folds
        parts = []
        for number in range(min(n_folds, distinct.size)):
            held_out = np.isin(np.asarray(self.queries)[train], distinct[fold_of_query == number])
            parts.append((train[~held_out], no_rows, train[held_out]))
        return QueryProblem(
            self.X, self.y, self.queries, parts, self.name, f"queries:{n_folds}", self.discount
        )


def query_measure(metric: str, **options: Any) -> Callable[..., np.ndarray]:
    """Return the function ``(grades, scores, queries)`` of a metric by name: a value per query.

    Parameters
    ----------
    metric : str
        ``ndcg@k``, ``map``, ``mrr``, ``err@k``, ``p@k`` (or ``precision@k``), ``recall@k``. Without
        a relevant document a query counts 0.
    **options : Any
        Of the metrics, for those that have them: ``discount``, ``gain``, ``highest``.

    Examples
    --------
    >>> query_measure("p@1")([2, 0, 0], [0.9, 0.1, 0.3], ["a", "a", "b"]).tolist()
    [1.0, 0.0]
    """
    stem, _, number = metric.partition("@")
    cut = stem in CUT
    if stem not in MEASURES or cut != (number.isdecimal() and int(number or 0) > 0):
        raise ArgumentError(
            f"unknown metric {metric!r} for queries: choose ndcg@k, map, mrr, err@k, p@k, "
            "precision@k, recall@k (k: a number, as in ndcg@10)"
        )
    measure = MEASURES[stem]
    taken = set(inspect.signature(measure).parameters)
    chosen = {name: value for name, value in options.items() if name in taken}
    if cut:
        chosen["k"] = int(number)

    def values(grades: Any, scores: Any, queries: Any) -> np.ndarray:
        return np.nan_to_num(measure.per_group(grades, scores, queries, **chosen))

    return values


def _rows_of(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]
