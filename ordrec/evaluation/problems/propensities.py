"""With which probability each rating of a test part came to be there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import as_numbers, as_pandas, find_pair_columns, plain
from ordrec.errors import DataError
from ordrec.evaluation.splits.base import Split

__all__ = ["PROPENSITY", "propensities"]

PROPENSITY = "propensity"  # name of the column


def propensities(split: Split, propensity: Any) -> np.ndarray:
    """Return the probability that the pair of each test rating is in the test part.

    Parameters
    ----------
    split : Split
    propensity : "popularity" or DataFrame
        By popularity, a test part of as many ratings takes every item as often as training does
        (one rating more for each, so that none is impossible), of all users alike. A frame has the
        columns user, item and propensity, in (0, 1], of all test pairs at least.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.evaluation import split_from_name
    >>> ratings = synthetic_ratings(30, 20, n_ratings=300, seed=0)
    >>> p = propensities(next(split_from_name("holdout:0.2").split(ratings)), "popularity")
    >>> p.shape, bool((p > 0).all())
    ((60,), True)
    """
    test = split.test
    if isinstance(propensity, str):
        counts = split.train_and_given().item_counts + 1.0
        n_users = np.unique(test.users).size
        expected = test.n_ratings * counts / counts.sum()  # test ratings of each item
        return np.minimum(expected[test.items] / n_users, 1.0)
    table = as_pandas(propensity)
    user, item, _ = find_pair_columns(table.columns, "user", "item", None)
    if PROPENSITY not in table:
        raise DataError(f"the table of propensities has no column {PROPENSITY!r}: name it so")
    values = as_numbers(table[PROPENSITY], PROPENSITY)
    wrong = np.flatnonzero((values <= 0) | (values > 1))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: {PROPENSITY} {values[wrong[0]]:g} is not in (0, 1] "
            f"({wrong.size} in all)"
        )
    known = pd.MultiIndex.from_arrays([table[user], table[item]])
    asked = pd.MultiIndex.from_arrays(
        [test.user_ids.take(test.users), test.item_ids.take(test.items)]
    )
    rows = known.get_indexer(asked)
    absent = np.flatnonzero(rows < 0)
    if absent.size:
        first = asked[absent[0]]
        raise DataError(
            f"no {PROPENSITY} for user {plain(first[0])!r} and item {plain(first[1])!r} "
            f"({absent.size} of {rows.size} test ratings): give one for each"
        )
    return values[rows]
