"""What comes after what, in few dimensions: a log-bilinear model of the next item.

With ``i_a`` the items of a history, ``pos_a`` their places (`ordrec.choice.order`) and ``n`` their
number, the next item is j with a probability in proportion to the exponential of

(1) ``s_j = b_j + q_j . h``, ``h = sum_a (e^(-pos_a / 1.5) x_a + e^(-pos_a / 6) y_a +
    z_a / (2 sqrt(n)))``

over the items that the history lacks; ``x_a``, ``y_a`` and ``z_a`` are vectors of the item
``i_a``, and z counts for the 200 newest entries only. The vectors start from the singular value
decomposition of the lag lifts (`ordrec.choice.successions`), ``lift = U S V'``, with ``q = V
sqrt(S)``, ``x = 0.35 U sqrt(S)``, ``y = 0.12 U sqrt(S)`` and z near 0; b starts from the logarithms
of the shares of the items. They are then moved up the likelihood of places that are drawn from all
histories, by Adam with a step that falls to 0. Entries of equal times are put into a random order,
and into another one after every hundred steps: a fixed order would be learnt, although it says
nothing about the future.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from ordrec.choice.order import DatedRows
from ordrec.storage.arrays import round_to_bytes
from ordrec.storage.schema import Array

__all__ = ["LogBilinear"]

DIMENSIONS = 64
DECAYS = 1.5, 6.0  # places, of x and y
START_SCALES = 0.35, 0.12  # of x and y
SPREAD = 0.01  # of z at the start
LONG = 0.5  # factor of z
NEAR, FAR = 40, 200  # places beyond which x and y, or z, do not count
BATCH = 512
STEPS, USUAL_SIZE = 400, 100_000  # steps for so many entries, and in proportion to their root
MOST_CELLS = 4_000_000_000  # probabilities that are computed in all
REORDERED = 100  # steps after which entries of equal times change places
RATE = 0.005
DECAY_MEAN, DECAY_SQUARE, TINY = 0.9, 0.999, 1e-8  # of Adam
HIDDEN = -1e9


@dataclass(frozen=True)
class LogBilinear:
    """The vectors of (1), of the items that have weights in EASE.

    Attributes
    ----------
    contexts : float32 array of shape (3 * n_weighted_items, n_dimensions)
        x, y and z.
    targets : float32 array of shape (n_weighted_items, n_dimensions)
        q.
    biases : float32 array of shape (n_weighted_items,)
        b.
    """

    stored: ClassVar = {
        "contexts": Array("weighted+weighted+weighted", "dimensions", dtype=np.float32),
        "targets": Array("weighted", "dimensions", dtype=np.float32),
        "biases": Array("weighted", dtype=np.float32),
    }

    contexts: np.ndarray
    targets: np.ndarray
    biases: np.ndarray

    @classmethod
    def start(cls, lifts: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> LogBilinear:
        """From the lag lifts and the shares of the items."""
        before, after = _factors_of(lifts, rng)
        z = SPREAD * rng.standard_normal(before.shape).astype(np.float32)
        contexts = np.concatenate([START_SCALES[0] * before, START_SCALES[1] * before, z])
        return cls(contexts, after, np.log(shares).astype(np.float32))

    def moved_to(self, own: np.ndarray, items: np.ndarray, shares: np.ndarray) -> LogBilinear:
        """Return the vectors of other items: those of known ones, and zeros.

        Parameters
        ----------
        own, items : int64 arrays, rising
            Codes of the items these vectors are of, and of the others.
        shares : array of shape (n_others,)
        """
        known = np.flatnonzero(np.isin(items, own))
        place = np.searchsorted(own, items[known])
        width = self.targets.shape[1]
        contexts = np.zeros((3, items.size, width), dtype=np.float32)
        contexts[:, known] = self.contexts.reshape(3, own.size, width)[:, place]
        targets = np.zeros((items.size, width), dtype=np.float32)
        targets[known] = self.targets[place]
        biases = np.log(shares).astype(np.float32)
        biases[known] = self.biases[place]
        return LogBilinear(contexts.reshape(-1, width), targets, biases)

    def trained(
        self, rows: DatedRows, items: np.ndarray, rng: np.random.Generator, share: float = 1.0
    ) -> LogBilinear:
        """Return the vectors after a number of steps for these histories.

        Parameters
        ----------
        rows : DatedRows
        items : int64 array
            Codes of the items the vectors are of, rising.
        rng : Generator
        share : float
            Of the usual number of steps.
        """
        drawn = _Places.of(rows, items, rng)
        if not drawn.there.size:
            return self
        usual = STEPS * np.sqrt(drawn.there.size / USUAL_SIZE)
        n_steps = int(share * min(usual, MOST_CELLS / (BATCH * items.size))) + 1
        values = self.contexts.copy(), self.targets.copy(), self.biases.copy()
        adam = _Adam(list(values))
        for step, (context, picked, seen) in enumerate(drawn.batches(n_steps)):
            gradients = _gradients(*values, context, picked, seen)
            adam.step(gradients, RATE * (1.0 - step / n_steps))
        return LogBilinear(*values)

    def rounded(self) -> LogBilinear:
        """Return the vectors with numbers of a byte each, as files have them."""
        values = self.contexts.copy(), self.targets.copy()
        for vectors in values:
            round_to_bytes(vectors)
        return LogBilinear(*values, self.biases)

    def scores(self, rows: DatedRows, items: np.ndarray) -> np.ndarray:
        """Return (1) of the items, which have these codes, one row per history."""
        table = rows.history
        row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        column = _columns(table.shape[1], items)[table.indices]
        sizes = np.diff(table.indptr)
        context = _context(row, column, rows.places, sizes, items.size)
        return (context @ self.contexts) @ self.targets.T + self.biases


def _columns(n_items: int, items: np.ndarray) -> np.ndarray:
    """For each item by code its place among ``items``, -1 for the others."""
    column = np.full(n_items, -1, dtype=np.int64)
    column[items] = np.arange(items.size)
    return column


def _context(
    row: np.ndarray, column: np.ndarray, places: np.ndarray, sizes: np.ndarray, n_items: int
) -> sparse.csr_array:
    """The weights of x, y and z in ``h``, one row per history; entries in column -1 are left out.

    ``row`` is ascending, and ``sizes`` are the numbers of entries of each row.
    """
    near, far = (column >= 0) & (places < NEAR), (column >= 0) & (places < FAR)
    rows = row[near], row[far]
    n_near, n_far = (np.bincount(own, minlength=sizes.size) for own in rows)
    start = np.concatenate([[0], np.cumsum(2 * n_near + n_far)])
    of_near, of_far = (
        np.arange(own.size) - (np.cumsum(count) - count)[own]
        for own, count in zip(rows, (n_near, n_far), strict=True)
    )
    # where x, y and z stand: made in order, they need not be sorted
    x, z = start[rows[0]] + of_near, start[rows[1]] + 2 * n_near[rows[1]] + of_far
    y = x + n_near[rows[0]]
    weights, columns = np.empty(start[-1], np.float32), np.empty(start[-1], np.int64)
    for k, (at, decay) in enumerate(zip((x, y), DECAYS, strict=True)):
        weights[at], columns[at] = np.exp(-places[near] / decay), column[near] + k * n_items
    long = LONG / np.sqrt(np.clip(sizes, 1, FAR))
    weights[z], columns[z] = long[rows[1]], column[far] + 2 * n_items
    return sparse.csr_array((weights, columns, start), shape=(sizes.size, 3 * n_items))


def _factors_of(lifts: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """``U sqrt(S)`` and ``V sqrt(S)`` of the lifts in a few dimensions, by random projections."""
    n_items = len(lifts)
    width = min(DIMENSIONS, n_items)
    Y = lifts @ rng.standard_normal((n_items, min(width + 10, n_items))).astype(np.float32)
    for _ in range(2):
        Y = lifts @ (lifts.T @ np.linalg.qr(Y)[0])
    basis = np.linalg.qr(Y)[0]
    U, s, Vt = np.linalg.svd(basis.T @ lifts, full_matrices=False)
    root = np.sqrt(s[:width])
    return (basis @ U[:, :width]) * root, Vt[:width].T * root


def _gradients(
    contexts: np.ndarray,
    targets: np.ndarray,
    biases: np.ndarray,
    context: sparse.csr_array,
    picked: np.ndarray,
    seen: tuple[np.ndarray, np.ndarray],
) -> list[np.ndarray]:
    """Gradients of the mean negative log-likelihood of ``picked``, one item per row."""
    h = context @ contexts
    p = h @ targets.T
    p += biases
    p[seen] = HIDDEN
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(picked.size), picked] -= 1.0
    p /= np.float32(picked.size)
    return [context.T @ (p @ targets), p.T @ h, p.sum(axis=0)]


@dataclass
class _Places:
    """Entries of histories in time, those of equal times in random order.

    Attributes
    ----------
    row, times, column : array
        One per entry, row by row.
    place : array
        Entries of the same row before each place.
    there : array
        Places after at least one entry.
    """

    row: np.ndarray
    times: np.ndarray
    column: np.ndarray
    place: np.ndarray
    there: np.ndarray
    n_items: int
    rng: np.random.Generator

    @classmethod
    def of(cls, rows: DatedRows, items: np.ndarray, rng: np.random.Generator) -> _Places:
        table = rows.history
        row = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        place = np.arange(table.nnz) - table.indptr[row]
        column = _columns(table.shape[1], items)[table.indices]
        return cls(row, rows.times, column, place, np.flatnonzero(place > 0), items.size, rng)

    def batches(
        self, number: int
    ) -> Iterator[tuple[sparse.csr_array, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
        """Yield contexts, the items picked after them, and the items they have, as indices."""
        at = self.there.size
        for step in range(number):
            if step % REORDERED == 0:
                keys = self.rng.random(self.row.size)
                column = self.column[np.lexsort((keys, self.times, self.row))]
            if at + BATCH > self.there.size:
                left, at = self.rng.permutation(self.there), 0
            chosen = left[at : at + BATCH]
            at += BATCH
            chosen = chosen[column[chosen] >= 0]
            if not chosen.size:
                continue
            sizes = self.place[chosen]
            ends = np.cumsum(sizes)
            row = np.repeat(np.arange(chosen.size), sizes)
            back = ends[row] - np.arange(row.size)  # 1 is the newest
            before = column[chosen[row] - back]
            context = _context(row, before, back - 1.0, sizes, self.n_items)
            known = before >= 0
            yield context, column[chosen], (row[known], before[known])


class _Adam:
    """Adam (Kingma and Ba, ICLR 2015) on arrays that are changed where they are."""

    def __init__(self, values: list[np.ndarray]):
        self.values = values
        self.means = [np.zeros_like(value) for value in values]
        self.squares = [np.zeros_like(value) for value in values]
        self.n_steps = 0

    def step(self, gradients: list[np.ndarray], rate: float) -> None:
        """Go down the gradients."""
        self.n_steps += 1
        of_mean = 1.0 - DECAY_MEAN**self.n_steps
        of_square = 1.0 - DECAY_SQUARE**self.n_steps
        for value, mean, square, gradient in zip(
            self.values, self.means, self.squares, gradients, strict=True
        ):
            mean += (1.0 - DECAY_MEAN) * (gradient - mean)
            square += (1.0 - DECAY_SQUARE) * (gradient * gradient - square)
            value -= rate / of_mean * mean / (np.sqrt(square / of_square) + TINY)
