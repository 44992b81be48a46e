"""Layers and units as arrays and metadata of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.persistence import take, take_covariance
from ordrec.recommend.predictor.preparation import Units
from ordrec.recommend.thresholds.ordered_probit import Layer

__all__ = [
    "checked_decision",
    "layer_from_arrays",
    "layer_to_arrays",
    "number",
    "plain_decision",
    "units_from",
]

Arrays = Mapping[str, np.ndarray]
LIMITS = {  # within which the exponential of a log-scale is a number
    "scale": (-15.0, 15.0),
    "user_scale": (-50.0, 50.0),
    "item_scale": (-50.0, 50.0),
    "user_counts": (0.0, 1e7),
    "item_counts": (0.0, 1e7),
}


def layer_to_arrays(name: str, layer: Layer) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays whose names begin with ``name``, and the numbers beside them."""
    parts = {field.name: getattr(layer, field.name) for field in fields(layer)}
    arrays = {f"{name}.{k}": part for k, part in parts.items() if isinstance(part, np.ndarray)}
    return arrays, {k: part for k, part in parts.items() if not isinstance(part, np.ndarray)}


def layer_from_arrays(
    name: str, arrays: Arrays, numbers: Mapping[str, Any], sizes: tuple[int, int, int]
) -> Layer:
    """The layer for so many ranks, users and items."""
    n_ranks, n_users, n_items = sizes
    shapes = {
        "thresholds": (n_ranks - 1,),
        "shifts": (n_users, n_ranks - 1),
        "scale": (3,),
        "user_scale": (n_users,),
        "item_scale": (n_items,),
        "user_counts": (n_users,),
        "item_counts": (n_items,),
    }
    parts: dict[str, Any] = {
        "n_iter": int(numbers["n_iter"]),
        "value": number(numbers["value"]),
        "anchor": int(numbers["anchor"]),
    }
    for part, shape in shapes.items():
        low, high = LIMITS.get(part, (None, None))
        parts[part] = take(arrays, f"{name}.{part}", np.float64, shape, low=low, high=high)
    if not 0 <= parts["anchor"] < n_ranks - 1:
        raise ModelFileError(f"{name}: the anchor {parts['anchor']} is no threshold")
    parts["covariance"] = take_covariance(arrays, f"{name}.covariance", n_ranks)
    return Layer(**parts)


def units_from(state: Mapping[str, Any]) -> Units:
    """Units out of metadata."""
    return Units(number(state["mean"]), number(state["scale"], low=np.finfo(np.float64).tiny))


def plain_decision(decision: Any) -> Any:
    """A decision as json holds it: its name, or the rows of the cost matrix."""
    return decision if isinstance(decision, str) else np.asarray(decision).tolist()


def checked_decision(decision: Any, n_ranks: int) -> Any:
    """A decision out of metadata."""
    if isinstance(decision, str):
        if decision not in ("median", "mode", "mean"):
            raise ModelFileError(f"decision is {decision[:50]!r}")
        return decision
    costs = np.array(decision, dtype=np.float64)
    if costs.shape != (n_ranks, n_ranks) or not np.isfinite(costs).all():
        raise ModelFileError(f"decision is no cost matrix of {n_ranks} ranks")
    return costs


def number(value: Any, *, low: float = -np.inf) -> float:
    """A finite number out of metadata, not below ``low``."""
    if type(value) not in (int, float) or not np.isfinite(value) or value < low:
        raise ModelFileError(f"{str(value)[:50]!r} is not a number that belongs there")
    return float(value)
