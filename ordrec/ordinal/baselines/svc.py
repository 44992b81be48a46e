"""Nominal classification: support vector classifiers that ignore the order of the ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ordrec.ordinal.baselines.machines import KernelBaseline, decision_values

__all__ = ["SVC1V1", "SVC1VA"]


class SVC1V1(KernelBaseline):
    """Support vector classification, one rank against one, by the majority of all pairs.

    See `ordrec.ordinal.baselines.machines.KernelBaseline` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> SVC1V1().fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    def _fit_machines(self, K: np.ndarray, ranks: np.ndarray, weight: np.ndarray) -> list[Any]:
        self.machine_ = self._machine().fit(K, ranks, sample_weight=weight)
        return [self.machine_]

    def _ranks_from(self, K: np.ndarray) -> np.ndarray:
        return self.machine_.predict(K)


class SVC1VA(KernelBaseline):
    """Support vector classification, one rank against all others, by the largest decision value.

    See `ordrec.ordinal.baselines.machines.KernelBaseline` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> SVC1VA(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    def _fit_machines(self, K: np.ndarray, ranks: np.ndarray, weight: np.ndarray) -> list[Any]:
        self.machines_ = [
            self._fit_binary(K, ranks == k, weight * self._costs(ranks, k))
            for k in range(self.n_ranks_)
        ]
        return self.machines_

    def _costs(self, ranks: np.ndarray, k: int) -> np.ndarray:
        """Weight of each sample in the machine of rank k."""
        return np.ones(ranks.size)

    def _ranks_from(self, K: np.ndarray) -> np.ndarray:
        return decision_values(self.machines_, K).argmax(axis=1)
