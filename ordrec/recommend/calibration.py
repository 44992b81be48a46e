"""The layer's confidence, checked on ratings that it was not fitted to.

A posterior mode is somewhat too sure where users have few ratings for the ranks. So the layer is
fitted to three quarters of the ratings first, and the factor on its scale that suits the other
quarter best is taken over to the fit to all of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from ordrec.recommend.layer import Layer, LayerPriors, fit_layer

__all__ = ["fit_calibrated_layer"]

HELD_OUT = 0.25


def fit_calibrated_layer(
    scores: np.ndarray,
    levels: np.ndarray,
    users: np.ndarray,
    items: np.ndarray,
    n_ranks: int,
    n_users: int,
    n_items: int,
    priors: LayerPriors | None = None,
    *,
    seed: int = 0,
) -> Layer:
    """As `fit_layer`, with the scale corrected by held-out likelihood."""
    held = np.random.default_rng(seed).random(scores.size) < HELD_OUT
    sizes = (n_ranks, n_users, n_items)
    if not held.any() or held.all():
        return fit_layer(scores, levels, users, items, *sizes, priors)
    rest = ~held
    part = fit_layer(scores[rest], levels[rest], users[rest], items[rest], *sizes, priors)
    factor = _best_factor(part, scores[held], levels[held], users[held], items[held])
    layer = fit_layer(scores, levels, users, items, *sizes, priors)
    return replace(layer, scale=layer.scale + np.array([factor, 0.0, 0.0]))


def _best_factor(
    layer: Layer, scores: np.ndarray, levels: np.ndarray, users: np.ndarray, items: np.ndarray
) -> float:
    """Logarithm of the factor on the scale with the least log-loss."""
    rows = np.arange(scores.size)

    def loss(factor: float) -> float:
        scaled = replace(layer, scale=layer.scale + np.array([factor, 0.0, 0.0]))
        p = scaled.probabilities(scores, users, items)[rows, levels]
        return float(-np.log(np.maximum(p, 1e-300)).mean())

    best = minimize_scalar(loss, bounds=(-0.5, 2.0), method="bounded", options={"xatol": 1e-3})
    return float(best.x)
