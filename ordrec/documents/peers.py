"""Rankers to compare with: BM25 alone, RankSVM, and others by name."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from ordrec.documents.features import UNION, QueryDocumentFeatures
from ordrec.documents.ranker import RelevanceRanker
from ordrec.errors import ArgumentError, DataError
from ordrec.ordinal.base import OrdinalClassifier

__all__ = ["BM25", "RANKERS", "RankSVM", "make_ranker"]

RANKERS = ("ordinal", "bm25", "ridge", "ranksvm", "lambdamart")


class BM25(BaseEstimator):
    """Rank texts by BM25 alone: nothing is learnt but how common words are.

    Parameters
    ----------
    text : QueryDocumentFeatures, optional

    Examples
    --------
    >>> ranker = BM25().fit(["garden roses", "cat food"], [2, 0], ["roses", "roses"])
    >>> first, second = ranker.scores(["cat food", "garden roses"], ["roses", "roses"])
    >>> bool(first < second)
    True
    """

    def __init__(self, text: QueryDocumentFeatures | None = None):
        self.text = text

    def fit(self, X: Any, y: Any, queries: Any) -> BM25:
        """Learn the words of the documents; grades are not looked at."""
        del y, queries
        own = self.text or QueryDocumentFeatures()
        self.text_ = QueryDocumentFeatures(**own.get_params()).fit(X)
        return self

    def scores(self, X: Any, queries: Any) -> np.ndarray:
        """Return the BM25 of each document for its query, over all fields together."""
        names = self.text_.get_feature_names_out().tolist()
        field = UNION if len(self.text_.fields_) > 1 else self.text_.fields_[0]
        return self.text_.transform(list(queries), X)[:, names.index(f"{field}:bm25")]


class RankSVM(RegressorMixin, BaseEstimator):
    """A linear machine that separates differences of documents (Joachims 2002).

    For use in a `RelevanceRanker`, which passes the sizes of the queries.

    Parameters
    ----------
    C : float
        Weight of the pairs against the norm; it is divided by their number.
    max_pairs : int
        So many pairs of documents of different grades are drawn if there are more.
    random_state : int

    Examples
    --------
    >>> X, y = np.array([[0.1], [0.9], [0.2], [0.7]]), [0, 1, 0, 1]
    >>> bool(RankSVM().fit(X, y, group=[2, 2]).coef_[0] > 0)
    True
    """

    def __init__(self, C: float = 100.0, *, max_pairs: int = 200_000, random_state: int = 0):
        self.C = C
        self.max_pairs = max_pairs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, group: Any) -> RankSVM:
        """Fit to rows that come query by query; ``group`` has the number of each one's rows."""
        from sklearn.svm import LinearSVC

        X, y = np.asarray(X, dtype=np.float64), np.asarray(y)
        first, better, worse = 0, [], []
        for size in group:
            grades = y[first : first + size]
            above, below = np.nonzero(grades[:, None] > grades[None, :])
            better.append(above + first)
            worse.append(below + first)
            first += size
        if not any(map(len, better)):
            raise DataError("no query has documents of different grades: there is nothing to learn")
        high, low = np.concatenate(better), np.concatenate(worse)
        rng = np.random.default_rng(self.random_state)
        if high.size > self.max_pairs:
            drawn = rng.choice(high.size, self.max_pairs, replace=False)
            high, low = high[drawn], low[drawn]
        sign = np.where(np.arange(high.size) % 2, 1.0, -1.0)  # both classes must occur
        if high.size < 2:
            high, low, sign = np.repeat(high, 2), np.repeat(low, 2), np.array([1.0, -1.0])
        differences = (X[high] - X[low]) * sign[:, None]
        machine = LinearSVC(C=self.C / high.size, fit_intercept=False, dual=False)
        self.coef_ = machine.fit(differences, sign).coef_[0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the scores of documents."""
        return np.asarray(X, dtype=np.float64) @ self.coef_


def make_ranker(name: str) -> Any:
    """Return an unfitted ranker by name.

    Parameters
    ----------
    name : {"ordinal", "bm25", "ridge", "ranksvm", "lambdamart"}
        "ordinal" is `RelevanceRanker` as it is; "lambdamart" needs LightGBM (the extra ``peers``).
        The name of an estimator of `ordrec.ordinal`, such as "SVORIM", is a ranker with it.

    Examples
    --------
    >>> make_ranker("ranksvm")
    RelevanceRanker(estimator=RankSVM())
    """
    from sklearn.linear_model import Ridge

    import ordrec.ordinal

    if name == "ordinal":
        return RelevanceRanker()
    if name == "bm25":
        return BM25()
    if name == "ridge":
        return RelevanceRanker(Ridge(alpha=10.0))
    if name == "ranksvm":
        return RelevanceRanker(RankSVM())
    if name == "lambdamart":
        if find_spec("lightgbm") is None:
            raise ArgumentError("lambdamart needs LightGBM: pip install 'ordrec[peers]'")
        from lightgbm import LGBMRanker  # type: ignore[import-not-found]

        boosted = LGBMRanker(n_estimators=100, num_leaves=8, learning_rate=0.05, verbose=-1)
        return RelevanceRanker(boosted)
    estimator = getattr(ordrec.ordinal, name, None) if name in dir(ordrec.ordinal) else None
    if isinstance(estimator, type) and issubclass(estimator, OrdinalClassifier):
        return RelevanceRanker(estimator())
    raise ArgumentError(
        f"no ranker is called {name!r}: choose from {', '.join(RANKERS)}, or name an estimator of "
        "ordrec.ordinal, such as SVORIM"
    )
