"""The variational bound that the paper ascends with expectation propagation (appendix C).

For any Gaussian q = N(h, A), Jensen's inequality bounds the log-evidence from below:

    F = sum_i E_q[ln P(y_i | f_i)] - KL(q || N(0, K))                                (B1)

With q the posterior of EP, A = (K^-1 + P)^-1 and h = K c, the divergence needs no inverse of K:

    KL = (c'h - sum_i p_i A_ii + ln |I + K P|) / 2                                   (B2)

The gradient is that with q held fixed, as in the paper. In the kernel's parameters it is then

    dF/dtheta = sum_ij [c c' - R]_ij / 2 dK_ij/dtheta,  as K^-1 A K^-1 = K^-1 - R    (B3)

which is also the gradient of the EP evidence; in the noise and the thresholds it is the
expectation of that of the log-likelihood. Expectations in one dimension are by Gauss and Hermite.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from ordrec.ordinal.gpor.ep import EPPosterior
from ordrec.ordinal.gpor.likelihood import likelihood_terms, threshold_edges
from ordrec.ordinal.gpor.parameters import threshold_slopes

__all__ = ["variational_bound"]

NODES = 40  # of the quadrature


def variational_bound(
    found: EPPosterior, thresholds: np.ndarray, kernel: Any
) -> tuple[float, tuple[np.ndarray, float, np.ndarray]]:
    """Return F, and its slopes in the kernel's theta, ln(sigma) and the thresholds."""
    variance, _ = found.factor.marginals()
    edges, noise = threshold_edges(thresholds), np.full(found.latent.size, found.noise)
    points, weights = hermegauss(NODES)
    weights = weights / weights.sum()
    value, by_noise = 0.0, 0.0
    lower, upper = np.zeros(noise.size), np.zeros(noise.size)
    for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
        f = found.latent + point * np.sqrt(variance)
        terms = likelihood_terms(f, found.ranks, edges, noise)
        value += weight * float(terms.log_mass.sum())
        by_noise -= weight * float(terms.by_log_noise()[0].sum())
        lower -= weight * terms.by_lower()[0]
        upper -= weight * terms.by_upper()[0]
    divergence = 0.5 * float(
        found.coef @ found.latent - found.precision @ variance + found.factor.log_det
    )  # (B2)
    by_kernel = found.factor.kernel_slope(kernel, 0.5 * found.coef, found.coef)  # (B3)
    by_thresholds = threshold_slopes(found.ranks, thresholds.size, lower, upper)
    return value - divergence, (by_kernel, by_noise, by_thresholds)
