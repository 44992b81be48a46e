"""Decision stumps by exact search on features that are sorted once for all rounds."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np

from ordrec.runtime.compiling import compiled

__all__ = ["Stump", "StumpSearch"]


@dataclass(frozen=True)
class Stump:
    """``polarity`` where the feature exceeds the cut, ``-polarity`` elsewhere."""

    feature: int
    cut: float
    polarity: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """h(x) for each row."""
        return np.where(X[:, self.feature] > self.cut, self.polarity, -self.polarity)


class StumpSearch:
    """Trains one stump per round: the feature, cut and polarity with the least ``sum g h``."""

    _order: np.ndarray
    _values: np.ndarray

    def prepare(self, X: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> StumpSearch:
        """Return a copy that keeps the samples, sorted by every feature."""
        ready = copy.copy(self)
        columns = np.ascontiguousarray(X.T)
        ready._order = np.argsort(columns, axis=1, kind="stable").astype(np.int32)
        ready._values = np.take_along_axis(columns, ready._order, axis=1)
        return ready

    def train(self, g: np.ndarray) -> Stump:
        """Return the stump with the least ``sum g h``."""
        feature, cut, polarity = _search(self._order, self._values, g)
        return Stump(int(feature), float(cut), float(polarity))


@compiled
def _search(order: np.ndarray, values: np.ndarray, g: np.ndarray) -> tuple[int, float, float]:
    """With L the sum of g left of a cut, ``sum g h = polarity (total - 2 L)``."""
    total = g.sum()
    slack = 1e-11 * np.abs(g).sum()  # smaller differences are rounding: the first cut is kept
    best, feature, cut = total, 0, -np.inf
    for j in range(order.shape[0]):
        left = 0.0
        for i in range(order.shape[1] - 1):
            left += g[order[j, i]]
            gain = total - 2.0 * left
            if abs(gain) > abs(best) + slack and values[j, i] < values[j, i + 1]:
                best, feature = gain, j
                cut = 0.5 * (values[j, i] + values[j, i + 1])
                if not cut < values[j, i + 1]:  # neighbouring floats have no middle
                    cut = values[j, i]
    return feature, cut, -1.0 if best > 0.0 else 1.0
