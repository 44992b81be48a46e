"""Support vector machines with ordered partitions (Waegeman and Boullart 2009)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from ordrec.ordinal.baselines.machines import BASELINE, TwoFormBaseline
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.stored import fitted

__all__ = ["SVMOP"]

FOLDS = 5  # of the calibration, as in LIBSVM


class SVMOP(TwoFormBaseline):
    """One machine for each question "is the rank above j?", combined as Frank and Hall do.

    A sample weighs its distance in ranks from the cut, on average one on each side. The
    decision values d_j become P(y > j) = 1 / (1 + exp(-d_j)), and the rank with the largest
    P(y > k-1) - P(y > k) is predicted; the differences may be negative, since the machines
    are independent.

    With ``published=True``, as in the program of Wang et al. (2017), P(y > j) is calibrated as in
    LIBSVM, by Platt's sigmoid of decision values from five folds. LIBSVM draws its folds; here
    they follow from the order of the samples, so that fits repeat.
    See `ordrec.ordinal.baselines.machines.TwoFormBaseline` for the parameters.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> SVMOP(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = BASELINE | {
        "dual_coef_": fitted("rows", "thresholds"),
        "intercept_": fitted("thresholds"),
        "calibration_": fitted("thresholds", 2),
    }

    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        cuts = np.arange(self.n_ranks_ - 1)
        distances = np.stack([_distances_from_cut(ranks, j) for j in cuts.tolist()], axis=1)
        questions, weights = ranks[:, None] > cuts, weight[:, None] * distances
        steps = self._fit_binary(gram, questions, weights)
        self.calibration_ = np.tile([1.0, 0.0], (cuts.size, 1))
        if self.published:
            for j in np.flatnonzero(questions.any(axis=0) & ~questions.all(axis=0)):
                values = self._held_out_decisions(gram, questions[:, j], weights[:, j])
                self.calibration_[j] = platt_sigmoid(values, questions[:, j], weight)
        return steps

    def _held_out_decisions(self, gram: Gram, above: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Decision values from machines that did not see the sample."""
        fold = np.empty(above.size, dtype=np.int64)
        fold[np.argsort(above, kind="stable")] = np.arange(above.size) % FOLDS
        values = np.zeros(above.size)
        for part in np.unique(fold):
            train, test = np.flatnonzero(fold != part), np.flatnonzero(fold == part)
            known = above[train]
            if train.size == 0 or known.all() or not known.any():
                values[test] = 0.0 if train.size == 0 else np.where(known[0], 1.0, -1.0)
                continue
            coef = np.zeros(above.size)
            coef[train], intercept, _ = self._answer(gram.part(train), known, weight[train])
            values[test] = gram.times(coef)[test] + intercept
        return values

    def _ranks_from(self, scores: np.ndarray) -> np.ndarray:
        slope, offset = self.calibration_.T
        above = expit(slope * (scores + self.intercept_) + offset)
        ones, zeros = np.ones((scores.shape[0], 1)), np.zeros((scores.shape[0], 1))
        return np.diff(np.hstack([ones, above, zeros]), axis=1).argmin(axis=1)


def platt_sigmoid(values: np.ndarray, above: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return slope and offset of ``P(above) = expit(slope value + offset)``.

    Platt (2000): maximum likelihood, with targets a little inside 0 and 1 so that separable values
    have a finite slope.
    """
    up, down = float(weight[above].sum()), float(weight[~above].sum())
    target = np.where(above, (up + 1.0) / (up + 2.0), 1.0 / (down + 2.0))
    unit = float(np.abs(values).max()) or 1.0
    z = values / unit

    def loss(x: np.ndarray) -> tuple[float, np.ndarray]:
        score = x[0] * z + x[1]
        away = weight * (expit(score) - target)
        value = weight * (np.logaddexp(0.0, score) - target * score)
        return float(value.sum()), np.array([away @ z, away.sum()])

    start = np.array([0.0, np.log((up + 1.0) / (down + 1.0))])
    found = minimize(loss, start, jac=True, method="BFGS").x
    return float(found[0] / unit), float(found[1])


def _distances_from_cut(ranks: np.ndarray, j: int) -> np.ndarray:
    """Ranks between each sample and the cut above j, scaled to mean one on each side."""
    distance = np.where(ranks > j, ranks - j, j + 1 - ranks).astype(np.float64)
    for side in (ranks > j, ranks <= j):
        if side.any():
            distance[side] /= distance[side].mean()
    return distance
