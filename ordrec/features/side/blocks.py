"""Features of a column of a side table: smooth ones of numbers, counts of words, directions.

The products of two rows of a block are a kernel with ones on the diagonal, or nearly so: for
numbers the Gaussian ``exp(-(a - b)^2 / (2 width^2))``, for words and vectors the cosine. A row
whose value is missing, or has no known word, is zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse

from ordrec.errors import ModelFileError
from ordrec.runtime.parallel import one_blas_thread
from ordrec.storage.schema import Array, Flag, Number, Optional, Texts

__all__ = ["NumberBlock", "VectorBlock", "WordBlock"]

TAIL = 0.005  # share of the values on either end that is moved to the border
WIDTH = 0.65  # of the Gaussian, in standard deviations
SPACING = 0.75  # of the landmarks, in widths
MOST_LANDMARKS = 32
SKEWED = 20.0  # times the median, from which on a tail is too long for a linear axis
JITTER = 1e-6
MOST_WORDS = 100  # columns of a block of words; more labels, and all text, are projected
MOST_TEXT_WORDS = 20_000
PROJECTED = 32
POWER_STEPS = 5
LARGEST_VALUE = 1e100  # in a vector


@dataclass(frozen=True)
class NumberBlock:
    """A Gaussian kernel on numbers, by its values at landmarks ``z``: ``k(x, z) L^-T``.

    ``L L'`` is the kernel of the landmarks (the Nystrom method). Values beyond ``low`` and
    ``high``, the ends of the bulk of the training values, count as these.
    """

    stored: ClassVar = {
        "low": Number(),
        "high": Number(),
        "width": Number(low=0.0),
        "logarithm": Flag(),
    }

    low: float
    high: float
    width: float
    logarithm: bool

    @classmethod
    def of(cls, values: np.ndarray) -> NumberBlock | None:
        """The block of a column of numbers, NaN where missing; None if all are the same."""
        known = values[np.isfinite(values)]
        if known.size == 0:
            return None
        low, middle, high = np.quantile(known, [TAIL, 0.5, 1.0 - TAIL])
        logarithm = bool(known.min() >= 0.0 and high > SKEWED * middle)
        if logarithm:
            known, low, high = np.log1p(known), np.log1p(low), np.log1p(high)
        spread = float(np.clip(known, low, high).std())
        if not spread > 1e-9 * max(abs(low), abs(high)):
            return None
        return cls(float(low), float(high), WIDTH * spread, logarithm)

    @property
    def landmarks(self) -> np.ndarray:
        """Equally spaced points from ``low`` to ``high``."""
        n = int(np.ceil((self.high - self.low) / (SPACING * self.width))) + 1
        return np.linspace(self.low, self.high, min(n, MOST_LANDMARKS))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Features of numbers."""
        known = np.isfinite(values)
        x = np.log1p(np.maximum(values[known], 0.0)) if self.logarithm else values[known]
        z = self.landmarks
        L = np.linalg.cholesky(self._kernel(z, z) + JITTER * np.eye(z.size))
        result = np.zeros((values.size, z.size))
        near = self._kernel(z, np.clip(x, self.low, self.high))
        result[known] = linalg.solve_triangular(L, near, lower=True).T
        return result

    def _kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((a[:, None] - b) / self.width) ** 2)

    def check_stored(self) -> None:
        """Check that the landmarks reach from one end to the other."""
        # below a hundredth of the range is no width that `of` gives: landmarks would not reach
        if not (self.low < self.high and self.width > 0.01 * (self.high - self.low)):
            raise ModelFileError("a side column of numbers has an impossible range")


