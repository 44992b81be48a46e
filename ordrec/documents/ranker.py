"""Ranking documents by graded relevance, with any ordinal model."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ordrec.documents.features import QueryDocumentFeatures
from ordrec.documents.stored import (
    Estimators,
    Grades,
    JudgedRows,
    Queries,
    Transformer,
    word_vectors,
)
from ordrec.errors import ArgumentError, DataError, ModelFileError, callers_level
from ordrec.evaluation.metrics.ranking import mean_average_precision
from ordrec.ordinal import OrdinalLogistic
from ordrec.ordinal.base import OrdinalClassifier
from ordrec.runtime.parallel.interrupts import interruptible
from ordrec.storage.schema import Flag, Integer, Optional, Size, Storable, Text, Texts, Writer

__all__ = ["RelevanceRanker"]

Kind = Literal["auto", "features", "texts", "topics"]

PENALTIES = (0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)
# Documents whose scores differ by less than this share of their size differ by rounding.
ROUNDING = 1e-10


class RelevanceRanker(Storable, BaseEstimator):
    """Rank the documents of a query with a model of judged documents.

    What is judged decides how:

    * **features**: rows of numbers that describe a query and a document together, as in LETOR. The
      model ranks documents of any query.
    * **texts**: documents as texts and queries as texts. `QueryDocumentFeatures` makes rows of
      features of them. The model ranks documents of any query, also of one that it has not seen.
    * **topics**: documents as texts, and queries that are only names. There is one model per query,
      of the words of its judged documents (as in section 4.4 of Chu and Keerthi), so that new
      documents are ranked for the queries of the fit only. They share their settings.

    Parameters
    ----------
    estimator : estimator, optional
        Any ordinal estimator of `ordrec.ordinal`, or a scikit-learn classifier, regressor or
        ranker (one whose ``fit`` has a parameter ``group``, such as LightGBM's, is given the
        number of documents of each query, in the order of their first documents). By default an
        `OrdinalLogistic` whose threshold and ``alpha`` have the highest mean average precision on
        queries that were held out of its training.
    kind : {"auto", "features", "texts", "topics"}
        How the input is read, see above. "auto" tells features from texts, and takes queries for
        texts if the words of most of them occur in the documents; ``kind_`` says what it took.
    rank_by : {"auto", "latent", "expected", "predict"}
        What documents are ranked by: the latent score, the expected grade under
        ``predict_proba``, or the estimator's prediction. "auto" is the first of these that the
        estimator has.
    scaling : {"auto", "none", "range", "centre"}
        How every feature is scaled within each query, to make queries comparable: not at all;
        to the range 0..1 (LETOR's QueryLevelNorm); or to that range and then to mean 0, so that
        a document is described by how it differs from the others of its query, which is all
        that its rank among them depends on. Scaling replaces missing values (NaN) by the lowest.
        "auto" is "centre", but for topics, whose documents are described by words, "none".
    balance : bool
        Whether every query has the same weight in training, however many of its documents
        were judged, where the estimator takes weights.
    text : transformer, optional
        For texts a `QueryDocumentFeatures`, for topics a transformer such as scikit-learn's
        ``TfidfVectorizer``; by default the former as it is, and the latter for words in at least
        two documents.
    n_splits : int
        The parts into which queries are divided to choose an estimator, unless one is given.
    random_state : int
        Draws these parts.

    Attributes
    ----------
    kind_ : str
        What the input was taken for.
    estimators_ : dict
        The fitted estimator of each topic; of features and texts the only one, for the key None.
    grades_ : ndarray
        The grades seen in training, in ascending order.
    n_features_in_ : int
    feature_names_ : list of str or None
        The columns of features that came as a DataFrame.
    choice_ : DataFrame or None
        The mean average precision of each setting that was tried, best first.

    Examples
    --------
    >>> texts = ["garden roses in june", "how to mend a laptop", "cat food", "feeding your cat",
    ...          "roses and thorns", "a laptop for the garden"]
    >>> queries = ["roses", "roses", "cat food", "cat food", "laptop", "laptop"]
    >>> ranker = RelevanceRanker(OrdinalLogistic()).fit(texts, [2, 0, 2, 1, 0, 2], queries)
    >>> ranker.kind_
    'texts'
    >>> new = ["a rose for you", "laptop repair", "the cat sat down"]
    >>> ranker.rank(new, ["laptop repair"] * 3, documents=["rose", "laptop", "cat"])["document"][0]
    'laptop'
    """

    stored: ClassVar = {
        "kind_": Text("features", "texts", "topics"),
        "rank_by": Text("auto", "latent", "expected", "predict"),
        "scaling": Text("auto", "none", "range", "centre"),
        "balance": Flag(),
        "n_splits": Integer(low=2),
        "random_state": Integer(low=0),
        "estimators_": Estimators(),
        "grades_": Grades("grades"),
        "n_features_in_": Size("features"),
        "feature_names_": Optional(Texts("features")),
        "text_": Optional(Transformer()),
        "_judged_rows": JudgedRows("judged", "features"),
        "_judged_grades": Grades("judged"),
        "_judged_queries": Queries(),
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        kind: Kind = "auto",
        rank_by: Literal["auto", "latent", "expected", "predict"] = "auto",
        scaling: Literal["auto", "none", "range", "centre"] = "auto",
        balance: bool = True,
        text: Any = None,
        n_splits: int = 5,
        random_state: int = 0,
    ):
        self.estimator = estimator
        self.kind = kind
        self.rank_by = rank_by
        self.scaling = scaling
        self.balance = balance
        self.text = text
        self.n_splits = n_splits
        self.random_state = random_state

    # ---- fit -----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, queries: Any) -> RelevanceRanker:
        """Fit on judged documents.

        Parameters
        ----------
        X : array of shape (n_pairs, n_features), sparse matrix, sequence of texts, or DataFrame
            A frame with a column of texts holds documents, any other one features.
        y : array of number
            Grades; a higher one is more relevant.
        queries : array
            The query that each document was judged for: its text, or any name.
        """
        self._check_parameters()
        y, queries = _checked(X, y, queries)
        self.kind_ = self._kind_of(X, queries)
        self.choice_: pd.DataFrame | None = None
        self.text_ = self._fitted_text(X)
        self.feature_names_ = self._names_of(X)
        return self._learn(self._features(X, queries), y, queries)

    def update(self, X: Any, y: Any, queries: Any) -> RelevanceRanker:
        """Return a ranker that has also learnt from new judgements.

        The settings and what is known about words stay; otherwise this is a fit to the old and the
        new judgements together. A new judgement of a pair stands beside the old one.

        Parameters
        ----------
        X, y, queries
            As in ``fit``.
        """
        check_is_fitted(self, "estimators_")
        y, queries = _checked(X, y, queries)
        self._check_input(X)
        new = clone(self).set_params(estimator=self.chosen_)
        for name in ("kind_", "text_", "feature_names_", "choice_"):
            setattr(new, name, getattr(self, name))
        features = self._features(X, queries)
        stack = sparse.vstack if sparse.issparse(features) else np.vstack
        new._learn(
            stack([self._judged_rows, features]),
            np.concatenate([self._judged_grades, y]),
            np.concatenate([self._judged_queries, queries]),
        )
        new.estimator = self.estimator
        return new

    def _learn(self, rows: Any, y: np.ndarray, queries: np.ndarray) -> RelevanceRanker:
        self._judged_rows, self._judged_grades, self._judged_queries = rows, y, queries
        self.grades_, self.n_features_in_ = np.unique(y), rows.shape[1]
        if self.grades_.size < 2:
            raise DataError(f"all documents have grade {self.grades_[0]}: nothing can be learnt")
        features = self._scaled(rows, queries)
        with interruptible():
            if self.estimator is None:
                self.chosen_, self.choice_ = self._choose(features, y, queries)
            else:
                self.chosen_ = self.estimator
            self.estimators_ = self._solved(self.chosen_, features, y, queries)
        self._check_scores(features, queries)
        return self

    def _solved(
        self, estimator: Any, features: Any, y: np.ndarray, queries: np.ndarray
    ) -> dict[Hashable, Any]:
        """The fitted estimator of all queries, or of each topic."""
        if self.kind_ != "topics":
            return {None: self._fitted(estimator, features, y, queries)}
        fitted = {}
        for topic, rows in _rows_of(queries):
            if np.unique(y[rows]).size < 2:
                warnings.warn(
                    f"topic {topic!r}: all {rows.size} documents have one grade, so that nothing "
                    "can be learnt for it; it is left out",
                    stacklevel=callers_level(),
                )
                continue
            fitted[topic] = self._fitted(estimator, features[rows], y[rows], queries[rows])
        if not fitted:
            raise DataError("no topic has documents of two grades: judge more documents")
        return fitted

    def _fitted(self, estimator: Any, features: Any, y: np.ndarray, queries: np.ndarray) -> Any:
        with warnings.catch_warnings():
            # Documents are ranked by their scores: labels need not differ.
            warnings.filterwarnings("ignore", message=".*predicts one label for all")
            return self._fitted_copy(estimator, features, y, queries)

    def _fitted_copy(
        self, estimator: Any, features: Any, y: np.ndarray, queries: np.ndarray
    ) -> Any:
        own = clone(estimator)
        takes = inspect.signature(own.fit).parameters
        if "group" in takes:
            order = np.argsort(pd.factorize(queries)[0], kind="stable")
            sizes = np.bincount(pd.factorize(queries)[0])
            return own.fit(features[order], y[order], group=sizes)
        if self.balance and "sample_weight" in takes:
            counts = np.bincount(pd.factorize(queries)[0])[pd.factorize(queries)[0]]
            weights = 1 / counts / np.mean(1 / counts)
            return own.fit(features, y, sample_weight=weights)
        return own.fit(features, y)

    def _choose(
        self, features: Any, y: np.ndarray, queries: np.ndarray
    ) -> tuple[Any, pd.DataFrame | None]:
        """The setting with the highest mean average precision on held-out queries, and all."""
        candidates = {
            f"{threshold} thresholds, alpha={alpha:g}": OrdinalLogistic(
                threshold=threshold, alpha=alpha
            )
            for threshold in ("all", "immediate")
            for alpha in PENALTIES
        }
        parts = list(self._inner_parts(y, queries))
        if not parts:
            warnings.warn(
                "too few queries to hold some out: OrdinalLogistic() is taken with its defaults",
                stacklevel=callers_level(),
            )
            return OrdinalLogistic(), None
        found = {}
        for name, candidate in candidates.items():
            scores = np.full(y.size, -np.inf)
            tested = np.zeros(y.size, dtype=bool)
            for train, test in parts:
                self.estimators_ = self._solved(
                    candidate, features[train], y[train], queries[train]
                )
                known = self._can_score(queries[test])
                scores[test[known]] = self._scores(features[test[known]], queries[test[known]])
                tested[test[known]] = True
            found[name] = mean_average_precision(
                y[tested] - self.grades_[0], scores[tested], groups=queries[tested]
            )
        ranked = sorted(found, key=lambda name: -found[name])  # the first of equal ones
        table = pd.DataFrame({"setting": ranked, "map": [found[name] for name in ranked]})
        return candidates[ranked[0]], table

    def _inner_parts(
        self, y: np.ndarray, queries: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows of training and held-out queries; of topics, rows of every topic in both."""
        rng = np.random.default_rng(self.random_state)
        codes, names = pd.factorize(queries)
        if self.kind_ == "topics":
            part = np.empty(y.size, dtype=np.int64)
            for _, rows in _rows_of(queries):  # the grades of a topic are spread over the parts
                order = rows[np.lexsort((rng.random(rows.size), y[rows]))]
                part[order] = np.arange(rows.size) % self.n_splits
        else:
            part = (rng.permutation(len(names)) % self.n_splits)[codes]
        for each in range(self.n_splits):
            train, test = np.flatnonzero(part != each), np.flatnonzero(part == each)
            if test.size and np.unique(y[train]).size == self.grades_.size:
                yield train, test

    def _check_scores(self, features: Any, queries: np.ndarray) -> None:
        """Raise if no two documents of any query have different scores."""
        known = self._can_score(queries)
        scores = pd.Series(self._scores(features[known], queries[known]))
        of_query = scores.groupby(pd.factorize(queries[known])[0])
        spread = of_query.max() - of_query.min()
        compared = of_query.size() > 1
        # Scores of ordinal estimators are in units of margins, and as exact as their tolerance.
        exact = (
            getattr(self.chosen_, "tol", 0) if isinstance(self.chosen_, OrdinalClassifier) else 0
        )
        noise = max(exact, ROUNDING * (1 + scores.abs().max()))
        if compared.any() and spread[compared].max() <= noise:
            raise DataError(
                f"{type(self.chosen_).__name__} gives all documents of a query the same score, so "
                "that nothing can be ranked: the grades overlap too much for this kernel and "
                "penalty, or the features tell queries apart but not documents. Take "
                "OrdinalLogistic, class_weight='balanced', another kernel, or scaling='centre'"
            )

    def recognised(self, judged: Any) -> str:
        """Return the kind that judgements (``X`` and ``queries``) would be taken for."""
        return self._kind_of(judged.X, _one_dimensional(judged.queries))

    # ---- use -----------------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The fitted estimator; topics have several, in ``estimators_``."""
        check_is_fitted(self, "estimators_")
        if None not in self.estimators_:
            raise AttributeError("there is one estimator for each topic: see estimators_")
        return self.estimators_[None]

    def scores(self, X: Any, queries: Any) -> np.ndarray:
        """Return the scores by which documents are ranked within their query, highest first."""
        features, queries = self._described(X, queries)
        return self._scores(features, queries)

    def predict_proba(self, X: Any, queries: Any) -> np.ndarray:
        """Return the probability of each grade of ``grades_``, one row per document."""
        features, queries = self._described(X, queries)
        out = np.zeros((queries.size, self.grades_.size))
        for estimator, rows in self._estimators_of(queries):
            if not hasattr(estimator, "predict_proba"):
                raise ArgumentError(f"a {type(estimator).__name__} has no probabilities of grades")
            places = np.searchsorted(self.grades_, estimator.classes_)
            out[np.ix_(rows, places)] = estimator.predict_proba(features[rows])
        return out

    def rank(self, X: Any, queries: Any, documents: Any = None) -> pd.DataFrame:
        """Return a table of the documents of each query, best first.

        Its columns are ``query document score rank tied``. Queries come in the order of their
        first document; documents with equal scores keep the order given and are marked as tied.

        Parameters
        ----------
        X, queries
            As in ``fit``.
        documents : array, optional
            Names of the documents; row numbers by default.
        """
        scores = self.scores(X, queries)
        names = np.arange(scores.size) if documents is None else documents
        frame = pd.DataFrame({"query": queries, "document": names, "score": scores})
        place = pd.factorize(frame["query"])[0]
        frame = frame.iloc[np.lexsort((-scores, place))].reset_index(drop=True)
        frame["rank"] = frame.groupby("query", sort=False).cumcount() + 1
        return frame.assign(tied=frame.duplicated(["query", "score"], keep=False))

    def explain(self, X: Any, queries: Any, row: int) -> pd.DataFrame:
        """Say which features lift a document above the next one of its query.

        Parameters
        ----------
        X, queries
            As in ``fit``.
        row : int
            The document to explain, by its number in X. The last one of a query is compared with
            the one above it, and the lifts are negative.

        Returns
        -------
        DataFrame
            ``feature value other lift``, the largest lift first: the value of the feature (scaled
            within the query), that of the other document, and what the difference adds to the
            score. With a linear model the lifts add up to the difference of the scores; with any
            other a lift is what the score loses if this feature alone were the other document's.
        """
        features, queries = self._described(X, queries)
        scores = self._scores(features, queries)
        rows = np.flatnonzero(queries == queries[row])
        if rows.size < 2:
            raise ArgumentError(f"row {row} is the only document of its query: nothing to compare")
        order = rows[np.argsort(-scores[rows], kind="stable")]
        place = int(np.flatnonzero(order == row)[0])
        other = order[place + 1] if place + 1 < order.size else order[place - 1]
        estimator = self._estimators_of(queries[[row]])[0][0]
        here, there = (_dense(features[[each]])[0] for each in (row, other))
        if self._ranks_by(estimator) == "latent" and np.ndim(getattr(estimator, "coef_", 0)) == 1:
            lifts = np.asarray(estimator.coef_) * (here - there)
        else:
            changed = np.tile(here, (here.size, 1))
            np.fill_diagonal(changed, there)
            lifts = scores[row] - self._scored_by(estimator, changed)
        frame = pd.DataFrame(
            {"feature": self._feature_names(here.size), "value": here, "other": there}
        ).assign(lift=lifts)
        return frame.sort_values("lift", ascending=False, kind="stable", ignore_index=True)

    # ---- inside --------------------------------------------------------------------------------

    def _described(self, X: Any, queries: Any) -> tuple[Any, np.ndarray]:
        """The scaled features of documents, and their queries."""
        check_is_fitted(self, "estimators_")
        queries = _one_dimensional(queries)
        if queries.size != _length(X):
            raise DataError(f"{_length(X)} documents and {queries.size} queries: pass one for each")
        self._check_input(X)
        unknown = set(queries.tolist()) - set(self.estimators_) if self.kind_ == "topics" else set()
        if unknown:
            raise DataError(
                f"topic {next(iter(unknown))!r} was not in the fit, or could not be learnt: topics "
                "are ranked by what was judged for them. Pass queries as texts to rank for new ones"
            )
        rows = self._features(X, queries)
        if rows.shape[1] != self.n_features_in_:
            raise DataError(f"fitted to {self.n_features_in_} features but given {rows.shape[1]}")
        return self._scaled(rows, queries), queries

    def _check_input(self, X: Any) -> None:
        if _length(X) and (self.kind_ == "features") == _has_texts(X):
            raise DataError("fitted to texts but given features, or the other way round")

    def _features(self, X: Any, queries: np.ndarray) -> Any:
        """Rows of features, as they are before scaling."""
        if self.kind_ == "texts":
            return self.text_.transform(queries.tolist(), X)
        if self.kind_ == "topics":
            return sparse.csr_array(self.text_.transform(_joined(X)))
        if sparse.issparse(X):
            return sparse.csr_array(X)
        try:
            rows = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError):
            raise DataError("features must be numbers, one row for each document") from None
        if rows.ndim != 2:
            raise DataError(
                f"features must be a table, one row for each document, got {rows.ndim}D"
            )
        return rows

    def _scores(self, features: Any, queries: np.ndarray) -> np.ndarray:
        out = np.empty(queries.size)
        for estimator, rows in self._estimators_of(queries) if queries.size else []:
            out[rows] = self._scored_by(estimator, features[rows])
        return out

    def _can_score(self, queries: np.ndarray) -> np.ndarray:
        """Whether there is an estimator for each of the queries."""
        if None in self.estimators_:
            return np.ones(queries.size, dtype=bool)
        return np.array([query in self.estimators_ for query in queries.tolist()], dtype=bool)

    def _scored_by(self, estimator: Any, features: Any) -> np.ndarray:
        rank_by = self._ranks_by(estimator)
        if rank_by == "latent":
            return np.asarray(estimator.predict_latent(features))
        if rank_by == "expected":
            return estimator.predict_proba(features) @ np.asarray(estimator.classes_)
        return np.asarray(estimator.predict(features), dtype=np.float64)

    def _estimators_of(self, queries: np.ndarray) -> list[tuple[Any, np.ndarray]]:
        if None in self.estimators_:
            return [(self.estimators_[None], np.arange(queries.size))]
        return [(self.estimators_[topic], rows) for topic, rows in _rows_of(queries)]

    def _ranks_by(self, estimator: Any) -> str:
        if self.rank_by != "auto":
            return self.rank_by
        if hasattr(estimator, "predict_latent"):
            return "latent"
        return "expected" if hasattr(estimator, "predict_proba") else "predict"

    def _kind_of(self, X: Any, queries: np.ndarray) -> str:
        if not _has_texts(X):
            if self.kind in ("texts", "topics"):
                raise DataError(f'kind="{self.kind}" needs documents as texts, got numbers')
            return "features"
        if self.kind == "features":
            raise DataError('kind="features" needs rows of numbers, got texts')
        if self.kind != "auto":
            return self.kind
        asked = pd.unique(pd.Series(queries, dtype=object))
        if not all(isinstance(query, str) for query in asked):
            return "topics"
        share = np.mean(QueryDocumentFeatures().fit(X).count_known(asked) > 0)
        return "texts" if share > 0.5 else "topics"

    def _fitted_text(self, X: Any) -> Any:
        if self.kind_ == "features":
            return None
        if self.kind_ == "texts":
            own = QueryDocumentFeatures() if self.text is None else clone(self.text)
            return own.fit(X)
        own = word_vectors() if self.text is None else clone(self.text)
        return own.fit(_joined(X))

    def _names_of(self, X: Any) -> list[str] | None:
        """The names of features that come with them."""
        named = self.kind_ == "features" and isinstance(X, pd.DataFrame)
        return [str(column) for column in X.columns] if named else None

    def _feature_names(self, n_features: int) -> list[str]:
        if self.text_ is not None:
            return [str(name) for name in self.text_.get_feature_names_out()]
        return self.feature_names_ or [f"feature {number}" for number in range(n_features)]

    # ---- files ---------------------------------------------------------------------------------

    def write_to(self, file: Writer) -> None:
        """Write the estimators, what is known about words, and the judgements, for ``update``."""
        check_is_fitted(self, "estimators_")
        if self.kind_ != "features" and not self._stores_text():
            raise ArgumentError(
                "a RelevanceRanker with a transformer of its own (text=) cannot be saved: pass the "
                "features that it gives instead of texts"
            )
        file.add_attributes(self)

    def _stores_text(self) -> bool:
        if self.kind_ == "texts":
            return type(self.text_) is QueryDocumentFeatures
        return self.text is None

    def check_stored(self) -> None:
        """Check the estimators, and restore the parameters that follow from them."""
        if not all(
            isinstance(estimator, OrdinalClassifier) for estimator in self.estimators_.values()
        ):
            raise ModelFileError("its estimator is not one of ordrec.ordinal")
        if (self.kind_ == "topics") == (None in self.estimators_) or not self.estimators_:
            raise ModelFileError(f"its estimators are not those of {self.kind_}")
        if (self.kind_ == "features") != (self.text_ is None):
            raise ModelFileError(f"a ranker of {self.kind_} has other words")
        self.kind, self.choice_ = self.kind_, None  # type: ignore[assignment]
        self.chosen_ = self.estimator = clone(next(iter(self.estimators_.values())))
        self.text = None if self.kind_ != "texts" else self.text_
        self._check_parameters()

    def _check_parameters(self) -> None:
        for name, known in {
            "kind": ("auto", "features", "texts", "topics"),
            "rank_by": ("auto", "latent", "expected", "predict"),
            "scaling": ("auto", "none", "range", "centre"),
        }.items():
            if getattr(self, name) not in known:
                raise ArgumentError(
                    f"unknown {name} {getattr(self, name)!r}: choose from {', '.join(known)}"
                )
        if self.n_splits < 2:
            raise ArgumentError(f"n_splits must be at least 2, got {self.n_splits}")

    def _scaled(self, features: Any, queries: np.ndarray) -> Any:
        scaling = self.scaling
        if scaling == "auto":
            scaling = "none" if self.kind_ == "topics" else "centre"
        if scaling == "none":
            return features
        frame = pd.DataFrame(np.asarray(_dense(features), dtype=np.float64))
        codes = pd.factorize(queries)[0]
        of_query = frame.groupby(codes)
        low, high = of_query.transform("min"), of_query.transform("max")
        frame = ((frame - low) / (high - low).where(high > low, 1.0)).fillna(0.0)
        if scaling == "centre":
            frame -= frame.groupby(codes).transform("mean")
        return frame.to_numpy()


