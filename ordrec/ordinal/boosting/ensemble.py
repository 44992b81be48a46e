"""The boosting loop: each round adds a member and its weight and sets the thresholds.

It may stop early, by the error on samples that are held out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ordrec.errors import DataError
from ordrec.ordinal.losses import Reach
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.ordinal.thresholds.probabilities import ranks_between
from ordrec.runtime.progress import report

__all__ = [
    "EarlyStopping",
    "Ensemble",
    "Learner",
    "Member",
    "OrdinalLoss",
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