@dataclass(frozen=True)
class WordBlock:
    """Words, labels or categories, weighted and scaled to unit length, perhaps projected.

    Attributes
    ----------
    words : list of str
    weights : ndarray
        One per word: the inverse document frequency, or ones.
    projection : ndarray of shape (n_words, n_columns), or None
        The leading singular vectors; a projected row is scaled to unit length, too.
    is_text : bool
        Whether a value is a text to be divided into words, not a list of words.
    """

    stored: ClassVar = {
        "words": Texts("words", distinct=True),
        "weights": Array("words", low=0.0, high=1e6),
        "projection": Optional(Array("words", "columns", low=-1e6, high=1e6)),
        "is_text": Flag(),
    }

    words: list[str]
    weights: np.ndarray
    projection: np.ndarray | None
    is_text: bool

    @classmethod
    def of(cls, values: Sequence[Any], kind: str) -> WordBlock | None:
        """The block of a column of lists of words, or of texts; None if it has no repeated word."""
        most = {"text": MOST_TEXT_WORDS, "categorical": MOST_WORDS}.get(kind)
        try:
            counter = _counter(kind == "text", min_df=2, max_features=most).fit(values)
        except ValueError:  # no words are left
            return None
        words = sorted(counter.vocabulary_)
        plain = cls(words, np.ones(len(words)), None, kind == "text")
        if kind != "text" and len(words) <= MOST_WORDS:
            return plain
        counts = plain.weighted(values)
        frequency = np.bincount(counts.indices, minlength=len(words))
        weights = np.log((1.0 + len(values)) / (1.0 + frequency)) + 1.0
        return cls(words, weights, _leading(plain.weighted(values, weights)), kind == "text")

    def weighted(self, values: Sequence[Any], weights: np.ndarray | None = None) -> Any:
        """One sparse row of weighted counts per value, of length 1 or 0."""
        from sklearn.preprocessing import normalize

        counts = _counter(self.is_text, vocabulary=self.words).transform(values)
        counts = sparse.csr_array(counts, dtype=np.float64)
        counts.data = 1.0 + np.log(counts.data)
        return normalize(counts @ sparse.diags_array(self.weights if weights is None else weights))

    def rows(self, values: Sequence[Any]) -> np.ndarray:
        """Features of lists of words, or of texts."""
        from sklearn.preprocessing import normalize

        if len(values) == 0:
            width = len(self.words) if self.projection is None else self.projection.shape[1]
            return np.zeros((0, width))
        rows = self.weighted(values)
        if self.projection is None:
            return rows.toarray()
        return normalize(rows @ self.projection)

    def check_stored(self) -> None:
        """Check that there are words."""
        if not self.words:
            raise ModelFileError("a side column holds no words")


@dataclass(frozen=True)
class VectorBlock:
    """Vectors of one length: their directions from the mean, along the leading components.

    Attributes
    ----------
    mean : ndarray of shape (n_numbers,)
    projection : ndarray of shape (n_numbers, n_columns)
        The leading right singular vectors of the directions; a projected row is scaled to unit
        length, too.
    """

    stored: ClassVar = {
        "mean": Array("numbers", low=-LARGEST_VALUE, high=LARGEST_VALUE),
        "projection": Array("numbers", "columns", low=-1.0 - 1e-6, high=1.0 + 1e-6),
    }

    mean: np.ndarray
    projection: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> VectorBlock | None:
        """The block of vectors, one per row, NaN where missing; None if all are the same."""
        there = np.isfinite(values)
        known = np.where(there, values, 0.0)
        mean = known.sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        left = np.where(there, values - mean, 0.0)
        if not np.abs(left).max(initial=0.0) > 1e-9 * np.abs(known).max(initial=0.0):
            return None
        return cls(mean, _leading(_of_unit_length(left)))

    def rows(self, values: np.ndarray) -> np.ndarray:
        """Features of vectors; a number that is missing in one counts as the mean."""
        if values.shape[1] == 0:  # nothing is known in the whole table
            return np.zeros((len(values), self.projection.shape[1]))
        left = np.where(np.isfinite(values), values - self.mean, 0.0)
        return _of_unit_length(_of_unit_length(left) @ self.projection)

    def check_stored(self) -> None:
        """Check that there are components."""
        if 0 in self.projection.shape:
            raise ModelFileError("a side column of vectors has no components")


def _of_unit_length(rows: np.ndarray) -> np.ndarray:
    """Rows divided by their length; rows of length 0 as they are."""
    largest = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    rows = rows / np.where(largest > 0, largest, 1.0)  # squares must stay finite
    length = np.sqrt(np.einsum("nk,nk->n", rows, rows))[:, None]
    return rows / np.where(length > 0, length, 1.0)


def _counter(is_text: bool, **options: Any) -> Any:
    """Counter of the words of texts, or of the entries of lists."""
    from sklearn.feature_extraction.text import CountVectorizer

    if is_text:
        return CountVectorizer(stop_words="english", **options)
    return CountVectorizer(analyzer=_entries, **options)


def _entries(words: Iterable[str]) -> Iterable[str]:
    return words


def _leading(rows: Any) -> np.ndarray:
    """The leading right singular vectors, as columns."""
    from sklearn.utils.extmath import randomized_svd

    size = min(PROJECTED, *rows.shape)
    with one_blas_thread():  # the same digits on every machine
        _, values, right = randomized_svd(rows, size, n_iter=POWER_STEPS, random_state=0)
    return np.ascontiguousarray(right[values > 1e-6 * values[0]].T)
