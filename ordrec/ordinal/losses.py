"""The losses that ordinal models minimise, by function and reach, for comparison.

This is the reference that the models are tested against; each has loops of its own for its loss.
`OrdinalLogistic` takes a `Loss` for its ``sharpness`` and ``target``, as its loop is written for
the three logistic ones; SVOR and ORBoost are written for the hinge and the exponential loss. So a
further function of the logistic kind is added here alone, any other one needs a solver too.

A sample of rank y has a margin at every threshold b_k (ranks and thresholds from 0 here):

    m_k = s_k (f - b_k),   s_k = +1 if y > k else -1,

positive when the latent score f lies on the right side of it. A model sums phi(m_k) over
the thresholds within its *reach*: the (at most two) ends of the rank's own interval, or all.

=============  ==========================================  ===================  =============
loss           phi(m)                                      immediate            all
=============  ==========================================  ===================  =============
hinge          max(0, 1 - m)                               SVOREX, SVORSLA      SVORIM
logistic       ln(1 + exp(-m))                             immediate-threshold  all-threshold
shifted        ln(1 + exp(margin - m))                     idem, with a margin  idem
generalised    ln(1 + exp(sharpness (1 - m))) / sharpness  idem, near a hinge   idem
exponential    exp(-m)                                     ORBoost-LR           ORBoost-All
=============  ==========================================  ===================  =============

The three logistic losses are one function, ``softplus(sharpness (target - m)) / sharpness``.

The sign of the shift. With z = -m the hinge is max(0, 1 + z), so Rennie's generalised loss (10)
must read ``ln(1 + exp(gamma (z + 1))) / gamma``; the note prints z - 1, which forgives a margin
instead of asking for it, and so does its shifted loss (11). Its objectives (12) and (13) have
``h(b + margin - f)`` below and ``h(f - b - margin)`` above the sample: renaming b + margin to b
removes the margin, which leaves (2) and (6) unchanged, whatever gamma is. Neither tends to
the hinge, as the note says it should. Dropping from the corrected (10) the factor outside
and the one before z, as the note does, gives ``h(margin + z) = h(margin - m)``: every term
asks for the margin, ``h(margin + b - f)`` and ``h(margin + f - b)``. This form is used here.
With f = margin f' and b = margin b'

    sum ln(1 + exp(margin - m)) + alpha/2 |w|^2
      = margin { sum ln(1 + exp(margin (1 - m'))) / margin + (alpha margin) / 2 |w'|^2 },

so the shifted loss at (margin, alpha) is the generalised one at sharpness = margin and
penalty alpha margin, and tends to the hinge loss with C = 1 / (alpha margin).

Probabilities. Where a loss is smooth, the score that minimises its expectation when the
sample lies above the threshold with probability p satisfies p = phi'(-m) / (phi'(m) +
phi'(-m)) at m = f - b. `Loss.logit` is the log-odds of that p: m for the logistic loss,
2 m for the exponential one, and flat within the margin for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from ordrec.errors import ArgumentError

__all__ = [
    "LOSSES",
    "Loss",
    "Reach",
    "active_pairs",
    "checked_reach",
    "gradient",
    "objective",
    "signs",
]

Reach = Literal["immediate", "all"]

LOSSES = ("hinge", "logistic", "shifted", "generalised", "exponential")


@dataclass(frozen=True)
class Loss:
    """A loss function: phi and its derivatives with respect to the margin.

    Parameters
    ----------
    name : {"hinge", "logistic", "shifted", "generalised", "exponential"}
    margin : float
        By how much a sample must clear a threshold, for the shifted loss.
    sharpness : float
        Sharpness of the generalised loss, which tends to the hinge as it goes to infinity.

    Examples
    --------
    >>> Loss("hinge").value(np.array([-1.0, 0.0, 2.0])).tolist()
    [2.0, 1.0, 0.0]
    """

    name: str
    margin: float = 0.0
    sharpness: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise ArgumentError(f"loss must be one of {', '.join(LOSSES)}, got {self.name!r}")
        if self.name != "shifted" and self.margin != 0.0:
            raise ArgumentError(f"margin belongs to the shifted loss, not to {self.name!r}")
        if self.name != "generalised" and self.sharpness != 1.0:
            raise ArgumentError(f"sharpness belongs to the generalised loss, not to {self.name!r}")
        if not (np.isfinite(self.margin) and np.isfinite(self.sharpness) and self.sharpness > 0):
            raise ArgumentError(
                "margin must be finite and sharpness positive, "
                f"got margin={self.margin}, sharpness={self.sharpness}"
            )

    @property
    def target(self) -> float:
        """The margin asked for: ``softplus(sharpness (target - m)) / sharpness``."""
        return 1.0 if self.name in ("hinge", "generalised") else self.margin

    def value(self, m: np.ndarray) -> np.ndarray:
        """Return phi(m)."""
        if self.name == "hinge":
            return np.maximum(0.0, 1.0 - m)
        if self.name == "exponential":
            return np.exp(-m)
        return np.logaddexp(0.0, self.sharpness * (self.target - m)) / self.sharpness

    def slope(self, m: np.ndarray) -> np.ndarray:
        """Return phi'(m), never positive; at the hinge's kink the right derivative, zero."""
        if self.name == "hinge":
            return np.where(m < 1.0, -1.0, 0.0)
        if self.name == "exponential":
            return -np.exp(-m)
        return -expit(self.sharpness * (self.target - m))

    def curvature(self, m: np.ndarray) -> np.ndarray:
        """Return phi''(m), never negative; zero for the hinge."""
        if self.name == "hinge":
            return np.zeros_like(np.asarray(m, dtype=np.float64))
        if self.name == "exponential":
            return np.exp(-m)
        z = self.sharpness * (self.target - m)
        return self.sharpness * expit(z) * expit(-z)

    def logit(self, m: np.ndarray) -> np.ndarray:
        """Return the log-odds of lying above a threshold at m = f - b, for smooth losses."""
        if self.name == "hinge":
            raise ArgumentError("the hinge loss has no probabilities: use a smooth loss")
        if self.name == "exponential":
            return 2.0 * m
        if self.name == "logistic":
            return m
        ahead, behind = self.sharpness * (m - self.target), -self.sharpness * (m + self.target)
        return np.logaddexp(0.0, ahead) - np.logaddexp(0.0, behind)


def checked_reach(threshold: str) -> Reach:
    """Check the parameter ``threshold`` of an estimator: which thresholds the loss reaches."""
    if threshold not in ("all", "immediate"):
        raise ArgumentError(f'threshold must be "all" or "immediate", got {threshold!r}')
    return "all" if threshold == "all" else "immediate"


def signs(ranks: np.ndarray, n_ranks: int) -> np.ndarray:
    """Return s_ik, +1 where sample i lies above threshold k, else -1; (n, n_ranks - 1)."""
    return np.where(ranks[:, None] > np.arange(n_ranks - 1), 1.0, -1.0)


def active_pairs(
    ranks: np.ndarray, n_ranks: int, reach: Reach
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the (sample, threshold) pairs in the loss, sample by sample, with their signs.

    Returns
    -------
    sample, threshold : ndarray of int64
    sign : ndarray of float64

    Examples
    --------
    >>> sample, threshold, sign = active_pairs(np.array([0, 1, 3]), 4, "immediate")
    >>> list(zip(sample.tolist(), threshold.tolist(), sign.tolist()))
    [(0, 0, -1.0), (1, 0, 1.0), (1, 1, -1.0), (2, 2, 1.0)]
    """
    k = np.arange(n_ranks - 1)
    counts = np.ones((ranks.size, n_ranks - 1), dtype=bool)
    if reach == "immediate":
        counts = (k == ranks[:, None]) | (k == ranks[:, None] - 1)
    sample, threshold = np.nonzero(counts)
    return sample, threshold, np.where(ranks[sample] > threshold, 1.0, -1.0)


