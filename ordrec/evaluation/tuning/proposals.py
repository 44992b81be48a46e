"""Which setting of the parameters is tried next: all of a grid, random ones, or Optuna's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Protocol

from sklearn.model_selection import ParameterGrid, ParameterSampler

from ordrec.errors import ArgumentError
from ordrec.evaluation.tuning.spaces import Between, Space

__all__ = ["METHODS", "Proposals", "proposals_for"]

METHODS = ("auto", "grid", "random", "optuna")
DRAWS_PER_TRIAL = 100  # of random settings, as some may have been tried before


class Proposals(Protocol):
    """Proposes settings, one after the other, and learns how good they are."""

    name: str

    def next(self) -> dict[str, Any] | None:
        """Return a setting, which may have been proposed before; None if there are no more."""
        ...

    def tell(self, loss: float) -> None:
        """Take in the loss of the last proposal, infinite if it failed or was tried before."""
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
    if method == "grid" and ranges:
        raise ArgumentError(f"a grid needs lists of values: {ranges[0]} is a range")
    size = math.inf if ranges else len(ParameterGrid(dict(space)))
    if method == "grid" or (method == "auto" and size <= n_trials):
        return _Listed("grid", ParameterGrid(dict(space)))
    if method == "random" or (method == "auto" and not _has_optuna()):
        n_draws = int(min(size, DRAWS_PER_TRIAL * n_trials))
        return _Listed("random", ParameterSampler(dict(space), n_draws, random_state=seed))
    return _Optuna(space, seed)


class _Listed:
    """The settings of a grid, or scikit-learn's random ones: what is proposed is settled."""

    def __init__(self, name: str, settings: Iterable[dict[str, Any]]):
        self.name, self._rest = name, iter(settings)

    def next(self) -> dict[str, Any] | None:
        return next(self._rest, None)

    def tell(self, loss: float) -> None:
        """Nothing is learnt."""


class _Optuna:
    """Optuna's tree-structured Parzen estimator."""

    name = "optuna"

    def __init__(self, space: Space, seed: int):
        optuna = _optuna()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._space = space
        self._distributions = {name: _distribution(values) for name, values in space.items()}
        self._study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))

    def next(self) -> dict[str, Any] | None:
        self._trial = self._study.ask(self._distributions)
        return {
            name: values.rounded(self._trial.params[name])
            if isinstance(values, Between)
            else values[self._trial.params[name]]
            for name, values in self._space.items()
        }

    def tell(self, loss: float) -> None:
        if math.isfinite(loss):
            self._study.tell(self._trial, loss)
        else:
            self._study.tell(self._trial, state=_optuna().trial.TrialState.FAIL)


def _distribution(values: Any) -> Any:
    """How Optuna calls these values; those of a list by their position, as they may be anything."""
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
