"""Nominal classification: support vector classifiers that ignore the order of the ranks."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.ordinal.baselines.machines import BASELINE, KernelBaseline
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.stored import fitted
from ordrec.storage.schema import Array

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

    stored: ClassVar = BASELINE | {
        "present_": Array("present", dtype=np.int64),
        "dual_coef_": fitted("rows", "pairs"),
        "intercept_": fitted("pairs"),
    }

    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        self.present_ = np.unique(ranks)
        pairs = _pairs(self.present_.size)
        self.dual_coef_ = np.zeros((ranks.size, len(pairs)))
        self.intercept_ = np.zeros(len(pairs))
        steps = 0
        for column, (i, j) in enumerate(pairs):
            rows = np.flatnonzero(np.isin(ranks, self.present_[[i, j]]))
            first = ranks[rows] == self.present_[i]
            coef, intercept, taken = self._answer(gram.part(rows), first, weight[rows])
            self.dual_coef_[rows, column], self.intercept_[column] = coef, intercept
            steps = max(steps, taken)
        return steps

    def _ranks_from(self, scores: np.ndarray) -> np.ndarray:
        votes = np.zeros((scores.shape[0], self.present_.size), dtype=np.int64)
        decisions = scores + self.intercept_
        for (i, j), value in zip(_pairs(self.present_.size), decisions.T, strict=True):
            votes[:, i] += value > 0
            votes[:, j] += value <= 0
        return self.present_[votes.argmax(axis=1)]

    def check_stored(self) -> None:
        """Check that there is a machine for each pair of ranks."""
        super().check_stored()
        count = len(_pairs(self.present_.size))
        known = np.isin(self.present_, np.arange(self.n_ranks_)).all()
        if not known or not self.dual_coef_.shape[1] == self.intercept_.size == count > 0:
            raise ModelFileError("there is not one machine for each pair of classes")


def _pairs(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


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

    stored: ClassVar = BASELINE | {
        "dual_coef_": fitted("rows", "ranks"),
        "intercept_": fitted("ranks"),
    }

    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        scale = np.arange(self.n_ranks_)
        costs = np.stack([self._costs(ranks, k) for k in scale.tolist()], axis=1)
        return self._fit_binary(gram, ranks[:, None] == scale, weight[:, None] * costs)

    def _costs(self, ranks: np.ndarray, k: int) -> np.ndarray:
        """Weight of each sample in the machine of rank k."""
        return np.ones(ranks.size)

    def _ranks_from(self, scores: np.ndarray) -> np.ndarray:
        return (scores + self.intercept_).argmax(axis=1)