def objective(
    latent: np.ndarray,
    thresholds: np.ndarray,
    ranks: np.ndarray,
    loss: Loss,
    reach: Reach,
    weight: np.ndarray | float = 1.0,
    penalty: float = 0.0,
) -> float:
    """Return ``sum_i sum_k weight phi(m_ik) + penalty``.

    Parameters
    ----------
    latent : ndarray of shape (n,)
    thresholds : ndarray of shape (n_ranks - 1,)
    ranks : ndarray of shape (n,)
        Zero-based.
    weight : float, ndarray of shape (n,) or (n, n_ranks - 1)
        C, or one weight per sample, or one per sample and threshold.
    penalty : float
        The model's penalty: ``1/2 |w|^2``, ``alpha/2 |w|^2``, or nothing.

    Examples
    --------
    >>> f, y = np.array([-2.0, 0.0, 2.0]), np.array([0, 1, 2])
    >>> objective(f, np.array([-1.0, 1.0]), y, Loss("hinge"), "all")
    0.0
    """
    sample, threshold, sign = active_pairs(ranks, thresholds.size + 1, reach)
    m = sign * (latent[sample] - thresholds[threshold])
    return float(np.sum(_pair_weight(weight, sample, threshold) * loss.value(m)) + penalty)


def gradient(
    latent: np.ndarray,
    thresholds: np.ndarray,
    ranks: np.ndarray,
    loss: Loss,
    reach: Reach,
    weight: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the loss with respect to the scores and to the thresholds."""
    sample, threshold, sign = active_pairs(ranks, thresholds.size + 1, reach)
    m = sign * (latent[sample] - thresholds[threshold])
    pull = _pair_weight(weight, sample, threshold) * sign * loss.slope(m)
    return (
        np.bincount(sample, pull, minlength=latent.size),
        -np.bincount(threshold, pull, minlength=thresholds.size),
    )


def _pair_weight(
    weight: np.ndarray | float, sample: np.ndarray, threshold: np.ndarray
) -> np.ndarray | float:
    w = np.asarray(weight, dtype=np.float64)
    if w.ndim == 2:
        return w[sample, threshold]
    return w[sample] if w.ndim == 1 else float(w)
