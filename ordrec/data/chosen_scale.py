"""The scale of ratings that are read: declared, inferred, or bins where there are many values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import numpy as np

from ordrec.data.columns import on_scale
from ordrec.data.scale import Scale, refuse_stray, shown_values
from ordrec.errors import callers_level

__all__ = ["chosen_scale", "scale_for"]


def scale_for(values: np.ndarray, scale: Scale | Iterable[float] | None, name: str) -> Scale:
    """Return the scale of ratings in memory; see `chosen_scale`.

    Parameters
    ----------
    values : array of float
    scale : Scale or iterable of float, optional
        The declared scale; all ratings must be on it.
    name : str
        Of the column, for errors.
    """
    if scale is not None and not isinstance(scale, Scale):
        scale = Scale(scale)
    if scale is not None:
        if not scale.is_fine:
            return scale
        on_scale(values, scale, name)
    distinct, counts = np.unique(values, return_counts=True)
    return chosen_scale(
        distinct, counts, scale, lambda value: f"row {int(np.argmax(values == value))}"
    )


def chosen_scale(
    distinct: np.ndarray,
    counts: np.ndarray,
    declared: Scale | None,
    place_of: Callable[[float], str],
) -> Scale:
    """Return the declared scale, or an inferred one; bins, with a warning, if it is fine.

    Parameters
    ----------
    distinct, counts : arrays
        The different ratings, in ascending order, and how often each is given.
    declared : Scale or None
    place_of : callable
        Where a rating was first read, for errors.

    Raises
    ------
    DataError
        Without a declared scale: for a rating that cannot be on the scale of all others.
    """
    if declared is None:
        refuse_stray(distinct, counts, place_of)
        scale = Scale.of_counts(distinct, counts)
    else:
        scale = declared.in_bins(distinct, counts)
    if scale.edges is not None and scale is not declared:
        warnings.warn(
            f"{distinct.size} different ratings between {scale.low:g} and {scale.high:g} were put "
            f"into {scale.n_ranks} bins, whose means are {shown_values(scale.values)}. Models work "
            "on the bins and predict in the units of the ratings. To choose otherwise, pass "
            "scale=Scale.binned(ratings, bins=20), or cut points, bins=[25, 50, 75]",
            stacklevel=callers_level(),
        )
    return scale
