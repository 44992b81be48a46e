"""A `ProcessPredictor` as arrays and metadata of a model file, and back.

Folded-in users are stored by their ratings and what was solved for; the rest of a `FoldedUser` is
looked up in the fitted model again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Scale
from ordrec.errors import ModelFileError
from ordrec.models.base import codes_of
from ordrec.rating.process.fitted import FittedPredictor
from ordrec.rating.process.fold_in import FoldedUser, unsolved_user
from ordrec.rating.process.process_arrays import (
    MOST_COEFFICIENT,
    process_from_arrays,
    process_to_arrays,
)
from ordrec.rating.process.side_features import current_name
from ordrec.rating.thresholds.state import (
    number,
    probit_from_arrays,
    probit_to_arrays,
    units_from,
)
from ordrec.runtime.parallel import one_blas_thread
from ordrec.storage import (
    claim_memory,
    ids_from_arrays,
    ids_to_arrays,
    take,
    take_rows,
)

__all__ = [
    "checked_parameters",
    "fitted_from_arrays",
    "fitted_to_arrays",
    "folded_from_arrays",
    "folded_to_arrays",
    "side_columns_from",
]

Arrays = Mapping[str, np.ndarray]
MOST_JOBS = 4096


def fitted_to_arrays(fitted: FittedPredictor) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata of a fitted predictor, without ids and scale."""
    process, of_process = process_to_arrays(fitted.process)
    probit, of_probit = probit_to_arrays("layer", fitted.probit)
    arrays, metadata = process | probit, {
        "process": of_process,
        "layer": of_probit,
        "units": asdict(fitted.units),
        "likelihood": None,
    }  # fmt: skip
    if fitted.likelihood is not None:
        first, typical = fitted.likelihood
        more, numbers = probit_to_arrays("likelihood", first)
        arrays |= more
        metadata["likelihood"] = numbers | {"typical": typical}
    return arrays, metadata


def fitted_from_arrays(
    arrays: Arrays,
    metadata: Mapping[str, Any],
    scale: Scale,
    user_ids: pd.Index,
    item_ids: pd.Index,
    n_jobs: int,
) -> FittedPredictor:
    """The fitted predictor of a file, whose ids and scale have been read already."""
    sizes = scale.n_ranks, len(user_ids) + 1, len(item_ids) + 1  # with the unknown ones
    with one_blas_thread():
        process = process_from_arrays(arrays, metadata["process"], sizes, n_jobs)
    likelihood = metadata["likelihood"]
    if likelihood is not None:
        first = probit_from_arrays("likelihood", arrays, likelihood, sizes)
        likelihood = first, number(likelihood["typical"], low=1e-300)
    return FittedPredictor(
        process,
        probit_from_arrays("layer", arrays, metadata["layer"], sizes),
        likelihood,
        units_from(metadata["units"]),
        scale,
        user_ids,
        item_ids,
    )


def side_columns_from(metadata: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """What the side columns are used as; files of version 0.1 do not say."""
    columns = metadata.get("side_columns", {})
    readable = all(
        side in ("user", "item") and all(isinstance(use, str) for use in of_side.values())
        for side, of_side in columns.items()
    )
    if not readable:
        raise ModelFileError("side_columns does not say what columns are used as")
    return {side: dict(of_side) for side, of_side in columns.items()}


def checked_parameters(parameters: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """The parameters in a file, checked to have allowed types; values are checked later."""
    kinds: dict[str, Any] = {
        "preset": str, "components": (list, type(None)), "use_time": (str, bool),
        "use_side": (str, bool), "side_kinds": (dict, type(None)),
        "decision": (str, list), "learn": str, "learn_iter": int, "refit": bool,
        "n_jobs": (int, type(None)), "random_state": int, "max_memory": (int, float),
    }  # fmt: skip
    parameters = {"side_kinds": None, **parameters}  # files of version 0.1 have no kinds
    names = [name for name in names if name != "verbose"]
    for name in names:
        value = parameters[name]
        jobs = name == "n_jobs" and value is not None and abs(value) > MOST_JOBS
        if not isinstance(value, kinds[name]) or jobs:
            raise ModelFileError(f"parameter {name} is {str(value)[:50]!r}")
    components = parameters["components"]
    if not all(isinstance(component, str) for component in components or ()):
        raise ModelFileError("parameter components is not a list of names")
    if components is not None:
        parameters["components"] = [current_name(component) for component in components]
    return {name: parameters[name] for name in names}


def folded_to_arrays(folded: Mapping[Any, FoldedUser]) -> dict[str, np.ndarray]:
    """Arrays of the folded-in users, by original id; none if there are none."""
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


def folded_from_arrays(fitted: FittedPredictor, arrays: Arrays) -> dict[Any, FoldedUser]:
    """The folded-in users of a file, by original id."""
    if "folded.start" not in arrays:
        return {}
    ids, n_ranks = ids_from_arrays("folded.ids", arrays), fitted.scale.n_ranks
    start, items = take_rows(
        arrays, "folded.start", "folded.items", len(ids), len(fitted.item_ids)
    )  # fmt: skip
    most = MOST_COEFFICIENT
    a, undated = (
        take(arrays, f"folded.{name}", np.float64, items.shape, low=-most, high=most)
        for name in ("a", "undated")
    )
    levels = take(arrays, "folded.levels", np.int64, a.shape, low=0, high=n_ranks - 1)
    times = take(arrays, "folded.times", np.float64, a.shape)
    shifts = take(arrays, "folded.shifts", np.float64, (len(ids), n_ranks - 1))
    scale = take(arrays, "folded.scale", np.float64, (len(ids),), low=-50, high=50)
    codes = codes_of(fitted.user_ids, ids)
    side = fitted.process.data.user_side
    row = side.n_entries * side.pairs.table.shape[1]  # numbers of float64 that each of them has
    claim_memory(8.0 * len(ids) * row, f"what {len(ids)} folded-in users share with others")
    folded = {}
    for k, user in enumerate(ids):
        own = slice(start[k], start[k + 1])
        with one_blas_thread():
            bare = unsolved_user(fitted, int(codes[k]), items[own], levels[own], times[own])
        folded[user] = replace(
            bare, a=a[own], undated=undated[own], shifts=shifts[k], scale=float(scale[k]),
        )  # fmt: skip
    return folded
