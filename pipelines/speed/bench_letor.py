"""Seconds to fit every ordinal estimator to LETOR's OHSUMED, and to rank all of its documents.

    python pipelines/speed/bench_letor.py [NAME ...] [--landmarks 100] [--data FOLDER]

16,140 documents of 106 queries, 45 features scaled within each query. Estimators with a kernel take
``--landmarks`` rows in place of a Gram matrix of 2 GB. Prints seconds of one processor, which other
processes change little, and the NDCG@10 of the training queries themselves, which says that
something was learnt and no more. An estimator should take less than a minute.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import ordrec.ordinal
from ordrec.datasets import load_dataset
from ordrec.documents import RelevanceRanker
from ordrec.evaluation import ndcg
from ordrec.experiments.timing import peak_memory

WITH_LANDMARKS = (
    "SVORIM", "SVOREX", "SVORSLA", "NPSVOR", "GPOR",
    "SVC1V1", "SVC1VA", "SVRanks", "CSSVC", "SVMOP", "OPBE", "REDSVM", "GPRanks", "PRank",
)  # fmt: skip
OTHERS = ("OrdinalLogistic", "CumulativeLink", "ORBoost", "RankBoostAE")


def main() -> None:
    """Fit, rank and print, one estimator after another."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("names", metavar="NAME", nargs="*", help="by default all of them")
    options.add_argument("--landmarks", type=int, default=100)
    options.add_argument("--data", metavar="FOLDER")
    chosen = options.parse_args()
    letor = load_dataset("ohsumed-letor", folder=chosen.data, offline=True)
    few = letor.queries <= np.unique(letor.queries)[9]  # compiles what is compiled
    print(f"{letor.y.size:,} documents, {np.unique(letor.queries).size} queries")
    for name in chosen.names or (*WITH_LANDMARKS, *OTHERS):
        given: dict[str, Any] = {}
        if name in WITH_LANDMARKS:
            given = {"n_landmarks": chosen.landmarks, "random_state": 0}
        estimator = getattr(ordrec.ordinal, name)(**given)
        if name in WITH_LANDMARKS and "class_weight" in estimator.get_params():
            # without it the best machines are constants
            estimator.set_params(class_weight="balanced")
        ranker = RelevanceRanker(estimator)
        ranker.fit(letor.X[few], letor.y[few], letor.queries[few])
        started = time.process_time()
        ranker.fit(letor.X, letor.y, letor.queries)
        fitted = time.process_time()
        scores = ranker.scores(letor.X, letor.queries)
        ranked = time.process_time()
        found = ndcg(letor.y, scores, groups=letor.queries, k=10, discount="letor")
        print(
            f"{name:16s} fit {fitted - started:6.1f} s, rank {ranked - fitted:5.1f} s, "
            f"NDCG@10 of the training queries {found:.3f}, peak {peak_memory():.2f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
