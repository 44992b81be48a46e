"""Support vector machines with ordered partitions (Waegeman and Boullart 2009)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import expit

from ordrec.ordinal.baselines.machines import KernelBaseline
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, fitted
from ordrec.storage.schema import Integer

__all__ = ["SVMOP"]


class SVMOP(KernelBaseline):
    """One machine for each question "is the rank above j?", combined as Frank and Hall do.

    A sample weighs its distance in ranks from the cut, on average one on each side. The
    decision values d_j become P(y > j) = 1 / (1 + exp(-d_j)), and the rank with the largest
    P(y > k-1) - P(y > k) is predicted; the differences may be negative, since the machines
    are independent.
    See `ordrec.ordinal.baselines.machines.KernelBaseline` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> SVMOP(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = KERNEL_ESTIMATOR | {
        "dual_coef_": fitted("rows", "thresholds"),
        "intercept_": fitted("thresholds"),
        "n_iter_": Integer(),
    }

    def _fit_machines(self, K: np.ndarray, ranks: np.ndarray, weight: np.ndarray) -> int:
        cuts = np.arange(self.n_ranks_ - 1)
        distances = np.stack([_distances_from_cut(ranks, j) for j in cuts.tolist()], axis=1)
        return self._fit_binary(K, ranks[:, None] > cuts, weight[:, None] * distances)

    def _ranks_from(self, K: np.ndarray) -> np.ndarray:
        above = expit(self._decisions(K))
        ones, zeros = np.ones((K.shape[0], 1)), np.zeros((K.shape[0], 1))
        return np.diff(np.hstack([ones, above, zeros]), axis=1).argmin(axis=1)


def _distances_from_cut(ranks: np.ndarray, j: int) -> np.ndarray:
    """Ranks between each sample and the cut above j, scaled to mean one on each side."""
    distance = np.where(ranks > j, ranks - j, j + 1 - ranks).astype(np.float64)
    for side in (ranks > j, ranks <= j):
        if side.any():
            distance[side] /= distance[side].mean()
    return distance
