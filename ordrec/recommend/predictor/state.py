"""A `RatingPredictor` as arrays and metadata of a model file, and back.

Users folded in are stored by their ratings and what was solved for; the rest of a `FoldedUser`
is looked up in the model again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import ModelFileError
from ordrec.parallel import one_blas_thread, worker_count
from ordrec.persistence import (
    ids_from_arrays,
    ids_to_arrays,
    take,
    take_rows,
    texts_from_arrays,
    texts_to_arrays,
)
from ordrec.recommend.base import codes_of
from ordrec.recommend.predictor.fold_in import FoldedUser, unsolved_user
from ordrec.recommend.predictor.process_state import process_from_arrays, process_to_arrays
from ordrec.recommend.thresholds.state import (
    checked_decision,
    layer_from_arrays,
    layer_to_arrays,
    number,
    plain_decision,
    units_from,
)

__all__ = ["checked_parameters", "restore_predictor", "state_of_predictor"]

Arrays = Mapping[str, np.ndarray]
MOST_JOBS = 4096


def state_of_predictor(
    model: Any, arrays: dict[str, np.ndarray], metadata: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Everything that was fitted, added to the ids and the parameters."""
    parameters = metadata["parameters"]
    parameters["decision"] = plain_decision(model.decision)
    if model.components is not None:
        parameters["components"] = sorted(model.components)
    process, of_process = process_to_arrays(model.process_)
    layer, of_layer = layer_to_arrays("layer", model.layer_)
    arrays |= process | layer | {"ratings.levels": model.levels_}
    arrays |= _folded_to_arrays(model.folded_, model.scale_.n_ranks)
    metadata |= {
        "process": of_process,
        "layer": of_layer,
        "units": asdict(model.units_),
        "hold_out_rmse": model.hold_out_rmse_,
        "titles": model.titles_ is not None,
        "likelihood": None,
    }
    if model.titles_ is not None:
        arrays |= texts_to_arrays("titles", model.titles_)
    if model.likelihood_ is not None:
        first, typical = model.likelihood_
        more, numbers = layer_to_arrays("likelihood", first)
        arrays |= more
        metadata["likelihood"] = numbers | {"typical": typical}
    return arrays, metadata


def restore_predictor(model: Any, arrays: Arrays, metadata: Mapping[str, Any]) -> None:
    """Fill in what was fitted; the model has its ids and parameters already."""
    n_users, n_items, n_ranks = len(model.user_ids_), len(model.item_ids_), model.scale_.n_ranks
    model.decision = checked_decision(model.decision, n_ranks)
    model._check_parameters()
    sizes = n_ranks, n_users + 1, n_items + 1  # one more of each, for the unknown
    with one_blas_thread():
        model.process_ = process_from_arrays(
            arrays, metadata["process"], n_users + 1, n_items + 1, worker_count(model.n_jobs)
        )
    data = model.process_.data
    if data.two_sided and model.preset == "fast":  # "full" is one-sided where memory was short
        raise ModelFileError("preset 'fast' has a process over users")
    model.units_ = units_from(metadata["units"])
    model.weights_ = model.process_.K.weights.as_dict()
    model.hold_out_rmse_ = [number(error, low=0.0) for error in metadata["hold_out_rmse"]]
    model.levels_ = take(
        arrays, "ratings.levels", np.int64, data.y.shape, low=0, high=n_ranks - 1
    )  # fmt: skip
    model.known_users_ = data.item_side.sizes[:-1] > 0
    model.known_items_ = np.bincount(data.items, minlength=n_items) > 0
    model.layer_ = layer_from_arrays("layer", arrays, metadata["layer"], sizes)
    model.titles_ = texts_from_arrays("titles", arrays) if metadata["titles"] else None
    if model.titles_ is not None and len(model.titles_) != n_items:
        raise ModelFileError(f"{len(model.titles_)} titles for {n_items} items")
    model.likelihood_ = None
    likelihood = metadata["likelihood"]
    if likelihood is not None:
        first = layer_from_arrays("likelihood", arrays, likelihood, sizes)
        model.likelihood_ = first, number(likelihood["typical"], low=1e-300)
    model.folded_ = _folded_from_arrays(model, arrays)


def checked_parameters(parameters: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """Parameters out of a file, of the types they may have; their values are checked later."""
    kinds: dict[str, Any] = {
        "preset": str, "components": (list, type(None)), "use_time": (str, bool),
        "use_side": (str, bool), "decision": (str, list), "learn": str, "learn_iter": int,
        "refit": bool, "n_jobs": (int, type(None)), "random_state": int,
        "max_memory": (int, float),
    }  # fmt: skip
    for name in names:
        value = parameters[name]
        jobs = name == "n_jobs" and value is not None and abs(value) > MOST_JOBS
        if not isinstance(value, kinds[name]) or jobs:
            raise ModelFileError(f"parameter {name} is {str(value)[:50]!r}")
    components = parameters["components"]
    if not all(isinstance(component, str) for component in components or ()):
        raise ModelFileError("parameter components is not a list of names")
    return {name: parameters[name] for name in names}


def _folded_to_arrays(folded: dict[Any, FoldedUser], n_ranks: int) -> dict[str, np.ndarray]:
    if not folded:
        return {}
    users = list(folded.values())
    sizes = [user.items.size for user in users]
    return {
        **ids_to_arrays("folded.ids", pd.Index(list(folded))),
        "folded.start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "folded.items": np.concatenate([user.items for user in users]),
        "folded.levels": np.concatenate([user.levels for user in users]),
        "folded.times": np.concatenate([user.times for user in users]),
        "folded.a": np.concatenate([user.a for user in users]),
        "folded.undated": np.concatenate([user.undated for user in users]),
        "folded.shifts": np.stack([user.shifts for user in users]),
        "folded.scale": np.array([user.scale for user in users]),
    }


def _folded_from_arrays(model: Any, arrays: Arrays) -> dict[Any, FoldedUser]:
    if "folded.start" not in arrays:
        return {}
    ids, n_ranks = ids_from_arrays("folded.ids", arrays), model.scale_.n_ranks
    start, items = take_rows(arrays, "folded.start", "folded.items", len(ids), len(model.item_ids_))
    a = take(arrays, "folded.a", np.float64, items.shape)
    undated = take(arrays, "folded.undated", np.float64, a.shape)
    levels = take(arrays, "folded.levels", np.int64, a.shape, low=0, high=n_ranks - 1)
    times = take(arrays, "folded.times", np.float64, a.shape)
    shifts = take(arrays, "folded.shifts", np.float64, (len(ids), n_ranks - 1))
    scale = take(arrays, "folded.scale", np.float64, (len(ids),), low=-50, high=50)
    codes = codes_of(model.user_ids_, ids)
    folded = {}
    for k, user in enumerate(ids):
        own = slice(start[k], start[k + 1])
        with one_blas_thread():
            bare = unsolved_user(model, int(codes[k]), items[own], levels[own], times[own])
        folded[user] = replace(
            bare, a=a[own], undated=undated[own], shifts=shifts[k], scale=float(scale[k]),
        )  # fmt: skip
    return folded
