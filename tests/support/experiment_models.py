"""Small models for the tests of experiments; importable, so that processes can share them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from ordrec.datasets import OrdinalTable


class NoisyThreshold(BaseEstimator):
    """Cuts the first feature at random places near the true ones."""

    def __init__(self, noise: float = 0.1, random_state: int = 0, sleep: float = 0.0):
        self.noise = noise
        self.random_state = random_state
        self.sleep = sleep

    def fit(self, X, y):
        time.sleep(self.sleep)
        if "ORDREC_TEST_FITS" in os.environ:
            with Path(os.environ["ORDREC_TEST_FITS"]).open("a") as file:
                file.write(f"{self.random_state}\n")
        rng = np.random.default_rng(self.random_state)
        ranks = np.unique(y)
        cuts = [(X[y <= k, 0].max() + X[y > k, 0].min()) / 2 for k in ranks[:-1]]
        self.cuts_ = np.sort(np.array(cuts) + self.noise * rng.standard_normal(len(cuts)))
        return self

    def predict(self, X):
        return np.searchsorted(self.cuts_, X[:, 0]) + 1


class Fails(BaseEstimator):
    """Refuses to learn."""

    def fit(self, X, y):
        raise RuntimeError("no, thank you")


def striped_table(name: str = "stripes", n: int = 60, n_parts: int = 6) -> OrdinalTable:
    """Three ranks in a row, with random training halves."""
    rng = np.random.default_rng(3)
    x = rng.random(n)
    parts = [np.sort(rng.permutation(n)[: n // 2]) for _ in range(n_parts)]
    return OrdinalTable(
        np.column_stack([x, rng.random(n)]),
        np.digitize(x, [0.3, 0.6]) + 1,
        ["a", "b"],
        3,
        parts,
        name,
    )
