"""`OrdinalFactors` as arrays and metadata of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.features.side.encoder import SideEncoder
from ordrec.rating.factors.direction import Direction
from ordrec.rating.factors.history import RatingHistory
from ordrec.rating.factors.row_priors import RatingPattern
from ordrec.storage import take, texts_from_arrays, texts_to_arrays

__all__ = ["checked_factor_parameters", "factors_from_state", "factors_to_state"]

FORM = "sequential"
SETS = {"directions_": (1, 2), "dated_": (0, 1, 2)}  # and how many directions each may have


def factors_to_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata of a fitted model."""
    arrays, metadata = model._identity()
    if model.side_kinds is not None:
        metadata["parameters"]["side_kinds"] = dict(model.side_kinds)
    arrays |= model._pattern.to_arrays() | model._history.to_arrays()
    arrays |= {"side.users": model._user_side, "side.items": model._item_side}
    metadata |= {"form": FORM, "loss": model.loss_.tolist(), "side": {}}
    if model.titles_ is not None:
        arrays |= texts_to_arrays("titles", model.titles_)
    for side, encoder in model._side.items():
        own, metadata["side"][side] = encoder.to_state(f"side.{side}")
        arrays |= own
    for name in SETS:
        directions = getattr(model, name)
        metadata[name] = len(directions)
        for number, direction in enumerate(directions):
            arrays |= direction.to_arrays(f"{name}{number}")
    return arrays, metadata


def checked_factor_parameters(
    parameters: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters in a file, each of a type that it may have."""
    kinds: dict[str, tuple[type, ...]] = {
        "rank": (int, type(None)), "pattern": (int, type(None)), "n_iter": (int,),
        "symmetric": (bool,), "use_time": (bool, str), "use_side": (bool, str),
        "side_kinds": (dict, type(None)), "decision": (str,), "n_jobs": (int, type(None)),
        "random_state": (int,),
    }  # fmt: skip
    checked = dict(defaults)
    for name, value in parameters.items():
        if name not in kinds or type(value) not in kinds[name]:
            raise ModelFileError(f"parameter {name[:50]} is {str(value)[:50]!r}")
        checked[name] = value
    return checked


def factors_from_state(cls: Any, arrays: Any, metadata: dict[str, Any]) -> Any:
    """The model that `factors_to_state` stored."""
    model = cls._from_identity(arrays, metadata)
    model._check_parameters()
    n_users, n_items = len(model.user_ids_), len(model.item_ids_)
    n_ranks = model.scale_.n_ranks
    if metadata["form"] != FORM:
        raise ModelFileError(f"form {str(metadata['form'])[:50]!r} of factors is not known")
    model._pattern = RatingPattern.from_arrays(arrays, n_users, n_items)
    dated = bool(metadata["dated_"])
    model._history = RatingHistory.from_arrays(arrays, n_users, n_items, n_ranks, dated)
    model.loss_ = np.array([float(loss) for loss in metadata["loss"]])
    stored = metadata["side"]
    if not set(stored) <= {"user", "item"}:
        raise ModelFileError(f"side data of {sorted(stored)[:3]} is of neither users nor items")
    model._side = {
        side: SideEncoder.from_state(f"side.{side}", arrays, state)
        for side, state in stored.items()
    }
    model._user_side = take(arrays, "side.users", np.float64, (n_users, None))
    model._item_side = take(arrays, "side.items", np.float64, (n_items, None))
    sides = model._user_side.shape[1], model._item_side.shape[1]
    for name, possible in SETS.items():
        count = metadata[name]
        if type(count) is not int or count not in possible:
            raise ModelFileError(f"{name} is {str(count)[:50]}, not one of {possible}")
        directions = tuple(
            Direction.from_arrays(
                f"{name}{number}", arrays, (n_users, n_items), sides,
                model._pattern.n_features, n_ranks - 1, name == "dated_",
            )
            for number in range(count)
        )  # fmt: skip
        setattr(model, name, directions)
    model.titles_ = None
    if "titles.ends" in arrays:
        model.titles_ = texts_from_arrays("titles", arrays)
        if len(model.titles_) != n_items:
            raise ModelFileError(f"{len(model.titles_)} titles for {n_items} items")
    return model
