"""Reduction of ordinal regression to one binary SVM (Li and Lin 2007).

Sample i becomes r - 1 extended samples (x_i, j) with label +1 if y_i > j, else -1, under the
kernel K(x, x') + [j = j']. With w, offsets v_j and an unpenalised bias c the machine solves

    min 1/2 |w|^2 + 1/2 sum_j v_j^2 + C sum_ij [1 - s_ij (f(x_i) + v_j + c)]_+

which is SVORIM with thresholds b_j = -(v_j + c), plus half the sum of the squared deviations of
the thresholds from their mean (the best c makes the v_j sum to zero).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ordrec.ordinal.base import ThresholdModel
from ordrec.ordinal.baselines.machines import KernelBaseline

__all__ = ["REDSVM"]


class REDSVM(KernelBaseline, ThresholdModel):
    """One binary support vector machine on extended samples.

    The machine has (r - 1) n samples, and its Gram matrix that many rows: a baseline for up to
    a few thousand extended samples.
    See `ordrec.ordinal.baselines.machines.KernelBaseline` for the parameters.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
    dual_coef_ : ndarray of shape (n_samples,)
        Coefficients of the training samples of positive weight.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> REDSVM(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = {"dual_coef_": "n", "thresholds_": "t", "n_iter_": ""}

    def _fit_machines(self, K: np.ndarray, ranks: np.ndarray, weight: np.ndarray) -> int:
        n, cuts = ranks.size, self.n_ranks_ - 1
        above = (ranks > np.arange(cuts)[:, None]).ravel()  # cut by cut, all samples
        extended = np.tile(K, (cuts, cuts))
        for j in range(cuts):
            part = slice(j * n, (j + 1) * n)
            extended[part, part] += 1.0
        machine = self._machine().fit(extended, above, sample_weight=np.tile(weight, cuts))
        signed = np.zeros((cuts, n))
        signed.ravel()[machine.support_] = machine.dual_coef_[0]
        self.dual_coef_ = signed.sum(axis=0)
        thresholds = -(signed.sum(axis=1) + machine.intercept_[0])
        self.thresholds_ = np.maximum.accumulate(thresholds)  # ordered only at the exact optimum
        return int(np.max(machine.n_iter_))

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the score f(x), on the scale of ``thresholds_``."""
        X = self._validate_predict(X)
        return self._cross_gram(X) @ self.dual_coef_

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks: ``min{j : f(x) < thresholds_[j]}``."""
        return ThresholdModel.predict_ranks(self, X)
