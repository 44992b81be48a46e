"""Turn documents into TF-IDF vectors, as in the experiments of the SVOR paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, DataError

__all__ = ["DocumentTfidf", "read_stop_list"]

WORD = r"(?u)\b[^\W\d_]{2,}\b"  # letters only, like the scanner of the paper


class DocumentTfidf(TransformerMixin, BaseEstimator):
    """Turn titles and abstracts into TF-IDF vectors of unit length.

    Follows section 4.4 of Chu and Keerthi: words of a stop list are skipped, and so are words
    that occur in fewer than three documents; term frequencies are multiplied by inverse document
    frequencies and the vectors scaled to unit length. Built on scikit-learn's
    `TfidfVectorizer`, whose ``ln(n / df) + 1`` is the inverse document frequency (without the
    smoothing). A document without a known word is a row of zeros.

    Parameters
    ----------
    stop_list : "english", "smart", or None
        scikit-learn's own list, the SMART system's list read from ``stop_file`` (the paper's
        choice; it is not shipped), or none.
    stop_file : path, optional
        Text file with one word per line; blank lines are skipped. Required for "smart", and
        not allowed otherwise.
    min_documents : int
        Minimum number of documents a word must occur in.
    fields : sequence of str
        Columns of the records to read; missing entries count as empty.

    Attributes
    ----------
    vectoriser_ : TfidfVectorizer
        The fitted vectoriser, with its ``vocabulary_`` and ``idf_``.

    Examples
    --------
    >>> import pandas as pd
    >>> records = pd.DataFrame({
    ...     "title": ["Fever in children", "Fever and the heart", "Heart rate"],
    ...     "abstract": ["We saw fever.", None, "The rate of the heart in children"]})
    >>> tfidf = DocumentTfidf(min_documents=2)
    >>> tfidf.fit_transform(records).toarray().round(2)
    array([[0.45, 0.89, 0.  ],
           [0.  , 0.71, 0.71],
           [0.45, 0.  , 0.89]])
    >>> tfidf.get_feature_names_out().tolist()
    ['children', 'fever', 'heart']
    """

    def __init__(
        self,
        stop_list: str | None = "english",
        *,
        stop_file: str | Path | None = None,
        min_documents: int = 3,
        fields: Any = ("title", "abstract"),
    ):
        self.stop_list = stop_list
        self.stop_file = stop_file
        self.min_documents = min_documents
        self.fields = fields

    def fit(self, X: pd.DataFrame, y: Any = None) -> DocumentTfidf:
        """Choose the words and compute their weights. ``y`` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: pd.DataFrame, y: Any = None) -> sparse.csr_matrix:
        """Choose the words, and return the vectors of the same documents."""
        texts = self._texts(X)
        self.vectoriser_ = TfidfVectorizer(
            stop_words=self._stop_words(),
            min_df=self.min_documents,
            token_pattern=WORD,
            smooth_idf=False,
        )
        try:
            return self.vectoriser_.fit_transform(texts)
        except ValueError as error:
            if "vocabulary" not in str(error) and "no terms remain" not in str(error):
                raise
            raise DataError(
                f"no word occurs in {self.min_documents} of the {len(texts)} documents outside the "
                "stop list: lower min_documents"
            ) from None

    def transform(self, X: pd.DataFrame) -> sparse.csr_matrix:
        """Return the vectors of other documents; words that were not chosen are skipped."""
        check_is_fitted(self)
        return self.vectoriser_.transform(self._texts(X))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the words, in the order of the columns."""
        check_is_fitted(self)
        return self.vectoriser_.get_feature_names_out()

    def _texts(self, records: pd.DataFrame) -> list[str]:
        missing = [field for field in self.fields if field not in getattr(records, "columns", [])]
        if missing:
            raise DataError(f"the records have no column {missing[0]!r}: name others with fields=")
        columns = [records[field] for field in self.fields]
        rows = zip(*columns, strict=True)
        return [" ".join(str(part) for part in row if not pd.isna(part)) for row in rows]

    def _stop_words(self) -> list[str] | None:
        if self.stop_list not in ("english", "smart", None):
            raise ArgumentError(
                f'stop_list must be "english", "smart" or None, got {self.stop_list!r}'
            )
        if (self.stop_list == "smart") != (self.stop_file is not None):
            raise ArgumentError('stop_list="smart" and stop_file=... must be given together')
        if self.stop_list is None:
            return None
        words = ENGLISH_STOP_WORDS if self.stop_file is None else read_stop_list(self.stop_file)
        # Split the list into words like the documents ("don't" becomes "don").
        split = TfidfVectorizer(token_pattern=WORD).build_analyzer()
        return sorted({part for word in words for part in split(word)})


def read_stop_list(path: str | Path) -> list[str]:
    """Return the words of a text file, one per line, in lower case."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise DataError(f"{path}: no such stop list: give a file of SMART's words") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a list of words in UTF-8 ({error}): convert it") from None
    words = [line.strip().lower() for line in lines if line.strip()]
    if not words:
        raise DataError(f"{path}: the stop list is empty: give a file of SMART's words")
    return words
