"""What estimators with a kernel share: the scaled features, the Gram matrix, the rows they keep.

Whether a Gram matrix fits into memory is checked before it is computed, not when memory runs out.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from sklearn.utils import check_random_state

from ordrec.errors import ArgumentError, DataError, ModelFileError, callers_level
from ordrec.kernels import Gaussian, Kernel, Precomputed, kernel_for
from ordrec.kernels.landmarks import Landmarks
from ordrec.ordinal.gram.matrix import DenseGram, FactoredGram, Gram
from ordrec.ordinal.scaling import Standardisation, scaling_for
from ordrec.ordinal.solution import Solution
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["KernelMixin", "check_gram", "check_gram_size", "gram_in_blocks", "memory_limit"]

BLOCK_ENTRIES = 2**22  # entries of a kernel matrix that are computed at a time
# Negative eigenvalues of a Gram matrix that rounding explains, relative to its trace.
DOUBLE_ROUNDING, SINGLE_ROUNDING = 1e-8, 1e-6
SHORT = 100.0  # Gaussian widths up to which single precision resolves coordinates to 1e-5 widths
MANY = 20_000  # rows from which a factorisation takes minutes
CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class KernelMixin:
    """Computes Gram matrices in fit and cross-Gram matrices in predict, for any kernel.

    Subclasses have the parameters ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``scaling``;
    those that can do with an approximate kernel also ``n_landmarks`` and ``random_state``.
    """

    scaling: Any
    scaling_: Standardisation | None
    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    n_landmarks: Any
    random_state: Any
    remedy_of_constants: ClassVar[str] = "raise C"
    gram_copies: ClassVar[int] = 2  # matrices of the size of K that a fit holds at a time

    def _validate_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, dtype: Any = np.float64
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """As of `OrdinalClassifier`, with the features scaled; sets ``scaling_``."""
        X, ranks, weight = super()._validate_fit(X, y, sample_weight, dtype=dtype)  # type: ignore[misc]
        counted = X if (weight > 0).all() else X[weight > 0]
        self.scaling_ = scaling_for(self.scaling, counted, kernel=self.kernel, gamma=self.gamma)
        return X if self.scaling_ is None else self.scaling_(X), ranks, weight

    def _validate_predict(self, X: Any, *, dtype: Any = np.float64) -> Any:
        X = super()._validate_predict(X, dtype=dtype)  # type: ignore[misc]
        return X if self.scaling_ is None else self.scaling_(X)

    def _fit_gram(
        self, X: Any, *, rows: np.ndarray | None = None, dtype: Any = np.float64
    ) -> np.ndarray:
        """K(X, X), or that of some rows of X as if there were no others; sets ``kernel_``."""
        part = self._fit_kernel(X, rows)
        if isinstance(self.kernel_, Precomputed):
            return self._counted_gram(X, rows).astype(dtype, copy=False)
        check_gram_size(self, part.shape[0], self.gram_copies * np.dtype(dtype).itemsize)
        if dtype == np.float64:
            return self.kernel_(part)
        return gram_in_blocks(self.kernel_, part, dtype)

    def _counted_gram(self, X: Any, rows: np.ndarray | None) -> np.ndarray:
        """A precomputed Gram matrix, checked, over some rows or all."""
        K = check_gram(X)
        return K if rows is None or rows.size == K.shape[0] else K[np.ix_(rows, rows)]

    def _fit_landmarks(self, X: Any, rows: np.ndarray) -> tuple[np.ndarray, Landmarks]:
        """Features of some rows of X, and the landmarks that give them; sets ``kernel_``.

        ``left_out_`` is the share of the kernel's trace that the features leave out.
        """
        part = self._fit_kernel(X, rows)
        if isinstance(self.kernel_, Precomputed):
            part = self._counted_gram(X, rows)
        return self._landmark_features(part, check_random_state(self.random_state))

    def _landmark_features(
        self, part: Any, random: np.random.RandomState
    ) -> tuple[np.ndarray, Landmarks]:
        """As `_fit_landmarks`, for all of these rows and the kernel as it is."""
        with one_blas_thread():  # products this narrow only wait for further threads
            landmarks = Landmarks.chosen(self.kernel_, part, self.n_landmarks, random)
            Z = landmarks.features(part)
        trace = float(self.kernel_.diag(part).sum())
        approximated = float(np.einsum("ij,ij->", Z, Z))
        self.left_out_ = max(0.0, 1.0 - approximated / trace) if trace > 0 else 0.0
        return Z, landmarks

    def _solve_rows(
        self,
        X: Any,
        rows: np.ndarray,
        solve: Callable[[Gram], Solution],
        *,
        by_features: bool,
        single: bool,
        again: bool = True,
    ) -> tuple[Solution, np.ndarray, np.ndarray]:
        """The solution for some rows of X, and its expansion: coefficients, and rows of X.

        Parameters
        ----------
        solve : callable
            Of a Gram matrix of the rows.
        by_features : bool
            Whether a kernel that is a product of features is solved through these.
        single : bool
            Whether the matrix is computed in single precision at first.
        again : bool
            Whether it is computed in double precision where that was not enough.
        """
        if self.n_landmarks is not None:
            Z, landmarks = self._fit_landmarks(X, rows)
            solution = solve(FactoredGram(Z))
            coef = landmarks.coefficients(Z.T @ solution.coef)
            return solution, coef, rows[landmarks.rows]
        self.left_out_ = 0.0
        factor = None
        if by_features:
            part = self._fit_kernel(X, rows)
            factor = self.kernel_.factor(part)
        if factor is not None:
            solution = solve(FactoredGram(factor))
        else:
            for dtype in [np.float32, np.float64] if single else [np.float64]:
                solution = solve(DenseGram(self._fit_gram(X, rows=rows, dtype=dtype)))
                if solution.converged or not again:
                    break
        support = np.flatnonzero(solution.coef.reshape(rows.size, -1).any(axis=1))
        return solution, solution.coef[support], rows[support]

    def _fit_kernel(self, X: Any, rows: np.ndarray | None) -> Any:
        """Set ``kernel_`` for some rows of X, or for all; returns them."""
        part = X if rows is None or rows.size == X.shape[0] else X[rows]
        self.kernel_ = kernel_for(
            self.kernel, part, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        return part

    def check_stored(self) -> None:
        """Check that the rows of the expansion are those of the training data."""
        super().check_stored()  # type: ignore[misc]
        if not hasattr(self, "_rows"):
            return
        pairwise = isinstance(self.kernel_, Precomputed)
        if pairwise != (self._inputs is None):
            raise ModelFileError("the stored rows do not match the kernel")
        if pairwise and self._rows.max(initial=0) >= self.n_features_in_:  # type: ignore[attr-defined]
            raise ModelFileError("array 'rows' points beyond the kernel matrix")

    def _keep_rows(self, X: Any, rows: np.ndarray) -> None:
        """Remember the training rows that predictions are expanded over."""
        self._rows = rows
        self._inputs = None if isinstance(self.kernel_, Precomputed) else X[rows]

    def _cross_gram(self, X: Any) -> np.ndarray:
        """K(X, Z) with Z the training rows that the model stores."""
        if isinstance(self.kernel_, Precomputed):
            return X[:, self._rows]
        return self.kernel_(X, self._inputs)

    def _expanded(self, X: Any, coef: np.ndarray) -> np.ndarray:
        """K(X, Z) @ coef with Z the stored training rows, in blocks so that memory is bounded."""
        step = max(1, BLOCK_ENTRIES // max(1, self._rows.size))
        blocks = [X[first : first + step] for first in range(0, X.shape[0], step)]
        return np.concatenate([self._cross_gram(block) @ coef for block in blocks])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        pairwise = self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)
        tags.input_tags.pairwise = pairwise
        tags.input_tags.sparse = not pairwise
        return tags


def gram_in_blocks(kernel: Kernel, X: Any, dtype: Any) -> np.ndarray:
    """K(X, X) in another precision, without a double-precision matrix of that size."""
    n = X.shape[0]
    if isinstance(kernel, Gaussian) and not sparse.issparse(X):
        centred = X - X.mean(axis=0)  # which does not change the distances
        if np.sqrt(kernel.gamma) * np.abs(centred).max() < SHORT:
            X = centred.astype(dtype)
    K = np.empty((n, n), dtype=dtype)
    step = max(1, BLOCK_ENTRIES // n)
    for first in range(0, n, step):
        K[first : first + step] = kernel(X[first : first + step], X)
    return K


def check_gram(K: Any) -> np.ndarray:
    """Return a precomputed Gram matrix, checked to be dense, square, symmetric and semidefinite.

    Eigenvalues below 0 by no more than rounding are accepted.
    """
    if sparse.issparse(K):
        raise TypeError("a precomputed kernel must be a dense matrix: pass K.toarray()")
    if K.shape[0] != K.shape[1]:
        raise DataError(
            f"a precomputed kernel must be a square matrix (n_samples, n_samples), got {K.shape}"
        )
    size = np.abs(K).max(initial=0.0)
    if np.abs(K - K.T).max(initial=0.0) > 1e-8 * size:
        raise DataError("a precomputed kernel must be symmetric: use (K + K.T) / 2 to make it so")
    shifted = np.array(K, dtype=np.float64, order="F")
    rounding = SINGLE_ROUNDING if K.dtype == np.float32 else DOUBLE_ROUNDING
    shifted[np.diag_indices_from(shifted)] += rounding * np.abs(np.diagonal(K)).sum()
    if size > 0 and lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1]:
        eigenvalues = np.linalg.eigvalsh(K)
        raise DataError(
            "the kernel matrix is not positive semidefinite (its eigenvalues lie between "
            f"{eigenvalues[0]:.3g} and {eigenvalues[-1]:.3g}): use a valid kernel, or set the "
            "negative eigenvalues to 0"
        )
    return K


def check_gram_size(model: object, n: int, bytes_per_entry: int) -> None:
    """Raise an error if matrices of n x n entries do not fit into memory; warn if n is large.

    Parameters
    ----------
    model : estimator
        Its name, and whether it has a parameter ``n_landmarks``, are part of the message.
    n : int
        Rows of the kernel matrix.
    bytes_per_entry : int
        Of all matrices of that size together.
    """
    name, needed, limit = type(model).__name__, bytes_per_entry * n**2, memory_limit()
    if hasattr(model, "n_landmarks"):
        remedy = "set n_landmarks (such as n_landmarks=500): time and memory are then linear in n"
    else:
        remedy = "fit to a sample of the rows, or use an estimator that has n_landmarks"
    if needed > limit:
        raise ArgumentError(
            f"{name} on {n:,} rows needs {needed / 2**30:.0f} GB for its kernel matrix and factors "
            f"of it, and this machine has {limit / 2**30:.0f} GB: {remedy}"
        )
    if n > MANY:
        warnings.warn(
            f"{name} factorises a kernel matrix of {n:,} x {n:,} entries, which takes "
            f"{needed / 2**30:.0f} GB and time that grows with n^3: {remedy}",
            UserWarning,
            stacklevel=callers_level(),
        )


def memory_limit() -> float:
    """Bytes that this process may use: the machine's memory, or less in a container."""
    limits = []
    try:
        limits.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    except (AttributeError, ValueError, OSError):  # not a POSIX system: unknown
        limits.append(float("inf"))
    for place in CONTAINER_LIMITS:
        try:
            limits.append(float(Path(place).read_text()))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return min(limits)
