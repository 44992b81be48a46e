"""Predictions that were made elsewhere, which are measured like those of a model.

A table of predictions has a row per user and item: with a predicted rating, with a probability for
each rating of the scale, or with a rank or a score by which the items of a user's list are ordered.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.data.columns import as_numbers, as_pandas, find_pair_columns, plain, single_column
from ordrec.data.ids import codes_of, warn_of_other_type
from ordrec.data.scale import Scale
from ordrec.errors import ArgumentError, DataError, callers_level
from ordrec.evaluation.problems.catalogue import CatalogueScores
from ordrec.evaluation.splits.base import Split

__all__ = [
    "KINDS",
    "PredictedDistributions",
    "PredictedLists",
    "PredictedRatings",
    "Predictions",
    "predictions_from_frame",
]

Kind = Literal["auto", "ratings", "distributions", "lists"]
KINDS = ("auto", "ratings", "distributions", "lists")

# What columns are usually called, in lower case; the first that a table has is taken.
RATING_NAMES = ("prediction", "predicted", "predicted_rating", "expected", "est", "rating", "pred")
RANK_NAMES = ("rank", "place", "position")
SCORE_NAMES = ("score", "scores")
PROBABILITY = re.compile(r"(?:p|prob|proba|probability)?[ _]?\(?(-?[0-9]+(?:\.[0-9]+)?)\)?")
SUM_TOLERANCE = 1e-3  # by which probabilities may miss 1, as when they were rounded
USERS_AT_ONCE = 1000


class Predictions(ABC):
    """Predictions of one kind; `predictions_from_frame` makes them.

    Parameters
    ----------
    table : DataFrame
        Columns ``user`` and ``item``, each pair once, and those of the kind.
    """

    for_pairs: ClassVar[bool] = True  # whether they have a number for each test rating
    for_lists: ClassVar[bool] = False  # whether they order the catalogue

    def __init__(self, table: pd.DataFrame):
        self.table = table

    def fit(self, ratings: Ratings) -> Predictions:
        """Take note of the scale; nothing is learnt."""
        self.scale_ = ratings.scale
        return self

    @property
    @abstractmethod
    def kind(self) -> str:
        """What is predicted."""

    def __repr__(self) -> str:
        return f"<{len(self.table)} {self.kind}>"


class _OfPairs(Predictions):
    """Predictions of single pairs."""

    def _rows(self, users: Any, items: Any) -> np.ndarray:
        """Return the row of each pair; all of them must be there."""
        own = pd.MultiIndex.from_arrays([self.table["user"], self.table["item"]])
        asked = pd.MultiIndex.from_arrays([pd.Index(users), pd.Index(items)])
        rows = own.get_indexer(asked)
        absent = np.flatnonzero(rows < 0)
        if absent.size:
            first = asked[absent[0]]
            for kind, ids in (("user", users), ("item", items)):
                known = pd.Index(self.table[kind].unique())
                warn_of_other_type(known, ids, codes_of(known, ids))
            raise DataError(
                f"no prediction for user {plain(first[0])!r} and item {plain(first[1])!r} "
                f"({absent.size} of {len(rows)} test ratings): predict all of them, or take them "
                "out of the test part for all models"
            )
        return rows


class PredictedRatings(_OfPairs):
    """A number for each pair of a user and an item."""

    kind = "ratings"

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the predicted ratings of pairs."""
        return self.table["rating"].to_numpy()[self._rows(users, items)]


class PredictedDistributions(_OfPairs):
    """A probability of each rating, for each pair of a user and an item.

    The columns besides ``user`` and ``item`` are called by the ratings, as floats.
    """

    kind = "distributions"

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Return the distributions of pairs over the ratings of the scale."""
        columns = self._columns_of(self.scale_)
        return self.table[columns].to_numpy()[self._rows(users, items)]

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Return the expected ratings of pairs."""
        return self.predict_proba(users, items) @ self.scale_.values

    def _columns_of(self, scale: Scale) -> list[float]:
        given = np.array([name for name in self.table if isinstance(name, float)])
        levels = scale.levels_of(given)
        if scale.edges is not None or not np.array_equal(np.sort(levels), range(scale.n_ranks)):
            shown = ", ".join(f"{value:g}" for value in given)
            raise DataError(
                f"the columns of probabilities are those of the ratings {shown}, the scale is "
                f"{scale}: give one column for each of its ratings, or declare it with scale=",
                parameter="scale",
            )
        return given[np.argsort(levels)].tolist()


