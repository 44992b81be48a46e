"""Choose among models on the training part alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from ordrec.errors import ArgumentError
from ordrec.evaluation.metrics.measures import as_losses
from ordrec.evaluation.problems.base import Problem

__all__ = ["Candidates"]


@dataclass(frozen=True)
class Candidates:
    """Several models of which an experiment takes the best by inner cross-validation.

    Parameters
    ----------
    models : mapping of str to model
    metric : str
        The metric whose mean over the inner folds decides; the first of equal candidates wins.
    n_folds : int
        Number of inner folds.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> Candidates.grid(Ridge(), {"alpha": [0.1, 1.0]}, "mae").models["alpha=0.1"]
    Ridge(alpha=0.1)
    """

    models: Mapping[str, Any]
    metric: str
    n_folds: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.models, Mapping):
            raise ArgumentError(
                f"models must be a mapping of names to models, got {type(self.models).__name__}: "
                "Candidates.grid makes one from a model and its parameters"
            )
        if not self.models:
            raise ArgumentError("candidates must hold at least one model")

    @classmethod
    def grid(
        cls, model: Any, parameters: Mapping[str, Sequence[Any]], metric: str, n_folds: int = 5
    ) -> Candidates:
        """Return one candidate per combination of parameters of an estimator or rating model."""
        models = {}
        for chosen in ParameterGrid(dict(parameters)):
            name = ", ".join(f"{key}={value}" for key, value in chosen.items())
            models[name] = clone(model).set_params(**chosen)
        return cls(models, metric, n_folds)

    def choose(self, training: Problem, seed: int) -> str:
        """Return the name of the best candidate on a problem made of training data."""
        means = []
        for name, model in self.models.items():
            values = [
                row["value"]
                for fold in training.folds
                for row in training.measure(model, fold, [self.metric], seed)[:1]
            ]
            if len(values) < len(training.folds):
                raise ArgumentError(f"{name} cannot be measured by {self.metric}")
            means.append(float(as_losses(self.metric, np.mean(values))))
        return list(self.models)[int(np.nanargmin(means))]
