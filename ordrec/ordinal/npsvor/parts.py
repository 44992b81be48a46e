"""ADMM on separate parts of a large problem: a cheap first guess of the active set.

The cost of ADMM is the factor of K + eta I, which grows with the cube of the rows. Rows that
are similar by the kernel are put into one part, the kernel between parts is left out (Hsieh, Si
and Dhillon 2014, divide and conquer), and two parts cost a quarter of the whole.
"""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from ordrec.ordinal.npsvor.admm import ADMM
from ordrec.ordinal.npsvor.gram import DenseGram
from ordrec.ordinal.npsvor.problem import Planes

__all__ = ["PartedADMM", "alike"]

LANDMARKS = 100  # rows that the others are compared with


class PartedADMM:
    """As `ADMM`, on a block-diagonal kernel; every part has biases of its own."""

    def __init__(
        self, gram: DenseGram, planes: Planes, eta: float, *, size: int, threads: Executor
    ):
        self.planes, self._threads = planes, threads
        self.parts = alike(gram.K, size)
        self._each = list(
            threads.map(lambda rows: ADMM(gram.part(rows), planes.rows(rows), eta), self.parts)
        )

    @property
    def n_iter(self) -> int:
        """Iterations so far."""
        return self._each[0].n_iter

    @property
    def z(self) -> np.ndarray:
        """The multipliers of all parts."""
        z = np.empty_like(self.planes.side)
        for rows, admm in zip(self.parts, self._each, strict=True):
            z[rows] = admm.z
        return z

    def step(self, tol: float) -> np.ndarray:
        """One iteration of every part; the largest residuals."""
        return np.max(list(self._threads.map(lambda admm: admm.step(tol), self._each)), axis=0)


def alike(K: np.ndarray, size: int) -> list[np.ndarray]:
    """Rows in parts of at most ``size``, cut at medians of the leading principal component.

    What is decomposed are the values of the kernel with some landmarks.
    """
    landmarks = np.linspace(0, len(K) - 1, min(LANDMARKS, len(K))).astype(np.int64)
    traits = K[:, landmarks]

    def halved(rows: np.ndarray) -> list[np.ndarray]:
        if rows.size <= size:
            return [np.sort(rows)]
        centred = traits[rows] - traits[rows].mean(axis=0)
        _, axes = np.linalg.eigh(centred.T @ centred)
        order = np.argsort(centred @ axes[:, -1], kind="stable")
        middle = rows.size // 2
        return halved(rows[order[:middle]]) + halved(rows[order[middle:]])

    return halved(np.arange(len(K)))
