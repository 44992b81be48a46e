"""Support vector regression on the ranks, rounded."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.svm import SVR

from ordrec.ordinal.base import ThresholdModel
from ordrec.ordinal.baselines.machines import BASELINE, MAX_STEPS, TwoFormBaseline
from ordrec.ordinal.gram.matrix import Gram
from ordrec.storage.schema import Array, Number

__all__ = ["SVRanks", "half_way_thresholds"]


class SVRanks(TwoFormBaseline, ThresholdModel):
    """Support vector regression on the ranks as numbers, rounded and clipped.

    Parameters
    ----------
    C : float
    epsilon : float
        Half width of the insensitive band, in ranks; the papers use 0.1.
    kernel, gamma, degree, coef0, scaling, tol, max_iter :
    class_weight, classes, n_landmarks, random_state :
        See `ordrec.ordinal.baselines.machines.KernelBaseline`.
    published : bool
        Whether the targets are (y - 1) / (r - 1), from 0 to 1 for r ranks, as in the program of
        Wang et al. (2017): ``epsilon`` and ``C`` then count r - 1 times, so that an epsilon of
        0.1 is 0.4 ranks where there are five. False, the default, regresses on the ranks, as Chu
        and Keerthi (2007) do.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Half way between the ranks 0, 1, 2, ..., which is the same as rounding and clipping.
    dual_coef_ : ndarray
        Coefficients of the training samples of positive weight, or of the landmarks.
    intercept_ : float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> SVRanks(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        tol: float = 1e-3,
        max_iter: int = MAX_STEPS,
        class_weight: Any = None,
        classes: Any = None,
        n_landmarks: Any = None,
        random_state: Any = None,
        published: bool = False,
    ):
        super().__init__(
            C,
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            scaling=scaling,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            classes=classes,
            n_landmarks=n_landmarks,
            random_state=random_state,
            published=published,
        )
        self.epsilon = epsilon

    stored: ClassVar = BASELINE | {
        "dual_coef_": Array("rows"),
        "intercept_": Number(),
        "thresholds_": Array("thresholds"),
    }

    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        machine = SVR(
            C=self.C,
            epsilon=self.epsilon,
            kernel="linear" if gram.factored else "precomputed",
            tol=self.tol,
            max_iter=self.max_iter,
        )
        unit = float(self.n_ranks_ - 1) if self.published else 1.0
        machine.fit(gram.values, ranks / unit, sample_weight=weight)
        self.dual_coef_ = np.zeros(ranks.size)
        self.dual_coef_[machine.support_] = unit * machine.dual_coef_[0]
        self.intercept_ = unit * float(machine.intercept_[0])
        self.thresholds_ = half_way_thresholds(self.n_ranks_)
        return int(np.max(machine.n_iter_))

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the regression's prediction, on the scale of the ranks 0, 1, 2, ..."""
        X = self._validate_predict(X)
        return self._expanded(X, self.dual_coef_) + self.intercept_

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks: the latent score rounded and clipped."""
        return ThresholdModel.predict_ranks(self, X)


def half_way_thresholds(n_ranks: int) -> np.ndarray:
    """Return the thresholds that round a score to the nearest of 0, ..., n_ranks - 1."""
    return np.arange(n_ranks - 1) + 0.5
