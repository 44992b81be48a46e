"""Ordered probits, units and decisions in a model file: to arrays and metadata, and back.

The prefix "layer" in the names of arrays is part of the file format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.rating.thresholds.ordered_probit import OrderedProbit
from ordrec.rating.units import Units
from ordrec.storage import take, take_covariance

__all__ = [
    "checked_decision",
    "number",
    "plain_decision",
    "probit_from_arrays",
    "probit_to_arrays",
    "units_from",
]

Arrays = Mapping[str, np.ndarray]
LIMITS = {  # within these, the exponentials of log-scales neither overflow nor vanish
    "scale": (-15.0, 15.0),
    "user_scale": (-50.0, 50.0),
    "item_scale": (-50.0, 50.0),
    "user_counts": (0.0, 1e7),
    "item_counts": (0.0, 1e7),
}


def probit_to_arrays(
    name: str, probit: OrderedProbit
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a probit, with names that begin with ``name``, and its single numbers."""
    parts = {field.name: getattr(probit, field.name) for field in fields(probit)}
    arrays = {f"{name}.{k}": part for k, part in parts.items() if isinstance(part, np.ndarray)}
    return arrays, {k: part for k, part in parts.items() if not isinstance(part, np.ndarray)}


def probit_from_arrays(
    name: str, arrays: Arrays, numbers: Mapping[str, Any], sizes: tuple[int, int, int]
) -> OrderedProbit:
    """The probit of a file, for ``sizes`` of ranks, users and items."""
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
        raise ModelFileError(f"{name}: the anchor {parts['anchor']} is not a threshold")
    parts["covariance"] = take_covariance(arrays, f"{name}.covariance", n_ranks)
    return OrderedProbit(**parts)


def units_from(state: Mapping[str, Any]) -> Units:
    """The units in a file's metadata."""
    return Units(number(state["mean"]), number(state["scale"], low=np.finfo(np.float64).tiny))


def plain_decision(decision: Any) -> Any:
    """A decision as plain data for json: its name, or the rows of the cost matrix."""
    return decision if isinstance(decision, str) else np.asarray(decision).tolist()


def checked_decision(decision: Any, n_ranks: int) -> Any:
    """The decision in a file's metadata, checked."""
    if isinstance(decision, str):
        if decision not in ("median", "mode", "mean"):
            raise ModelFileError(f"decision is {decision[:50]!r}")
        return decision
    costs = np.array(decision, dtype=np.float64)
    if costs.shape != (n_ranks, n_ranks) or not np.isfinite(costs).all():
        raise ModelFileError(f"decision is not a cost matrix of {n_ranks} ranks")
    return costs


def number(value: Any, *, low: float = -np.inf, high: float = np.inf) -> float:
    """A finite number in a file's metadata, checked to be between ``low`` and ``high``."""
    if type(value) not in (int, float) or not np.isfinite(value) or not low <= value <= high:
        raise ModelFileError(f"{str(value)[:50]!r} is not an allowed number")
    return float(value)
