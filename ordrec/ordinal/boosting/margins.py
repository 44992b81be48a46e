"""Normalised margins of a thresholded ensemble, and the terms of its error bounds.

Lin & Li 2006, section 3: Definition 1, the errors at margin delta, Theorems 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.ordinal.losses import active_pairs, signs

__all__ = ["Margins"]


@dataclass(frozen=True)
class Margins:
    """Margins of samples at every threshold, in units of ``sum |alpha| + sum |theta|``.

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
