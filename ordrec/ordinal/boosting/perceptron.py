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

A line search goes through as many breakpoints as there are samples, two hundred times per round.
It puts them into buckets along the line, each with the sum of its changes and that of its changes
downwards. Only where the latter could take the sum below what is found between the buckets can the
minimum be, and only the breakpoints there, a few per cent, are sorted (`_promising`). Where samples
are few or breakpoints tied, all are sorted: distributing the top 33 bits (sign, exponent, 21 bits
of the fraction) in three passes leaves the order right except for neighbours that agree in all of
them; insertion sort corrects those. At a thousand numbers and more this (`ascending`) takes a fifth
of the time of a comparison sort. Signs are chosen without branches: half of them would be guessed
wrongly, which takes longer than all else.
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
    breaks, bits, keys, spare, places, order, buckets = sorting
    sums, _, counts, ends = buckets
    n, total, size, s_squares, u_squares = s.size, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        size += abs(g[i])
        s_squares += s[i] * s[i]
        u_squares += u[i] * u[i]
        # towards which side the sample crosses, or on which side it stays
        towards = u[i] if u[i] != 0.0 else -1.0 if s[i] >= 0.0 else 1.0
        breaks[i] = -s[i] / u[i] if u[i] != 0.0 else np.inf
        total -= np.copysign(g[i], g[i] * towards)  # the sign at a = -infinity
    slack = 1e-11 * size  # smaller differences are rounding: the first step is kept
    length = np.sqrt(s_squares / u_squares) if u_squares > 0.0 else 0.0
    if not (sums.size > 1 and 0.0 < length < np.inf) or not _promising(
        u, g, min(value, total), total, slack, length, breaks, spare, order, buckets
    ):
        ascending(bits, keys, spare, places, order)
        for b in range(sums.size):
            counts[b], ends[b] = 0, 0
        counts[0], ends[0] = n, n
    best, step, here, adjacent, k = value, 0.0, -np.inf, True, 0
    for b in range(sums.size):
        if counts[b] > 0 and ends[b] < 0:
            total += sums[b]
            adjacent = False  # breakpoints were left out
            continue
        while counts[b] > 0 and k < ends[b] and breaks[order[k]] < np.inf:
            i = order[k]
            ahead = breaks[i]
            if adjacent and ahead > here and total < best - slack:
                # in the middle of the gap, as far from both samples as possible
                best = total
                step = 0.5 * (here + ahead) if here > -np.inf else ahead - 1.0 - abs(ahead)
            total += 2.0 * np.copysign(g[i], g[i] * u[i])
            here, adjacent = ahead, True
            k += 1
    if here > -np.inf and adjacent and total < best - slack:
        best, step = total, here + 1.0 + abs(here)
    return step, best


@inner
def _promising(
    u: np.ndarray,
    g: np.ndarray,
    bound: float,
    total: float,
    slack: float,
    length: float,
    breaks: np.ndarray,
    bucket_of: np.ndarray,
    order: np.ndarray,
    buckets: Buckets,
) -> bool:
    """Sort the breakpoints near the minimum only; False if that is not worth it.

    Writes the order of those in promising buckets, where it ends for each of these, and -1 for
    others. The line is mapped to an interval by a / (length + abs(a)), which spreads breakpoints
    evenly.
    """
    sums, falls, counts, ends = buckets
    n, m = breaks.size, sums.size
    for b in range(m):
        sums[b], falls[b], counts[b], ends[b] = 0.0, 0.0, 0, -1
    for i in range(n):
        a = breaks[i]
        bucket_of[i] = -1
        if a < np.inf:
            share = 0.5 + 0.5 * a / (length + abs(a)) if a > -np.inf else 0.0
            b = min(int(m * share), m - 1)
            change = 2.0 * np.copysign(g[i], g[i] * u[i])
            sums[b] += change
            falls[b] += min(change, 0.0)
            counts[b] += 1
            bucket_of[i] = b
    t = total
    for b in range(m):
        t += sums[b]
        bound = min(bound, t)
    t, taken, work, follows = total, 0, 0, total <= bound + slack
    for b in range(m):
        if counts[b] > 0:
            promising = t + falls[b] <= bound + slack
            if promising or follows:  # the next breakpoint says how long the last gap is
                ends[b] = taken  # its start, as long as it is not filled
                taken += counts[b]
                work += counts[b] * counts[b]
            follows = promising
            t += sums[b]
    if work > MOST_COMPARED * n:
        return False
    for i in range(n):
        b = bucket_of[i]
        if b >= 0 and ends[b] >= 0:
            order[ends[b]] = i
            ends[b] += 1
    start = 0
    for b in range(m):
        if ends[b] >= 0:
            for k in range(start + 1, ends[b]):
                item, j = order[k], k
                while j > start and breaks[order[j - 1]] > breaks[item]:
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = item
            start = ends[b]
    return True


FEW = 500  # samples up to which all breakpoints are sorted
PER_BUCKET = 16
MOST_COMPARED = 8  # pairs a sample that insertion sort may compare

ONE, SIGN, DIGIT = np.uint64(1), np.uint64(1 << 63), np.uint64(2047)
LOW, MIDDLE, HIGH = np.uint64(31), np.uint64(42), np.uint64(53)


class Buckets(NamedTuple):
    """What is known of the breakpoints of a part of a line.

    The sum of their changes, that of the changes downwards, their number, and where they end in the
    order.
    """

    sums: np.ndarray
    falls: np.ndarray
    counts: np.ndarray
    ends: np.ndarray


class Sorting(NamedTuple):
    """Numbers to be sorted, and what `ascending` needs: their bits, a workspace, and the order."""

    values: np.ndarray
    bits: np.ndarray
    keys: np.ndarray
    spare: np.ndarray
    places: np.ndarray
    order: np.ndarray
    buckets: Buckets


def sorting_workspace(n: int) -> Sorting:
    """The arrays for n numbers.

    Made here, because views and memory of their own take compiled functions long to compile.
    """
    values, (spare, order) = np.empty(n), np.empty((2, n), dtype=np.int64)
    places = np.empty((3, 2048), dtype=np.int64)
    keys = np.empty(n, dtype=np.uint64)
    m = 1 if n < FEW else n // PER_BUCKET
    (sums, falls), (counts, ends) = np.empty((2, m)), np.empty((2, m), dtype=np.int64)
    buckets = Buckets(sums, falls, counts, ends)
    return Sorting(values, values.view(np.uint64), keys, spare, places, order, buckets)


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
