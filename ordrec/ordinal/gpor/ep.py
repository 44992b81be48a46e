"""Expectation propagation: Gaussian sites whose moments match those of the likelihood.

Chu and Ghahramani (2005), section 3.2 and appendix B. The likelihood of sample i becomes
exp(-p_i f^2 / 2 + nu_i f) up to a constant, nu = p m in the paper's notation. A sweep

    1. takes site i out of the posterior: the cavity N(h, lam);
    2. matches moments: with tau^2 = lam + sigma^2 and u the standard normal confined to
       the interval (b - h) / tau, of mean E and variance V,
           p_new  = (1 - V) / (sigma^2 + lam V)
           nu_new = (E tau + h (1 - V)) / (sigma^2 + lam V)
       which is the paper's v / (1 - lam v) and p (h + g / v), without cancellation;
    3. moves all sites at once, damped when the sweeps stop contracting. The fixed point is
       that of the paper's one-by-one updates, at one factorisation per sweep. The first
       sites are Laplace's, not zero.

The paper ascends a variational bound (`ordrec.ordinal.gpor.bound`). The gradient here is that of
the EP evidence itself, which at the fixed point is exact with the sites and cavities held fixed:

    d/dtheta = sum_ij [c c' - R]_ij / 2 dK_ij/dtheta,   c = nu - R K nu
    d/drho   = sum_i dlnZ_i/drho
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ordrec.ordinal.gpor.laplace import laplace
from ordrec.ordinal.gpor.likelihood import Terms, likelihood_terms, threshold_edges
from ordrec.ordinal.gpor.parameters import threshold_slopes
from ordrec.ordinal.gram.posterior import Covariance, Factor

__all__ = ["EPPosterior", "expectation_propagation"]

TOLERANCE = 1e-6  # on the change of a site, in units of the posterior deviation
MAX_ITER = 100
CONTRACTING = 0.9  # change from sweep to sweep below which the step may grow
SMALLEST_STEP = 0.1
FAR = 3.0  # a warm start that the first sweep moves further than this is discarded


@dataclass(frozen=True)
class EPPosterior:
    """The sites at their fixed point, and the posterior that they define.

    ``violation`` is the largest change that one more sweep would bring to a site, in units
    of the posterior standard deviation of its latent value.
    """

    precision: np.ndarray
    shift: np.ndarray
    coef: np.ndarray
    latent: np.ndarray
    terms: Terms
    factor: Factor
    log_evidence: float
    n_iter: int
    violation: float
    converged: bool
    noise: float
    ranks: np.ndarray
    n_thresholds: int

    @property
    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """The starting point for sweeps under nearby parameters."""
        return self.precision, self.shift

    def slopes(self, kernel: Any) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the slopes of the log-evidence in the kernel's theta, ln(sigma) and thresholds."""
        by_kernel = self.factor.kernel_slope(kernel, 0.5 * self.coef, self.coef)
        # the terms are those at scale tau; only the share sigma^2 / tau^2 of it is noise
        by_noise = -float(
            ((self.noise / self.terms.scale) ** 2 * self.terms.by_log_noise()[0]).sum()
        )
        lower, upper = -self.terms.by_lower()[0], -self.terms.by_upper()[0]
        return by_kernel, by_noise, threshold_slopes(self.ranks, self.n_thresholds, lower, upper)


def expectation_propagation(
    covariance: Covariance,
    ranks: np.ndarray,
    thresholds: np.ndarray,
    noise: float,
    start: tuple[np.ndarray, np.ndarray] | None = None,
    max_iter: int = MAX_ITER,
) -> EPPosterior:
    """Find the posterior by sweeps until the sites stop moving; parameters as for `laplace`."""
    edges = threshold_edges(thresholds)
    p, nu = laplace(covariance, ranks, thresholds, noise).sites if start is None else start
    step, before = 1.0, np.inf
    for n_iter in range(1, max_iter + 1):
        factor = covariance.factor(p)
        coef = factor.remainder(nu)
        h = covariance.times(coef)
        A, rest = factor.marginals()
        lam = A / rest  # step 1
        cavity = (h - A * nu) / rest
        tau = np.sqrt(lam + noise**2)
        terms = likelihood_terms(cavity, ranks, edges, tau)
        divisor = noise**2 + lam * terms.variance  # step 2
        new_p = terms.deficit / divisor
        new_nu = (terms.mean * tau + cavity * terms.deficit) / divisor
        change = _largest_change(new_p - p, new_nu - nu, h, A, coef)
        if change <= TOLERANCE or n_iter == max_iter:
            break
        if start is not None and n_iter == 1 and change > FAR:
            p, nu = laplace(covariance, ranks, thresholds, noise).sites
            continue
        if change > before:
            step = max(0.5 * step, SMALLEST_STEP)
        elif change < CONTRACTING * before:
            step = min(1.3 * step, 1.0)
        before = change
        p = p + step * (new_p - p)  # step 3
        nu = nu + step * (new_nu - nu)
    return EPPosterior(
        precision=p,
        shift=nu,
        coef=coef,
        latent=h,
        terms=terms,
        factor=factor,
        log_evidence=_log_evidence(p, nu, h, lam, cavity, terms, factor.log_det),
        n_iter=n_iter,
        violation=change,
        converged=change <= TOLERANCE,
        noise=noise,
        ranks=ranks,
        n_thresholds=thresholds.size,
    )


def _largest_change(
    by_p: np.ndarray, by_nu: np.ndarray, h: np.ndarray, A: np.ndarray, coef: np.ndarray
) -> float:
    """How far the sites would move, in units of the posterior deviations sqrt(A).

    Relative to the strongest pull of a site, where that is more than one unit.
    """
    deviation = np.sqrt(A)
    precision = np.abs(by_p * A).max()
    pull = np.abs((by_nu - by_p * h) * deviation).max()
    return float(max(precision, pull / (1.0 + np.abs(coef * deviation).max())))


def _log_evidence(
    p: np.ndarray,
    nu: np.ndarray,
    h: np.ndarray,
    lam: np.ndarray,
    cavity: np.ndarray,
    terms: Terms,
    log_det: float,
) -> float:
    """The sites' log-constants plus the Gaussian integral, -1/2 ln |I + K P| + 1/2 nu' h.

    The constant of a site makes it agree with the likelihood under its cavity.
    """
    inflated = 1.0 + lam * p
    exponent = (2.0 * cavity * nu + lam * nu**2 - p * cavity**2) / inflated
    constants = terms.log_mass + 0.5 * np.log(inflated) - 0.5 * exponent
    return float(constants.sum() - 0.5 * log_det + 0.5 * nu @ h)