class PredictedLists(Predictions):
    """The items of each user's list, from the best on.

    The table is ordered by user and place; items that it does not name are not in the list.
    """

    kind = "lists"
    for_pairs = False
    for_lists = True

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Lists have no scores of single pairs."""
        raise ArgumentError("lists are measured over the whole catalogue, not by pairs")

    @property
    def longest(self) -> int:
        """The number of items of the longest list."""
        return int(self.table.groupby("user", sort=False).size().max())

    def catalogue_scores(self, split: Split) -> CatalogueScores:
        """Return scores by which the catalogue is ordered: minus infinity for what is not listed.

        It warns of test users without a list, which counts as an empty one, and of listed items
        that the user rated in training, which are left out of every model's lists.
        """
        users = codes_of(split.test.user_ids, self.table["user"].to_numpy())
        items = codes_of(split.test.item_ids, self.table["item"].to_numpy())
        n_items = len(split.test.item_ids)
        tested = np.unique(split.test.users)
        without = int((~np.isin(tested, users)).sum())
        known = split.train_and_given()
        seen = np.isin(
            users.astype(np.int64) * n_items + items,
            known.users.astype(np.int64) * n_items + known.items,
        ) & np.isin(users, tested)
        if without == tested.size:
            warn_of_other_type(split.test.user_ids, self.table["user"].to_numpy(), users)
        for count, words in (
            (without, f"of {tested.size} test users have no list: theirs count as empty"),
            (int(seen.sum()), "listed items were rated by the user in training and are left out"),
        ):
            if count:
                warnings.warn(f"{count} {words}", stacklevel=callers_level())
        place = self.table.groupby("user", sort=False).cumcount().to_numpy()
        order = np.argsort(users, kind="stable")

        def of_users(codes: np.ndarray) -> np.ndarray:
            scores = np.full((codes.size, n_items), -np.inf)
            for row, code in enumerate(codes.tolist()):
                first, stop = np.searchsorted(users[order], [code, code + 1])
                rows = order[first:stop]
                scores[row, items[rows]] = -place[rows]
            return scores

        return CatalogueScores(of_users, USERS_AT_ONCE)


def predictions_from_frame(
    frame: Any,
    kind: Kind = "auto",
    *,
    user: str = "user",
    item: str = "item",
    column: str | None = None,
) -> Predictions:
    """Return predictions that `ordrec.evaluation.evaluate` measures like a model.

    Parameters
    ----------
    frame : DataFrame
        A row per user and item, with one of these: a column of predicted ratings (``prediction``,
        ``predicted``, ``expected``, ``est``, ``rating``); a column for each rating of the scale
        with its probability (``p_1``, ``p_2``, ... or ``1``, ``2``, ...); a column ``rank`` or
        ``place``, from 1 for the best item of a user's list, or ``score``, higher for better ones.
    kind : {"auto", "ratings", "distributions", "lists"}
        What is predicted. By default it follows from the columns: probabilities, else ranks, else
        predicted ratings, else scores.
    user, item : str
        Columns of ids, also found under other usual names.
    column : str, optional
        The column of predicted ratings, ranks or scores if it is called otherwise, with ``kind``;
        other columns than those of ranks order lists by the highest.

    Raises
    ------
    DataError
        For a pair that occurs twice, numbers that are not finite, or probabilities that do not sum
        to 1, naming the row.

    Examples
    --------
    >>> frame = pd.DataFrame({"uid": [1, 1, 2], "iid": [7, 8, 7], "est": [4.2, 3.1, 2.0]})
    >>> predictions_from_frame(frame)
    <3 ratings>
    >>> predictions_from_frame(pd.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [2, 1]}))
    <2 lists>
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    table = as_pandas(frame).reset_index(drop=True)
    if not len(table):
        raise DataError("the table has no predictions")
    names = find_pair_columns(table.columns, user, item, None)[:2]
    ids = {
        name: _ids_of(single_column(table, found), name)
        for name, found in zip(("user", "item"), names, strict=True)
    }
    pairs = pd.DataFrame(ids)
    twice = np.flatnonzero(pairs.duplicated())
    if twice.size:
        user_id, item_id = (plain(key) for key in pairs.iloc[twice[0]])
        raise DataError(
            f"row {twice[0]}: user {user_id!r} and item {item_id!r} occur twice "
            f"({twice.size} in all): keep one"
        )
    others = [name for name in table.columns if name not in names]
    if column is not None and column not in others:
        raise _no_predictions(others, f"no column {column!r}")
    chances = {} if column is not None else _probability_columns(others)
    ranks, numbers, scores = (
        [column] if column is not None else _named(others, usual)
        for usual in (RANK_NAMES, RATING_NAMES, SCORE_NAMES)
    )
    if kind == "auto":
        if column is not None:
            raise ArgumentError("column= needs kind=: ratings or lists", parameter="kind")
        found = [("distributions", chances), ("lists", ranks), ("ratings", numbers)]
        present = [name for name, there in found if there] or (["lists"] if scores else [])
        kind = present[0] if present else "auto"  # type: ignore[assignment]
    if kind == "distributions" and chances:
        return PredictedDistributions(_with_chances(pairs, table, chances))
    if kind == "ratings" and (numbers or scores):
        name = (numbers or scores)[0]
        return PredictedRatings(pairs.assign(rating=as_numbers(table[name], str(name))))
    if kind == "lists" and (ranks or scores):
        name = (ranks if column is None and ranks else scores)[0]
        values = as_numbers(table[name], str(name))
        by_rank = str(name).lower() in RANK_NAMES
        pairs = pairs.assign(order=values if by_rank else -values)
        ordered = pairs.sort_values(["user", "order"], kind="stable", ignore_index=True)
        return PredictedLists(ordered[["user", "item"]])
    raise _no_predictions(others, "no column of predictions")


