"""Which values of a model's parameters are tried: by default, and how they are written."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["Between", "Space", "default_space"]


@dataclass(frozen=True)
class Between:
    """All numbers between two bounds.

    Parameters
    ----------
    low, high : float
    log : bool
        Whether numbers are drawn evenly on a logarithmic scale.
    whole : bool
        Whether only whole numbers are meant.

    Examples
    --------
    >>> Between(1, 100, log=True)
    Between(low=1, high=100, log=True, whole=False)
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if not -np.inf < self.low < self.high < np.inf or (self.log and self.low <= 0):
            raise ArgumentError(
                f"a range goes from a number to a higher one, both above 0 if it is logarithmic, "
                f"got {self.low} and {self.high}"
            )

    def rvs(self, random_state: np.random.RandomState) -> Any:
        """Return a number drawn at random, as distributions of scipy do."""
        bounds = np.array([self.low, self.high], dtype=np.float64)
        if self.log:
            return self.rounded(float(np.exp(random_state.uniform(*np.log(bounds)))))
        return self.rounded(random_state.uniform(*bounds))

    def rounded(self, number: float) -> Any:
        """Return a number with as many digits as matter."""
        return round(number) if self.whole else float(f"{number:.4g}")


Space = Mapping[str, Between | Sequence[Any]]


def default_space(model: Any) -> Space:
    """Return the values to try for a model; parameters that differ from their defaults stay.

    A class declares them as ``search_space``: a dict of parameters, with lists of values, or
    ranges ``(low, high)`` and ``(low, high, "log")``.

    Examples
    --------
    >>> from ordrec.recommend import OrdinalFactors
    >>> sorted(default_space(OrdinalFactors(n_factors=8)))
    ['pattern', 'symmetric']
    """
    name = type(model).__name__
    defaults = inspect.signature(type(model)).parameters
    declared = getattr(type(model), "search_space", {})
    space = {
        key: _as_range(values, defaults[key].default)
        for key, values in declared.items()
        if getattr(model, key) == defaults[key].default
    }
    if not space:
        raise ArgumentError(
            f"no parameters of {name} are searched by default: give the values to try with space=",
            parameter="space",
        )
    return space


def _as_range(values: Any, default: Any) -> Between | Sequence[Any]:
    """Return the range that a class declares as (low, high) or (low, high, "log"), or a list."""
    if not isinstance(values, tuple):
        return values
    low, high, *log = values
    whole = all(isinstance(number, int) for number in (low, high, default))
    return Between(low, high, log=log == ["log"], whole=whole)
