"""Ranking documents by graded relevance, with any ordinal model."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, DataError, ModelFileError
from ordrec.ordinal.base import OrdinalClassifier
from ordrec.storage.schema import (
    Array,
    As,
    Field,
    Flag,
    Model,
    Optional,
    Reader,
    Storable,
    Text,
    Texts,
    Writer,
)

__all__ = ["RelevanceRanker"]


class StoredGrades(Field):
    """The grades seen in training: integers or floats."""

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the grades."""
        floats = file.arrays[file.prefix + name].dtype.kind == "f"
        return file.take(name, np.float64 if floats else np.int64, (None,), None, None)


@dataclass(frozen=True)
class StoredWords:
    """The words of a TF-IDF transformer, in the order of its columns, and their weights."""

    stored: ClassVar = {
        "words": Texts("words", distinct=True),
        "weights": Array("words", low=0.0),
    }

    words: list[str]
    weights: np.ndarray

    @classmethod
    def of(cls, text: Any) -> StoredWords:
        """From the fitted transformer."""
        return cls(sorted(text.vocabulary_, key=text.vocabulary_.__getitem__), text.idf_)

    def restored(self, ranker: RelevanceRanker) -> Any:
        """The fitted transformer."""
        text = _tfidf().set_params(vocabulary=self.words)
        text.idf_ = self.weights
        return text


