"""Features of users and items from the side tables of ratings, as kernels of the process.

The process has two side kernels for users and two for items: "labels" is the mean of the kernels
of all columns with words (categories, labels, text), "numbers" that of all columns with numbers.
A missing value becomes a row of zeros, for which the kernel is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from ordrec.features.side_features import SideEncoder, side_encoders
from ordrec.ratings import Ratings

__all__ = ["SideFeatures", "current_name"]

# Names of the kernels in files of version 0.1, which knew five columns of MovieLens.
FORMER_NAMES = {"genres": "labels", "year": "numbers", "age": "numbers", "group": "labels"}


@dataclass(frozen=True)
class SideFeatures:
    """Features of all users and items, by the name of the kernel.

    Attributes
    ----------
    item, user : dict of str to ndarray
        One row per code.
    columns : dict
        For "item" and "user", where there is a table: what each column is used as, or why not.
    """

    item: dict[str, np.ndarray] = field(default_factory=dict)
    user: dict[str, np.ndarray] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, ratings: Ratings, kinds: Mapping[str, str] | None = None) -> SideFeatures:
        """The features of the side tables of ratings, with the declared kinds of some columns."""
        encoders = side_encoders(ratings.user_table, ratings.item_table, kinds)
        return cls(
            _kernels(encoders.get("item"), ratings.item_table),
            _kernels(encoders.get("user"), ratings.user_table),
            {side: encoder.columns_ for side, encoder in encoders.items()},
        )


def _kernels(encoder: SideEncoder | None, table: pd.DataFrame | None) -> dict[str, np.ndarray]:
    """Blocks side by side, scaled so that their products are means of kernels."""
    if encoder is None or table is None:
        return {}
    blocks = encoder.blocks(table)
    numbers = [blocks[name] for name in encoder.numeric]
    labels = [rows for name, rows in blocks.items() if name not in encoder.numeric]
    groups = {"labels": labels, "numbers": numbers}
    return {name: np.hstack(rows) / np.sqrt(len(rows)) for name, rows in groups.items() if rows}


def current_name(component: str) -> str:
    """The name of a component, kernel or product of which a file may have a former name.

    Examples
    --------
    >>> current_name("product.age*implicit"), current_name("item.genres"), current_name("ones")
    ('product.numbers*implicit', 'item.labels', 'ones')
    """
    kind, dot, rest = component.partition(".")
    if not dot:
        kind, rest = "", component
    return kind + dot + "*".join(FORMER_NAMES.get(name, name) for name in rest.split("*"))
