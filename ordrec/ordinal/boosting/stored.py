"""An ensemble as a file stores it: one row per member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.ordinal.boosting.ensemble import Ensemble, Member
from ordrec.ordinal.boosting.perceptron import Perceptron, Sigmoid
from ordrec.ordinal.boosting.stump import Stump
from ordrec.storage.schema import Array, Optional, Text, Together

__all__ = ["StoredEnsemble"]

PLANES: dict[str, Any] = {"perceptron": Perceptron, "sigmoid": Sigmoid}


@dataclass(frozen=True)
class StoredEnsemble:
    """Arrays over the members, which are all of one kind: stumps, or planes."""

    stored: ClassVar = {
        "kind": Text("stump", *PLANES),
        "alpha": Array("members"),
        "thresholds": Array("members+1", None),
        "log_losses": Array("members+1"),
        "stumps": Optional(
            Together(
                feature=Array("members", dtype=np.int64, codes="features"),
                cut=Array("members"),
                polarity=Array("members", low=-1.0, high=1.0),
            )
        ),
        "planes": Optional(Together(weights=Array("members", "features"), bias=Array("members"))),
    }

    kind: str
    alpha: np.ndarray
    thresholds: np.ndarray
    log_losses: np.ndarray
    stumps: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    planes: tuple[np.ndarray, np.ndarray] | None

    @classmethod
    def of(cls, ensemble: Ensemble) -> StoredEnsemble:
        """From an ensemble, unless its members are classifiers of scikit-learn."""
        members: list[Any] = ensemble.members
        numbers = ensemble.alpha, ensemble.thresholds, ensemble.log_losses
        if all(type(member) is Stump for member in members):
            feature = np.array([member.feature for member in members], dtype=np.int64)
            cut = np.array([member.cut for member in members], dtype=np.float64)
            polarity = np.array([member.polarity for member in members], dtype=np.float64)
            return cls("stump", *numbers, (feature, cut, polarity), None)
        for kind, plane in PLANES.items():
            if all(type(member) is plane for member in members):
                weights = np.stack([member.weights for member in members])
                bias = np.array([member.bias for member in members], dtype=np.float64)
                return cls(kind, *numbers, None, (weights, bias))
        raise ArgumentError(
            "an ensemble of scikit-learn's classifiers cannot be saved: use base "
            '"sigmoid", "perceptron" or "stump"'
        )

    def check_stored(self) -> None:
        """Check that the members are of their kind."""
        if (self.stumps is None) == (self.planes is None) or (
            (self.kind == "stump") != (self.stumps is not None)
        ):
            raise ModelFileError(f"the members of the ensemble are not of the kind {self.kind!r}")

    def restored(self, model: Any) -> Ensemble:
        """The ensemble."""
        members: list[Member]
        if self.stumps is not None:
            columns = [column.tolist() for column in self.stumps]
            members = [Stump(*each) for each in zip(*columns, strict=True)]
        else:
            assert self.planes is not None
            weights, bias = self.planes
            plane = PLANES[self.kind]
            members = [plane(w, b) for w, b in zip(weights, bias.tolist(), strict=True)]
        return Ensemble(members, self.alpha, self.thresholds, self.log_losses)
