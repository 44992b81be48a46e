"""The exact signed sum behind a latent score.

The score of user u for item i is a sum over training ratings ((1) of
`ordrec.rating.process.solve.posterior_mean`): one term for each rating of u, one for each rating of
i by others, and the products, which all ratings share. Every term is itself a sum over kernel
components. There is no remainder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ordrec.lists.explanation import Explanation, largest_contributions
from ordrec.rating.process.fit import FittedPredictor
from ordrec.rating.process.fold_in import FoldedUser
from ordrec.rating.process.solve.fitting import Process
from ordrec.rating.process.solve.owner_blocks import parts_of_query
from ordrec.rating.process.solve.posterior_mean import NewPairs, new_pairs

__all__ = ["ScoreExplanation", "explain_pair"]


@dataclass(frozen=True, eq=False)
class ScoreExplanation(Explanation):
    """An `Explanation` of the process's score, in units of the rating scale.

    Attributes
    ----------
    expected, score : float
        The latent score, on the scale of the ratings (before the user's thresholds).
    table : DataFrame
        One row per term: ``source`` ("mean", "own rating", "other user", "shared"), ``id`` (of
        the item, the user, or the name of the product), ``rating`` where there is one, and
        ``contribution``. The contributions add up to the score.
    components : Series
        The same sum by kernel component.
    """

    expected: float
    components: pd.Series | None = None

    @property
    def score(self) -> float:
        """The latent score."""
        return self.expected

    def largest(self, n: int = 10) -> pd.DataFrame:
        """Return the n largest contributions, and one row with the sum of the others."""
        return largest_contributions(self.table, n)

    def __str__(self) -> str:
        lines = [f"score {self.score:.2f}"]
        for row in self.largest(8).itertuples():
            why = {
                "mean": "the mean of all ratings",
                "others": f"from {row.id}",
                "own rating": f"because you gave {row.rating:g} to {row.id}",
                "other user": f"because {row.id} gave it {row.rating:g}",
                "shared": f"from all ratings ({row.id})",
            }[str(row.source)]
            lines.append(f"{row.contribution:+.2f} {why}")
        return "\n".join(lines)


def explain_pair(
    fitted: FittedPredictor,
    user_code: int,
    item_code: int,
    timestamp: float,
    folded: FoldedUser | None = None,
) -> ScoreExplanation:
    """Take the score of one pair apart; codes are -1 for the unknown.

    ``folded`` is the user's own part of the model if they were folded in.
    """
    process, data = fitted.process, fitted.process.data
    if not timestamp:
        process = process.without_times
    u = user_code if user_code >= 0 else data.n_users - 1
    i = item_code if item_code >= 0 else data.n_items - 1
    time = np.array([timestamp])
    terms = _Terms(fitted, process)
    pairs = new_pairs(data, np.array([u]), np.array([i]), time)
    prior = data.prior_mean(pairs.by_user.entry, pairs.by_user.x, pairs.by_user.seen)[0]
    terms.add_mean(prior)
    if folded is None:
        _add_trained(terms, process, pairs)
    else:
        _add_folded(terms, process, folded, i, time)
    return terms.explanation()


def _add_trained(terms: _Terms, process: Process, pairs: NewPairs) -> None:
    """Add the terms of a single pair whose user was in training, or is unknown."""
    data, K, u, i = process.data, process.K, int(pairs.users[0]), int(pairs.items[0])
    own = slice(data.item_side.start[u], data.item_side.start[u + 1])
    part = parts_of_query(data.item_side, K.item_weights, pairs.by_user)
    terms.add_own(data.item_side.entry[own], data.levels[own], part * process.a[own])
    rows = data.by_item[data.user_side.start[i] : data.user_side.start[i + 1]]
    part = parts_of_query(data.user_side, K.user_weights, pairs.by_item)
    terms.add_others(data.users[rows], data.levels[rows], part * process.a[rows])
    psi, phi = data.products.psi[u].astype(np.float64), data.products.phi[i].astype(np.float64)
    terms.add_shared(np.outer(psi, phi) * (K.omega * process.table))


def _add_folded(
    terms: _Terms, process: Process, folded: FoldedUser, i: int, time: np.ndarray
) -> None:
    """Add the terms of a user who was folded in."""
    data, K, items = process.data, process.K, np.array([i])
    a = folded.a if time[0] > 0 else folded.undated
    part = folded.item_rows(process, items, time, *folded.trained(process, items))[0]
    terms.add_own(folded.items, folded.levels, part * a)
    if not data.two_sided:
        return
    part, variance = folded.user_terms(process, i)
    rows = data.by_item[data.user_side.start[i] : data.user_side.start[i + 1]]
    others = data.users[rows] != folded.code
    terms.add_others(data.users[rows[others]], data.levels[rows[others]], part[:, others])
    own = np.flatnonzero(folded.items == i)
    terms.add_own(folded.items[own], folded.levels[own], variance[:, None] * a[own], "user")
    phi = data.products.phi[i].astype(np.float64)
    terms.add_shared(np.outer(folded.psi, phi) * K.omega * folded.table(process, a))


class _Terms:
    """Collects terms by source and by component."""

    def __init__(self, fitted: FittedPredictor, process: Process):
        self.fitted, self.process = fitted, process
        self.rows: list[pd.DataFrame] = []
        self.components: dict[str, float] = {}
        layout = process.K.weights.layout
        self.names = {side: layout.side_names(side) for side in ("item", "user")}

    def add_mean(self, prior: float) -> None:
        units = self.fitted.units
        self._rows("mean", ["mean"], [np.nan], np.array([float(units.outward(prior))]))
        self.components["mean"] = float(units.outward(prior))

    def add_own(
        self, items: np.ndarray, levels: np.ndarray, part: np.ndarray, side: str = "item"
    ) -> None:
        self._ratings("own rating", self.fitted.item_ids.take(items), levels, part, side)

    def add_others(self, users: np.ndarray, levels: np.ndarray, part: np.ndarray) -> None:
        self._ratings("other user", self.fitted.user_ids.take(users), levels, part, "user")

    def add_shared(self, table: np.ndarray) -> None:
        products = self.process.data.products
        sums = products.by_group(table) / self.fitted.units.scale
        names = [f"{a}*{b}" for a, b in products.names]
        self._rows("shared", names, [np.nan] * len(names), sums)
        for name, value in zip(names, sums, strict=True):
            self.components[f"product.{name}"] = float(value)

    def _ratings(
        self, source: str, ids: Any, levels: np.ndarray, part: np.ndarray, side: str
    ) -> None:
        K = self.process.K
        weights = (K.item_weights if side == "item" else K.user_weights).weights
        terms = part * weights[:, None] / self.fitted.units.scale
        self._rows(source, ids, self.fitted.scale.values[levels], terms.sum(axis=0))
        for name, value in zip(self.names[side], terms.sum(axis=1), strict=True):
            self.components[name] = self.components.get(name, 0.0) + float(value)

    def _rows(self, source: str, ids: Any, ratings: Any, values: np.ndarray) -> None:
        if len(values):
            columns = {"source": source, "id": np.asarray(ids, dtype=object), "rating": ratings,
                       "contribution": values}  # fmt: skip
            self.rows.append(pd.DataFrame(columns))

    def explanation(self) -> ScoreExplanation:
        table = pd.concat(self.rows, ignore_index=True)
        components = pd.Series({k: v for k, v in self.components.items() if v != 0.0})
        return ScoreExplanation(float(table["contribution"].sum()), table, components=components)
