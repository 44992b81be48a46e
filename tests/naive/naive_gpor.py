"""Slow reference implementations of Gaussian-process ordinal regression."""

from __future__ import annotations

import numpy as np
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_ndtr

from ordrec.ordinal.thresholds.probabilities import log_interval


def truncated_cumulants(lower: float, upper: float) -> np.ndarray:
    """Log-mass and the first four cumulants of a truncated normal, by adaptive quadrature.

    The density is taken relative to its largest value, at the point of the interval nearest
    to zero, so that it neither under- nor overflows.
    """
    nearest = min(max(lower, 0.0), upper)
    reach = 12.0 if abs(nearest) < 1 else 60.0 / abs(nearest)
    low, high = max(lower, nearest - reach), min(upper, nearest + reach)

    def moment(power: int, centre: float) -> float:
        def integrand(x: float) -> float:
            return (x - centre) ** power * np.exp(-0.5 * (x - nearest) * (x + nearest))

        floor = 1e-13 * (high - low) ** (power + 1)  # odd moments may vanish
        return quad(integrand, low, high, epsabs=floor, epsrel=1e-12, limit=500)[0]

    mass = moment(0, 0.0)
    mean = nearest + moment(1, nearest) / mass
    second, third, fourth = (moment(k, mean) / mass for k in (2, 3, 4))
    log_mass = np.log(mass) - 0.5 * nearest**2 - 0.5 * np.log(2 * np.pi)
    return np.array([log_mass, mean, second, third, fourth - 3.0 * second**2])


def log_likelihood(f: np.ndarray, y: np.ndarray, thresholds: np.ndarray, noise: float):
    """ln P(y | f), entry by entry."""
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return log_interval((edges[y] - f) / noise, (edges[y + 1] - f) / noise)


def mode_by_bfgs(K: np.ndarray, y: np.ndarray, thresholds: np.ndarray, noise: float) -> np.ndarray:
    """The posterior mode in the coordinates f = L x, by a general optimiser."""
    L = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))

    def energy(x: np.ndarray) -> float:
        return -log_likelihood(L @ x, y, thresholds, noise).sum() + 0.5 * x @ x

    found = minimize(energy, np.zeros(len(K)), method="BFGS", options={"gtol": 1e-7})
    return L @ found.x


def sequential_ep(
    K: np.ndarray, y: np.ndarray, thresholds: np.ndarray, noise: float, sweeps: int = 60
) -> tuple[np.ndarray, np.ndarray, float]:
    """Appendix B of the paper as printed: one site after the other, rank-one updates.

    Returns the posterior mean, covariance and the log-evidence.
    """
    n = len(y)
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    m, p, log_s = np.zeros(n), np.zeros(n), np.zeros(n)
    A, h = K.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            lam = A[i, i] / (1.0 - A[i, i] * p[i])
            cavity = h[i] + lam * p[i] * (h[i] - m[i])
            tau = np.sqrt(lam + noise**2)
            z1, z2 = (edges[y[i] + 1] - cavity) / tau, (edges[y[i]] - cavity) / tau
            Z = np.exp(log_interval(np.array([z2]), np.array([z1])))[0]
            phi1, phi2 = _pdf(z1), _pdf(z2)
            zphi1 = z1 * phi1 if np.isfinite(z1) else 0.0
            zphi2 = z2 * phi2 if np.isfinite(z2) else 0.0
            g = -(phi1 - phi2) / (tau * Z)
            bt = -(zphi1 - zphi2) / (2 * tau**2 * Z)
            v = g**2 - 2 * bt
            p_new, m_new = v / (1 - lam * v), cavity + g / v
            log_s[i] = np.log(Z) + 0.5 * np.log(lam * p_new + 1) + g**2 / (2 * v)
            p[i], m[i] = p_new, m_new
            A = np.linalg.inv(np.linalg.inv(K) + np.diag(p))
            h = A @ (p * m)
    B = (p * m) @ A @ (p * m) - (p * m**2).sum()
    log_z = log_s.sum() - 0.5 * np.linalg.slogdet(np.eye(n) + K * p)[1] + 0.5 * B
    return h, A, float(log_z)


def posterior_by_grid(
    K: np.ndarray, y: np.ndarray, thresholds: np.ndarray, noise: float, points: int = 201
) -> tuple[float, np.ndarray, np.ndarray]:
    """Evidence, mean and covariance for one or two samples, by summing over a fine grid."""
    axis = np.linspace(-8.0, 8.0, points)
    white = np.stack([g.ravel() for g in np.meshgrid(*[axis] * len(K), indexing="ij")])
    f = np.linalg.cholesky(K) @ white
    log_prior = -0.5 * (white**2).sum(axis=0) - 0.5 * len(K) * np.log(2 * np.pi)
    log_like = sum(
        log_likelihood(f[i], np.full(f.shape[1], y[i]), thresholds, noise) for i in range(len(K))
    )
    weight = np.exp(log_prior + log_like) * (axis[1] - axis[0]) ** len(K)
    evidence = weight.sum()
    mean = f @ weight / evidence
    centred = f - mean[:, None]
    return float(np.log(evidence)), mean, (centred * weight) @ centred.T / evidence


def elliptical_slice(
    K: np.ndarray,
    y: np.ndarray,
    thresholds: np.ndarray,
    noise: float,
    n_samples: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Posterior samples of f (Murray, Adams and MacKay, 2010), one per row."""
    L = np.linalg.cholesky(K)
    f = np.zeros(len(K))
    current = log_likelihood(f, y, thresholds, noise).sum()
    draws = np.empty((n_samples, len(K)))
    for s in range(n_samples):
        nu = L @ rng.normal(size=len(K))
        height = current + np.log(rng.uniform())
        angle = rng.uniform(0.0, 2 * np.pi)
        low, high = angle - 2 * np.pi, angle
        while True:
            proposal = f * np.cos(angle) + nu * np.sin(angle)
            value = log_likelihood(proposal, y, thresholds, noise).sum()
            if value > height:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = rng.uniform(low, high)
        f, current = proposal, value
        draws[s] = f
    return draws


def probit_log_likelihood(f: np.ndarray, positive: np.ndarray, noise: float) -> np.ndarray:
    """Log-likelihood of the probit model, to which two ranks cut at zero reduce."""
    return log_ndtr(np.where(positive, f, -f) / noise)


def _pdf(z: float) -> float:
    return float(np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))
