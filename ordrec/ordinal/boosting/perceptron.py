"""Perceptrons by random coordinate descent on the weighted 0/1 error (Li 2005, RCD-bias).

A learner of a boosting round gets the gradient g of the loss and looks for h with values
in [-1, 1] and a small sum_n g_n h(x_n): a classification with labels -sign(g) and weights
|g|. For h = sign(w.x + b) that sum is piecewise constant along any line w + a d; it changes
where a sample crosses the plane, at a_n = -(w.x_n + b) / (d.x_n). Sorting these breakpoints
gives the best a exactly.

The authors' program starts from zero and searches along ``n_iter`` lines: the bias, then d random
directions of w, uniform in a cube, then the bias again, and so on (``published=True``). The default
departs from it: it starts from the weighted mean direction, the directions are normal in units of
the features' deviations, and after every step that helped the bias is searched, too, in all along
about twice as many lines.

A line search sorts as many breakpoints as there are samples, two hundred times per round.
Distributing the top 33 bits (sign, exponent, 21 bits of the fraction) in three passes leaves
the order right except for neighbours that agree in all of them; insertion sort corrects those.
At a thousand numbers and more this (`ascending`) takes a fifth of the time of a comparison sort.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ordrec.runtime.compiling import compiled, inner

__all__ = ["Perceptron", "PerceptronRCD", "Sigmoid", "SigmoidRCD", "ascending", "sorting_workspace"]


@dataclass(frozen=True)
class Perceptron:
    """sign(w.x + b)."""

    weights: np.ndarray
    bias: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """h(x) for each row."""
        return np.where(X @ self.weights + self.bias >= 0.0, 1.0, -1.0)


@dataclass(frozen=True)
class Sigmoid:
    """tanh(w.x + b)."""

    weights: np.ndarray
    bias: float

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """h(x) for each row."""
        return np.tanh(X @ self.weights + self.bias)


class PerceptronRCD:
    """Trains one perceptron per round.

    Parameters
    ----------
    n_iter : int
        Number of random directions to search per round.
    published : bool
        Whether to search as the authors' program does, see above.
    """

    _X: np.ndarray
    _rng: np.random.Generator
    _unit: np.ndarray  # one over the standard deviation of each feature
    _workspace: tuple[np.ndarray, np.ndarray, Sorting]  # of `_descend`

    def __init__(self, n_iter: int = 200, published: bool = False):
        self.n_iter = n_iter
        self.published = published

    def prepare(self, X: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> PerceptronRCD:
        """Return a copy that keeps the samples."""
        ready = copy.copy(self)
        share = weight / weight.sum()
        deviation = np.sqrt(share @ (X - share @ X) ** 2)
        ready._X, ready._rng = X, rng
        ready._workspace = (np.empty(len(X)), np.ones(len(X)), sorting_workspace(len(X)))
        ready._unit = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        return ready

    def train(self, g: np.ndarray) -> Perceptron | Sigmoid:
        """Return a member with a small ``sum g h``."""
        X, shape = self._X, (self.n_iter, self._X.shape[1])
        if self.published:
            directions = self._rng.uniform(-1.0, 1.0, size=shape)
            biases = np.arange(self.n_iter) % (X.shape[1] + 1) == 0
            directions[biases] = 0.0
            lines = directions @ X.T + biases[:, None]
            steps, _ = self._descended(np.zeros(len(X)), lines, g, with_bias=False)
            return self._member(steps @ directions, float(steps[biases].sum()))
        start = -(g @ X) * self._unit**2  # towards the samples that need a higher score
        directions = self._rng.normal(size=shape) * self._unit
        steps, bias = self._descended(X @ start, directions @ X.T, g, with_bias=True)
        return self._member(start + steps @ directions, bias)

    def _descended(
        self, s: np.ndarray, U: np.ndarray, g: np.ndarray, with_bias: bool
    ) -> tuple[np.ndarray, float]:
        """The steps along the lines U from the scores s, and the bias."""
        steps = np.zeros(U.shape[0])
        return steps, _descend(s, U, g, with_bias, steps, *self._workspace)

    def _member(self, weights: np.ndarray, bias: float) -> Perceptron | Sigmoid:
        return Perceptron(weights, bias)

    def __repr__(self) -> str:
        return f"PerceptronRCD(n_iter={self.n_iter}, published={self.published})"


class SigmoidRCD(PerceptronRCD):
    """Trains a perceptron and smoothes it: tanh of the same plane, with ``|(w, b)|`` = gamma."""

    def __init__(self, gamma: float = 4.0, n_iter: int = 200, published: bool = False):
        super().__init__(n_iter, published)
        self.gamma = gamma

    def _member(self, weights: np.ndarray, bias: float) -> Sigmoid:
        norm = np.sqrt(weights @ weights + bias * bias)
        scale = self.gamma / norm if norm > 0 else 0.0
        return Sigmoid(scale * weights, scale * bias)

    def __repr__(self) -> str:
        return f"SigmoidRCD(gamma={self.gamma:g}, n_iter={self.n_iter}, published={self.published})"


@compiled
def _descend(
    s: np.ndarray,
    U: np.ndarray,
    g: np.ndarray,
    with_bias: bool,
    steps: np.ndarray,
    score: np.ndarray,
    ones: np.ndarray,
    sorting: Sorting,
) -> float:
    """Write the step along each direction; return the bias.

    s = X w at the start, U[j] = X d_j; what stands behind the steps is a workspace. The bias is
    searched at the start and after each step that helped, or not at all.
    """
    bias, value, j, along_bias = 0.0, 0.0, 0, with_bias
    for i in range(s.size):
        score[i] = s[i]
        value += g[i] if s[i] >= 0.0 else -g[i]
    if with_bias:
        value = np.inf
    while along_bias or j < U.shape[0]:  # one call of the search: each would be compiled in
        line = ones if along_bias else U[j]
        a, value = _line_search(score, line, g, value, sorting)
        if a != 0.0:
            for i in range(s.size):
                score[i] += a * line[i]
        if along_bias:
            bias += a
            along_bias = False
        else:
            steps[j] = a
            j += 1
            along_bias = with_bias and a != 0.0
    return bias


@inner
def _line_search(
    s: np.ndarray,
    u: np.ndarray,
    g: np.ndarray,
    value: float,
    sorting: Sorting,
) -> tuple[float, float]:
    """The a that minimises sum g sign(s + a u), zero unless it is below value; and the sum."""
    breaks, bits, keys, spare, places, order = sorting
    n, total, size = s.size, 0.0, 0.0
    for i in range(n):
        size += abs(g[i])
        if u[i] == 0.0:
            breaks[i] = np.inf
            total += g[i] if s[i] >= 0.0 else -g[i]
        else:
            breaks[i] = -s[i] / u[i]
            total += -g[i] if u[i] > 0.0 else g[i]  # the sign at a = -infinity
    ascending(bits, keys, spare, places, order)
    first = breaks[order[0]]
    slack = 1e-11 * size  # smaller differences are rounding: the first step is kept
    best, step = value, 0.0
    if total < best - slack and first < np.inf:
        best, step = total, first - 1.0 - abs(first)
    for k in range(n):
        i = order[k]
        here = breaks[i]
        if here == np.inf:
            break
        total += 2.0 * (g[i] if u[i] > 0.0 else -g[i])
        ahead = breaks[order[k + 1]] if k + 1 < n else np.inf
        if total < best - slack and ahead > here:
            # in the middle of the gap, as far from both samples as possible
            best, step = total, 0.5 * (here + ahead) if ahead < np.inf else here + 1.0 + abs(here)
    return step, best


ONE, SIGN, DIGIT = np.uint64(1), np.uint64(1 << 63), np.uint64(2047)
LOW, MIDDLE, HIGH = np.uint64(31), np.uint64(42), np.uint64(53)


class Sorting(NamedTuple):
    """Numbers to be sorted, and what `ascending` needs: their bits, a workspace, and the order."""

    values: np.ndarray
    bits: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    places: np.ndarray
    order: np.ndarray


def sorting_workspace(n: int) -> Sorting:
    """The arrays for n numbers.

    Made here, because views and memory of their own take compiled functions long to compile.
    """
    values, (spare, order) = np.empty(n), np.empty((2, n), dtype=np.int64)
    places = np.empty((3, 2048), dtype=np.int64)
    keys = np.empty(n, dtype=np.uint64)
    return Sorting(values, values.view(np.uint64), keys, spare, places, order)


@inner
def ascending(
    bits: np.ndarray, keys: np.ndarray, spare: np.ndarray, places: np.ndarray, order: np.ndarray
) -> None:
    """Write the order that sorts the numbers with these bits, see `sorting_workspace`."""
    n = bits.size
    for digit in range(3):
        for j in range(2048):
            places[digit, j] = 0
    for i in range(n):
        # unsigned integers that sort as the numbers do: negative ones count downwards
        key = ~bits[i] if bits[i] & SIGN else bits[i] | SIGN
        keys[i] = key
        places[0, (key >> LOW) & DIGIT] += 1
        places[1, (key >> MIDDLE) & DIGIT] += 1
        places[2, key >> HIGH] += 1
    for digit in range(3):
        start = 0
        for j in range(2048):
            start, places[digit, j] = start + places[digit, j], start
    for i in range(n):
        j = (keys[i] >> LOW) & DIGIT
        order[places[0, j]] = i
        places[0, j] += 1
    for i in range(n):
        j = (keys[order[i]] >> MIDDLE) & DIGIT
        spare[places[1, j]] = order[i]
        places[1, j] += 1
    for i in range(n):
        j = keys[spare[i]] >> HIGH
        order[places[2, j]] = spare[i]
        places[2, j] += 1
    for i in range(1, n):
        item, j = order[i], i
        while j > 0 and keys[order[j - 1]] > keys[item]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = item
