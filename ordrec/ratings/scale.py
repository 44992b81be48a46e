"""`Scale`: the declared rating values.

A rating is an ordered category. The scale lists all categories, including those that no rating
uses, and travels with the data into every model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, DataError

__all__ = ["Scale"]

MAX_INFERRED_LEVELS = 60
MAX_LEVELS = np.iinfo(np.int16).max  # levels are int16
LARGEST = 1e300  # the sum of two values must not overflow
BLOCK = 1 << 15  # values looked up at a time: small blocks stay in the cache


class Scale:
    """The declared rating values, in ascending order.

    Parameters
    ----------
    values : iterable of float
        The distinct rating values. Rank ``k`` (1..``n_ranks``) is the k-th smallest.

    Examples
    --------
    >>> stars = Scale.regular(0.5, 5.0, 0.5)
    >>> stars.n_ranks
    10
    >>> stars.ranks_of([0.5, 4.0])
    array([1, 8])
    >>> stars.nearest([3.8, 9.0])
    array([4., 5.])
    """

    def __init__(self, values: Iterable[float]):
        try:
            array = np.unique(_as_floats(values))
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                f"a scale is a list of numbers such as [1, 2, 3, 4, 5] ({str(error)[:100]})"
            ) from None
        if array.size < 2 or not (np.abs(array) < LARGEST).all():
            raise ArgumentError(
                f"a scale needs at least two distinct finite values, got {array[:10].tolist()}"
            )
        if array.size > MAX_LEVELS:
            raise ArgumentError(
                f"a scale has at most {MAX_LEVELS} values, got {array.size}: cut them into ranks "
                "with ordrec.datasets.discretise first"
            )
        array.setflags(write=False)
        self.values = array

    @classmethod
    def regular(cls, low: float, high: float, step: float = 1.0) -> Scale:
        """Make the scale with the values ``low, low + step, ..., high``."""
        if not (step > 0 and high > low and (high - low) / step < MAX_LEVELS):
            raise ArgumentError(
                f"need low < high and a step > 0 that makes at most {MAX_LEVELS} values, got "
                f"{low}, {high}, {step}"
            )
        return cls(low + step * np.arange(round((high - low) / step) + 1))

    @classmethod
    def infer(cls, values: np.ndarray) -> Scale:
        """Guess the scale from observed values: a regular grid where they lie on one.

        Unused levels are filled in if all observed values are whole steps apart
        (1, 3, 4, 5 becomes 1..5); otherwise the distinct values are the scale.
        """
        distinct = np.unique(values)
        if distinct.size < 2:
            raise DataError(
                f"cannot infer a scale from the single rating value {distinct.tolist()}: "
                "pass scale=Scale(...)"
            )
        if not (np.abs(distinct) < LARGEST).all():
            raise DataError(
                f"cannot infer a scale from ratings between {distinct[0]:g} and {distinct[-1]:g}: "
                "pass scale=Scale(...)"
            )
        with np.errstate(over="ignore"):  # values that overflow are on no grid
            steps = np.diff(distinct) / np.diff(distinct).min()
        on_grid = steps.max() < MAX_LEVELS and np.allclose(steps, np.round(steps), atol=1e-6)
        n_levels = int(np.round(steps).sum()) + 1 if on_grid else distinct.size
        if n_levels > MAX_INFERRED_LEVELS:
            raise DataError(
                f"the ratings have {distinct.size} distinct values between {distinct[0]:g} and "
                f"{distinct[-1]:g}; declare the scale, or cut them into ranks with "
                "ordrec.datasets.discretise first"
            )
        if not on_grid:
            return cls(distinct)
        grid = distinct[0] + np.diff(distinct).min() * np.arange(n_levels)
        grid[np.round(np.concatenate([[0], np.cumsum(steps)])).astype(int)] = distinct
        return cls(grid)

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return int(self.values.size)

    def ranks_of(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the ranks 1..``n_ranks`` of values that must be on the scale."""
        try:
            array = _as_floats(values)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"ratings must be numbers on the scale {self} ({error})") from None
        levels = self.levels_of(array)
        wrong = np.flatnonzero(levels < 0)
        if wrong.size:
            raise DataError(f"value {array.flat[wrong[0]]:g} is not on the scale {self}")
        return levels.astype(np.int64) + 1

    def values_of(self, ranks: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the rating values of ranks 1..``n_ranks``."""
        message = f"ranks must be whole numbers in 1..{self.n_ranks}"
        try:
            array = np.asarray(ranks)
        except ValueError:  # lists of different lengths
            raise ArgumentError(message) from None
        if not array.size:
            return np.empty(array.shape)
        if array.dtype.kind not in "iu" or array.min() < 1 or array.max() > self.n_ranks:
            raise ArgumentError(message)
        return self.values[array - 1]

    def nearest(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Return the scale value nearest to each number, the lower one in a tie."""
        array = np.asarray(values, dtype=np.float64)
        return self.values[np.searchsorted((self.values[1:] + self.values[:-1]) / 2, array)]

    def levels_of(self, array: np.ndarray) -> np.ndarray:
        """Return the zero-based level of each value, -1 for values that are not on the scale."""
        gap = np.diff(self.values).min()
        cuts = (self.values[1:] + self.values[:-1]) / 2
        levels = np.empty(array.shape, dtype=np.int16)
        for start in range(0, array.size, BLOCK):
            part = array.reshape(-1)[start : start + BLOCK]
            level = np.zeros(part.size, dtype=np.int16)
            for cut in cuts:
                level += part > cut
            off = ~(np.abs(self.values[level] - part) <= 1e-4 * gap)  # also true for NaN
            level[off] = -1
            levels.reshape(-1)[start : start + BLOCK] = level
        return levels

    def __reduce__(self) -> tuple[Any, ...]:
        return Scale, (self.values,)  # so that a copy is read-only too

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scale) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __len__(self) -> int:
        return self.n_ranks

    def __repr__(self) -> str:
        steps = np.diff(self.values)
        if self.n_ranks > 3 and np.allclose(steps, steps[0]):
            return f"Scale({self.values[0]:g}..{self.values[-1]:g} by {steps[0]:g})"
        return f"Scale({', '.join(f'{v:g}' for v in self.values)})"


def _as_floats(values: Any) -> np.ndarray:
    """Convert to floats like numpy, but refuse complex numbers instead of dropping a part."""
    array = values
    if not isinstance(values, np.ndarray):
        array = np.asarray([v.item() if isinstance(v, np.generic) else v for v in values])
    if array.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    return array.astype(np.float64)
