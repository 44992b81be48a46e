"""The Newton system of the interior-point method, reduced to one n x n and one T x T matrix.

A step (dalpha, dz, dw, db, dmu, dv) is asked to remove ``residual`` (I1) and ``balance`` (I2) of
`interior`, to restore (I3), and to change the products of (I4) by given targets t^z, t^w, t^v.

Equations here
--------------
For a pair p = (i, j), with slack_p = cap_p - alpha_p; the sums run over the pairs of sample i:

    g_p = 1 / (z_p / alpha_p + w_p / slack_p)                                        (N1)
    q_i = sum_p g_p,   share_p = g_p / q_i                                          (N2)
    h_p = t^z_p / alpha_p - t^w_p / slack_p - residual_p                             (N3)
    dalpha_p = g_p (h_p + sign_p (db_j - df_i))                                     (N4)
    dz_p = (t^z_p - z_p dalpha_p) / alpha_p,  dw_p = (t^w_p + w_p dalpha_p) / slack_p   (N5)

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

and so do the springs of (I10), which add their stiffness times (I - 1 1'/T) to H.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ordrec.linalg.small import factorise_small, solve_small
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.gram.shifted import ShiftedGram
from ordrec.ordinal.svor.pairs import Pairs
from ordrec.runtime.compiling import compiled

__all__ = ["NewtonSystem", "Point", "Targets", "factorise_thresholds"]

LEAST_PIVOT = 1e-14  # of the largest diagonal entry of H: smaller pivots are raised to it
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


class Weights(NamedTuple):
    """What depends on a point alone, of each pair."""

    g: np.ndarray  # (N1)
    per_alpha: np.ndarray  # 1 / alpha
    per_slack: np.ndarray  # 1 / (cap - alpha)


class NewtonSystem:
    """What one factorisation provides to all right-hand sides of an iteration."""

    def __init__(
        self,
        K: Gram,
        pairs: Pairs,
        n_thresholds: int,
        *,
        ordered: bool,
        stiffness: float,
        ridge: float,
    ):
        self.pairs = pairs
        self.ordered = ordered
        self.stiffness = stiffness
        self.M = ShiftedGram(K, ridge)
        self.weights = Weights(*np.empty((3, pairs.cap.size)))
        self.h = np.empty(pairs.cap.size)  # (N3), of the last right-hand side
        self.q = np.empty(K.n)  # (N2)
        self.S = np.zeros((n_thresholds, K.n))  # the shares, (N8)
        self.X: np.ndarray | None = None  # (N9), once the first right-hand side is known
        self.H = np.empty((n_thresholds, n_thresholds))  # the factor of H, (N10)

    def prepare(self, point: Point) -> bool:
        """Factorise at this point; False if no ridge makes its matrix positive definite."""
        _set_weights(self.pairs, point, self.weights, self.q, self.S)
        self.X = None
        return self.M.factorise(1.0 / self.q)

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
        pairs, q, h = self.pairs, self.q, self.h
        pull, rhs = np.zeros(q.size), -balance
        _load(pairs, targets, residual, self.weights, h, pull, rhs)
        x0, X = self._solve(point, pull / q)
        if self.ordered:
            _load_ties(*point[3:], targets.v, rhs)
        df = np.empty(q.size)
        _move_scores(q, self.S, X, self.H, pull, x0, rhs, step.b, df)
        steepest = _substitute_back(pairs, point, targets, self.weights, h, df, step)
        if self.ordered:
            steepest = max(steepest, _move_ties(*point[3:], targets.v, *step[3:]))
        return 1.0 / steepest

    def _solve(self, point: Point, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """x0 and X, (N9); the first right-hand side of a factor is solved together with S."""
        if self.X is not None:
            return self.M.solve(right[None])[0], self.X
        T = self.S.shape[0]
        solved = self.M.solve(np.concatenate([self.S, right[None]]))
        self.X = solved[:T]
        ties = point.mu / point.v if self.ordered else np.zeros(T)
        self.H = factorise_thresholds(self.q, self.S, self.X, ties, stiffness=self.stiffness)
        return solved[T], self.X


def factorise_thresholds(
    q: np.ndarray,
    S: np.ndarray,
    X: np.ndarray,
    ties: np.ndarray,
    *,
    lift: float = 0.0,
    stiffness: float = 0.0,
) -> np.ndarray:
    """The Cholesky factor of H, (N10) with (N13), as a lower triangle; `polish` needs it too.

    ``S`` holds the shares, ``X`` M^-1 of them, both (T, n), and ``ties`` the weight of each
    b_j - b_{j-1}, zero for the first. With g = q share a sample adds q diag(share) + share
    (X - q share)'. ``lift`` of the largest diagonal entry, at least of 1, is added to the diagonal;
    ``stiffness`` is that of (I10).
    """
    H = S @ (X - q * S).T
    if stiffness > 0.0:
        H += stiffness * (np.eye(ties.size) - 1.0 / ties.size)
    _complete(H, S @ q, ties, lift)
    return H


@compiled
def _complete(H: np.ndarray, sums: np.ndarray, ties: np.ndarray, lift: float) -> None:
    """Add what is diagonal in (N10), the ties and the lift; overwrite the sum by its factor."""
    T = sums.size
    for j in range(T):
        H[j, j] += sums[j]
    for j in range(1, T):
        H[j, j] += ties[j]
        H[j - 1, j - 1] += ties[j]
        H[j, j - 1] -= ties[j]
    largest = 1e-300
    for j in range(T):
        largest = max(largest, H[j, j])
    if lift > 0.0:
        for j in range(T):
            H[j, j] += lift * max(1.0, largest)
    factorise_small(H, LEAST_PIVOT * largest)


@compiled
def _set_weights(
    pairs: Pairs, point: Point, weights: Weights, q: np.ndarray, S: np.ndarray
) -> None:
    """The weights, q and the shares at a point, (N1) and (N2)."""
    sample, threshold, cap = pairs.sample, pairs.threshold, pairs.cap
    alpha, z, w = point.alpha, point.z, point.w
    g, per_alpha, per_slack = weights
    for p in range(cap.size):  # loops over all pairs at once become vector instructions
        per_alpha[p] = 1.0 / alpha[p]
        per_slack[p] = 1.0 / (cap[p] - alpha[p])
        g[p] = 1.0 / (z[p] * per_alpha[p] + w[p] * per_slack[p])  # (N1)
    for i in range(q.size):
        q[i] = NO_PAIRS
    for p in range(cap.size):
        q[sample[p]] += g[p]
    for p in range(cap.size):
        S[threshold[p], sample[p]] = g[p] / q[sample[p]]  # (N2)


@compiled
def _load(
    pairs: Pairs,
    targets: Targets,
    residual: np.ndarray,
    weights: Weights,
    h: np.ndarray,
    pull: np.ndarray,
    rhs: np.ndarray,
) -> None:
    """h, (N3), the sums of sign g h over samples, (N6), and minus those over thresholds, (N11)."""
    sample, threshold, sign = pairs.sample, pairs.threshold, pairs.sign
    target_z, target_w = targets.z, targets.w
    g, per_alpha, per_slack = weights
    for p in range(h.size):
        h[p] = target_z[p] * per_alpha[p] - target_w[p] * per_slack[p] - residual[p]
    for p in range(h.size):
        force = sign[p] * g[p] * h[p]
        pull[sample[p]] += force
        rhs[threshold[p]] -= force


@compiled
def _move_scores(
    q: np.ndarray,
    S: np.ndarray,
    X: np.ndarray,
    H: np.ndarray,
    pull: np.ndarray,
    x0: np.ndarray,
    rhs: np.ndarray,
    db: np.ndarray,
    df: np.ndarray,
) -> None:
    """db, (N11), ``rhs`` being the rest of it before, and df."""
    for j in range(db.size):
        for i in range(q.size):
            rhs[j] += S[j, i] * (pull[i] - x0[i])  # (N11)
    solve_small(H, rhs, db)
    for i in range(q.size):
        # (N7) keeps sum(sign dalpha) = dbeta exact whatever the error of the solve
        df[i] = (pull[i] - x0[i]) / q[i]
    for j in range(db.size):
        for i in range(q.size):
            df[i] += db[j] * (S[j, i] - X[j, i] / q[i])


@compiled
def _substitute_back(
    pairs: Pairs,
    point: Point,
    targets: Targets,
    weights: Weights,
    h: np.ndarray,
    df: np.ndarray,
    step: Point,
) -> float:
    """The step of the pairs, given db and df; 1 / the longest step that they allow, (I8)."""
    sample, threshold, sign = pairs.sample, pairs.threshold, pairs.sign
    z, w, target_z, target_w = point.z, point.w, targets.z, targets.w
    g, per_alpha, per_slack = weights
    step_alpha, step_z, step_w, db = step.alpha, step.z, step.w, step.b
    for p in range(h.size):
        step_alpha[p] = g[p] * (h[p] + sign[p] * (db[threshold[p]] - df[sample[p]]))  # (N4)
    # one maximum for each kind of variable: a single one would be a chain of dependent steps
    low, high, least_z, least_w = 1.0, 1.0, 1.0, 1.0
    for p in range(h.size):
        step_z[p] = (target_z[p] - z[p] * step_alpha[p]) * per_alpha[p]  # (N5)
        step_w[p] = (target_w[p] + w[p] * step_alpha[p]) * per_slack[p]
        low = max(low, -step_alpha[p] * per_alpha[p])
        high = max(high, step_alpha[p] * per_slack[p])
        if -step_z[p] > least_z * z[p]:
            least_z = -step_z[p] / z[p]
        if -step_w[p] > least_w * w[p]:
            least_w = -step_w[p] / w[p]
    return max(max(low, high), max(least_z, least_w))


@compiled
def _load_ties(
    b: np.ndarray, mu: np.ndarray, v: np.ndarray, target_v: np.ndarray, rhs: np.ndarray
) -> None:
    """Add to (N11) what (N13) with (N12) is without db."""
    for j in range(1, b.size):
        push = (target_v[j] - mu[j] * (b[j] - b[j - 1] - v[j])) / v[j]
        rhs[j] += push
        rhs[j - 1] -= push


@compiled
def _move_ties(
    b: np.ndarray,
    mu: np.ndarray,
    v: np.ndarray,
    target_v: np.ndarray,
    db: np.ndarray,
    step_mu: np.ndarray,
    step_v: np.ndarray,
) -> float:
    """The step of mu and v; 1 / the longest step that they allow, (I8)."""
    steepest = 1.0
    for j in range(1, b.size):
        step_v[j] = db[j] - db[j - 1] + b[j] - b[j - 1] - v[j]  # (N12)
        step_mu[j] = (target_v[j] - mu[j] * step_v[j]) / v[j]  # (N13)
        steepest = max(steepest, max(-step_mu[j] / mu[j], -step_v[j] / v[j]))
    return steepest
