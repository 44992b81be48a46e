"""Reduction of ordinal regression to one binary SVM (Li and Lin 2007); see `svor.reduced`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ordrec.ordinal.base import ThresholdModel
from ordrec.ordinal.baselines.machines import BASELINE, MAX_FACTORS, KernelBaseline
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.stored import fitted
from ordrec.ordinal.svor.reduced import solve_reduced

__all__ = ["REDSVM"]


class REDSVM(KernelBaseline, ThresholdModel):
    """One binary support vector machine on extended samples.

    Each sample stands for r - 1 extended ones, but neither memory nor the cost of a step grow
    with r: the machine is SVORIM plus half the squared deviations of its thresholds from their
    mean, and is solved as such, by interior points.
    See `ordrec.ordinal.baselines.machines.KernelBaseline` for the parameters.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
    dual_coef_ : ndarray
        Coefficients of the training samples of positive weight, or of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> REDSVM(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = BASELINE | {
        "dual_coef_": fitted("rows"),
        "thresholds_": fitted("thresholds"),
    }

    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        solution = solve_reduced(
            gram,
            ranks,
            self.n_ranks_,
            C=self.C * weight,
            tol=self.tol,
            max_iter=min(self.max_iter, MAX_FACTORS),
        )
        self._warn_unless_converged(solution, self.tol)
        self.dual_coef_ = solution.coef
        self.thresholds_ = np.maximum.accumulate(solution.thresholds)  # as at the exact optimum
        return solution.n_iter

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the score f(x), on the scale of ``thresholds_``."""
        X = self._validate_predict(X)
        return self._expanded(X, self.dual_coef_)

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks: ``min{j : f(x) < thresholds_[j]}``."""
        return ThresholdModel.predict_ranks(self, X)
