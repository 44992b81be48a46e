"""A `RatingPredictor` as arrays and metadata of a model file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.rating.factors.model import OrdinalFactors
from ordrec.rating.pool import LIMIT
from ordrec.rating.process.model import ProcessPredictor
from ordrec.rating.thresholds.state import checked_decision, number, plain_decision
from ordrec.storage import model_of, state_of, texts_from_arrays, texts_to_arrays

__all__ = ["predictor_from_state", "predictor_to_state"]

MEMBERS: dict[str, Any] = {"process_model_": ProcessPredictor, "factors_": OrdinalFactors}


def predictor_to_state(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata of a fitted model."""
    arrays, metadata = model._identity()
    parameters = metadata["parameters"]
    parameters["decision"] = plain_decision(model.decision)
    if model.components is not None:
        parameters["components"] = sorted(model.components)
    if model.side_kinds is not None:
        parameters["side_kinds"] = dict(model.side_kinds)
    members: dict[str, Any] = {}
    for name in MEMBERS:
        member = getattr(model, name)
        if member is not None:
            own, members[name] = state_of(member)
            arrays |= {f"{name}.{part}": array for part, array in own.items()}
    if model.titles_ is not None:
        arrays |= texts_to_arrays("titles", model.titles_)
    return arrays, metadata | {
        "members": members,
        "preset": model.preset_,
        "pool": list(model.pool_weights_),
        "titles": model.titles_ is not None,
    }


def predictor_from_state(cls: Any, arrays: Any, metadata: dict[str, Any]) -> Any:
    """The model that `predictor_to_state`, or version 0.1, stored."""
    model = cls._from_identity(arrays, metadata)
    model.decision = checked_decision(model.decision, model.scale_.n_ranks)
    model._check_parameters()
    if "members" not in metadata:
        return _of_version_0_1(model, arrays, metadata)
    for name, kind in MEMBERS.items():
        member = None
        if name in metadata["members"]:
            prefix = f"{name}."
            own = {part.removeprefix(prefix): arrays[part] for part in arrays
                   if part.startswith(prefix)}  # fmt: skip
            member = model_of(own, metadata["members"][name])
            if not isinstance(member, kind) or member.scale_ != model.scale_:
                raise ModelFileError(f"its {name} is another model, or of another scale")
        setattr(model, name, member)
    members = model.process_model_, model.factors_
    if members == (None, None):
        raise ModelFileError("it has neither a process nor factors")
    if model.factors_ is not None:
        same = (
            model.factors_.user_ids_.equals(model.user_ids_)
            and model.factors_.item_ids_.equals(model.item_ids_)
        )  # fmt: skip
        if not same:
            raise ModelFileError("its factors know other users or items")
    preset = metadata["preset"]
    if preset not in ("full", "fast", "large") or (preset == "large") != (members[0] is None):
        raise ModelFileError(f"preset {str(preset)[:50]!r} does not fit its models")
    model.preset_ = preset
    a, b = metadata["pool"]
    model.pool_weights_ = number(a, low=0.0, high=LIMIT), number(b, low=0.0, high=LIMIT)
    model.titles_ = _titles(model, arrays, metadata)
    if model.factors_ is not None:
        model.factors_.titles_ = model.titles_
    model.side_columns_ = members[1].side_columns_ if members[1] else members[0].side_columns_
    return model


def _of_version_0_1(model: Any, arrays: Any, metadata: dict[str, Any]) -> Any:
    """A process alone; at that time, it was the predictor."""
    model.process_model_ = ProcessPredictor.from_state(arrays, metadata)
    model.factors_ = None
    model.preset_ = model.preset
    model.pool_weights_ = 1.0, 0.0
    model.titles_, model.side_columns_ = _titles(model, arrays, metadata), {}
    return model


def _titles(model: Any, arrays: Any, metadata: Mapping[str, Any]) -> list[str] | None:
    if type(metadata["titles"]) is not bool:
        raise ModelFileError(f"titles is {str(metadata['titles'])[:50]!r}")
    titles = texts_from_arrays("titles", arrays) if metadata["titles"] else None
    if titles is not None and len(titles) != len(model.item_ids_):
        raise ModelFileError(f"{len(titles)} titles for {len(model.item_ids_)} items")
    return titles
