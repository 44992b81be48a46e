"""Which setting of the parameters is tried next: all of a grid, random ones, or Optuna's."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.evaluation.tuning.spaces import Between, Space, drawn

__all__ = ["METHODS", "Proposals", "proposals_for"]

METHODS = ("auto", "grid", "random", "optuna")
REDRAWS = 100  # of settings that were tried before, until a space counts as exhausted


class Proposals(Protocol):
    """Proposes settings, one after the other, and is told how good they are."""

    name: str

    def next(self) -> dict[str, Any] | None:
        """Return a setting that was not tried before; None if there is none."""
        ...

    def tell(self, setting: dict[str, Any], loss: float) -> None:
        """Take in the loss of a setting, which is infinite if it failed."""
        ...


def proposals_for(space: Space, method: str, n_trials: int, seed: int) -> Proposals:
    """Return the proposals of a method.

    Parameters
    ----------
    space : mapping
    method : {"auto", "grid", "random", "optuna"}
        "auto" is a grid if all of it can be tried, else Optuna if installed, else random.
    n_trials : int
    seed : int
    """
    if method not in METHODS:
        raise ArgumentError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    for name, values in space.items():
        if not isinstance(values, Between) and (isinstance(values, str) or not len(values)):
            raise ArgumentError(f"space: {name} must be a Between or a list of values")
    ranges = [name for name, values in space.items() if isinstance(values, Between)]
    lengths = [len(values) for values in space.values() if not isinstance(values, Between)]
    size = math.inf if ranges else math.prod(lengths)
    if method == "grid" and ranges:
        raise ArgumentError(f"a grid needs lists of values: {ranges[0]} is a range")
    if method == "grid" or (method == "auto" and size <= n_trials):
        return _Grid(space)
    if method == "random" or (method == "auto" and not _has_optuna()):
        return _Random(space, seed)
    return _Optuna(space, seed)


class _Grid:
    name = "grid"

    def __init__(self, space: Space):
        combinations = itertools.product(*space.values())  # type: ignore[arg-type]
        self._rest: Iterator[tuple[Any, ...]] = combinations
        self._names = list(space)

    def next(self) -> dict[str, Any] | None:
        values = next(self._rest, None)
        return None if values is None else dict(zip(self._names, values, strict=True))

    def tell(self, setting: dict[str, Any], loss: float) -> None:
        """Nothing: a grid is tried as it is."""


class _Random:
    name = "random"

    def __init__(self, space: Space, seed: int):
        self._space, self._rng = space, np.random.default_rng(seed)
        self._tried: list[dict[str, Any]] = []

    def next(self) -> dict[str, Any] | None:
        for _ in range(REDRAWS):
            setting = drawn(self._space, self._rng)
            if setting not in self._tried:
                return setting
        return None

    def tell(self, setting: dict[str, Any], loss: float) -> None:
        self._tried.append(setting)


class _Optuna:
    """Optuna's tree-structured Parzen estimator."""

    name = "optuna"

    def __init__(self, space: Space, seed: int):
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space, self._tried = space, []  # type: ignore[var-annotated]
        self._distributions = {name: _distribution(values) for name, values in space.items()}
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        self._open: dict[int, Any] = {}

    def next(self) -> dict[str, Any] | None:
        for _ in range(REDRAWS):
            trial = self._study.ask(self._distributions)
            setting = {
                name: _value(values, trial.params[name]) for name, values in self._space.items()
            }
            if setting not in self._tried:
                self._open = {id(setting): trial}
                return setting
            self._study.tell(trial, state=_optuna().trial.TrialState.FAIL)
        return None

    def tell(self, setting: dict[str, Any], loss: float) -> None:
        self._tried.append(setting)
        trial = self._open.pop(id(setting), None)
        if trial is None:  # the defaults, which nobody proposed
            self._add(setting, loss)
            return
        if math.isfinite(loss):
            self._study.tell(trial, loss)
        else:
            self._study.tell(trial, state=_optuna().trial.TrialState.FAIL)

    def _add(self, setting: dict[str, Any], loss: float) -> None:
        """Let Optuna know of a setting that it did not propose, if it could have."""
        known = {}
        for name, values in self._space.items():
            if not isinstance(values, Between):
                known[name] = list(values).index(setting[name]) if setting[name] in values else None
            elif isinstance(setting[name], (int, float)):
                known[name] = setting[name] if values.low <= setting[name] <= values.high else None
            if known.get(name) is None:
                return
        trial = _optuna().trial.create_trial(
            params=known, distributions=self._distributions, value=loss
        )
        self._study.add_trial(trial)


def _value(values: Any, chosen: Any) -> Any:
    """The value that Optuna means, with as many digits as matter."""
    if not isinstance(values, Between):
        return values[chosen]
    return chosen if values.whole else float(f"{chosen:.4g}")


def _distribution(values: Any) -> Any:
    """How Optuna calls these values; others than numbers by their position in the list."""
    distributions = _optuna().distributions
    if not isinstance(values, Between):
        return distributions.CategoricalDistribution(list(range(len(values))))
    if values.whole:
        low, high = round(values.low), round(values.high)
        return distributions.IntDistribution(low, high, log=values.log)
    return distributions.FloatDistribution(values.low, values.high, log=values.log)


def _has_optuna() -> bool:
    from importlib.util import find_spec

    return find_spec("optuna") is not None


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ArgumentError(
            "optuna is not installed: pip install 'ordrec[tune]', or choose method random"
        ) from None
    return optuna
