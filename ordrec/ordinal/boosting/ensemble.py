"""The boosting loop, and the ensemble that it makes: its margins, and how a file stores it.

Each round adds a member and its weight and sets the thresholds. The loop may stop early, by the
error on samples that are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ordrec.errors import ArgumentError, DataError, ModelFileError
from ordrec.ordinal.boosting.perceptron import Perceptron, Sigmoid
from ordrec.ordinal.boosting.stump import Stump
from ordrec.ordinal.boosting.tree import LEAF, Tree
from ordrec.ordinal.losses import Reach, active_pairs, signs
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.ordinal.thresholds.probabilities import ranks_between
from ordrec.runtime.progress import report
from ordrec.storage.schema import Array, Optional, Text, Together

__all__ = [
    "EarlyStopping",
    "Ensemble",
    "Learner",
    "Margins",
    "Member",
    "OrdinalLoss",
    "StoredEnsemble",
    "boost",
    "hold_out",
]

Member = Callable[[np.ndarray], np.ndarray]


class Learner(Protocol):
    """Trains the members of an ensemble."""

    def prepare(self, X: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> Any:
        """Return a copy that keeps the samples."""

    def train(self, g: np.ndarray) -> Member:
        """Return a function h into [-1, 1] with a small ``sum g h``."""


class OrdinalLoss(Protocol):
    """The loss that the members reduce."""

    def thresholds(self, H: np.ndarray) -> np.ndarray:
        """Return thresholds for given scores."""

    def pulls(self, H: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return p and q of ``p exp(d) + q exp(-d)``, and the logarithm of the loss."""

    def step(self, h: np.ndarray, p: np.ndarray, q: np.ndarray) -> float:
        """Return the weight of a member."""