def _rows_of(queries: np.ndarray) -> Iterator[tuple[Hashable, np.ndarray]]:
    """The rows of each query, in the order of their first document."""
    codes, names = pd.factorize(queries)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    return zip(names, np.split(order, ends[:-1]), strict=True)


def _checked(X: Any, y: Any, queries: Any) -> tuple[np.ndarray, np.ndarray]:
    """Grades and queries as arrays, one for each document."""
    y, queries = np.asarray(y), _one_dimensional(queries)
    if not _length(X):
        raise DataError("there are no documents: pass some that were judged")
    if y.shape != queries.shape or y.shape != (_length(X),):
        raise DataError(
            f"{_length(X)} documents, {y.size} grades and {queries.size} queries: "
            "there must be one grade and one query for each document"
        )
    if not np.issubdtype(y.dtype, np.number) or not np.isfinite(y.astype(float)).all():
        raise DataError("grades must be numbers, a higher one for a more relevant document")
    return y, queries


def _one_dimensional(queries: Any) -> np.ndarray:
    values = list(queries) if not hasattr(queries, "tolist") else queries.tolist()
    for row, value in enumerate(values):
        if value is None or value != value:
            raise DataError(f"the query of row {row} is missing: name one for each document")
    texts = any(isinstance(value, str) for value in values)
    return np.array(values, dtype=object) if texts else np.asarray(values)


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _has_texts(X: Any) -> bool:
    if sparse.issparse(X):
        return False
    if isinstance(X, pd.DataFrame):
        return any(X[column].map(lambda value: isinstance(value, str)).any() for column in X)
    return _length(X) > 0 and isinstance(next(iter(X)), str)


def _joined(X: Any) -> list[str]:
    """The texts of documents, all fields in one."""
    if not isinstance(X, pd.DataFrame):
        return [str(text) for text in X]
    columns = [c for c in X if X[c].map(lambda value: isinstance(value, str)).any()]
    rows = zip(*(X[column] for column in columns), strict=True)
    return [" ".join(part for part in row if isinstance(part, str)) for row in rows]


def _dense(features: Any) -> np.ndarray:
    return features.toarray() if sparse.issparse(features) else np.asarray(features)
