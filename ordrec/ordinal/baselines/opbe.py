"""An ensemble of ordinal projections (Perez-Ortiz, Gutierrez and Hervas-Martinez 2014)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.ordinal.baselines.machines import TwoFormBaseline
from ordrec.ordinal.stored import KERNEL_ESTIMATOR
from ordrec.ordinal.svor.model import SVORIM
from ordrec.ordinal.thresholds.probabilities import log_interval
from ordrec.storage.schema import Array, Integer, Members

__all__ = ["OPBE"]

APART = 4.0  # least distance of two thresholds in the published form


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

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> OPBE(C=10).fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = KERNEL_ESTIMATOR | {
        "present_": Array("present", dtype=np.int64),
        "n_iter_": Integer(),
        "machines_": Members(SVORIM),
    }

    def _fit_machines(self, K: np.ndarray, ranks: np.ndarray, weight: np.ndarray) -> int:
        self.present_ = np.unique(ranks)
        self.machines_ = [
            SVORIM(self.C, kernel="precomputed", tol=self.tol).fit(
                K, _group(ranks, k), sample_weight=weight
            )
            for k in self.present_
        ]
        return max(machine.n_iter_ for machine in self.machines_)

    def check_stored(self) -> None:
        """Check that there is a projection for each rank."""
        super().check_stored()
        groups = [np.unique(_group(self.present_, k)).tolist() for k in self.present_]
        if not np.isin(self.present_, np.arange(self.n_ranks_)).all() or groups != [
            machine.classes_.tolist() for machine in self.machines_
        ]:
            raise ModelFileError("there is not one projection for each rank")
        if any(machine.n_features_in_ != self._rows.size for machine in self.machines_):
            raise ModelFileError("the projections are not of the stored rows")

    def _ranks_from(self, K: np.ndarray) -> np.ndarray:
        total = np.zeros((K.shape[0], self.present_.size))
        shares = np.zeros(self.present_.size)
        for k, machine in zip(self.present_, self.machines_, strict=True):
            z = machine.thresholds_ - machine.predict_latent(K)[:, None]
            if self.published and machine.thresholds_.size == 2:
                gap = float(machine.thresholds_[1] - machine.thresholds_[0])
                z = z * max(1.0, APART / max(gap, np.finfo(float).tiny))
            edges = np.pad(z, ((0, 0), (1, 1)), constant_values=((0, 0), (-np.inf, np.inf)))
            logs = log_interval(edges[:, :-1], edges[:, 1:], "logit")
            groups = np.searchsorted(machine.classes_, _group(self.present_, k))
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
