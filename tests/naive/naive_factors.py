"""Slow, obvious twins of the compiled loops of `OrdinalFactors`, from the equations of its model.

Everything is dense and in double precision; a row is a Gaussian `Row`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit


class Row(NamedTuple):
    """Mean and covariance of the factors and the steps of a user or an item."""

    mean: np.ndarray
    covariance: np.ndarray


class Rated(NamedTuple):
    """A rating of a row: the row on the other side, the level, the drift's mean and variance."""

    other: Row
    level: int
    drift: tuple[float, float] = (0.0, 0.0)


def second_moment(row: Row, n_factors: int) -> np.ndarray:
    """E[pp'] of the factors."""
    p = row.mean[:n_factors]
    return np.outer(p, p) + row.covariance[:n_factors, :n_factors]


def score(row: Row, rated: Rated, k: int, n_factors: int) -> tuple[float, float]:
    """Mean and variance of eta_k, (1), (5) and (7)."""
    other, t = rated.other, n_factors + k
    product = row.mean[:n_factors] @ other.mean[:n_factors]
    spread = np.trace(second_moment(row, n_factors) @ second_moment(other, n_factors)) - product**2
    mean = product + row.mean[t] + other.mean[t] + rated.drift[0]
    return mean, spread + row.covariance[t, t] + other.covariance[t, t] + rated.drift[1]


def quadratic(m: float, v: float, onward: bool, floor: float) -> tuple[float, float]:
    """Weight and linear coefficient of ln sigma(+-eta), (3) and (4)."""
    kappa = 1 / np.sqrt(1 + np.pi * v / 8)
    r = expit(kappa * m)
    xi = np.sqrt(m**2 + v)
    bound = np.tanh(xi / 2) / (2 * xi) if xi > 0 else 0.25
    w = max(kappa * r * (1 - r), floor * bound)
    return w, (1 - r if onward else -r) + w * m


def terms(level: int, n_steps: int) -> list[tuple[int, bool]]:
    """The steps that a rating says something of, and whether it took them, (1)."""
    return [(k, True) for k in range(level)] + [(level, False)] * (level < n_steps)


def updated(
    row: Row, ratings: list[Rated], prior: np.ndarray, P: np.ndarray, floor: float, n_steps: int
) -> Row:
    """The row's new posterior, (6)."""
    n_factors = row.mean.size - n_steps
    A, g = P.copy(), P @ prior
    for rated in ratings:
        q = rated.other.mean[:n_factors]
        for k, onward in terms(rated.level, n_steps):
            w, h = quadratic(*score(row, rated, k, n_factors), onward, floor)
            unit = np.eye(n_steps)[k]
            x = np.concatenate([q, unit])
            square = np.outer(x, x)
            square[:n_factors, :n_factors] = second_moment(rated.other, n_factors)
            A += w * square
            g += (h - w * (rated.other.mean[n_factors + k] + rated.drift[0])) * x
    covariance = np.linalg.inv(A)
    return Row(covariance @ g, covariance)


def site(row: Row, rated: Rated, n_steps: int, floor: float) -> tuple[float, float]:
    """Weight and pull of the drift at a rating, (8)."""
    n_factors = row.mean.size - n_steps
    weight, pull = 0.0, 0.0
    for k, onward in terms(rated.level, n_steps):
        m, v = score(row, rated, k, n_factors)
        w, h = quadratic(m, v, onward, floor)
        weight += w
        pull += h - w * (m - rated.drift[0])
    return weight, pull


def log_likelihood(row: np.ndarray, ratings: list[Rated], n_steps: int) -> float:
    """ln P(ratings | the row), (1), all other rows being known exactly."""
    n_factors = row.size - n_steps
    total = 0.0
    for rated in ratings:
        eta = (
            row[:n_factors] @ rated.other.mean[:n_factors]
            + row[n_factors:]
            + rated.other.mean[n_factors:]
        )
        for k, onward in terms(rated.level, n_steps):
            total += np.log(expit(eta[k] if onward else -eta[k]))
    return total


def rank_probabilities(row: Row, rated: Rated, n_steps: int) -> np.ndarray:
    """P(level) for each level, (9)."""
    n_factors = row.mean.size - n_steps
    p, left = [], 1.0
    for k in range(n_steps):
        m, v = score(row, rated, k, n_factors)
        onward = expit(m / np.sqrt(1 + np.pi * v / 8))
        p.append(left * (1 - onward))
        left *= onward
    return np.array([*p, left])
