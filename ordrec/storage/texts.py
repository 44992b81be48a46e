"""Ids and other strings as arrays of numbers, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.storage.checks import take

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ids_from_arrays", "ids_to_arrays", "texts_from_arrays", "texts_to_arrays"]


def ids_to_arrays(name: str, ids: pd.Index) -> dict[str, np.ndarray]:
    """Turn original ids (integers or strings) into arrays that can be stored."""
    if ids.dtype.kind in "iu":
        return {name: ids.to_numpy()}
    strings = ids.tolist()
    if not all(isinstance(key, str) for key in strings):
        raise ArgumentError(
            f"{name} of type {ids.dtype} cannot be saved: ids must be integers or strings"
        )
    return texts_to_arrays(name, strings)


def ids_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> pd.Index:
    """Return the ids that `ids_to_arrays` stored."""
    import pandas as pd

    if name in arrays:
        if arrays[name].dtype.kind not in "iu" or arrays[name].ndim != 1:
            raise ModelFileError(f"array {name!r} does not hold ids")
        ids = pd.Index(arrays[name])
    else:
        ids = pd.Index(texts_from_arrays(name, arrays))
    if not ids.is_unique:
        raise ModelFileError(f"{name} holds an id twice")
    return ids


def texts_to_arrays(name: str, texts: Iterable[str]) -> dict[str, np.ndarray]:
    """Turn strings into two arrays: their joint UTF-8 bytes, and where each string ends."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {
        f"{name}.text": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        f"{name}.ends": ends.reshape(-1),
    }


def texts_from_arrays(name: str, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """Return the strings that `texts_to_arrays` stored."""
    text = take(arrays, f"{name}.text", np.uint8, (None,)).tobytes()
    ends = take(arrays, f"{name}.ends", np.int64, (None,), low=0, high=len(text))
    starts = np.concatenate([[0], ends])[:-1]
    if (starts > ends).any() or (ends[-1] if ends.size else 0) != len(text):
        raise ModelFileError(f"array '{name}.ends' does not divide the text into strings")
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairs]
