"""The objective of ordinal logistic regression: value, gradient and Hessian in one pass.

J(w, b) = sum_i c_i sum_k phi(s_ik (x_i.w - b_k)) + alpha/2 |w|^2, k over the reach of the
sample's rank (Rennie 2005, (2) and (6), the losses of `ordrec.ordinal.losses`).

With m the margins, C_ik = c_i phi''(m_ik) and D_i = sum_k C_ik

    gradient   w: X' d + alpha w,   d_i = sum_k c_i s_ik phi'(m_ik)              (4), (8)
               b: -sum_i c_i s_ik phi'(m_ik)                                     (5), (9)
    Hessian    ww: X' diag(D) X + alpha I,  wb: -X' C,  bb: diag(sum_i C_ik)

Departures
----------
The sign of the shift is the other one
    The note's printed losses forgive a margin and do not tend to the hinge, as it says they
    should; `ordrec.ordinal.losses` derives the form used. Effect: the hinge limit holds.

A sample meets each threshold once, hence the diagonal block. Rows are processed in blocks that
stay in the processor's cache, so that X is read only once. Up to `EXPLICIT` features the
Hessian is built in the same pass; beyond that the C_ik are kept, for products with the Hessian.

=======  =======================  ================
symbol   variable                 shape
=======  =======================  ================
X        X                        (n, d)
c        weight                   (n,)
d        pull                     (n,)
C        curvature                (n, T), T = n_ranks - 1
b = E t  tie, free thresholds     (T, G)
=======  =======================  ================
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ordrec.ordinal.losses import Loss, Reach
from ordrec.runtime.compiling import compiled
from ordrec.runtime.parallel import run_all

__all__ = ["Hessian", "Objective"]

EXPLICIT = 200  # features up to which building X' D X costs less than the products it saves
BLOCK = 1 << 17  # numbers of X in a block
GROUPS, SHORT = 8, 4  # number of groups summed in threads, if each has at least SHORT blocks
FAR = 200.0  # exponents beyond are cut: e^-200 is nothing beside 1, and products stay finite


class _Sums(NamedTuple):
    """Sums of losses, gradient and Hessian, without the penalty."""

    value: float
    slope: np.ndarray
    slope_b: np.ndarray
    curve_b: np.ndarray
    square: np.ndarray
    cross: np.ndarray


@dataclass(frozen=True)
class Objective:
    """J as a function of one vector x = (w, t), where b = tie @ t.

    ``tie`` is the identity, or holds thresholds together on a face of the ordering
    constraint.
    """

    X: Any
    ranks: np.ndarray
    weight: np.ndarray
    loss: Loss
    reach: Reach
    alpha: float
    tie: np.ndarray

    def split(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights w and the thresholds b."""
        d = self.X.shape[1]
        return x[:d], self.tie @ x[d:]

    def at(self, x: np.ndarray, *, hessian: bool = True) -> tuple[float, np.ndarray, Any]:
        """Return value, gradient and, on request, the Hessian, with ``@`` and ``diagonal()``."""
        n, d = self.X.shape
        w, b = self.split(x)
        explicit = hessian and d <= EXPLICIT
        products = hessian and not explicit
        curvature = np.empty((n, b.size)) if products else None

        def sums(blocks: list[slice]) -> _Sums:
            return self._sums(blocks, w, b, explicit, curvature)

        groups = self._groups()
        if len(groups) > 1:
            parts = run_all(sums, groups, engine="threads")
        else:
            parts = [sums(groups[0])]
        total = _Sums._make(map(sum, zip(*parts, strict=True)))  # in a fixed order: reproducible
        value = total.value + 0.5 * self.alpha * float(w @ w)
        gradient = np.concatenate([total.slope + self.alpha * w, total.slope_b @ self.tie])
        if explicit:
            return value, gradient, self._assemble(total.square, total.cross, total.curve_b)
        return value, gradient, None if curvature is None else Hessian(self, curvature)

    def _sums(
        self,
        blocks: list[slice],
        w: np.ndarray,
        b: np.ndarray,
        explicit: bool,
        curvature: np.ndarray | None,
    ) -> _Sums:
        """The sums over some blocks of rows; fills their curvature where it is kept."""
        d, value = w.size, 0.0
        slope, slope_b, curve_b = np.zeros(d), np.zeros(b.size), np.zeros(b.size)
        square, cross = np.zeros((d, d) if explicit else (0, 0)), np.zeros((d, b.size))
        for rows in blocks:
            X = self.X[rows]
            f = X @ w
            pull, C = np.empty(f.size), np.empty((f.size, b.size))
            value += _pair_pass(
                f,
                b,
                self.ranks[rows],
                self.weight[rows],
                self.reach == "immediate",
                float(self.loss.sharpness),
                float(self.loss.target),
                pull,
                C,
                slope_b,
                curve_b,
            )
            slope += X.T @ pull
            if explicit:
                _add_products(X, C, square, cross)
            elif curvature is not None:
                curvature[rows] = C
        return _Sums(value, slope, slope_b, curve_b, square, cross)

    def gradient_of_thresholds(self, x: np.ndarray) -> np.ndarray:
        """Return dJ/db, one entry for each threshold, tied or not."""
        w, b = self.split(x)
        untied = replace(self, tie=np.eye(b.size))
        return untied.at(np.concatenate([w, b]), hessian=False)[1][w.size :]

    def _assemble(self, square: np.ndarray, cross: np.ndarray, curve_b: np.ndarray) -> np.ndarray:
        square[np.diag_indices_from(square)] += self.alpha
        cross = cross @ self.tie
        return np.block([[square, cross], [cross.T, self.tie.T @ (curve_b[:, None] * self.tie)]])

    def _blocks(self) -> list[slice]:
        """Rows per block; all rows of a sparse X, whose slices would be copies."""
        n, d = self.X.shape
        size = n if sparse.issparse(self.X) else max(256, BLOCK // max(d, 1))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _groups(self) -> list[list[slice]]:
        """Blocks that are summed together, whatever the number of threads: same sums to the bit."""
        blocks = self._blocks()
        if len(blocks) < GROUPS * SHORT:
            return [blocks]
        edges = np.linspace(0, len(blocks), GROUPS + 1).astype(int)
        return [blocks[a:b] for a, b in itertools.pairwise(edges)]


class Hessian:
    """The Hessian of an `Objective` at one point, given by its products with vectors."""

    def __init__(self, objective: Objective, curvature: np.ndarray):
        self.objective = objective
        self.curvature = curvature

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        J = self.objective
        v_w, v_b = J.split(v)
        out_w, out_b = J.alpha * v_w, np.zeros(v_b.size)
        for rows in J._blocks():
            X = J.X[rows]
            step = X @ v_w
            pull = np.empty(step.size)
            _curvature_pass(step, v_b, self.curvature[rows], pull, out_b)
            out_w += X.T @ pull
        return np.concatenate([out_w, out_b @ J.tie])

    def diagonal(self) -> np.ndarray:
        """Return the diagonal, which preconditions the conjugate gradients."""
        J = self.objective
        D = self.curvature @ np.ones(self.curvature.shape[1])
        diag = np.full(J.X.shape[1], J.alpha)
        for rows in J._blocks():
            X = J.X[rows]
            diag += (X.multiply(X) if sparse.issparse(X) else X * X).T @ D[rows]
        return np.concatenate([diag, self.curvature.sum(axis=0) @ J.tie**2])


def _add_products(X: Any, C: np.ndarray, square: np.ndarray, cross: np.ndarray) -> None:
    """Add X' diag(D) X and -X' C of one block of rows."""
    D = C @ np.ones(C.shape[1])
    if sparse.issparse(X):
        square += (X.T @ X.multiply(D[:, None]).tocsr()).toarray()
        cross -= X.T @ C
        return
    # both are parts of Z'Z, Z = (D^1/2 X, D^-1/2 C): one symmetric product, half the work
    d, root = X.shape[1], np.sqrt(D)
    Z = np.empty((D.size, d + C.shape[1]))
    np.multiply(X, root[:, None], out=Z[:, :d])
    np.divide(C, np.maximum(root, np.finfo(float).tiny)[:, None], out=Z[:, d:])
    products = Z.T @ Z
    square += products[:d, :d]
    cross -= products[:d, d:]


@compiled
def _pair_pass(
    f: np.ndarray,
    b: np.ndarray,
    ranks: np.ndarray,
    weight: np.ndarray,
    immediate: bool,
    sharpness: float,
    target: float,
    pull: np.ndarray,
    C: np.ndarray,
    slope_b: np.ndarray,
    curve_b: np.ndarray,
) -> float:
    """Return the sum of the losses; fill pull and C, add to the derivatives of the thresholds.

    With q = e^z, z = sharpness (target - m): -phi' = q / (1 + q), phi'' = sharpness q / (1 + q)^2.
    One exponential per sample serves all its thresholds, e^(f - b) = e^(f - middle) e^(middle - b),
    and one logarithm the product of all 1 + q.
    """
    middle = 0.5 * (b.min() + b.max())
    rise = np.exp(np.minimum(sharpness * (middle - b), FAR))
    fall = np.exp(np.minimum(sharpness * (b - middle), FAR))
    extent = sharpness * (b.max() - middle + abs(target))
    lift = np.exp(min(sharpness * target, FAR))
    total = 0.0
    for i in range(f.size):
        y, c = ranks[i], weight[i]
        first, last = 0, b.size
        if immediate:
            first, last = max(y - 1, 0), min(y + 1, b.size)
            C[i, :first] = 0.0
            C[i, last:] = 0.0
        away = sharpness * (f[i] - middle)
        near = abs(away) + extent < FAR
        up = np.exp(away) if near else 0.0
        down = 1.0 / up if near else 0.0
        linear, product, force = 0.0, 0.0, 0.0
        for k in range(first, last):
            sign = 1.0 if y > k else -1.0
            if near:
                q = lift * (down * fall[k] if y > k else up * rise[k])
            else:
                z = sharpness * (target - sign * (f[i] - b[k]))
                q = np.exp(min(z, FAR))
                linear += max(z - FAR, 0.0)
            share = 1.0 / (1.0 + q)
            g = q * share
            product += q + product * q
            if product > 1e200:
                linear += np.log1p(product)
                product = 0.0
            curve = c * sharpness * g * share
            C[i, k] = curve
            curve_b[k] += curve
            force -= sign * g
            slope_b[k] += c * sign * g
        pull[i] = c * force
        total += c * (linear + np.log1p(product))
    return total / sharpness


@compiled
def _curvature_pass(
    step: np.ndarray, v_b: np.ndarray, C: np.ndarray, pull: np.ndarray, out_b: np.ndarray
) -> None:
    """Set pull_i = sum_k C_ik (step_i - v_k) and add the thresholds' part of the product."""
    for i in range(step.size):
        total = 0.0
        for k in range(v_b.size):
            change = C[i, k] * (step[i] - v_b[k])
            total += change
            out_b[k] -= change
        pull[i] = total
