"""What a `ProcessPredictor` has learnt, as data: for fold-in, explanations, lists and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from ordrec.data import Ratings, Scale
from ordrec.rating.process.solve.fitting import Process
from ordrec.rating.thresholds.ordered_probit import OrderedProbit
from ordrec.rating.units import Units

__all__ = ["FittedPredictor"]


@dataclass(frozen=True)
class FittedPredictor:
    """The fitted parts of a `ProcessPredictor`, all of its users from training.

    Attributes
    ----------
    process : Process
        The Gaussian process, with the training ratings.
    probit : OrderedProbit
        Turns the process's scores into distributions.
    likelihood : (OrderedProbit, float) or None
        The probit before the refit and its typical scale, if there was a refit.
    units : Units
        Of the process's scores.
    scale : Scale
        Of the ratings.
    user_ids, item_ids : Index
        Original ids, by code.
    """

    process: Process
    probit: OrderedProbit
    likelihood: tuple[OrderedProbit, float] | None
    units: Units
    scale: Scale
    user_ids: pd.Index
    item_ids: pd.Index

    @cached_property
    def known_users(self) -> np.ndarray:
        """Which user codes have training ratings."""
        return self.process.data.item_side.sizes[:-1] > 0

    @cached_property
    def known_items(self) -> np.ndarray:
        """Which item codes have training ratings."""
        return np.bincount(self.process.data.items, minlength=len(self.item_ids)) > 0

    def history(self, code: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Item codes, levels and times of a user's training ratings; none for the code -1."""
        side = self.process.data.item_side
        own = slice(side.start[code], side.start[code + 1]) if code >= 0 else slice(0, 0)
        return side.entry[own], self.process.data.levels[own], side.time[own]

    def training_ratings(self) -> Ratings:
        """The ratings that the model was fitted to, by user, with the times that it used."""
        data = self.process.data
        times = data.item_side.time.astype(np.int64)
        return Ratings(
            data.users, data.items, data.levels,
            scale=self.scale, user_ids=self.user_ids, item_ids=self.item_ids,
            timestamps=times if times.any() else None,
        )  # fmt: skip