def _ids_of(column: pd.Series, name: str) -> pd.Series:
    absent = np.flatnonzero(column.isna())
    if absent.size:
        raise DataError(f"row {absent[0]}: no {name} id ({absent.size} in all): drop them")
    return column


def _named(has: list[Any], usual: tuple[str, ...]) -> list[Any]:
    """The columns that have one of these names, the more usual ones first."""
    lower = {str(name).lower(): name for name in has}
    return [lower[name] for name in usual if name in lower]


def _probability_columns(has: list[Any]) -> dict[Any, float]:
    """The columns whose names are ratings, possibly behind a p; two of them at least."""
    matched = {name: PROBABILITY.fullmatch(str(name).lower()) for name in has}
    found = {name: float(match[1]) for name, match in matched.items() if match}
    return found if len(found) > 1 else {}


def _with_chances(
    pairs: pd.DataFrame, table: pd.DataFrame, columns: dict[Any, float]
) -> pd.DataFrame:
    chances = np.column_stack([as_numbers(table[name], str(name)) for name in columns])
    sums = chances.sum(axis=1)
    wrong = np.flatnonzero((chances < 0).any(axis=1) | (np.abs(sums - 1) > SUM_TOLERANCE))
    if wrong.size:
        raise DataError(
            f"row {wrong[0]}: its probabilities sum to {sums[wrong[0]]:g}, or one is negative "
            f"({wrong.size} in all): they must be a distribution over the ratings"
        )
    return pairs.join(pd.DataFrame(chances / sums[:, None], columns=list(columns.values())))


def _no_predictions(has: list[Any], said: str) -> DataError:
    return DataError(
        f"{said} (besides users and items the table has {', '.join(map(str, has)) or 'none'}): "
        "call it prediction, p_1, p_2, ... for the probabilities of ratings, rank or score, or "
        "name it with column=",
        parameter="column",
    )
