"""Features of users and items from the side tables of ratings, as kernels of the process.

The process has two side kernels for users and two for items: "labels" is a weighted mean of the
kernels of all columns with words (categories, labels, text), "numbers" of those with numbers. The
weights say how much a column has to do with the ratings, and a column that has nothing to do with
them is ignored. A missing value becomes a row of zeros, for which the kernel is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ordrec.data import Ratings
from ordrec.features.matrix import Biases, damped_biases
from ordrec.features.side.encoder import SideEncoder, side_encoders
from ordrec.features.side.weights import block_weights

__all__ = ["SideFeatures"]

DAMPING = 5.0  # pseudo-counts that pull the biases to 0
LEAST = 0.002  # the weight of columns, in all, below which their kernel becomes smaller


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
        if not encoders:
            return cls()
        bias = damped_biases(
            ratings.users, ratings.items, ratings.values, ratings.n_users, ratings.n_items,
            user_shrinkage=DAMPING, item_shrinkage=DAMPING,
        )  # fmt: skip
        sides = {side: _weighed(ratings, bias, side, encoder) for side, encoder in encoders.items()}
        features = {side: kernels for side, (kernels, _) in sides.items()}
        columns = {side: said for side, (_, said) in sides.items()}
        return cls(features.get("item", {}), features.get("user", {}), columns)


def _weighed(
    ratings: Ratings, bias: Biases, side: str, encoder: SideEncoder
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Kernels of one side as features, and what its columns are used as."""
    table = ratings.item_table if side == "item" else ratings.user_table
    blocks = {} if table is None else encoder.blocks(table)
    if not blocks:
        return {}, encoder.columns_
    rest = ratings.values - bias.predict(ratings.users, ratings.items)
    codes = (ratings.users, ratings.items) if side == "item" else (ratings.items, ratings.users)
    own = bias.item if side == "item" else bias.user
    weights = block_weights(*codes, rest, own, DAMPING, list(blocks.values()))
    by_name = dict(zip(blocks, weights.tolist(), strict=True))
    kernels = {}
    for kernel, of_numbers in (("labels", False), ("numbers", True)):
        names = [name for name in blocks if (name in encoder.numeric) == of_numbers]
        total = max(sum(by_name[name] for name in names), LEAST)
        rows = [np.sqrt(by_name[name] / total) * blocks[name] for name in names if by_name[name]]
        if rows:
            kernels[kernel] = np.hstack(rows)
    idle = [column for name in blocks if not by_name[name] for column in encoder.columns_of(name)]
    said = dict.fromkeys(idle, "ignored: nothing to do with the ratings")
    return kernels, encoder.columns_ | said
