"""The kernel contract, and how kernels are combined.

A kernel is a small immutable object. Its value at a block of inputs goes through two
steps, so that what does not depend on the parameters is computed once:

    pairs = kernel.pairs(X, Y)          squared distances, products, ...
    K = kernel.from_pairs(pairs)        K(X, Y)

One pair object serves every value of the parameters, every fold (`take_pairs`) and every
cost. ``kernel(X, Y)`` is the two steps in a row.

Hyper-parameters are positive and handled as logarithms: ``theta`` reads those that are
free, ``with_theta`` returns a new kernel, ``gradient_from_pairs`` differentiates K with
respect to them and ``gradient_trace`` contracts that derivative with a weight matrix
without building it, which is what evidence maximisation needs.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any, Literal, NamedTuple

import numpy as np

from ordrec.errors import ArgumentError

__all__ = [
    "Bounds",
    "Constant",
    "Hyperparameter",
    "Kernel",
    "Normalised",
    "Precomputed",
    "Product",
    "Scaled",
    "Sum",
]

Bounds = tuple[float, float] | Literal["fixed"]
WIDE: Bounds = (1e-5, 1e5)


class Hyperparameter(NamedTuple):
    """A positive parameter (scalar or vector) and the interval it may move in."""

    name: str
    value: np.ndarray
    bounds: Bounds

    @property
    def free(self) -> bool:
        """Whether an optimiser may move it."""
        return self.bounds != "fixed"


class Kernel(ABC):
    """A positive semidefinite function of two inputs, evaluated on blocks of rows."""

    # ---- what a kernel must say ----------------------------------------------------------

    @abstractmethod
    def from_pairs(self, pairs: Any) -> np.ndarray:
        """K(X, Y) from ``pairs(X, Y)``; a new array, which the caller may overwrite."""

    @abstractmethod
    def diag(self, X: Any) -> np.ndarray:
        """The diagonal of K(X, X)."""

    def pairs(self, X: Any, Y: Any = None) -> Any:
        """What K(X, Y) needs and no parameter changes; here the inputs themselves."""
        return X, X if Y is None else Y

    def factor(self, X: Any) -> np.ndarray | None:
        """Z with K(X, X) = Z Z' and as many columns as X, for kernels that have one."""
        return None

    def take_pairs(self, pairs: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
        """The pairs of some rows of X with some rows of Y."""
        if isinstance(pairs, tuple):
            return pairs[0][rows], pairs[1][columns]
        return pairs[np.ix_(rows, columns)]

    def hyperparameters(self) -> list[Hyperparameter]:
        """All parameters, the fixed ones included, in a fixed order."""
        return []

    def _replaced(self, values: list[np.ndarray]) -> Kernel:
        """A copy with new values, one array for each of ``hyperparameters()``."""
        changed = copy.copy(self)
        for parameter, value in zip(self.hyperparameters(), values, strict=True):
            setattr(changed, parameter.name, value if value.ndim else float(value))
        return changed

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        """dK / d log(parameter) for each entry of each parameter, the fixed ones included."""
        return []

    def _gradient_traces(self, pairs: Any, weights: np.ndarray) -> list[float]:
        """sum(weights * dK) for each of `_gradients`; override where it can be had cheaper."""
        return [float(np.vdot(weights, slope)) for slope in self._gradients(pairs)]

    # ---- what follows from it ------------------------------------------------------------

    def __call__(self, X: Any, Y: Any = None) -> np.ndarray:
        """K(X, Y), or K(X, X) when Y is not given."""
        return self.from_pairs(self.pairs(X, Y))

    @property
    def theta(self) -> np.ndarray:
        """Logarithms of the free parameters, as one vector."""
        values = [np.ravel(p.value) for p in self.hyperparameters() if p.free]
        return np.log(np.concatenate([np.empty(0), *values]))

    @property
    def theta_bounds(self) -> np.ndarray:
        """Lower and upper bound of each entry of ``theta``, shape (p, 2)."""
        free = [p for p in self.hyperparameters() if p.free]
        rows = [p.bounds for p in free for _ in range(np.size(p.value))]
        return np.log(np.array(rows, dtype=np.float64).reshape(-1, 2))

    @property
    def theta_names(self) -> list[str]:
        """A label for each entry of ``theta``."""
        names = []
        for p in self.hyperparameters():
            if p.free and np.ndim(p.value):
                names += [f"{p.name}[{i}]" for i in range(np.size(p.value))]
            elif p.free:
                names.append(p.name)
        return names

    def with_theta(self, theta: np.ndarray) -> Kernel:
        """The same kernel with other free parameters."""
        moved, start, values = np.exp(np.asarray(theta, dtype=np.float64)), 0, []
        for p in self.hyperparameters():
            value = np.asarray(p.value, dtype=np.float64)
            if p.free:
                value = moved[start : start + value.size].reshape(value.shape)
                start += value.size
            values.append(value)
        if start != moved.size:
            raise ArgumentError(f"{self!r} has {start} free parameters, got {moved.size}")
        return self._replaced(values)

    def gradient_from_pairs(self, pairs: Any) -> np.ndarray:
        """dK / dtheta, shape (p, n, m)."""
        free = self._free_entries()
        slopes = [g for g, is_free in zip(self._gradients(pairs), free, strict=True) if is_free]
        if slopes:
            return np.stack(slopes)
        return np.empty((0, *self.from_pairs(pairs).shape))

    def gradient(self, X: Any) -> np.ndarray:
        """dK(X, X) / dtheta, shape (p, n, n)."""
        return self.gradient_from_pairs(self.pairs(X))

    def gradient_trace(self, pairs: Any, weights: np.ndarray) -> np.ndarray:
        """sum_ij weights_ij dK_ij / dtheta, shape (p,)."""
        traces = np.array(self._gradient_traces(pairs, weights), dtype=np.float64)
        return traces[np.array(self._free_entries(), dtype=bool)]

    def _free_entries(self) -> list[bool]:
        return [p.free for p in self.hyperparameters() for _ in range(np.size(p.value))]

    # ---- algebra -------------------------------------------------------------------------

    def __add__(self, other: Kernel | float) -> Kernel:
        return Sum(self, other if isinstance(other, Kernel) else Constant(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def normalised(self, smooth: float = 0.0) -> Kernel:
        """``K_ij / sqrt((K_ii + smooth) (K_jj + smooth))``: a cosine, shrunk for small norms."""
        return Normalised(self, smooth)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        mine, theirs = vars(self), vars(other)
        return all(np.all(mine[key] == theirs[key]) for key in mine)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{p.name}={np.array2string(np.asarray(p.value), precision=6, threshold=8)}"
            for p in self.hyperparameters()
        )
        return f"{type(self).__name__}({inside})"


class Constant(Kernel):
    """``K = value``: all pairs are equally similar."""

    def __init__(self, value: float = 1.0, bounds: Bounds = WIDE):
        self.value = positive_number(value, "value")
        self.bounds = bounds

    def pairs(self, X: Any, Y: Any = None) -> tuple[int, int]:
        """Only the shape matters."""
        return X.shape[0], (X if Y is None else Y).shape[0]

    def take_pairs(self, pairs: Any, rows: np.ndarray, columns: np.ndarray) -> tuple[int, int]:
        """The shape of the part."""
        return len(rows), len(columns)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """A constant matrix."""
        return np.full(pairs, self.value)

    def diag(self, X: Any) -> np.ndarray:
        """A constant vector."""
        return np.full(X.shape[0], self.value)

    def hyperparameters(self) -> list[Hyperparameter]:
        """The value."""
        return [Hyperparameter("value", np.asarray(self.value), self.bounds)]

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        return [self.from_pairs(pairs)]


class Precomputed(Kernel):
    """``X`` is the kernel matrix itself: (n, n) to fit, (m, n) to predict."""

    def pairs(self, X: Any, Y: Any = None) -> np.ndarray:
        """The matrix as it is."""
        return np.asarray(X)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """A copy of the matrix."""
        return pairs.copy()

    def diag(self, X: Any) -> np.ndarray:
        """The diagonal of a square matrix."""
        if X.shape[0] != X.shape[1]:
            raise ArgumentError(
                f"a precomputed block of shape {X.shape} does not contain its own diagonal"
            )
        return np.diagonal(X).copy()


class Scaled(Kernel):
    """``K = variance * kernel``."""

    def __init__(self, kernel: Kernel, variance: float = 1.0, bounds: Bounds = WIDE):
        self.kernel = kernel
        self.variance = positive_number(variance, "variance")
        self.bounds = bounds

    def pairs(self, X: Any, Y: Any = None) -> Any:
        """The pairs of the kernel inside."""
        return self.kernel.pairs(X, Y)

    def take_pairs(self, pairs: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
        """As the kernel inside does."""
        return self.kernel.take_pairs(pairs, rows, columns)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The scaled matrix."""
        K = self.kernel.from_pairs(pairs)
        K *= self.variance
        return K

    def diag(self, X: Any) -> np.ndarray:
        """The scaled diagonal."""
        return self.variance * self.kernel.diag(X)

    def hyperparameters(self) -> list[Hyperparameter]:
        """The variance, then those of the kernel inside."""
        own = Hyperparameter("variance", np.asarray(self.variance), self.bounds)
        return [own, *self.kernel.hyperparameters()]

    def _replaced(self, values: list[np.ndarray]) -> Kernel:
        return Scaled(self.kernel._replaced(values[1:]), float(values[0]), self.bounds)

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        inside = [self.variance * slope for slope in self.kernel._gradients(pairs)]
        return [self.from_pairs(pairs), *inside]

    def _gradient_traces(self, pairs: Any, weights: np.ndarray) -> list[float]:
        inside = self.kernel._gradient_traces(pairs, weights)
        own = np.vdot(weights, self.kernel.from_pairs(pairs))
        return [self.variance * float(trace) for trace in (own, *inside)]

    def __repr__(self) -> str:
        return f"{self.variance:g} * {self.kernel!r}"


class _Pair(Kernel):
    """Two kernels side by side, their pairs and parameters one after the other."""

    def __init__(self, first: Kernel, second: Kernel):
        self.first = first
        self.second = second

    def pairs(self, X: Any, Y: Any = None) -> list[Any]:
        """The pairs of both."""
        return [self.first.pairs(X, Y), self.second.pairs(X, Y)]

    def take_pairs(self, pairs: Any, rows: np.ndarray, columns: np.ndarray) -> list[Any]:
        """As each of them does."""
        return [
            self.first.take_pairs(pairs[0], rows, columns),
            self.second.take_pairs(pairs[1], rows, columns),
        ]

    def hyperparameters(self) -> list[Hyperparameter]:
        """Those of the first, then those of the second."""
        return self.first.hyperparameters() + self.second.hyperparameters()

    def _replaced(self, values: list[np.ndarray]) -> Kernel:
        cut = len(self.first.hyperparameters())
        return type(self)(self.first._replaced(values[:cut]), self.second._replaced(values[cut:]))


class Sum(_Pair):
    """``K = first + second``."""

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The sum of both."""
        return self.first.from_pairs(pairs[0]) + self.second.from_pairs(pairs[1])

    def diag(self, X: Any) -> np.ndarray:
        """The sum of both diagonals."""
        return self.first.diag(X) + self.second.diag(X)

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        return self.first._gradients(pairs[0]) + self.second._gradients(pairs[1])

    def _gradient_traces(self, pairs: Any, weights: np.ndarray) -> list[float]:
        return self.first._gradient_traces(pairs[0], weights) + self.second._gradient_traces(
            pairs[1], weights
        )

    def __repr__(self) -> str:
        return f"({self.first!r} + {self.second!r})"


class Product(_Pair):
    """``K = first * second``, entry by entry."""

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The product of both."""
        return self.first.from_pairs(pairs[0]) * self.second.from_pairs(pairs[1])

    def diag(self, X: Any) -> np.ndarray:
        """The product of both diagonals."""
        return self.first.diag(X) * self.second.diag(X)

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        A, B = self.first.from_pairs(pairs[0]), self.second.from_pairs(pairs[1])
        return [slope * B for slope in self.first._gradients(pairs[0])] + [
            slope * A for slope in self.second._gradients(pairs[1])
        ]

    def _gradient_traces(self, pairs: Any, weights: np.ndarray) -> list[float]:
        A, B = self.first.from_pairs(pairs[0]), self.second.from_pairs(pairs[1])
        return self.first._gradient_traces(pairs[0], weights * B) + self.second._gradient_traces(
            pairs[1], weights * A
        )

    def __repr__(self) -> str:
        return f"{self.first!r} * {self.second!r}"


class Normalised(Kernel):
    """``K_ij = k_ij / sqrt((k_ii + smooth) (k_jj + smooth))``.

    With ``smooth = 0`` a cosine; a positive count shrinks inputs of small norm (items with
    few ratings) towards nothing. An input of norm zero has a row of zeros.
    """

    def __init__(self, kernel: Kernel, smooth: float = 0.0, bounds: Bounds = "fixed"):
        if not smooth >= 0:
            raise ArgumentError(f"smooth must not be negative, got {smooth}")
        self.kernel = kernel
        self.smooth = float(smooth)
        self.bounds = bounds if smooth > 0 else "fixed"

    def _shrink(self, X: Any) -> np.ndarray:
        norm = self.kernel.diag(X) + self.smooth
        return np.divide(1.0, np.sqrt(norm), out=np.zeros_like(norm), where=norm > 0)

    def from_pairs(self, pairs: Any) -> np.ndarray:
        """The shrunk cosine."""
        X, Y = pairs
        K = self.kernel(X, None if Y is X else Y)
        left = self._shrink(X)
        K *= left[:, None]
        K *= left if Y is X else self._shrink(Y)
        return K

    def diag(self, X: Any) -> np.ndarray:
        """``k_ii / (k_ii + smooth)``."""
        return self.kernel.diag(X) * self._shrink(X) ** 2

    def hyperparameters(self) -> list[Hyperparameter]:
        """The smoothing count where there is one, then those of the kernel inside."""
        own = [Hyperparameter("smooth", np.asarray(self.smooth), self.bounds)]
        return (own if self.smooth > 0 else []) + self.kernel.hyperparameters()

    def _replaced(self, values: list[np.ndarray]) -> Kernel:
        own = self.smooth > 0
        smooth = float(values[0]) if own else 0.0
        return Normalised(self.kernel._replaced(values[own:]), smooth, self.bounds)

    def _gradients(self, pairs: Any) -> list[np.ndarray]:
        X, Y = pairs
        left, right = self._shrink(X) ** 2, self._shrink(Y) ** 2
        K = self.from_pairs(pairs)
        scale = np.sqrt(np.outer(left, right))
        slopes = [-0.5 * self.smooth * K * (left[:, None] + right)] if self.smooth > 0 else []
        at_X = self.kernel._gradients(self.kernel.pairs(X))
        at_Y = at_X if Y is X else self.kernel._gradients(self.kernel.pairs(Y))
        across = at_X if Y is X else self.kernel._gradients(self.kernel.pairs(X, Y))
        for dK, dX, dY in zip(across, at_X, at_Y, strict=True):
            own = np.diag(dX) * left
            other = np.diag(dY) * right
            slopes.append(dK * scale - 0.5 * K * (own[:, None] + other))
        return slopes

    def __repr__(self) -> str:
        return f"Normalised({self.kernel!r}, smooth={self.smooth:g})"


def positive_number(value: Any, name: str) -> float:
    """The value, if it is a positive finite number."""
    if not (np.isscalar(value) or np.ndim(value) == 0) or not (np.isfinite(value) and value > 0):
        raise ArgumentError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def positive_vector(value: Any, name: str) -> np.ndarray:
    """The values, if they are a vector of positive finite numbers."""
    array = np.array(value, dtype=np.float64, ndmin=1)
    if array.ndim != 1 or not (np.isfinite(array).all() and (array > 0).all()):
        raise ArgumentError(f"{name} must be a vector of positive numbers, got {value!r}")
    return array
