"""Why an item is recommended."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ordrec.lists.explanation import Explanation
from ordrec.lists.filters import largest_contributions

__all__ = ["RecommendationReasons"]


@dataclass(frozen=True, eq=False)
class RecommendationReasons:
    """What speaks for an item; made by `Recommender.explain`.

    Attributes
    ----------
    user, item : ids
    title : str
        Empty if unknown.
    p_pick : float
        Probability that the item is among the user's next picks; NaN for an item that only the
        rating model knows.
    expected, p_like : float or None
        Expected rating, and the probability of a high one.
    pick : DataFrame
        Which of the user's ratings speak for picking the item: ``item``, ``title`` if known,
        ``rating`` and ``contribution``, the weightiest first.
    like : Explanation or None
        What the expected rating is made of; None without a rating model.
    """

    user: Any
    item: Any
    title: str
    p_pick: float
    expected: float | None
    p_like: float | None
    pick: pd.DataFrame
    like: Explanation | None = None

    @property
    def table(self) -> pd.DataFrame:
        """What the expected rating is made of, as in `Explanation`; no rows without a model."""
        columns = ["source", "id", "rating", "contribution"]
        return pd.DataFrame(columns=columns) if self.like is None else self.like.table

    def largest(self, n: int = 10) -> pd.DataFrame:
        """Return the n weightiest reasons of each kind, and the sums of the others.

        Columns: ``why`` ("pick" or "like"), ``source``, ``id``, ``rating`` and ``contribution``, as
        in `Explanation`.
        """
        pick = self.pick.rename(columns={"item": "id"}).drop(columns="title", errors="ignore")
        pick.insert(0, "source", "own rating")
        tables = [largest_contributions(pick, n).assign(why="pick")]
        if self.like is not None:
            tables.append(self.like.largest(n).assign(why="like"))
        table = pd.concat(tables, ignore_index=True)
        return table[["why", "source", "id", "rating", "contribution"]]

    def __str__(self) -> str:
        lines = [f"{self.title or self.item} for user {self.user}"]
        if math.isnan(self.p_pick):
            lines.append("too new for a probability that it is picked")
        else:
            reasons = ", because of their ratings of" if len(self.pick) else ""
            lines.append(f"picked next with probability {self.p_pick:.0%}{reasons}")
        for row in self.pick.iloc[:5].to_dict("records"):
            name = row.get("title") or row["item"]
            lines.append(f"  {name} ({row['rating']:g})")
        if self.expected is not None:
            likely = "" if self.p_like is None else f", liked with probability {self.p_like:.0%}"
            lines.append(f"expected rating {self.expected:.2f}{likely}")
        if self.like is not None:
            lines += [f"  {line}" for line in str(self.like).splitlines()[1:]]
        return "\n".join(lines)
