"""Features of a query and a document, word by word in plain Python."""

from __future__ import annotations

import math
import re
from collections import Counter

__all__ = ["NaiveCollection", "words_of"]


def words_of(text: str) -> list[str]:
    return re.findall(r"\b\w\w+\b", text.lower())


class NaiveCollection:
    """The statistics of one field, and the features of a pair."""

    def __init__(self, texts: list[str], k1=1.2, b=0.75, mu=2000.0, smoothing=0.1):
        self.n = len(texts)
        self.containing = Counter(word for text in texts for word in set(words_of(text)))
        self.occurring = Counter(word for text in texts for word in words_of(text))
        self.n_words = sum(self.occurring.values())
        self.mean_length = self.n_words / self.n
        self.k1, self.b, self.mu, self.smoothing = k1, b, mu, smoothing

    def idf(self, word: str) -> float:
        df = self.containing[word]
        return math.log(1 + (self.n - df + 0.5) / (df + 0.5))

    def weight(self, word: str) -> float:
        return math.log((1 + self.n) / (1 + self.containing[word])) + 1

    def features(self, query: str, text: str) -> dict[str, float]:
        document = Counter(word for word in words_of(text) if self.occurring[word])
        asked = Counter(word for word in words_of(query) if self.occurring[word])
        length = sum(document.values())
        f = dict.fromkeys(
            ("matches", "log_matches", "density", "idf", "tf_idf", "bm25", "cosine", "dirichlet",
             "jelinek_mercer", "coverage", "idf_coverage"), 0.0,
        )  # fmt: skip
        for word, times in asked.items():
            c, p, idf = document[word], self.occurring[word] / self.n_words, self.idf(word)
            f["matches"] += times * c
            f["log_matches"] += times * math.log(1 + c)
            f["density"] += times * c / length if length else 0.0
            f["idf"] += times * idf * (c > 0)
            f["tf_idf"] += times * c * idf
            damp = self.k1 * (1 - self.b + self.b * length / self.mean_length)
            f["bm25"] += times * idf * c * (self.k1 + 1) / (c + damp) if c else 0.0
            f["dirichlet"] += times * math.log((c + self.mu * p) / (length + self.mu))
            share = c / length if length else 0.0
            f["jelinek_mercer"] += times * math.log(
                (1 - self.smoothing) * share + self.smoothing * p
            )
            f["coverage"] += (c > 0) / len(asked)
        total = sum(self.idf(word) for word in asked)
        if total:
            f["idf_coverage"] = sum(self.idf(w) for w in asked if document[w]) / total
        product = sum(asked[w] * document[w] * self.weight(w) ** 2 for w in asked)
        norms = [math.sqrt(sum((c * self.weight(w)) ** 2 for w, c in each.items()))
                 for each in (asked, document)]  # fmt: skip
        f["cosine"] = product / (norms[0] * norms[1]) if all(norms) else 0.0
        return f | {"log_length": math.log(1 + length)}
