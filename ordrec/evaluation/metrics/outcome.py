"""What one model predicted for one test part, as the metrics by name receive it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ordrec.data import Ratings
from ordrec.ordinal import decisions

__all__ = ["MetricValue", "Outcome", "TopLists", "UserSums"]


class UserSums(NamedTuple):
    """Contributions of users to a value, ``sum(sums) / sum(counts)``; with ``root`` its root."""

    users: np.ndarray
    sums: np.ndarray
    counts: np.ndarray
    root: bool = False


class MetricValue(NamedTuple):
    """A value of a metric, over how many ratings or (macro) users, and what users add.

    ``sums`` is None where the value is not a sum over users.
    """

    average: str
    value: float
    n: int
    sums: UserSums | None


@dataclass(frozen=True, eq=False)
class TopLists:
    """The first items of the lists of some users.

    Attributes
    ----------
    users : array of shape (n_users,)
        Codes of the users.
    items : int array of shape (n_users, n_places)
        Codes of the items, best first; -1 where there are no more.
    item_counts : int array of shape (n_items,)
        Number of training ratings of each item of the catalogue.
    n_training_users : int
        Number of users with a training rating.
    own_items : int array of shape (n_users, n_places), optional
        Items of the lists that the model itself makes, where these have ``p_pick``. They differ
        from ``items`` in the order of equal scores only.
    p_pick : array of the same shape, optional
        The probability, according to the model, that each of ``own_items`` is picked.
    item_features : array of shape (n_items, n_features), optional
        Side features of the items, where a metric needs them.
    """

    users: np.ndarray
    items: np.ndarray
    item_counts: np.ndarray
    n_training_users: int
    own_items: np.ndarray | None = None
    p_pick: np.ndarray | None = None
    item_features: np.ndarray | None = None

    def of_users(self, users: np.ndarray) -> TopLists:
        """Return the lists of these users only."""
        rows = np.isin(self.users, users)
        return TopLists(
            self.users[rows],
            self.items[rows],
            self.item_counts,
            self.n_training_users,
            None if self.own_items is None else self.own_items[rows],
            None if self.p_pick is None else self.p_pick[rows],
            self.item_features,
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one model predicted for one test part: ratings, distributions or scores alone.

    ``places`` are those of the test items in the catalogue, where they were requested; 0 for users
    for whom the catalogue was not ranked. ``ranked_by_scores`` says that they follow from the
    model's scores and not from its ratings. ``lists`` are the first items of the same rankings,
    where a metric needs them. ``cold_places`` are those among items without training ratings; 0 for
    all other items. ``propensities`` are the probabilities with which the test ratings were chosen,
    where they are to be weighted by them.
    """

    test: Ratings
    ratings: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    scores: np.ndarray | None = None
    places: np.ndarray | None = None
    ranked_by_scores: bool = False
    lists: TopLists | None = None
    cold_places: np.ndarray | None = None
    propensities: np.ndarray | None = None

    def select(self, rows: np.ndarray) -> Outcome:
        """Return the outcome for some of the test ratings; lists are those of their users."""
        test = self.test.select(rows)

        def part(column: np.ndarray | None) -> np.ndarray | None:
            return None if column is None else column[rows]

        return Outcome(
            test,
            part(self.ratings),
            part(self.probabilities),
            part(self.scores),
            part(self.places),
            self.ranked_by_scores,
            None if self.lists is None else self.lists.of_users(test.users),
            part(self.cold_places),
            part(self.propensities),
        )

    def predicted(self, decision: str) -> np.ndarray:
        """Return the predicted numbers, by ``decision`` where there are distributions."""
        if self.probabilities is not None:
            values = self.test.scale.values
            return decisions.decide(self.probabilities, decision, values)
        assert self.ratings is not None
        return self.ratings

    def order(self, decision: str) -> np.ndarray:
        """Return the numbers by which items are ranked."""
        return self.predicted(decision) if self.scores is None else self.scores
