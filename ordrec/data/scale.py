"""`Scale`: the declared rating values.

A rating is an ordered category. The scale lists all categories, including those that no rating
uses, and travels with the data into every model. Where ratings have more values than a model can
tell apart, the categories are bins of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ordrec.data.scale_rules import (
    FINE,
    MAX_LEVELS,
    MOST_BINS,
    bin_starts,
    cut_between,
    grid_positions,
    stray_value,
)
from ordrec.errors import ArgumentError, DataError

__all__ = ["Scale", "refuse_stray", "shown_values"]

LARGEST = 1e50  # models sum squares and fourth powers, which must not overflow, nor vanish
LIKED_SHARE = 0.8  # of the ranks: 4 of 5 and 8 of 10 are the first that are liked
PICK_ENDS = (0.0, 0.5, 1e49)  # of the bins "not picked" and "picked", however often
BLOCK = 1 << 15  # values looked up at a time: small blocks stay in the cache


class Scale:
    """The declared rating values, in ascending order.

    Parameters
    ----------
    values : iterable of float
        The distinct rating values. Rank ``k`` (1..``n_ranks``) is the k-th smallest.
    edges : iterable of float, optional
        For a scale of bins, see `Scale.binned`: the ``n_ranks + 1`` ends of the bins, whose values
        are the mean ratings in them. A rating that equals an end belongs to the bin below.
    most_bins : int, optional
        The number of bins at most, where they were cut by the numbers of ratings: a training part
        then has bins of its own (`learnt_from`).

    Attributes
    ----------
    values : ndarray
    edges : ndarray or None
    most_bins : int or None

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

    def __init__(
        self,
        values: Iterable[float],
        edges: Iterable[float] | None = None,
        most_bins: int | None = None,
    ):
        try:
            array = np.unique(_as_floats(values))
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(
                f"a scale is a list of numbers such as [1, 2, 3, 4, 5] ({str(error)[:100]})"
            ) from None
        if array.size < 2 or not np.isfinite(array).all():
            raise ArgumentError(
                f"a scale needs at least two distinct finite values, got {array[:10].tolist()}"
            )
        _check_size(array)
        if array.size > MAX_LEVELS:
            raise ArgumentError(
                f"a scale has at most {MAX_LEVELS} values, got {array.size}: put them into bins "
                "with Scale.binned"
            )
        array.setflags(write=False)
        self.values = array
        self.edges = None if edges is None else _checked_edges(edges, array)
        close = np.flatnonzero(~((array[:-1] <= self.cuts) & (self.cuts < array[1:])))
        if close.size:
            raise ArgumentError(
                f"{array[close[0]]!r} and {array[close[0] + 1]!r} are so close that no number lies "
                "between them: leave one of them out"
            )
        self.most_bins = None if most_bins is None else int(most_bins)

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
        (1, 3, 4, 5 becomes 1..5); otherwise the distinct values are the scale. Ratings that would
        have more than 60 levels are put into bins, see `Scale.binned`.

        Raises
        ------
        DataError
            For a single value, and for a rating that cannot belong to the scale of all others: a
            55 among 1..5.
        """
        distinct, counts = np.unique(values, return_counts=True)
        refuse_stray(distinct, counts, lambda value: f"row {int(np.argmax(values == value))}")
        return cls.of_counts(distinct, counts)

    @classmethod
    def of_counts(cls, distinct: np.ndarray, counts: np.ndarray) -> Scale:
        """Guess the scale as `infer` does, from ascending values and how often each occurs."""
        if distinct.size < 2:
            raise DataError(
                f"cannot infer a scale from the single rating value {distinct.tolist()}: "
                "pass scale=Scale(...)",
                parameter="scale",
            )
        _check_size(distinct)
        positions = grid_positions(distinct)
        n_levels = distinct.size if positions is None else int(positions[-1]) + 1
        if n_levels > FINE:
            return cls._of_bins(distinct, counts, MOST_BINS, distinct[0], distinct[-1])
        if positions is None:
            return cls(distinct)
        grid = distinct[0] + np.diff(distinct).min() * np.arange(n_levels)
        grid[positions] = distinct
        return cls(grid)

    @classmethod
    def binned(
        cls,
        ratings: Any,
        bins: int | Iterable[float] = MOST_BINS,
        *,
        low: float | None = None,
        high: float | None = None,
    ) -> Scale:
        """Make a scale of bins for ratings of many values, such as 0..100 or real numbers.

        Models work on the bins. The value of a bin is the mean of the ratings in it, so that
        predictions are in the units of the ratings.

        Parameters
        ----------
        ratings : array-like of float
            The ratings, by which the bins are chosen.
        bins : int or iterable of float
            How many bins at most, of about equally many ratings each; a value that is given often
            has its own. Or the cut points between the bins; a rating that equals one belongs to
            the bin below.
        low, high : float, optional
            The lowest and the highest possible rating, where they are not among ``ratings``.

        Notes
        -----
        Ten bins were chosen on the training part of Yahoo Music (4,802 ratings, 69 values between 1
        and 100; a tenth held out, three times), by the RMSE and the logarithmic loss of the ratings
        themselves (that of the bin, and of the rating's share in it):

        ==========================  ========================  ==================
        bins                        RatingPredictor ("fast")  OrdinalFactors
        ==========================  ========================  ==================
        6                           19.64, 1.673              19.57, 1.677
        10                          19.69, 1.640              20.10, 1.683
        20 at most (16 were made)   19.70, 1.645              20.87, 1.928
        10 of equal length          19.73, 1.700              19.97, 1.801
        10 of least squared error   19.73, 1.699              20.04, 1.792
        ==========================  ========================  ==================

        `BiasModel`, which does not use the bins, has 20.11. A model that is worse with more bins
        than with fewer, as `OrdinalFactors` is here, can be given six: ``bins=6``.

        Examples
        --------
        >>> scale = Scale.binned([0, 50, 50, 50, 61, 64, 70, 98, 99, 100], bins=4)
        >>> scale.values.tolist()
        [0.0, 50.0, 65.0, 99.0]
        >>> scale.ranks_of([20, 50, 51, 100])
        array([1, 2, 2, 4])
        >>> Scale.binned([0, 10, 20, 80, 100], bins=[50])
        Scale(2 bins of 0..100: 10, 90)
        """
        try:
            array = _as_floats(ratings)
        except (TypeError, ValueError, OverflowError) as error:
            raise ArgumentError(f"ratings must be numbers ({str(error)[:100]})") from None
        distinct, counts = np.unique(array, return_counts=True)
        if distinct.size < 2 or not np.isfinite(distinct).all():
            raise ArgumentError(
                f"bins need at least two distinct finite ratings, got {distinct[:10].tolist()}"
            )
        _check_size(distinct)
        ends = distinct[0] if low is None else low, distinct[-1] if high is None else high
        if not (ends[0] <= distinct[0] and distinct[-1] <= ends[1]):
            raise ArgumentError(
                f"low={low}, high={high}: the ratings are between {distinct[0]:g} and "
                f"{distinct[-1]:g}: give ends that hold all of them"
            )
        if isinstance(bins, (int, np.integer)):
            if not 2 <= bins <= MAX_LEVELS:
                raise ArgumentError(f"bins must be 2..{MAX_LEVELS}, got {bins}")
            return cls._of_bins(distinct, counts, int(bins), *ends)
        cuts = np.unique(_as_floats(bins))
        level = np.searchsorted(cuts, distinct)
        if np.unique(level).size < cuts.size + 1:
            raise ArgumentError(
                f"bins={shown_values(cuts)}: every bin must have a rating; they are between "
                f"{distinct[0]:g} and {distinct[-1]:g}: give fewer cut points"
            )
        return cls(_means(distinct, counts, level), [ends[0], *cuts, ends[1]])

    @classmethod
    def _of_bins(
        cls, distinct: np.ndarray, counts: np.ndarray, most: int, low: float, high: float
    ) -> Scale:
        starts = bin_starts(counts, most)
        level = np.zeros(distinct.size, dtype=np.int64)
        level[starts[1:]] = 1
        cuts = cut_between(distinct[starts[1:] - 1], distinct[starts[1:]])
        return cls(_means(distinct, counts, np.cumsum(level)), [low, *cuts, high], most)

    @classmethod
    def of_picks(cls) -> Scale:
        """Make the scale of a table without ratings: not picked (0), and picked (1 or more times).

        Values are the numbers of times that a user picked an item, all of which are on one level.

        Examples
        --------
        >>> Scale.of_picks().ranks_of([1, 12])
        array([2, 2])
        """
        return cls([0.0, 1.0], PICK_ENDS)

    @property
    def only_picks(self) -> bool:
        """Whether this is the scale of a table without ratings, see `of_picks`."""
        return self.edges is not None and tuple(self.edges.tolist()) == PICK_ENDS

    def in_bins(self, distinct: np.ndarray, counts: np.ndarray) -> Scale:
        """Return bins for ratings on this scale, of which its ends are the possible ones.

        Parameters
        ----------
        distinct, counts : arrays
            The different ratings, in ascending order, and how often each is given.
        """
        if not self.is_fine or distinct.size < 2:
            return self
        return self._of_bins(distinct, counts, MOST_BINS, self.low, self.high)

    def learnt_from(self, values: np.ndarray) -> Scale:
        """Return bins that were cut from these ratings alone; a scale without bins itself.

        Bins whose cut points were declared stay, with the means of these ratings; an empty one
        keeps its value. A scale of picks is not learnt.

        Examples
        --------
        >>> scale = Scale.binned([0, 1, 2, 40, 50, 60, 98, 99, 100], bins=3)
        >>> scale.learnt_from(np.array([0, 1, 2, 40, 50])).values.tolist()
        [0.0, 1.5, 45.0]
        """
        if self.edges is None or self.only_picks or not values.size:
            return self
        distinct, counts = np.unique(values, return_counts=True)
        if self.most_bins is not None and distinct.size > 1:
            return self._of_bins(distinct, counts, self.most_bins, self.low, self.high)
        levels = self.levels_of(values)
        given = np.bincount(levels, minlength=self.n_ranks) > 0
        means = self.values.copy()
        means[given] = _means(values, np.ones(values.size), levels, self.n_ranks)[given]
        return Scale(means, self.edges, self.most_bins)

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return int(self.values.size)

    @property
    def is_fine(self) -> bool:
        """Whether the scale has so many values (more than 60) that models need bins of them."""
        return self.edges is None and self.n_ranks > FINE

    @property
    def low(self) -> float:
        """The lowest possible rating."""
        return float(self.values[0] if self.edges is None else self.edges[0])

    @property
    def high(self) -> float:
        """The highest possible rating."""
        return float(self.values[-1] if self.edges is None else self.edges[-1])

    @property
    def liked_from(self) -> float:
        """The lowest rating that counts as liked: four fifths up the scale, such as 4 of 5 stars.

        Where the scale is made of bins, whole bins are liked: this is the lower end of one.

        Examples
        --------
        >>> Scale.regular(1, 5).liked_from, Scale.regular(0.5, 5, 0.5).liked_from
        (4.0, 4.0)
        """
        level = int(np.ceil(LIKED_SHARE * self.n_ranks)) - 1
        return float(self.values[level] if self.edges is None else self.edges[level])

    @property
    def cuts(self) -> np.ndarray:
        """The numbers between neighbouring ranks; one that equals a cut belongs below."""
        if self.edges is not None:
            return self.edges[1:-1]
        return (self.values[1:] + self.values[:-1]) / 2

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
        """Return the scale value nearest to each number, the lower one in a tie.

        For a scale of bins this is the value of the bin that the number falls into.
        """
        array = np.asarray(values, dtype=np.float64)
        return self.values[np.searchsorted(self.cuts, array)]

    def levels_of(self, array: np.ndarray) -> np.ndarray:
        """Return the zero-based level of each value, -1 for values that are not on the scale."""
        gap, cuts = np.diff(self.values).min(), self.cuts
        slack = 1e-9 * (self.high - self.low)
        levels = np.empty(array.shape, dtype=np.int16)
        for start in range(0, array.size, BLOCK):
            part = array.reshape(-1)[start : start + BLOCK]
            level = np.zeros(part.size, dtype=np.int16)
            for cut in cuts:
                level += part > cut
            if self.edges is None:
                on = np.abs(self.values[level] - part) <= 1e-4 * gap
            else:
                on = (part >= self.low - slack) & (part <= self.high + slack)
            level[~on] = -1  # also NaN
            levels.reshape(-1)[start : start + BLOCK] = level
        return levels

    def to_json(self) -> Any:
        """Return the scale as it is written to files: its values, with the edges of bins."""
        values = self.values.tolist()
        if self.edges is None:
            return values
        return {"values": values, "edges": self.edges.tolist()} | (
            {} if self.most_bins is None else {"most_bins": self.most_bins}
        )

    @classmethod
    def from_json(cls, stored: Any) -> Scale:
        """Make the scale that `to_json` wrote."""
        if not isinstance(stored, dict):
            return cls([float(value) for value in stored])
        values, edges = ([float(value) for value in stored[name]] for name in ("values", "edges"))
        most = stored.get("most_bins")
        if most is not None and not (isinstance(most, int) and 2 <= most <= MAX_LEVELS):
            raise ArgumentError(f"most_bins must be 2..{MAX_LEVELS}, got {most!r}")
        return cls(values, edges, most)

    def __reduce__(self) -> tuple[Any, ...]:
        return Scale, (self.values, self.edges, self.most_bins)  # so that a copy is read-only too

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scale) or not np.array_equal(self.values, other.values):
            return False
        if self.edges is None or other.edges is None:
            return self.edges is other.edges
        return np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __len__(self) -> int:
        return self.n_ranks

    def __repr__(self) -> str:
        if self.only_picks:
            return "Scale(picked or not)"
        if self.edges is not None:
            ends = f"{self.low:g}..{self.high:g}"
            return f"Scale({self.n_ranks} bins of {ends}: {shown_values(self.values)})"
        steps = np.diff(self.values)
        if self.n_ranks > 3 and np.allclose(steps, steps[0]):
            return f"Scale({self.values[0]:g}..{self.values[-1]:g} by {steps[0]:g})"
        return f"Scale({', '.join(f'{v:g}' for v in self.values)})"


def refuse_stray(
    distinct: np.ndarray, counts: np.ndarray, place_of: Callable[[float], str]
) -> None:
    """Raise an error if a rating cannot be on the scale of all others, such as 55 among 1..5.

    Parameters
    ----------
    distinct, counts : arrays
        The different ratings, in ascending order, and how often each is given.
    place_of : callable
        Where a rating was first read.
    """
    stray = stray_value(distinct, counts)
    if stray is not None:
        raise DataError(
            f"{place_of(stray)}: rating {stray:g} is unlike the others, which are "
            f"{shown_values(distinct[distinct != stray])}: correct it, or declare the scale with "
            "scale= if it is right",
            parameter="scale",
        )


def shown_values(values: np.ndarray) -> str:
    """Return values as messages show them: all of them if they are few."""
    texts = [f"{value:.4g}" for value in values]
    return ", ".join(texts if len(texts) <= 15 else [*texts[:3], "...", *texts[-3:]])


def _means(
    values: np.ndarray, weights: np.ndarray, levels: np.ndarray, n_levels: int = 0
) -> np.ndarray:
    """Mean of the values of each level, which rounding must not move out of their range."""
    n_levels = max(n_levels, int(levels.max()) + 1)
    lowest, highest = np.full(n_levels, np.inf), np.full(n_levels, -np.inf)
    np.minimum.at(lowest, levels, values)
    np.maximum.at(highest, levels, values)
    sums = np.bincount(levels, weights * values, n_levels)
    counts = np.bincount(levels, weights, n_levels)
    means = np.divide(sums, counts, out=np.zeros(n_levels), where=counts > 0)
    return np.where(counts > 0, np.clip(means, lowest, highest), np.nan)


def _check_size(values: np.ndarray) -> None:
    """Refuse ratings with which nobody can calculate."""
    largest = float(np.abs(values).max())
    if not 1 / LARGEST < largest < LARGEST:
        wrong, remedy = ("large", "divide") if largest > 1 else ("small", "multiply")
        raise DataError(
            f"ratings between {values[0]:g} and {values[-1]:g} are too {wrong} to calculate with: "
            f"{remedy} all of them by a number"
        )


def _checked_edges(edges: Iterable[float], values: np.ndarray) -> np.ndarray:
    """The edges of bins, which must have the values inside them."""
    array = _as_floats(edges)
    inside = array.shape == (values.size + 1,) and (np.abs(array) < LARGEST).all()
    if inside:
        cuts = array[1:-1]
        inside = array[0] <= values[0] and values[-1] <= array[-1]
        inside = inside and (values[:-1] <= cuts).all() and (cuts < values[1:]).all()
    if not inside:
        raise ArgumentError(
            f"edges must be {values.size + 1} ascending numbers with one value between every two, "
            f"got {array[:10].tolist()}"
        )
    array.setflags(write=False)
    return array


def _as_floats(values: Any) -> np.ndarray:
    """Convert to floats like numpy, but refuse complex numbers instead of dropping a part."""
    array = values
    if not isinstance(values, np.ndarray):
        array = np.asarray([v.item() if isinstance(v, np.generic) else v for v in values])
    if array.dtype.kind == "c":
        raise TypeError("complex numbers have no order")
    return array.astype(np.float64)
