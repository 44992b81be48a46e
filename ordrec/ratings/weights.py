"""The column that says how much each rating counts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ordrec.errors import DataError
from ordrec.ratings.columns import as_numbers, single_column

__all__ = ["as_weights"]


def as_weights(table: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column of numbers from 0 to 1; errors name the row.

    Examples
    --------
    >>> as_weights(pd.DataFrame({"w": [1, 0.5]}), "w")
    array([1. , 0.5])
    """
    if name not in table.columns:
        raise DataError(f"no column {name!r} in the table: name the weights with weight=")
    weights = as_numbers(single_column(table, name), name)
    wrong = np.flatnonzero((weights < 0) | (weights > 1))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {name} {weights[wrong[0]]:g} is not a weight from 0 to 1 "
            f"({wrong.size} such rows): divide all weights by the largest"
        )
    return weights
