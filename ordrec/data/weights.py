"""The column that says how much each rating counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import as_numbers, single_column
from ordrec.errors import DataError

__all__ = ["as_weights", "check_weight_column"]


def check_weight_column(name: str, has: list[Any]) -> None:
    """Raise an error if a table lacks the column of weights that was asked for."""
    if name not in has:
        raise DataError(
            f"no column {name!r} in the table (it has {list(map(str, has))}): name the column of "
            "weights with weight=, or leave it out"
        )


def as_weights(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column of numbers from 0 to 1; errors name the row.

    Examples
    --------
    >>> as_weights(pd.DataFrame({"w": [1, 0.5]}), "w")
    array([1. , 0.5])
    """
    check_weight_column(name, list(table.columns))
    weights = as_numbers(single_column(table, name), name)
    wrong = np.flatnonzero((weights < 0) | (weights > 1))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {weights[wrong[0]]:g} is not a weight from 0 to 1 "
            f"({wrong.size} such rows): divide all weights by the largest"
        )
    return weights
