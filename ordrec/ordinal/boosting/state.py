"""An ensemble as arrays: one row per member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.ordinal.boosting.ensemble import Ensemble, Member
from ordrec.ordinal.boosting.perceptron import Perceptron, Sigmoid
from ordrec.ordinal.boosting.stump import Stump
from ordrec.storage import take

__all__ = ["ensemble_of", "ensemble_to_arrays"]

PLANES: dict[str, Any] = {"perceptron": Perceptron, "sigmoid": Sigmoid}


def ensemble_to_arrays(ensemble: Ensemble) -> tuple[dict[str, np.ndarray], str]:
    """Return the arrays of an ensemble, and the kind of its members."""
    arrays = {
        "alpha": ensemble.alpha,
        "path": ensemble.thresholds,
        "log_losses": ensemble.log_losses,
    }
    members: list[Any] = ensemble.members
    if all(type(member) is Stump for member in members):
        return arrays | {
            "member.feature": np.array([member.feature for member in members], dtype=np.int64),
            "member.cut": np.array([member.cut for member in members], dtype=np.float64),
            "member.polarity": np.array([member.polarity for member in members], dtype=np.float64),
        }, "stump"
    for kind, plane in PLANES.items():
        if all(type(member) is plane for member in members):
            return arrays | {
                "member.weights": np.stack([member.weights for member in members]),
                "member.bias": np.array([member.bias for member in members], dtype=np.float64),
            }, kind
    raise ArgumentError(
        "an ensemble of scikit-learn's classifiers cannot be saved: use base "
        '"sigmoid", "perceptron" or "stump"'
    )


def ensemble_of(
    arrays: Mapping[str, np.ndarray], kind: Any, n_features: int, n_thresholds: int
) -> Ensemble:
    """Return the ensemble of a file."""
    alpha = take(arrays, "alpha", np.float64, (None,))
    n = alpha.size
    members: list[Member]
    if kind == "stump":
        feature = take(arrays, "member.feature", np.int64, (n,), low=0, high=n_features - 1)
        cut = take(arrays, "member.cut", np.float64, (n,))
        polarity = take(arrays, "member.polarity", np.float64, (n,), low=-1.0, high=1.0)
        members = [
            Stump(*each)
            for each in zip(feature.tolist(), cut.tolist(), polarity.tolist(), strict=True)
        ]
    elif kind in PLANES:
        weights = take(arrays, "member.weights", np.float64, (n, n_features))
        bias = take(arrays, "member.bias", np.float64, (n,))
        members = [PLANES[kind](w, b) for w, b in zip(weights, bias.tolist(), strict=True)]
    else:
        raise ModelFileError(f"{str(kind)[:50]!r} is not a kind of members")
    path = take(arrays, "path", np.float64, (n + 1, n_thresholds))
    return Ensemble(members, alpha, path, take(arrays, "log_losses", np.float64, (n + 1,)))