class RelevanceRanker(Storable, BaseEstimator):
    """Rank the documents of a query with a model fitted to judged documents of other queries.

    Parameters
    ----------
    solver : estimator
        Any ordinal estimator of `ordrec.ordinal`, or a scikit-learn classifier, regressor or
        ranker (one whose ``fit`` has a parameter ``group``, such as LightGBM's, is given the
        number of documents of each query).
    rank_by : {"auto", "latent", "expected", "predict"}
        What documents are ranked by: the latent score, the expected grade under
        ``predict_proba``, or the solver's prediction. "auto" is the first of these that the
        solver has.
    scaling : {"none", "range", "centre"}
        How every feature is scaled within each query, to make queries comparable: not at all;
        to the range 0..1 (LETOR's QueryLevelNorm); or to that range and then to mean 0, so that
        a document is described by how it differs from the others of its query, which is all
        that its rank among them depends on. Scaling replaces missing values (NaN) by the lowest.
    balance : bool
        Whether every query has the same weight in training, however many of its documents
        were judged, where the solver takes weights.
    text : transformer, optional
        Turns documents given as texts into features; TF-IDF of words in at least two
        documents, with unit length, if not given.

    Attributes
    ----------
    solver_ : estimator
        The fitted solver.
    grades_ : ndarray
        The grades seen in training, in ascending order.

    Examples
    --------
    >>> from ordrec.ordinal import OrdinalLogistic
    >>> X = np.array([[0.1], [0.5], [0.9], [0.2], [0.4], [0.8]])
    >>> ranker = RelevanceRanker(OrdinalLogistic())
    >>> ranker = ranker.fit(X, [0, 1, 2, 0, 1, 2], queries=[1, 1, 1, 2, 2, 2])
    >>> ranking = ranker.rank([[0.3], [0.7]], queries=[7, 7], documents=["low", "high"])
    >>> ranking["document"].tolist(), ranking["rank"].tolist()
    (['high', 'low'], [1, 2])
    """

    stored: ClassVar = {
        "rank_by": Text("auto", "latent", "expected", "predict"),
        "scaling": Text("none", "range", "centre"),
        "balance": Flag(),
        "solver_": Model(),
        "grades_": StoredGrades(),
        "text_": Optional(As(StoredWords)),
    }

    def __init__(
        self,
        solver: Any,
        *,
        rank_by: Literal["auto", "latent", "expected", "predict"] = "auto",
        scaling: Literal["none", "range", "centre"] = "none",
        balance: bool = True,
        text: Any = None,
    ):
        self.solver = solver
        self.rank_by = rank_by
        self.scaling = scaling
        self.balance = balance
        self.text = text

    def fit(self, X: Any, y: Any, queries: Any) -> RelevanceRanker:
        """Fit on judged documents.

        Parameters
        ----------
        X : array of shape (n_pairs, n_features), sparse matrix, or sequence of texts
        y : array of number
            Grades; a higher one is more relevant.
        queries : array
            The query that each document was judged for.
        """
        self._check_parameters()
        y, queries = np.asarray(y), np.asarray(queries)
        if _is_text(X):
            self.text_ = _tfidf() if self.text is None else clone(self.text)
            features = self.text_.fit_transform(X)
        else:
            self.text_, features = None, X
        features = self._scaled(features, queries)
        if y.shape != queries.shape or y.shape != (features.shape[0],):
            raise DataError(
                f"{features.shape[0]} documents, {y.size} grades and {queries.size} queries: "
                "there must be one grade and one query for each document"
            )
        self.grades_ = np.unique(y)
        self.solver_ = clone(self.solver)
        takes = inspect.signature(self.solver_.fit).parameters
        counts = pd.Series(queries).groupby(queries).transform("size").to_numpy(dtype=np.float64)
        if "group" in takes:
            order = np.argsort(queries, kind="stable")
            sizes = np.unique(queries, return_counts=True)[1]
            self.solver_.fit(features[order], y[order], group=sizes)
        elif self.balance and "sample_weight" in takes:
            self.solver_.fit(features, y, sample_weight=1 / counts / np.mean(1 / counts))
        else:
            self.solver_.fit(features, y)
        return self

    def scores(self, X: Any, queries: Any) -> np.ndarray:
        """Return the scores by which documents are ranked within their query, highest first."""
        check_is_fitted(self)
        if (self.text_ is not None) != _is_text(X):
            raise DataError("fitted to texts but given features, or the other way round")
        features = X if self.text_ is None else self.text_.transform(X)
        features = self._scaled(features, np.asarray(queries))
        rank_by = self._method() if self.rank_by == "auto" else self.rank_by
        if rank_by == "latent":
            return np.asarray(self.solver_.predict_latent(features))
        if rank_by == "expected":
            return self.solver_.predict_proba(features) @ np.asarray(self.solver_.classes_)
        return np.asarray(self.solver_.predict(features), dtype=np.float64)

    def rank(self, X: Any, queries: Any, documents: Any) -> pd.DataFrame:
        """Return a table of the documents of each query, best first.

        Its columns are ``query document score rank``. Queries come in the order of their first
        document; documents with equal scores keep the order given.
        """
        scores = self.scores(X, queries)
        frame = pd.DataFrame({"query": queries, "document": documents, "score": scores})
        place = pd.factorize(frame["query"])[0]
        frame = frame.iloc[np.lexsort((-scores, place))].reset_index(drop=True)
        return frame.assign(rank=frame.groupby("query", sort=False).cumcount() + 1)

    # ---- files ---------------------------------------------------------------------------

    def write_to(self, file: Writer) -> None:
        """Write the fitted solver and the words; not with ``text=``."""
        check_is_fitted(self)
        if self.text is not None:
            raise ArgumentError(
                "a RelevanceRanker with a transformer of its own (text=) cannot be saved: pass the "
                "features that it gives instead of texts"
            )
        file.add_attributes(self)

    @classmethod
    def read_from(cls, file: Reader) -> RelevanceRanker:
        """Return the ranker of a file."""
        ranker = cls(None)
        file.restore(ranker)
        return ranker

    def check_stored(self) -> None:
        """Check the parameters and the solver."""
        if not isinstance(self.solver_, OrdinalClassifier):
            raise ModelFileError("its solver is not an estimator of ordrec.ordinal")
        self.solver = clone(self.solver_)
        self._check_parameters()

    def _method(self) -> str:
        if hasattr(self.solver_, "predict_latent"):
            return "latent"
        return "expected" if hasattr(self.solver_, "predict_proba") else "predict"

    def _check_parameters(self) -> None:
        if self.rank_by not in ("auto", "latent", "expected", "predict"):
            raise ArgumentError(
                f"unknown rank_by {self.rank_by!r}: auto, latent, expected, predict"
            )
        if self.scaling not in ("none", "range", "centre"):
            raise ArgumentError(f"unknown scaling {self.scaling!r}: none, range or centre")

    def _scaled(self, features: Any, queries: np.ndarray) -> Any:
        if not hasattr(features, "shape"):
            features = np.asarray(features, dtype=np.float64)
        if self.scaling == "none":
            return features
        if hasattr(features, "toarray"):
            features = features.toarray()
        frame = pd.DataFrame(np.asarray(features, dtype=np.float64))
        of_query = frame.groupby(queries)
        low, high = of_query.transform("min"), of_query.transform("max")
        frame = ((frame - low) / (high - low).where(high > low, 1.0)).fillna(0.0)
        if self.scaling == "centre":
            frame -= frame.groupby(queries).transform("mean")
        return frame.to_numpy()


def _is_text(X: Any) -> bool:
    return len(X) > 0 and isinstance(X[0], str) if not hasattr(X, "toarray") else False


def _tfidf() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(stop_words="english", min_df=2)
