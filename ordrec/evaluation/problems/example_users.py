"""A few real users, for readers who want to see what the numbers mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ordrec.evaluation.problems.catalogue import CatalogueScores, catalogue_ranking
from ordrec.evaluation.splits.base import Split
from ordrec.lists.titles import item_titles

__all__ = ["ExampleUser", "chosen_users", "example_users"]

N_USERS, N_RATED, N_TESTED, N_LISTED = 5, 4, 3, 3


@dataclass(frozen=True)
class ExampleUser:
    """What a user rated, what a model predicted for them, and what it would recommend.

    Attributes
    ----------
    user : str
    n_known : int
        How many of their ratings the model knew.
    rated : list of (title, rating)
        Some of these: the highest, and the lowest.
    tested : list of (title, rating, prediction)
        Test ratings; the prediction is None for a model that predicts no ratings.
    recommended : list of str
        Titles, the best first.
    """

    user: str
    n_known: int
    rated: list[tuple[str, float]]
    tested: list[tuple[str, float, float | None]]
    recommended: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        """Restore a user from json, which has lists in place of tuples."""
        return cls(
            str(stored["user"]),
            int(stored["n_known"]),
            [(title, rating) for title, rating in stored["rated"]],
            [(title, rating, predicted) for title, rating, predicted in stored["tested"]],
            [str(title) for title in stored["recommended"]],
        )


def chosen_users(split: Split) -> np.ndarray:
    """Return the codes of five test users, from those with few known ratings to those with many.

    Users with known ratings and at least two test ratings are preferred. The choice depends on
    nothing but the split, so that all models show the same users.
    """
    users, n_tested = np.unique(split.test.users, return_counts=True)
    n_known = split.train_and_given().user_counts[users]
    telling = (n_known > 0) & (n_tested > 1)
    if telling.any():
        users, n_known = users[telling], n_known[telling]
    order = users[np.argsort(n_known, kind="stable")]
    places = np.linspace(0, len(order) - 1, 2 * N_USERS + 1)[1::2]  # middles of five equal parts
    return order[np.unique(places.round().astype(np.int64))]


def example_users(
    split: Split, predicted: np.ndarray | None, scores: CatalogueScores
) -> list[ExampleUser]:
    """Return five users of a split as a fitted model sees them.

    Parameters
    ----------
    split : Split
    predicted : array or None
        One rating per test rating.
    scores : CatalogueScores
        By which the model orders items.
    """
    known, test = split.train_and_given(), split.test
    users = chosen_users(split)
    listed = catalogue_ranking(scores, split, users, list_length=N_LISTED).items
    titles = item_titles(test.item_table)

    def name(item: int) -> str:
        return (titles[item] if titles else "") or str(test.item_ids[item])

    found = []
    for user, best in zip(users.tolist(), listed, strict=True):
        rows = known.rows_of_user(user)
        rows = rows[np.argsort(-known.values[rows], kind="stable")]
        telling = np.unique(np.r_[rows[: N_RATED - 1], rows[-1:]]) if rows.size else rows
        telling = telling[np.argsort(-known.values[telling], kind="stable")]
        tests = test.rows_of_user(user)[:N_TESTED]
        found.append(
            ExampleUser(
                str(test.user_ids[user]),
                int(rows.size),
                [(name(known.items[row]), float(known.values[row])) for row in telling],
                [
                    (
                        name(test.items[row]),
                        float(test.values[row]),
                        None if predicted is None else float(predicted[row]),
                    )
                    for row in tests
                ],
                [name(item) for item in best if item >= 0],
            )
        )
    return found
