"""An ensemble of ordinal projections (Perez-Ortiz, Gutierrez and Hervas-Martinez 2014)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.ordinal.baselines.machines import BASELINE, MAX_FACTORS, TwoFormBaseline
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.stored import fitted
from ordrec.ordinal.svor.problems import solve_implicit
from ordrec.ordinal.thresholds.probabilities import log_interval
from ordrec.storage.schema import Array

__all__ = ["OPBE"]

APART = 4.0  # least distance of two thresholds in the published form
TOGETHER = 1e-100  # closer thresholds are stretched as if this were their distance, which is finite


class OPBE(TwoFormBaseline):
    """For each rank k, SVORIM on the three ordered groups below k, k and above k.

    Each projection gives each group a probability, by the logistic distribution function of
    the distances to its thresholds; the rank with the largest product over all projections
    is predicted. A rank without samples has no projection and is never predicted.

    With ``published=True``, as in the program of Wang et al. (2017), scores and thresholds of a
    projection are stretched until its two thresholds are at least 4 apart, the probability of a
    group is divided among its ranks, and the product of a rank by the sum over the projections
    of the shares it had.
    See `ordrec.ordinal.baselines.machines.TwoFormBaseline` for the parameters.

    Attributes
    ----------
    present_ : ndarray of int
        The ranks that have a projection.
    dual_coef_ : ndarray
        Coefficients of the training samples of positive weight, or of the landmarks, in one column
        for each projection.
    thresholds_ : ndarray of shape (n_projections, 2)
        The lower and the upper threshold; NaN where no rank is below or above that of the
        projection.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> OPBE(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = BASELINE | {
        "present_": Array("present", dtype=np.int64),
        "dual_coef_": fitted("rows", "present"),
        "thresholds_": fitted("present", 2),
    }

    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        self.present_ = np.unique(ranks)
        self.dual_coef_ = np.empty((ranks.size, self.present_.size))
        self.thresholds_ = np.full((self.present_.size, 2), np.nan)
        steps = 0
        for number, k in enumerate(self.present_):
            groups, group = np.unique(_group(ranks, k), return_inverse=True)
            solution = solve_implicit(
                gram,
                group,
                groups.size,
                C=self.C * weight,
                tol=self.tol,
                max_iter=min(self.max_iter, MAX_FACTORS),
            )
            self._warn_unless_converged(solution, self.tol)
            self.dual_coef_[:, number] = solution.coef
            self.thresholds_[number, self._divided()[number]] = solution.thresholds
            steps = max(steps, solution.n_iter)
        return steps

    def _divided(self) -> np.ndarray:
        """Whether each projection has a lower and an upper threshold."""
        lowest, highest = self.present_.min(), self.present_.max()
        return np.stack([self.present_ > lowest, self.present_ < highest], axis=1)

    def check_stored(self) -> None:
        """Check that there is a projection for each rank."""
        super().check_stored()
        ranks = np.arange(self.n_ranks_)
        if not self.present_.size or not np.isin(self.present_, ranks).all():
            raise ModelFileError("there is not one projection for each rank")
        if not np.array_equal(np.isfinite(self.thresholds_), self._divided()):
            raise ModelFileError("the projections have not the thresholds of their ranks")

    def _ranks_from(self, scores: np.ndarray) -> np.ndarray:
        total = np.zeros((scores.shape[0], self.present_.size))
        shares = np.zeros(self.present_.size)
        divided = self._divided()
        for number, k in enumerate(self.present_):
            thresholds = self.thresholds_[number, divided[number]]
            z = thresholds - scores[:, number, None]
            if self.published and thresholds.size == 2:
                gap = float(thresholds[1] - thresholds[0])
                z = z * max(1.0, APART / max(gap, TOGETHER))
            edges = np.pad(z, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
            logs = log_interval(edges[:, :-1], edges[:, 1:], "logit")
            groups = np.unique(_group(self.present_, k), return_inverse=True)[1]
            total += logs[:, groups]
            if self.published:
                share = 1.0 / np.bincount(groups)[groups]
                total += np.log(share)
                shares += share
        if self.published:
            total -= np.log(shares)
        return self.present_[total.argmax(axis=1)]


def _group(ranks: np.ndarray, k: int) -> np.ndarray:
    """-1 below rank k, 0 on it, 1 above it."""
    return np.sign(ranks - k)
