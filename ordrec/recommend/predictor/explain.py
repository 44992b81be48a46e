"""The exact signed sum behind a latent score.

The score of user u for item i is a sum over training ratings ((2) of
`ordrec.recommend.process.covariance`): one term for each rating of u, one for each rating of i by
others, and the products, which all ratings share. Every term is itself a sum over kernel
components. Nothing is left over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ordrec.recommend.base import codes_of
from ordrec.recommend.process.owner_blocks import parts_of_query
from ordrec.recommend.process.posterior_mean import new_pairs

if TYPE_CHECKING:
    from ordrec.recommend.predictor.fold_in import FoldedUser
    from ordrec.recommend.predictor.model import RatingPredictor
    from ordrec.recommend.process.fitting import Process

__all__ = ["Explanation", "explain_pair"]


@dataclass(frozen=True)
class Explanation:
    """Contributions to a score, in units of the rating scale.

    Attributes
    ----------
    score : float
        The latent score, on the scale of the ratings (before the user's thresholds).
    table : DataFrame
        One row a term: ``source`` ("mean", "own rating", "other user", "shared"), ``id`` (of
        the item, the user, or the name of the product), ``rating`` where there is one, and
        ``contribution``. The contributions add up to the score.
    components : Series
        The same sum by kernel component.
    """

    score: float
    table: pd.DataFrame
    components: pd.Series

    def largest(self, n: int) -> pd.DataFrame:
        """The n weightiest rows of the table, and one that sums up the others."""
        weight = self.table["contribution"].abs().to_numpy()
        order = np.argsort(-weight, kind="stable")
        best, others = self.table.iloc[order[:n]], self.table.iloc[order[n:]]
        if len(others):
            rest = {"source": "others", "id": f"{len(others)} more", "rating": np.nan,
                    "contribution": others["contribution"].sum()}  # fmt: skip
            best = pd.concat([best, pd.DataFrame([rest])])
        return best.reset_index(drop=True)

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
    model: RatingPredictor, user: Any, item: Any, timestamp: int | None
) -> Explanation:
    """Take the score of one pair apart."""
    folded = model.folded_.get(user)
    process, data = model.process_, model.process_.data
    if not timestamp:
        process = process.without_times
    user_code, item_code = (
        int(codes_of(ids, [key])[0])
        for ids, key in ((model.user_ids_, user), (model.item_ids_, item))
    )
    u = user_code if user_code >= 0 else data.n_users - 1
    i = item_code if item_code >= 0 else data.n_items - 1
    time = np.array([float(timestamp or 0)])
    terms = _Terms(model, process)
    pairs = new_pairs(data, np.array([u]), np.array([i]), time)
    prior = data.prior_mean(pairs.by_user.entry, pairs.by_user.x, pairs.by_user.seen)[0]
    terms.add_mean(prior)
    if folded is not None:
        folded_terms(terms, process, folded, i, time)
        return terms.explanation()
    start, K = data.item_side.start, process.K
    part = parts_of_query(data.item_side, K.item_weights, u, pairs.by_user)
    own = slice(start[u], start[u + 1])
    terms.add_own(data.item_side.entry[own], model.levels_[own], part * process.a[own])
    rest = slice(data.user_side.start[i], data.user_side.start[i + 1])
    part = parts_of_query(data.user_side, K.user_weights, i, pairs.by_item)
    rows = data.by_item[rest]
    terms.add_others(data.users[rows], model.levels_[rows], part * process.a[rows])
    psi, phi = data.products.psi[u].astype(np.float64), data.products.phi[i].astype(np.float64)
    terms.add_shared(np.outer(psi, phi) * (K.omega * process.table))
    return terms.explanation()


def folded_terms(
    terms: _Terms, process: Process, folded: FoldedUser, i: int, time: np.ndarray
) -> None:
    """Terms of a user who was folded in."""
    data, K, items = process.data, process.K, np.array([i])
    a = folded.a if time[0] > 0 else folded.undated
    rows = folded.item_rows(process, items, time, *folded.trained(process, items))[0]
    terms.add_own(folded.items, folded.levels, rows * a)
    if not data.two_sided:
        return
    part, variance = folded.user_terms(process, i)
    rest = slice(data.user_side.start[i], data.user_side.start[i + 1])
    at = data.by_item[rest]
    others = data.users[at] != folded.code
    terms.add_others(data.users[at[others]], terms.model.levels_[at[others]], part[:, others])
    own = np.flatnonzero(folded.items == i)
    terms.add_own(folded.items[own], folded.levels[own], variance[:, None] * a[own], "user")
    phi = data.products.phi[i].astype(np.float64)
    terms.add_shared(np.outer(folded.psi, phi) * K.omega * folded.table(process, a))


class _Terms:
    """Collects terms by source and by component."""

    def __init__(self, model: RatingPredictor, process: Process):
        self.model, self.process = model, process
        self.rows: list[pd.DataFrame] = []
        self.components: dict[str, float] = {}
        layout = process.K.weights.layout
        n_item, n_user, _ = layout.counts
        self.names = {
            "item": layout.names[:n_item],
            "user": layout.names[n_item : n_item + n_user],
        }

    def add_mean(self, prior: float) -> None:
        units = self.model.units_
        self._rows("mean", ["mean"], [np.nan], np.array([float(units.outward(prior))]))
        self.components["mean"] = float(units.outward(prior))

    def add_own(
        self, items: np.ndarray, levels: np.ndarray, part: np.ndarray, side: str = "item"
    ) -> None:
        self._ratings("own rating", self.model.item_ids_.take(items), levels, part, side)

    def add_others(self, users: np.ndarray, levels: np.ndarray, part: np.ndarray) -> None:
        self._ratings("other user", self.model.user_ids_.take(users), levels, part, "user")

    def add_shared(self, table: np.ndarray) -> None:
        products = self.process.data.products
        sums = products.by_group(table) / self.model.units_.scale
        names = [f"{a}*{b}" for a, b in products.names]
        self._rows("shared", names, [np.nan] * len(names), sums)
        for name, value in zip(names, sums, strict=True):
            self.components[f"product.{name}"] = float(value)

    def _ratings(
        self, source: str, ids: Any, levels: np.ndarray, part: np.ndarray, side: str
    ) -> None:
        K = self.process.K
        weights = (K.item_weights if side == "item" else K.user_weights).weights
        terms = part * weights[:, None] / self.model.units_.scale
        self._rows(source, ids, self.model.scale_.values[levels], terms.sum(axis=0))
        for name, value in zip(self.names[side], terms.sum(axis=1), strict=True):
            self.components[name] = self.components.get(name, 0.0) + float(value)

    def _rows(self, source: str, ids: Any, ratings: Any, values: np.ndarray) -> None:
        if len(values):
            columns = {"source": source, "id": np.asarray(ids, dtype=object), "rating": ratings,
                       "contribution": values}  # fmt: skip
            self.rows.append(pd.DataFrame(columns))

    def explanation(self) -> Explanation:
        table = pd.concat(self.rows, ignore_index=True)
        components = pd.Series({k: v for k, v in self.components.items() if v != 0.0})
        return Explanation(float(table["contribution"].sum()), table, components)
