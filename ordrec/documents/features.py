"""Features of pairs of a query and a document, from their words.

For every text field of the documents (a title, a body) and for their union, with ``c`` the number
of times that a word of the query occurs in the field, ``l`` the length of the field in words, ``L``
the mean length, ``N`` documents of which ``n`` contain the word, and ``p`` the share of the word
among all words of the collection, a pair is described by sums over the words of the query, each as
often as it occurs there (``coverage`` and ``idf_coverage`` count every word once):

====================== ==========================================================================
``matches``            c
``log_matches``        log(1 + c)
``density``            c / l
``idf``                log(1 + (N - n + 1/2) / (n + 1/2)), where the word occurs
``tf_idf``             c log(1 + (N - n + 1/2) / (n + 1/2))
``bm25``               idf c (k1 + 1) / (c + k1 (1 - b + b l / L)) (Robertson and Zaragoza 2009)
``cosine``             the cosine of both vectors of c (log((1 + N) / (1 + n)) + 1)
``dirichlet``          log((c + mu p) / (l + mu)) (Zhai and Lafferty 2004)
``jelinek_mercer``     log((1 - smoothing) c / l + smoothing p) (the same)
``coverage``           the share of the query's different words that occur
``idf_coverage``       the share of the sum of their idf that occurs
``log_length``         log(1 + l), of the field alone
====================== ==========================================================================

Words that no document of the collection has are left out of a query; it then has fewer words. A
query without any word of the collection has zeros everywhere but for the length. The statistics
N, n, p and L come from the documents given to ``fit``, so those of new documents do not change
what is known about the words.

Everything is a sparse product: the words that a query and a document share are found for many
pairs at a time, and no feature looks at any other word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, DataError
from ordrec.features.text import read_stop_list
from ordrec.storage.schema import Array, Integer

__all__ = ["UNION", "Collection", "QueryDocumentFeatures", "without_plural"]

WORD = r"(?u)\b\w\w+\b"
UNION = "all"  # the field that has the words of all others
PAIRS_AT_A_TIME = 8192
NAMES = (
    "matches", "log_matches", "density", "idf", "tf_idf", "bm25", "cosine", "dirichlet",
    "jelinek_mercer", "coverage", "idf_coverage", "log_length",
)  # fmt: skip


class Collection:
    """What the documents of a collection say about the words of one field."""

    stored: ClassVar = {
        "n_documents": Integer(low=1),
        "containing": Array("words", low=0),
        "occurring": Array("words", low=0),
    }

    def __init__(self, n_documents: int, containing: np.ndarray, occurring: np.ndarray):
        self.n_documents, self.containing, self.occurring = n_documents, containing, occurring
        self.mean_length = max(float(occurring.sum()) / max(n_documents, 1), 1e-12)
        self.idf = np.log1p((n_documents - containing + 0.5) / (containing + 0.5))
        self.smooth_idf = np.log((1 + n_documents) / (1 + containing)) + 1
        self.share = occurring / max(occurring.sum(), 1.0)

    @classmethod
    def of(cls, counts: sparse.csr_array) -> Collection:
        """From the number of times that each document has each word."""
        n_documents, n_words = counts.shape
        containing = np.bincount(counts.indices, minlength=n_words).astype(np.float64)
        occurring = np.bincount(counts.indices, counts.data, minlength=n_words)
        return cls(n_documents, containing, occurring)

    def features(
        self,
        queries: sparse.csr_array,
        documents: sparse.csr_array,
        query_codes: np.ndarray,
        document_codes: np.ndarray,
        k1: float,
        b: float,
        mu: float,
        smoothing: float,
    ) -> np.ndarray:
        """The features of pairs, given as rows of both matrices."""
        known = self.occurring > 0  # words of other fields say nothing about this one
        queries = sparse.csr_array(queries * known[None, :])
        queries.eliminate_zeros()
        asked, different = queries.sum(axis=1), np.diff(queries.indptr)
        all_idf = (queries > 0) @ self.idf
        log_share = np.log(np.where(known, self.share, 1.0))
        prior = queries @ log_share  # sum over the query of log p
        lengths = documents.sum(axis=1)
        norms = _norms(documents, self.smooth_idf)
        query_norms = _norms(queries, self.smooth_idf)
        out = np.zeros((query_codes.size, len(NAMES)))
        for first in range(0, query_codes.size, PAIRS_AT_A_TIME):
            rows = slice(first, first + PAIRS_AT_A_TIME)
            of_query, of_document = query_codes[rows], document_codes[rows]
            pair, word, c, times = _shared_words(queries, documents, of_query, of_document)
            n, length = of_query.size, lengths[of_document]
            l = length[pair]  # noqa: E741

            def total(values: np.ndarray, pair: np.ndarray = pair, n: int = n) -> np.ndarray:
                return np.bincount(pair, values, minlength=n)

            idf, share = self.idf[word], self.share[word]
            bm25 = idf * c * (k1 + 1) / (c + k1 * (1 - b + b * l / self.mean_length))
            products = times * c * self.smooth_idf[word] ** 2
            scale = norms[of_document] * query_norms[of_query]
            words = asked[of_query]
            columns = [
                total(times * c),
                total(times * np.log1p(c)),
                total(times * c / l),
                total(times * idf),
                total(times * c * idf),
                total(times * bm25),
                total(products) / np.where(scale > 0, scale, 1.0),
                total(times * np.log1p(c / (mu * share)))
                + words * np.log(mu / (length + mu))
                + prior[of_query],
                total(times * np.log1p((1 - smoothing) * c / (l * smoothing * share)))
                + words * np.log(smoothing)
                + prior[of_query],
                total(np.ones(pair.size)) / np.maximum(different[of_query], 1),
                total(idf) / np.where(all_idf[of_query] > 0, all_idf[of_query], 1.0),
                np.log1p(length),
            ]
            out[rows] = np.column_stack(columns)
        return out


class QueryDocumentFeatures(BaseEstimator):
    """Describe pairs of a query and a document by the classical features of text retrieval.

    Parameters
    ----------
    fields : sequence of str, optional
        Columns of the documents to read as texts; by default all columns of texts. Missing
        entries count as empty.
    k1, b : float
        BM25's saturation of counts and its correction for the length.
    mu : float
        How many words of the collection a document is mixed with, for the language model with
        Dirichlet's prior.
    smoothing : float
        The share of the collection in the language model of Jelinek and Mercer.
    stop_words : "english", path, sequence of str or None
        Words to skip: scikit-learn's list, a file with one word per line (such as SMART's), or
        your own.
    stem : "plural", callable or None
        What becomes of each word: "plural" takes the endings of English plurals off
        (`without_plural`); a function of your own returns the stem of a word.
    min_documents : int
        Words in fewer documents are left out.

    Attributes
    ----------
    vocabulary_ : dict of str to int
    fields_ : list of str
        The fields in use.
    numbers_ : list of str
        Columns of numbers or vectors that come along as they are.
    vector_sizes_ : dict of str to int
        How many numbers each of them has.
    collections_ : dict of str to Collection
        What is known about the words of each field, and of their union.

    Examples
    --------
    >>> documents = pd.DataFrame({
    ...     "title": ["Roses", "Laptop repair", "Cat food"],
    ...     "body": ["How to cut garden roses", "A broken screen", "What cats eat"]})
    >>> features = QueryDocumentFeatures(stem="plural").fit(documents)
    >>> X = features.transform(["garden roses"] * 3, documents)
    >>> names = list(features.get_feature_names_out())
    >>> X[:, names.index("all:coverage")].tolist()
    [1.0, 0.0, 0.0]
    """

    def __init__(
        self,
        fields: Sequence[str] | None = None,
        *,
        k1: float = 1.2,
        b: float = 0.75,
        mu: float = 2000.0,
        smoothing: float = 0.1,
        stop_words: str | Path | Sequence[str] | None = None,
        stem: str | Callable[[str], str] | None = None,
        min_documents: int = 1,
    ):
        self.fields = fields
        self.k1 = k1
        self.b = b
        self.mu = mu
        self.smoothing = smoothing
        self.stop_words = stop_words
        self.stem = stem
        self.min_documents = min_documents

    def fit(self, documents: Any, y: Any = None) -> QueryDocumentFeatures:
        """Learn the words of a collection, and how often and in how many documents they occur.

        Parameters
        ----------
        documents : DataFrame, or sequence of texts
            One row per document; a sequence is a single field called "text".
        y : None
            Ignored.
        """
        self.check_parameters()
        frame = _as_frame(documents)
        self.fields_ = _text_fields(frame, self.fields)
        self.numbers_ = [
            column
            for column in frame.columns
            if column not in self.fields_ and _numbers_in(frame[column]) is not None
        ]
        self.vector_sizes_ = {
            column: numbers.shape[1]
            for column in self.numbers_
            if (numbers := _numbers_in(frame[column])) is not None
        }
        counter = self._counter()
        texts = [text for field in self.fields_ for text in _texts(frame[field])]
        try:
            counter.fit(texts)
        except ValueError:
            raise DataError(
                f"no word is left of {len(frame)} documents in {', '.join(self.fields_)}: look at "
                "stop_words, or name the columns of texts with fields="
            ) from None
        self.vocabulary_ = self._frequent(counter.vocabulary_, frame)
        counts = self._counts_of_fields(frame)
        self.collections_ = {field: Collection.of(matrix) for field, matrix in counts.items()}
        return self

    def transform(self, queries: Any, documents: Any) -> np.ndarray:
        """Return the features of pairs.

        Parameters
        ----------
        queries : sequence of str
            The text of the query of each pair; a single text serves all documents.
        documents : DataFrame, or sequence of texts
            The document of each pair, with the columns given to ``fit``.

        Returns
        -------
        ndarray of shape (n_pairs, n_features)
            In the order of `get_feature_names_out`.
        """
        check_is_fitted(self, "vocabulary_")
        frame = _as_frame(documents)
        texts = [queries] * len(frame) if isinstance(queries, str) else list(queries)
        if len(texts) != len(frame):
            raise DataError(
                f"{len(texts)} queries and {len(frame)} documents: there must be one query for "
                "each document"
            )
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise DataError(f"query of row {row} is {text!r}, not a text: pass its words")
        missing = [c for c in [*self.fields_, *self.numbers_] if c not in frame.columns]
        if missing:
            raise DataError(f"the documents have no column {missing[0]!r}, which fit was given")
        query_codes, distinct = pd.factorize(np.asarray(texts, dtype=object))
        asked = self._counts(list(distinct))
        own, frame, document_codes = _distinct_documents(frame, self.fields_)
        blocks = [
            self.collections_[field].features(
                asked, matrix, query_codes, document_codes, self.k1, self.b, self.mu, self.smoothing
            )
            for field, matrix in self._counts_of_fields(own).items()
        ]
        blocks += [self._numbers(frame, column) for column in self.numbers_]
        return np.hstack(blocks)

    def count_known(self, texts: Any) -> np.ndarray:
        """Return how many different words of each text occur in the collection."""
        check_is_fitted(self, "vocabulary_")
        return np.diff(self._counts(list(texts)).indptr)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features: ``field:feature``, or the name of a column."""
        check_is_fitted(self, "vocabulary_")
        names = [f"{field}:{name}" for field in self.collections_ for name in NAMES]
        for column in self.numbers_:
            size = self.vector_sizes_[column]
            names += [str(column)] if size == 1 else [f"{column}_{i}" for i in range(size)]
        return np.array(names, dtype=object)

    # ---- words ---------------------------------------------------------------------------------

    def _counter(self, vocabulary: dict[str, int] | None = None) -> CountVectorizer:
        plain = CountVectorizer(token_pattern=WORD).build_analyzer()
        stem = {"plural": without_plural, None: str}.get(self.stem, self.stem)  # type: ignore[arg-type]
        skipped = {part for word in self.stop_list() for part in plain(word)}

        def analyse(text: str) -> list[str]:
            return [stem(word) for word in plain(text) if word not in skipped]  # type: ignore[operator]

        return CountVectorizer(analyzer=analyse, vocabulary=vocabulary)

    def stop_list(self) -> Sequence[str]:
        """Return the words that are skipped."""
        if self.stop_words is None:
            return ()
        if isinstance(self.stop_words, str) and self.stop_words == "english":
            return sorted(ENGLISH_STOP_WORDS)
        if isinstance(self.stop_words, str | Path):
            return read_stop_list(self.stop_words)
        return list(self.stop_words)

    def _frequent(self, vocabulary: dict[str, int], frame: pd.DataFrame) -> dict[str, int]:
        """The words in at least ``min_documents`` documents, numbered in alphabetical order."""
        words = np.array(sorted(vocabulary, key=vocabulary.__getitem__), dtype=object)
        self.vocabulary_ = {word: number for number, word in enumerate(words)}
        if self.min_documents > 1:
            together = sum(self._counts(_texts(frame[field])) for field in self.fields_)
            kept = np.bincount(together.indices, minlength=words.size) >= self.min_documents
            words = words[kept]
            if not words.size:
                raise DataError(
                    f"no word occurs in {self.min_documents} of the {len(frame)} documents: lower "
                    "min_documents"
                )
        return {word: number for number, word in enumerate(words)}

    def _counts(self, texts: list[str]) -> sparse.csr_array:
        matrix = sparse.csr_array(
            self._counter(self.vocabulary_).transform(texts), dtype=np.float64
        )
        matrix.sort_indices()
        return matrix

    def _counts_of_fields(self, frame: pd.DataFrame) -> dict[str, sparse.csr_array]:
        """The words of each field, and of all fields together if there are several."""
        counts = {str(field): self._counts(_texts(frame[field])) for field in self.fields_}
        if len(counts) > 1:
            counts[UNION] = sparse.csr_array(sum(counts.values()))
        return counts

    def _numbers(self, frame: pd.DataFrame, column: str) -> np.ndarray:
        numbers = _numbers_in(frame[column])
        if numbers is None or numbers.shape[1] != self.vector_sizes_[column]:
            raise DataError(
                f"column {column!r} held {self.vector_sizes_[column]} numbers per document in fit, "
                "and does not here"
            )
        return numbers

    def check_parameters(self) -> None:
        """Raise if a parameter has no meaning."""
        for name in ("k1", "mu"):
            if not getattr(self, name) > 0:
                raise ArgumentError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.b <= 1:
            raise ArgumentError(f"b must be from 0 to 1, got {self.b}")
        if not 0 < self.smoothing < 1:
            raise ArgumentError(f"smoothing must be between 0 and 1, got {self.smoothing}")
        if not (self.stem in (None, "plural") or callable(self.stem)):
            raise ArgumentError(f'stem must be "plural", a function or None, got {self.stem!r}')


