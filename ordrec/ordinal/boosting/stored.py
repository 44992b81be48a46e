"""An ensemble as a file stores it: one row per member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.ordinal.boosting.ensemble import Ensemble, Member
from ordrec.ordinal.boosting.perceptron import Perceptron, Sigmoid
from ordrec.ordinal.boosting.stump import Stump
from ordrec.ordinal.boosting.tree import LEAF, Tree
from ordrec.storage.schema import Array, Optional, Text, Together

__all__ = ["StoredEnsemble"]

NODES = ("feature", "cut", "left", "right", "value")
PLANES: dict[str, Any] = {"perceptron": Perceptron, "sigmoid": Sigmoid}


@dataclass(frozen=True)
class StoredEnsemble:
    """Arrays over the members, which are all of one kind: stumps, planes, or trees."""

    stored: ClassVar = {
        "kind": Text("stump", "tree", *PLANES),
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
        "trees": Optional(
            Together(
                size=Array("members", dtype=np.int64, low=1),
                feature=Array("nodes", dtype=np.int64, codes="features"),
                cut=Array("nodes"),
                left=Array("nodes", dtype=np.int64, low=LEAF),
                right=Array("nodes", dtype=np.int64, low=LEAF),
                value=Array("nodes", low=-1.0, high=1.0),
            )
        ),
    }

    kind: str
    alpha: np.ndarray
    thresholds: np.ndarray
    log_losses: np.ndarray
    stumps: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    planes: tuple[np.ndarray, np.ndarray] | None
    trees: tuple[np.ndarray, ...] | None = None

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
        if all(type(member) is Tree for member in members):
            size = np.array([member.value.size for member in members], dtype=np.int64)
            nodes = [
                np.concatenate([getattr(member, name) for member in members]) for name in NODES
            ]
            return cls("tree", *numbers, None, None, (size, *nodes))
        for kind, plane in PLANES.items():
            if all(type(member) is plane for member in members):
                weights = np.stack([member.weights for member in members])
                bias = np.array([member.bias for member in members], dtype=np.float64)
                return cls(kind, *numbers, None, (weights, bias))
        raise ArgumentError(
            "an ensemble of scikit-learn's classifiers cannot be saved: use base "
            '"sigmoid", "perceptron", "stump" or "tree"'
        )

    def check_stored(self) -> None:
        """Check that the members are of their kind."""
        parts = {"stump": self.stumps, "tree": self.trees}
        held = [part is not None for part in (self.stumps, self.planes, self.trees)]
        if sum(held) != 1 or parts.get(self.kind, self.planes) is None:
            raise ModelFileError(f"the members of the ensemble are not of the kind {self.kind!r}")
        if self.trees is not None:
            self._check_trees(*self.trees)

    @staticmethod
    def _check_trees(size: np.ndarray, *nodes: np.ndarray) -> None:
        """Check that every walk from a root ends at a leaf of the same tree."""
        if int(size.sum()) != nodes[0].size:
            raise ModelFileError("the trees have other nodes than their sizes say")
        left, right = nodes[2], nodes[3]
        place = np.arange(left.size) - np.repeat(np.cumsum(size) - size, size)
        last = np.repeat(size, size)
        leaf = left == LEAF
        ahead = (left > place) & (right > place) & (left < last) & (right < last)
        if not np.where(leaf, right == LEAF, ahead).all():
            raise ModelFileError("the nodes of a tree do not lead to its leaves")

    def restored(self, model: Any) -> Ensemble:
        """The ensemble."""
        members: list[Member]
        if self.stumps is not None:
            columns = [column.tolist() for column in self.stumps]
            members = [Stump(*each) for each in zip(*columns, strict=True)]
        elif self.trees is not None:
            size, *nodes = self.trees
            cuts = np.cumsum(size)[:-1]
            parts = zip(*(np.split(column, cuts) for column in nodes), strict=True)
            members = [Tree(*each) for each in parts]
        else:
            assert self.planes is not None
            weights, bias = self.planes
            plane = PLANES[self.kind]
            members = [plane(w, b) for w, b in zip(weights, bias.tolist(), strict=True)]
        return Ensemble(members, self.alpha, self.thresholds, self.log_losses)
