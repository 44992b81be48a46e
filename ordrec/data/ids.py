"""Look up original ids, which may be of the wrong type or no ids at all."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError, callers_level

__all__ = ["codes_of", "warn_of_other_type", "warn_of_twins"]


def codes_of(index: pd.Index, ids: Any) -> np.ndarray:
    """Return the position of each original id in the index, -1 for the unknown.

    Examples
    --------
    >>> codes_of(pd.Index(["a", "b"]), ["b", "c"]).tolist()
    [1, -1]
    """
    if isinstance(ids, str) or not hasattr(ids, "__len__"):
        raise ArgumentError(f"users and items must be sequences of ids, got {ids!r}")
    try:
        asked = pd.Index(ids)
        codes = np.asarray(index.get_indexer(asked), dtype=np.int64)
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"an id holds {error.object[error.start]!r}, half of a character: decode the ids again"
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"users and items must be sequences of ids, one id per pair ({error})"
        ) from None
    return codes


def warn_of_twins(ids: pd.Index, name: str) -> None:
    """Warn if an id occurs both as a number and as the same digits in a string."""
    if ids.inferred_type != "mixed-integer":
        return
    texts = {key for key in ids if isinstance(key, str)}
    twins = [key for key in ids if not isinstance(key, str) and str(key) in texts]
    if twins:
        warnings.warn(
            f"column {name!r}: {twins[0]!r} and {str(twins[0])!r} are taken for two ids "
            f"({len(twins)} such cases): turn all ids into integers or all into strings",
            stacklevel=callers_level(),
        )


def warn_of_other_type(index: pd.Index, ids: Any, codes: np.ndarray) -> None:
    """Warn if no id is known, and they are strings where the known ones are integers or so."""
    if not codes.size or codes.max() >= 0 or not len(index):
        return
    asked = pd.Index(ids)
    known, given = index.inferred_type, asked.inferred_type
    if {known, given} == {"integer", "string"}:
        warnings.warn(
            f"none of the {len(asked)} ids is known: they are {given}s such as {_first(asked)!r}, "
            f"the known ones are {known}s such as {_first(index)!r}: convert them",
            stacklevel=callers_level(),
        )


def _first(ids: pd.Index) -> Any:
    return ids[:1].tolist()[0]
