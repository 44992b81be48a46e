"""Calibration of any choice model: fitted again to parts of the histories, asked about the rest."""

from __future__ import annotations

import copy

import numpy as np

from ordrec.choice.base import ChoiceModel
from ordrec.choice.calibration import ListedScores, PickCalibration
from ordrec.choice.ease import FEW_USERS
from ordrec.choice.inner_splits import InnerSplit, entry_times, inner_splits
from ordrec.choice.mixture import INNER_USERS, SHARE, ChoiceMixture
from ordrec.data import Ratings

__all__ = ["calibrated_picks"]


def calibrated_picks(model: ChoiceModel, ratings: Ratings, seed: int = 0) -> PickCalibration:
    """Return the calibration of a fitted choice model.

    A `ChoiceMixture` has been calibrated in training. Any other model is fitted twice more: to
    histories of which the latest part (a random one, without times) is set aside, and to what is
    left of these once more.
    """
    if isinstance(model, ChoiceMixture):
        return model.calibration_
    rng = np.random.default_rng(seed)
    history = model.history_of(np.arange(len(model.user_ids_)))
    history.sort_indices()
    times = entry_times(ratings, history)
    (above,) = inner_splits(history, 1, SHARE, rng, times=times, max_users=INNER_USERS)
    (below,) = inner_splits(
        above.given, 1, SHARE, rng, times=above.given_times, max_users=INNER_USERS
    )
    if min(above.rows.size, below.rows.size) < FEW_USERS:
        return PickCalibration()
    lists = [_lists(model, ratings, split) for split in (above, below)]
    return PickCalibration.fitted(lists[0], SHARE, lists[1])


def _lists(model: ChoiceModel, ratings: Ratings, split: InnerSplit) -> ListedScores:
    """Lists of a copy of the model that is fitted to the given part."""
    given, held = split.given, split.held[split.rows]
    levels = np.rint(given.data * ratings.scale.n_ranks).astype(np.int64) - 1
    part = Ratings(
        np.repeat(np.arange(given.shape[0]), np.diff(given.indptr)), given.indices, levels,
        scale=ratings.scale, user_ids=ratings.user_ids, item_ids=ratings.item_ids,
    )  # fmt: skip
    fitted = copy.deepcopy(model).fit(part)
    scores = fitted.score_users(split.rows)
    fitted.item_filter().hide(scores, given[split.rows])
    return ListedScores.of(scores, np.diff(given.indptr)[split.rows], held)
