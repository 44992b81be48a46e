"""What the file of a ranker holds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from ordrec.documents.features import UNION, Collection, QueryDocumentFeatures
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.storage.schema import (
    Array,
    As,
    Field,
    Ids,
    Integer,
    Matrix,
    Model,
    Number,
    Optional,
    Parts,
    Reader,
    Text,
    Texts,
    Writer,
)

__all__ = ["Estimators", "Grades", "JudgedRows", "Queries", "Transformer", "word_vectors"]


def word_vectors() -> TfidfVectorizer:
    """Return the transformer of topics: words in at least two documents, in unit length."""
    return TfidfVectorizer(stop_words="english", min_df=2)


class Grades(Field):
    """Grades: integers or floats."""

    def __init__(self, length: str):
        self.length = length

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the grades."""
        floats = file.arrays[file.prefix + name].dtype.kind == "f"
        return file.take(name, np.float64 if floats else np.int64, (self.length,), None, None)


class JudgedRows(Matrix):
    """Rows of features, whose numbers may be missing where they are dense."""

    def __init__(self, rows: str, columns: str):
        super().__init__(rows, columns)
        self.dense = Array(rows, columns, gaps=True)


class Queries(Field):
    """The query of each judged document."""

    def write(self, file: Writer, name: str, value: np.ndarray) -> None:
        """Write the different queries, and the number of that of each document."""
        codes, distinct = pd.factorize(value)
        Ids("queries").write(file, f"{name}.names", pd.Index(distinct))
        Array("judged", dtype=np.int64).write(file, name, codes)

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the queries."""
        names = Ids("queries").read(file, f"{name}.names")
        codes = Array("judged", dtype=np.int64, codes="queries").read(file, name)
        kind = None if names.dtype.kind in "iu" else object
        return np.asarray(names, dtype=kind)[codes]


class Estimators(Field):
    """The fitted estimators, one for each topic, or a single one for the key None."""

    def write(self, file: Writer, name: str, value: dict[Hashable, Any]) -> None:
        """Write the topics and their estimators."""
        topics = None if None in value else pd.Index(list(value))
        Optional(Ids("topics")).write(file, f"{name}.topics", topics)
        for number, estimator in enumerate(value.values()):
            Model().write(file, f"{name}.{number}", estimator)

    def read(self, file: Reader, name: str) -> dict[Hashable, Any]:
        """Return the estimators by topic."""
        topics = Optional(Ids("topics")).read(file, f"{name}.topics")
        keys = [None] if topics is None else topics.tolist()
        return {key: Model().read(file, f"{name}.{number}") for number, key in enumerate(keys)}


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

    def restored(self, ranker: Any) -> TfidfVectorizer:
        """The fitted transformer."""
        text = word_vectors().set_params(vocabulary=self.words)
        text.idf_ = self.weights
        return text


@dataclass(frozen=True)
class StoredFeatures:
    """The parameters of `QueryDocumentFeatures`, and what is known about the words."""

    stored: ClassVar = {
        "k1": Number(low=0),
        "b": Number(low=0, high=1),
        "mu": Number(low=0),
        "smoothing": Number(low=0, high=1),
        "stem": Optional(Text("plural")),
        "min_documents": Integer(low=0),
        "skipped": Texts("skipped"),
        "fields": Texts("fields", distinct=True),
        "numbers": Texts("numbers", distinct=True),
        "sizes": Array("numbers", dtype=np.int64, low=1),
        "words": Texts("words", distinct=True),
        "collections": Parts(Collection),
    }

    k1: float
    b: float
    mu: float
    smoothing: float
    stem: str | None
    min_documents: int
    skipped: list[str]
    fields: list[str]
    numbers: list[str]
    sizes: np.ndarray
    words: list[str]
    collections: tuple[Collection, ...]

    @classmethod
    def of(cls, text: QueryDocumentFeatures) -> StoredFeatures:
        """From fitted features."""
        if callable(text.stem):
            raise ArgumentError(
                "a ranker whose words are stemmed by a function of your own (stem=) cannot be "
                "saved: stem the texts before, or take stem='plural'"
            )
        if not all(isinstance(name, str) for name in [*text.fields_, *text.numbers_]):
            raise ArgumentError("columns of documents whose names are no texts cannot be saved")
        return cls(
            text.k1,
            text.b,
            text.mu,
            text.smoothing,
            text.stem,
            text.min_documents,
            list(text.stop_list()),
            text.fields_,
            text.numbers_,
            np.array([text.vector_sizes_[column] for column in text.numbers_], dtype=np.int64),
            list(text.vocabulary_),
            tuple(text.collections_.values()),
        )

    def restored(self, ranker: Any) -> QueryDocumentFeatures:
        """The fitted features."""
        names = [*self.fields, UNION] if len(self.fields) > 1 else self.fields
        if not self.fields or len(self.collections) != len(names):
            raise ModelFileError(f"{len(self.collections)} collections for the fields {names}")
        for part in self.collections:
            if (
                part.containing.size != len(self.words)
                or (part.containing > part.n_documents).any()
            ):
                raise ModelFileError("its words are not those of its collections")
        text = QueryDocumentFeatures(
            self.fields,
            k1=self.k1,
            b=self.b,
            mu=self.mu,
            smoothing=self.smoothing,
            stop_words=self.skipped or None,
            stem=self.stem,
            min_documents=self.min_documents,
        )
        text.check_parameters()
        text.fields_, text.numbers_ = self.fields, self.numbers
        text.vector_sizes_ = dict(zip(self.numbers, self.sizes.tolist(), strict=True))
        text.vocabulary_ = {word: number for number, word in enumerate(self.words)}
        text.collections_ = dict(zip(names, self.collections, strict=True))
        return text


class Transformer(Field):
    """What turns texts into features; the kind of the ranker says which."""

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write what is known about the words."""
        As(StoredFeatures if isinstance(value, QueryDocumentFeatures) else StoredWords).write(
            file, name, value
        )

    def read(self, file: Reader, name: str) -> Any:
        """Return the fitted transformer."""
        return As(StoredFeatures if file.owner.kind_ == "texts" else StoredWords).read(file, name)
