"""Seconds and memory to describe pairs of queries and documents.

    python pipelines/speed/bench_documents.py [--documents 100000] [--queries 1000] [--pairs 100]

Words are drawn as in English (Zipf's law), documents have a title of eight words and a body of 120.
Every query is paired with ``--pairs`` documents. Prints seconds of fit and transform and the peak
of memory; 100,000 documents and 1,000 queries should take less than two minutes and 2 GB.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from ordrec.documents import QueryDocumentFeatures
from ordrec.experiments.timing import peak_memory

N_WORDS = 50_000


def main() -> None:
    """Draw a collection, measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--documents", type=int, default=100_000)
    options.add_argument("--queries", type=int, default=1_000)
    options.add_argument("--pairs", type=int, default=100, help="documents of each query")
    chosen = options.parse_args()
    rng = np.random.default_rng(0)
    collection = pd.DataFrame(
        {"title": texts(rng, chosen.documents, 8), "body": texts(rng, chosen.documents, 120)}
    )
    queries = texts(rng, chosen.queries, 4)
    print(f"{chosen.documents:,} documents, {chosen.queries:,} queries of 4 words")
    print(f"memory with the texts: {peak_memory():.2f} GB")
    features = QueryDocumentFeatures()
    start = time.perf_counter()
    features.fit(collection)
    fitted = time.perf_counter()
    paired = rng.integers(0, chosen.documents, chosen.queries * chosen.pairs)
    asked = [query for query in queries for _ in range(chosen.pairs)]
    X = features.transform(asked, collection.iloc[paired])
    end = time.perf_counter()
    print(f"fit: {fitted - start:.1f} s")
    print(f"transform: {end - fitted:.1f} s, {X.shape[0]:,} pairs of {X.shape[1]} features")
    print(f"together: {end - start:.1f} s, peak {peak_memory():.2f} GB")


def texts(rng: np.random.Generator, n: int, length: int) -> list[str]:
    """Return texts of words whose frequencies fall with their rank."""
    shares = 1.0 / np.arange(1, N_WORDS + 1)
    words = np.array([f"w{number}" for number in range(N_WORDS)], dtype=object)
    drawn = rng.choice(N_WORDS, size=(n, length), p=shares / shares.sum())
    return [" ".join(row) for row in words[drawn]]


if __name__ == "__main__":
    main()
