"""The fitted state of an estimator: what all have in common, and the attributes each declares.

A class declares in ``stored`` which attributes it needs to predict, with a letter for each axis:

======  ==========================================
letter  length
======  ==========================================
n       training rows that predictions are made of
d       features
r       ranks
t       thresholds, one less
?       any
======  ==========================================

An empty text stands for a single number, an asterisk for an attribute that not all fits have.
What does not fit in is handled by ``_more_state`` and ``_restore_more``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.kernels import Precomputed
from ordrec.ordinal.files.inputs import inputs_from_arrays, inputs_to_arrays
from ordrec.ordinal.files.parameters import (
    kernel_of,
    kernel_to_plain,
    parameters_of,
    parameters_to_plain,
)
from ordrec.ordinal.scaling import Standardisation
from ordrec.ordinal.thresholds.link import OrdinalLink
from ordrec.storage import take, texts_from_arrays, texts_to_arrays

__all__ = ["restore_estimator", "state_of_estimator"]

Arrays = dict[str, np.ndarray]


def state_of_estimator(model: Any) -> tuple[Arrays, dict[str, Any]]:
    """Return arrays and metadata that say everything about a fitted estimator."""
    check_is_fitted(model)
    arrays: Arrays = {}
    numbers: dict[str, Any] = {}
    for name, axes in model.stored.items():
        value = getattr(model, name, None)
        if value is None:
            continue
        if axes.strip("*"):
            arrays |= _array_to_arrays(name, np.asarray(value))
        else:
            number = value.item() if isinstance(value, np.generic) else value
            missing = isinstance(number, float) and not math.isfinite(number)
            numbers[name] = None if missing else number
    arrays |= _labels_to_arrays("classes", model.classes_)
    if hasattr(model, "feature_names_in_"):
        arrays |= texts_to_arrays("features", model.feature_names_in_.tolist())
    if getattr(model, "scaling_", None) is not None:
        arrays["scaling.mean"] = model.scaling_.mean
        arrays["scaling.deviation"] = model.scaling_.deviation
    if hasattr(model, "link_"):
        arrays["link.thresholds"] = model.link_.thresholds
        numbers["link_scale"] = float(model.link_.scale)
    metadata = {
        "parameters": parameters_to_plain(model),
        "n_features": int(model.n_features_in_),
        "numbers": numbers,
    }
    if model.stores_rows and hasattr(model, "_rows"):
        metadata["kernel"] = kernel_to_plain(model.kernel_)
        arrays["rows"] = model._rows.astype(np.int64)
        if model._inputs is not None:
            arrays |= inputs_to_arrays("inputs", model._inputs)
    more_arrays, more = model._more_state()
    return arrays | more_arrays, metadata | more


def restore_estimator(kind: type, arrays: Mapping[str, np.ndarray], metadata: Any) -> Any:
    """Return the estimator of a file, after checking every part of it."""
    model = parameters_of(kind, metadata["parameters"])
    n_features = metadata["n_features"]
    if type(n_features) is not int or n_features < 1:
        raise ModelFileError("the number of features is not a number")
    model.n_features_in_ = n_features
    model.classes_ = _labels_from_arrays("classes", arrays)
    if "features.ends" in arrays:
        names = texts_from_arrays("features", arrays)
        if len(names) != n_features:
            raise ModelFileError("there are not as many names as features")
        model.feature_names_in_ = np.array(names, dtype=object)
    lengths: dict[str, int | None] = {"d": n_features, "r": model.n_ranks_, "?": None}
    lengths["t"] = model.n_ranks_ - 1
    if "rows" in arrays:
        model.kernel_ = kernel_of(metadata["kernel"])
        pairwise = isinstance(model.kernel_, Precomputed)
        last = n_features - 1 if pairwise else None
        model._rows = take(arrays, "rows", np.int64, (None,), low=0, high=last)
        lengths["n"] = model._rows.size
        model._inputs = None
        if not pairwise:
            model._inputs = inputs_from_arrays("inputs", arrays, model._rows.size, n_features)
    if hasattr(model, "scale"):
        model.scaling_ = None
    if "scaling.mean" in arrays:
        mean = take(arrays, "scaling.mean", np.float64, (n_features,))
        deviation = take(arrays, "scaling.deviation", np.float64, (n_features,), low=1e-300)
        model.scaling_ = Standardisation(mean, deviation)
    for name, axes in model.stored.items():
        letters = axes.strip("*")
        if letters and name in arrays:
            shape = tuple(lengths[letter] for letter in letters)
            setattr(model, name, _array_from_arrays(name, arrays, shape))
        elif not letters and name in metadata["numbers"]:
            setattr(model, name, _number(name, metadata["numbers"][name]))
        elif not axes.endswith("*"):
            raise ModelFileError(f"{name!r} is missing")
    if "link.thresholds" in arrays:
        thresholds = take(arrays, "link.thresholds", np.float64, (model.n_ranks_ - 1,))
        spread = _number("link_scale", metadata["numbers"]["link_scale"])
        if (np.diff(thresholds) < 0).any() or not spread > 0:
            raise ModelFileError("the link's thresholds are not in order")
        model.link_ = OrdinalLink(thresholds, spread)
    model._restore_more(arrays, metadata)
    check_is_fitted(model)
    return model


def _number(name: str, value: Any) -> Any:
    if value is None:
        return math.nan
    if type(value) not in (bool, int, float) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise ModelFileError(f"{name} is not a number")
    return value


def _array_to_arrays(name: str, array: np.ndarray) -> Arrays:
    """An array; where some of it is missing (NaN), which parts."""
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return {name: array}
    missing = np.isnan(array)
    return {name: np.where(missing, 0.0, array), f"{name}.missing": missing}


def _array_from_arrays(name: str, arrays: Mapping[str, np.ndarray], shape: tuple) -> np.ndarray:
    kind = {"b": np.bool_, "i": np.int64, "f": np.float64}.get(arrays[name].dtype.kind, np.float64)
    array = take(arrays, name, kind, shape)
    if f"{name}.missing" in arrays:
        array = array.copy()
        array[take(arrays, f"{name}.missing", np.bool_, array.shape)] = np.nan
    return array


def _labels_to_arrays(name: str, labels: np.ndarray) -> Arrays:
    if labels.dtype.kind in "biuf":
        return {name: labels}
    if all(isinstance(label, str) for label in labels.tolist()):
        return texts_to_arrays(name, labels.tolist())
    raise ArgumentError(f"labels of type {labels.dtype} cannot be saved: use numbers or texts")


def _labels_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    if name in arrays:
        labels = take(arrays, name, arrays[name].dtype, (None,))
    else:
        labels = np.array(texts_from_arrays(name, arrays), dtype=object)
    if labels.size < 2 or pd.Index(labels).has_duplicates:
        raise ModelFileError("the classes are not distinct")
    return labels
