"""The Newton system of the interior-point method, reduced to one n x n and one T x T matrix.

A step (dalpha, dz, dw, db, dmu, dv) is asked to remove ``residual`` (I1) and ``balance`` (I2) of
`interior`, to restore (I3), and to change the products of (I4) by given targets t^z, t^w, t^v.

Equations here
--------------
For a pair p = (i, j), with room_p = cap_p - alpha_p; the sums run over the pairs of sample i:

    g_p = 1 / (z_p / alpha_p + w_p / room_p)                                        (N1)
    q_i = sum_p g_p,   share_p = g_p / q_i                                          (N2)
    h_p = t^z_p / alpha_p - t^w_p / room_p - residual_p                             (N3)
    dalpha_p = g_p (h_p + sign_p (db_j - df_i))                                     (N4)
    dz_p = (t^z_p - z_p dalpha_p) / alpha_p,  dw_p = (t^w_p + w_p dalpha_p) / room_p   (N5)

(N4) summed over the pairs of a sample, with df = K dbeta and S_ij = share_p, is a system for beta:

    pull_i = sum_p sign_p g_p h_p                                                   (N6)
    df_i = (pull_i - dbeta_i) / q_i + sum_p share_p db_j                            (N7)
    M dbeta = pull / q + S db,  M = K + diag(1 / q)                                 (N8)
    dbeta = x0 + X db,  x0 = M^-1 (pull / q),  X = M^-1 S                           (N9)

and summed over the pairs of a threshold a system for b, the lower triangle of H being enough:

    H = diag(sum_i g) - g' share + share' X                                         (N10)
    H db = -balance + sum_p (share_p (pull_i - x0_i) - sign_p g_p h_p)              (N11)

The ordering constraints of EXC touch nothing but H and its right-hand side:

    apart_j = b_j - b_{j-1} - v_j,  dv_j = db_j - db_{j-1} + apart_j                (N12)
    dmu_j = (t^v_j - mu_j dv_j) / v_j                                               (N13)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.compiling import compiled
from ordrec.ordinal.svor.gram import Gram, ShiftedGram
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.ordinal.svor.threshold_system import ThresholdSystem

__all__ = ["NewtonSystem", "Point", "Targets"]

NO_PAIRS = 1e-30  # the q of a sample that pays nowhere: 1/q keeps its beta at zero


class Point(NamedTuple):
    """The variables, or a step of all of them."""

    alpha: np.ndarray
    z: np.ndarray
    w: np.ndarray
    b: np.ndarray
    mu: np.ndarray
    v: np.ndarray

    @classmethod
    def within(cls, buffer: np.ndarray, n_thresholds: int) -> Point:
        """Views into a vector, so that all of a point is copied or moved at once."""
        size = (buffer.size - 3 * n_thresholds) // 3
        of_pairs = buffer[: 3 * size].reshape(3, size)
        return cls(*of_pairs, *buffer[3 * size :].reshape(3, n_thresholds))


class Targets(NamedTuple):
    """What the linearised products alpha z, (cap - alpha) w and mu v must change by."""

    z: np.ndarray
    w: np.ndarray
    v: np.ndarray


class NewtonSystem:
    """What one factorisation provides to all right-hand sides of an iteration."""

    def __init__(self, K: Gram, pairs: Pairs, n_thresholds: int, ordered: bool, ridge: float):
        self.pairs = pairs
        self.ordered = ordered
        self.M = ShiftedGram(K, ridge)
        self.S = np.zeros((n_thresholds, K.values.shape[0]))  # the shares, (N8)

    def prepare(self, point: Point) -> bool:
        """Factorise at this point; False if no ridge makes its matrices positive definite."""
        pairs, S = self.pairs, self.S
        self.per_alpha = 1.0 / point.alpha
        self.per_room = 1.0 / (pairs.cap - point.alpha)
        self.g = 1.0 / (point.z * self.per_alpha + point.w * self.per_room)  # (N1)
        self.q = pairs.sums(self.g, S.shape[1]) + NO_PAIRS
        S[pairs.threshold, pairs.sample] = self.g / self.q[pairs.sample]  # (N2)
        if not self.M.factorise(1.0 / self.q):
            return False
        self.X = self.M.solve(S.copy())  # (N9)
        ties = point.mu / point.v if self.ordered else None
        self.H = ThresholdSystem(self.q, S, self.X, ties)
        return self.H.solvable

    def direction(
        self,
        point: Point,
        residual: np.ndarray,
        balance: np.ndarray,
        targets: Targets,
        step: Point,
    ) -> float:
        """Solve for one set of targets; the solution is written into the step.

        Returns the longest step, at most 1, that keeps everything non-negative, (I8).
        """
        pairs, S, X, q = self.pairs, self.S, self.X, self.q
        n_thresholds, n = S.shape
        h = targets.z * self.per_alpha - targets.w * self.per_room - residual  # (N3)
        force = pairs.sign * self.g * h
        pull = pairs.sums(force, n)  # (N6)
        x0 = self.M.solve((pull / q)[None])[0]  # (N9)
        rhs = S @ (pull - x0) - pairs.threshold_sums(force, n_thresholds) - balance  # (N11)
        if self.ordered:  # (N13) with (N12), the part without db
            apart = point.b[1:] - point.b[:-1] - point.v[1:]
            push = (targets.v[1:] - point.mu[1:] * apart) / point.v[1:]
            rhs[1:] += push
            rhs[:-1] -= push
        db = self.H.solve(rhs)
        step.b[:] = db
        # (N7) keeps sum(sign dalpha) = dbeta exact whatever the error of the solve
        df = (pull - (x0 + db @ X)) / q + db @ S
        steepest = _substitute_back(
            *pairs, *point[:3], *targets[:2], self.g, self.per_alpha, self.per_room, h, db, df,
            *step[:3],
        )  # fmt: skip
        if self.ordered:
            step.v[1:] = db[1:] - db[:-1] + apart  # (N12)
            step.mu[1:] = (targets.v[1:] - point.mu[1:] * step.v[1:]) / point.v[1:]  # (N13)
            steepest = max(
                steepest,
                float(np.max(-step.mu[1:] / point.mu[1:], initial=0.0)),
                float(np.max(-step.v[1:] / point.v[1:], initial=0.0)),
            )
        return 1.0 / steepest


@compiled
def _substitute_back(
    sample: np.ndarray,
    threshold: np.ndarray,
    sign: np.ndarray,
    cap: np.ndarray,
    alpha: np.ndarray,
    z: np.ndarray,
    w: np.ndarray,
    target_z: np.ndarray,
    target_w: np.ndarray,
    g: np.ndarray,
    per_alpha: np.ndarray,
    per_room: np.ndarray,
    h: np.ndarray,
    db: np.ndarray,
    df: np.ndarray,
    step_alpha: np.ndarray,
    step_z: np.ndarray,
    step_w: np.ndarray,
) -> float:
    """The step of the pairs, given db and df; 1 / the longest step that they allow, (I8)."""
    for p in range(h.size):
        step_alpha[p] = g[p] * (h[p] + sign[p] * (db[threshold[p]] - df[sample[p]]))  # (N4)
    # one maximum for each kind of variable: a single one would be a chain of dependent steps
    low, high, least_z, least_w = 1.0, 1.0, 1.0, 1.0
    for p in range(h.size):
        step_z[p] = (target_z[p] - z[p] * step_alpha[p]) * per_alpha[p]  # (N5)
        step_w[p] = (target_w[p] + w[p] * step_alpha[p]) * per_room[p]
        low = max(low, -step_alpha[p] * per_alpha[p])
        high = max(high, step_alpha[p] * per_room[p])
        if -step_z[p] > least_z * z[p]:
            least_z = -step_z[p] / z[p]
        if -step_w[p] > least_w * w[p]:
            least_w = -step_w[p] / w[p]
    return max(max(low, high), max(least_z, least_w))
