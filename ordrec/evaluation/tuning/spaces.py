"""Which values of a model's parameters are tried: by default, and how they are written."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError

__all__ = ["Between", "Space", "default_space", "drawn"]


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


Space = Mapping[str, Between | Sequence[Any]]

_DAMPINGS = {"user_damping": Between(1, 60, log=True), "item_damping": Between(1, 60, log=True)}
_FACTORS = [16, 32, 64, 128]

# By class. Parameters that cost time or memory and change nothing else are left out, as are those
# that the models choose well themselves.
SPACES: dict[str, Space] = {
    "BiasModel": _DAMPINGS,
    "ItemKNN": _DAMPINGS
    | {"k": Between(5, 200, log=True, whole=True), "shrinkage": Between(1, 1000, log=True),
       "similarity": ["pearson", "cosine"]},
    "OrdinalFactors": {"rank": [4, 8, 12, 16, 24, 32], "pattern": [0, 8, 16, 32, 64],
                       "symmetric": [True, False]},
    "RatingPredictor": {"preset": ["full", "fast", "large"], "learn": ["hold-out", "defaults"],
                        "refit": [True, False]},
    "ProcessPredictor": {"preset": ["full", "fast"], "learn": ["hold-out", "defaults"],
                         "refit": [True, False]},
    "PersonalThresholds": {"threshold_sd": Between(0.05, 1, log=True),
                           "user_sd": Between(0.05, 1, log=True),
                           "item_sd": Between(0.05, 1, log=True)},
    "PerUserPredictor": {"min_ratings": [5, 10, 20, 40], "kernel": ["pearson", "linear", "rbf"]},
    "Recommender": {"taste": Between(0.02, 1, log=True), "n_candidates": [50, 100, 200, 400]},
    "ChoiceMixture": {"mix": Between(0, 1), "als_regularization": Between(0.001, 0.1, log=True),
                      "factors": _FACTORS},
    "EASE": {"user_power": Between(0, 1), "item_power": Between(0, 1)},
    "ImplicitALS": {"factors": _FACTORS, "regularization": Between(0.001, 0.1, log=True),
                    "unseen_weight": Between(0.05, 1, log=True)},
    "ALSRanking": {"factors": _FACTORS, "regularization": Between(0.001, 1, log=True),
                   "alpha": Between(1, 100, log=True)},
}  # fmt: skip


def default_space(model: Any) -> Space:
    """Return the values to try for a model; parameters that differ from their defaults stay.

    Examples
    --------
    >>> from ordrec.recommend import OrdinalFactors
    >>> sorted(default_space(OrdinalFactors(rank=8)))
    ['pattern', 'symmetric']
    """
    name = type(model).__name__
    defaults = inspect.signature(type(model)).parameters
    space = {
        key: values
        for key, values in SPACES.get(name, {}).items()
        if getattr(model, key) == defaults[key].default
    }
    if not space:
        raise ArgumentError(
            f"no parameters of {name} are searched by default: give the values to try with space=",
            parameter="space",
        )
    return space


def drawn(space: Space, rng: np.random.Generator) -> dict[str, Any]:
    """Return one value of each parameter, drawn at random."""
    return {name: _drawn_value(values, rng) for name, values in space.items()}


def _drawn_value(values: Between | Sequence[Any], rng: np.random.Generator) -> Any:
    if not isinstance(values, Between):
        return values[int(rng.integers(len(values)))]
    bounds = np.array([values.low, values.high], dtype=np.float64)
    number = float(np.exp(rng.uniform(*np.log(bounds))) if values.log else rng.uniform(*bounds))
    return round(number) if values.whole else float(f"{number:.4g}")