def _shared_words(
    queries: sparse.csr_array,
    documents: sparse.csr_array,
    of_query: np.ndarray,
    of_document: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """For each word that both of a pair have: the pair, the word, and how often both have it."""
    start, stop = queries.indptr[of_query], queries.indptr[of_query + 1]
    sizes = stop - start
    pair = np.repeat(np.arange(of_query.size), sizes)
    places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + start[pair]
    word, times = queries.indices[places], queries.data[places]
    # where the word is in the sorted row of the document: one search in row-major numbers
    n_words = documents.shape[1]
    rows, back = np.unique(of_document, return_inverse=True)
    part = documents[rows]
    numbers = np.repeat(np.arange(rows.size), np.diff(part.indptr)) * n_words + part.indices
    wanted = back[pair] * n_words + word
    at = np.searchsorted(numbers, wanted)
    found = at < numbers.size
    found[found] = numbers[at[found]] == wanted[found]
    return pair[found], word[found], part.data[at[found]], times[found]


def _norms(counts: sparse.csr_array, weights: np.ndarray) -> np.ndarray:
    return np.sqrt((counts * counts) @ weights**2)


def _as_frame(documents: Any) -> pd.DataFrame:
    if isinstance(documents, pd.DataFrame):
        return documents
    if isinstance(documents, str):
        raise DataError("documents is a single text: pass a list of texts, or a data frame")
    return pd.DataFrame({"text": pd.Series(list(documents), dtype=object)})


def _text_fields(frame: pd.DataFrame, asked: Sequence[str] | None) -> list[str]:
    if asked is not None:
        missing = [field for field in asked if field not in frame.columns]
        if missing:
            raise DataError(
                f"the documents have no column {missing[0]!r}: name others with fields="
            )
        return list(asked)
    found = [
        column
        for column in frame.columns
        if frame[column].map(lambda value: isinstance(value, str)).any()
    ]
    if not found:
        raise DataError("the documents have no column of texts: name one with fields=")
    return found


def _texts(column: pd.Series) -> list[str]:
    return ["" if not isinstance(value, str) else value for value in column]


def _numbers_in(column: pd.Series) -> np.ndarray | None:
    """The numbers of a column, one row per document, or None if it has something else."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=np.float64)[:, None]
    sizes = {len(value) if np.ndim(value) == 1 else -1 for value in column}
    if len(sizes) != 1 or sizes == {-1}:
        return None
    try:
        return np.array([np.asarray(value, dtype=np.float64) for value in column])
    except (TypeError, ValueError):
        return None


def _distinct_documents(
    frame: pd.DataFrame, fields: list[str]
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """The different texts, the frame itself, and which of the texts each row has."""
    texts = pd.DataFrame({field: _texts(frame[field]) for field in fields})
    codes = texts.groupby(fields, sort=False).ngroup().to_numpy()
    return texts.iloc[np.unique(codes, return_index=True)[1]], frame, codes


def without_plural(word: str) -> str:
    """Return a word without the ending of an English plural (Harman 1991).

    Examples
    --------
    >>> [without_plural(word) for word in ["queries", "roses", "cats", "glass", "virus"]]
    ['query', 'rose', 'cat', 'glass', 'virus']
    """
    if len(word) <= 3:
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word
