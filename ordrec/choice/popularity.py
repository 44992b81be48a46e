"""How often an item was picked: the ranking that every recommender has to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.base import ChoiceModel
from ordrec.storage.schema import Integer

__all__ = ["Popularity"]


@dataclass(eq=False)
class Popularity(ChoiceModel):
    """Scores an item by the share of users who rated it, the same for everybody.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> ratings = synthetic_ratings(20, 12, n_ratings=100, seed=0)
    >>> list(Popularity().fit(ratings).recommend("nobody", n=3).columns)
    ['item', 'score']
    """

    stored: ClassVar = ChoiceModel.stored | {"n_fitted_users_": Integer(low=1)}

    def _learn(
        self, history: sparse.csr_array, times: np.ndarray | None, items: pd.DataFrame | None
    ) -> None:
        self.n_fitted_users_ = max(int((np.diff(history.indptr) > 0).sum()), 1)

    def score_histories(self, history: sparse.csr_array) -> np.ndarray:
        """Return the scores of all items, one row per history."""
        shares = self.item_counts_ / self.n_fitted_users_
        return np.tile(shares, (history.shape[0], 1))
