"""Laplace's approximation: the posterior mode and the evidence around it.

Chu and Ghahramani (2005), section 3.1 and appendix A. The mode minimises the convex

    S(f) = sum_i l(y_i, f_i) + 1/2 f' K^-1 f

and with W = diag(l'') there, -ln P(D) ~ S(f) + 1/2 ln |I + K W|.

The search keeps ``coef`` with f = K coef, so that K is never inverted; at the mode
coef = -l'(f). A Newton step solves with B = I + W^1/2 K W^1/2 and is halved until S falls.

The evidence depends on a parameter in three ways: explicitly, through |I + K W|, and
because the mode moves. With A = (K^-1 + W)^-1, s_i = -1/2 A_ii l'''_i (the slope of the
evidence along f) and u = (I - R K) s:

    d/dtheta  = sum_ij [sym((coef/2 + u) coef') - R/2]_ij dK_ij/dtheta
    d/drho    = -sum_i [dl_i + 1/2 A_ii dl''_i + (K u)_i dl'_i]/drho     for noise, thresholds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ordrec.ordinal.gpor.likelihood import Terms, likelihood_terms, threshold_edges
from ordrec.ordinal.gpor.parameters import threshold_slopes
from ordrec.ordinal.gram.posterior import Covariance, Factor

__all__ = ["LaplacePosterior", "laplace"]

TOLERANCE = 1e-9  # on |l' + coef|, relative to the largest slope
STALLED = 1e-5  # where rounding stops the search, this residual still counts as the mode
MAX_ITER = 100
HALVINGS = 30
FLAT = 1e-12  # relative change of S that is only rounding


@dataclass(frozen=True)
class LaplacePosterior:
    """The mode, and the Gaussian around it.

    ``violation`` is the largest entry of l' + coef, which is zero at the mode.
    """

    coef: np.ndarray
    latent: np.ndarray
    terms: Terms
    factor: Factor
    log_evidence: float
    n_iter: int
    violation: float
    converged: bool
    covariance: Covariance
    ranks: np.ndarray
    n_thresholds: int

    @property
    def state(self) -> np.ndarray:
        """The starting point for a search under nearby parameters."""
        return self.coef

    @property
    def sites(self) -> tuple[np.ndarray, np.ndarray]:
        """The quadratic approximation of each likelihood: precision and shift, as in EP."""
        W = self.terms.curvature
        return W, W * self.latent - self.terms.slope

    def slopes(self, kernel: Any) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the slopes of the log-evidence in the kernel's theta, ln(sigma) and thresholds."""
        A, _ = self.factor.marginals()
        along = -0.5 * A * self.terms.twist
        u = self.factor.remainder(along)
        moved = self.covariance.times(u)
        by_kernel = self.factor.kernel_slope(kernel, 0.5 * self.coef + u, self.coef)

        def total(derivatives: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
            loss, slope, curvature = derivatives
            return -(loss + moved * slope + 0.5 * A * curvature)

        by_noise = float(total(self.terms.by_log_noise()).sum())
        lower, upper = total(self.terms.by_lower()), total(self.terms.by_upper())
        return by_kernel, by_noise, threshold_slopes(self.ranks, self.n_thresholds, lower, upper)


def laplace(
    covariance: Covariance,
    ranks: np.ndarray,
    thresholds: np.ndarray,
    noise: float,
    start: np.ndarray | None = None,
    max_iter: int = MAX_ITER,
) -> LaplacePosterior:
    """Find the mode by Newton's method with step control.

    Parameters
    ----------
    covariance : Covariance
    ranks : ndarray of int
        Zero-based.
    thresholds : ndarray of shape (n_ranks - 1,)
    noise : float
        sigma.
    start : ndarray, optional
        ``state`` of a posterior found before.
    """
    edges = threshold_edges(thresholds)
    coef = np.zeros(ranks.size)
    f = np.zeros(ranks.size)
    terms = likelihood_terms(f, ranks, edges, noise)
    energy = terms.loss
    if start is not None:
        warm_f = covariance.times(start)
        warm_terms = likelihood_terms(warm_f, ranks, edges, noise)
        warm_energy = warm_terms.loss + 0.5 * float(start @ warm_f)
        if warm_energy < energy:
            coef, f, terms, energy = start, warm_f, warm_terms, warm_energy
    n_iter, converged = 0, False
    while True:
        slope, W = terms.slope, terms.curvature
        violation = float(np.abs(slope + coef).max())
        factor = covariance.factor(W)
        scale = 1.0 + float(np.abs(slope).max())
        converged = violation <= TOLERANCE * scale
        if converged or n_iter == max_iter:
            break
        step = factor.remainder(W * f - slope) - coef
        shift = covariance.times(step)
        found = _halve_until_lower(coef, f, step, shift, energy, violation, ranks, edges, noise)
        if found is None:  # neither S nor the residual falls in floating point
            converged = violation <= STALLED * scale
            break
        coef, f, terms, energy = found
        n_iter += 1
    value = -energy - 0.5 * factor.log_det
    return LaplacePosterior(
        coef=coef,
        latent=f,
        terms=terms,
        factor=factor,
        log_evidence=value,
        n_iter=n_iter,
        violation=violation,
        converged=converged,
        covariance=covariance,
        ranks=ranks,
        n_thresholds=thresholds.size,
    )


def _halve_until_lower(
    coef: np.ndarray,
    f: np.ndarray,
    step: np.ndarray,
    shift: np.ndarray,
    energy: float,
    violation: float,
    ranks: np.ndarray,
    edges: np.ndarray,
    noise: float,
) -> tuple[np.ndarray, np.ndarray, Terms, float] | None:
    """The longest of the halved steps that lowers S; None if there is none.

    Next to the mode S is flat to within rounding; there a step that at least halves the
    residual is accepted.
    """
    size = 1.0
    for _ in range(HALVINGS):
        new_coef, new_f = coef + size * step, f + size * shift
        terms = likelihood_terms(new_f, ranks, edges, noise)
        lower = terms.loss + 0.5 * float(new_coef @ new_f)
        flat = lower <= energy + FLAT * (1.0 + abs(energy))
        if lower < energy or (flat and np.abs(terms.slope + new_coef).max() < 0.5 * violation):
            return new_coef, new_f, terms, lower
        size *= 0.5
    return None