@dataclass(frozen=True)
class Ensemble:
    """H = sum_t alpha_t h_t, the thresholds after each round, and the losses.

    ``thresholds`` and ``log_losses`` have one entry more than there are members: the first
    belongs to H = 0.
    """

    members: list[Member]
    alpha: np.ndarray
    thresholds: np.ndarray
    log_losses: np.ndarray

    def latent(self, X: np.ndarray) -> np.ndarray:
        """Return H(x) for each row."""
        H = np.zeros(X.shape[0])
        for H in self.staged_latent(X):  # noqa: B007 the last one is the result
            pass
        return H

    def staged_latent(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield H(x) after each round, always in the same array."""
        H = np.zeros(X.shape[0])
        for a, member in zip(self.alpha, self.members, strict=True):
            H += a * member(X)
            yield H

    def head(self, size: int) -> Ensemble:
        """Return the ensemble after its first ``size`` rounds."""
        return Ensemble(
            self.members[:size],
            self.alpha[:size],
            self.thresholds[: size + 1],
            self.log_losses[: size + 1],
        )


def boost(
    loss: OrdinalLoss,
    learner: Learner,
    X: np.ndarray,
    n_rounds: int,
    keep_going: Callable[[Member, float, np.ndarray], bool] | None = None,
) -> Ensemble:
    """Run the rounds of boosting and return the ensemble.

    Parameters
    ----------
    loss : OrdinalLoss
    learner : Learner
        Prepared with X.
    keep_going : callable, optional
        Called after each round with its member, weight and thresholds; False ends the run.
    """
    H = np.zeros(X.shape[0])
    theta = loss.thresholds(H)
    members: list[Member] = []
    alphas, path, log_losses = [], [theta], []
    for number in range(n_rounds):
        report(number, n_rounds, f"round {number + 1}")
        p, q, log_loss = loss.pulls(H, theta)
        log_losses.append(log_loss)
        member = learner.train(p - q)
        h = member(X)
        alpha = loss.step(h, p, q)
        H += alpha * h
        theta = loss.thresholds(H)
        members.append(member)
        alphas.append(alpha)
        path.append(theta)
        if keep_going is not None and not keep_going(member, alpha, theta):
            break
    log_losses.append(loss.pulls(H, theta)[2])
    return Ensemble(members, np.array(alphas), np.array(path), np.array(log_losses))


class EarlyStopping:
    """Tracks the error on held-out samples and decides when to stop."""

    def __init__(
        self,
        X: np.ndarray,
        ranks: np.ndarray,
        weight: np.ndarray,
        part: PresentRanks,
        reach: Reach,
        patience: int,
    ):
        self.X, self.ranks, self.weight = X, ranks, weight
        self.part, self.reach, self.patience = part, reach, patience
        self.H = np.zeros(X.shape[0])
        self.round = self.best_round = 0
        self.best_error = np.inf

    def __call__(self, member: Member, alpha: float, theta: np.ndarray) -> bool:
        """Record a round; return False after ``patience`` rounds without a lower error."""
        self.round += 1
        self.H += alpha * member(self.X)
        off = np.abs(self.part.scale[ranks_between(self.H, theta)] - self.ranks)
        error = self.weight @ (np.minimum(off, 1) if self.reach == "immediate" else off)
        if error < self.best_error:
            self.best_round, self.best_error = self.round, error
        return self.round - self.best_round < self.patience


def hold_out(
    rows: np.ndarray, ranks: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and held-out rows, drawn rank by rank; every rank keeps a training row."""
    shuffled = rng.permutation(rows)
    held = np.zeros(ranks.size, dtype=bool)
    for rank in np.unique(ranks[rows]):
        own = shuffled[ranks[shuffled] == rank]
        held[own[: min(int(np.ceil(fraction * own.size)), own.size - 1)]] = True
    if not held.any():
        raise DataError("early stopping needs at least two samples of some class to hold one out")
    return rows[~held[rows]], rows[held[rows]]


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


@dataclass(frozen=True)
class Margins:
    """Margins of samples at every threshold, in units of ``sum |alpha| + sum |theta|``.

    Lin & Li 2006, section 3: Definition 1, the errors at margin delta, Theorems 1 and 2.

    Attributes
    ----------
    values : ndarray of shape (n, n_ranks - 1)
        Positive where the sample lies on the right side of the threshold.
    ranks : ndarray of shape (n,)
        True ranks, zero-based.
    """

    values: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(
        cls, latent: np.ndarray, thresholds: np.ndarray, ranks: np.ndarray, size: float
    ) -> Margins:
        """Return the margins (Definition 1); size is the sum of the members' absolute weights."""
        norm = size + np.abs(thresholds).sum()
        distance = latent[:, None] - thresholds
        return cls(signs(ranks, thresholds.size + 1) * distance / (norm or 1.0), ranks)

    def absolute_error(self, delta: float = 0.0) -> float:
        """Return the mean number of thresholds not cleared by delta, E_A."""
        return float((self.values <= delta).sum(axis=1).mean())

    def classification_error(self, delta: float = 0.0) -> float:
        """Return the share of samples that do not clear both their thresholds by delta, E_C."""
        return float((self._adjacent(delta) > 0).mean())

    def boundary_error(self, delta: float = 0.0) -> float:
        """Return the mean share of a sample's one or two thresholds not cleared by delta, E_B."""
        own = np.where((self.ranks == 0) | (self.ranks == self.values.shape[1]), 1, 2)
        return float((self._adjacent(delta) / own).mean())

    def bound(self, delta: float, vc_dimension: int, confidence: float = 0.95) -> dict[str, float]:
        """Return the terms of Theorems 1 and 2: errors at margin delta and complexities.

        The theorems hold up to an unknown constant before the complexity, so the terms serve to
        compare ensembles and do not predict the errors themselves.

        Parameters
        ----------
        delta : float
            Positive margin, in normalised units.
        vc_dimension : int
            VC dimension of the members: n_features + 1 for perceptrons.
        """
        n, n_thresholds = self.values.shape
        d = vc_dimension + n_thresholds
        if not (delta > 0 and n > d and 0 < confidence < 1):
            raise ArgumentError(
                f"the bound needs delta > 0, 0 < confidence < 1 and more than {d} samples, "
                f"got delta={delta}, confidence={confidence}, {n} samples"
            )
        root = np.sqrt((d * np.log(n / d) ** 2 / delta**2 - np.log(1.0 - confidence)) / n)
        return {
            "absolute_error": self.absolute_error(delta),
            "absolute_complexity": float((n_thresholds + 1) * root),
            "boundary_error": self.boundary_error(delta),
            "boundary_complexity": float(root),
        }

    def _adjacent(self, delta: float) -> np.ndarray:
        """How many of its own thresholds each sample fails to clear."""
        sample, threshold, _ = active_pairs(self.ranks, self.values.shape[1] + 1, "immediate")
        short = self.values[sample, threshold] <= delta
        return np.bincount(sample, short, minlength=self.ranks.size)
