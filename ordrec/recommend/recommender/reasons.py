"""Why an item is recommended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

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
        Probability that the item is among the user's next picks.
    expected, p_like : float or None
        Expected rating, and the probability of a high one.
    pick : DataFrame
        Which of the user's ratings speak for picking the item: ``item``, ``title`` if known,
        ``rating`` and ``contribution``, the weightiest first.
    like : Explanation or None
        What the expected rating is made of, for rating models that can explain.
    """

    user: Any
    item: Any
    title: str
    p_pick: float
    expected: float | None
    p_like: float | None
    pick: pd.DataFrame
    like: Any = None

    def largest(self, n: int = 10) -> pd.DataFrame:
        """Return the n weightiest reasons to pick the item, and the sum of the others."""
        shown, rest = self.pick.iloc[:n].copy(), self.pick.iloc[n:]
        if len(rest):
            row: dict[str, Any] = dict.fromkeys(shown.columns)
            row |= {"item": f"{len(rest)} others", "contribution": rest["contribution"].sum()}
            shown = pd.concat([shown.astype({"item": object}), pd.DataFrame([row])])
        return shown.reset_index(drop=True)

    def __str__(self) -> str:
        lines = [f"{self.title or self.item} for user {self.user}"]
        lines.append(f"picked next with probability {self.p_pick:.0%}, because of their ratings of")
        for row in self.largest(5).to_dict("records"):
            rating = row["rating"]
            stars = "" if rating is None or pd.isna(rating) else f" ({rating:g})"
            name = row.get("title") or row["item"]
            lines.append(f"  {row['contribution']:+.3f}  {name}{stars}")
        if self.expected is not None:
            likely = "" if self.p_like is None else f", liked with probability {self.p_like:.0%}"
            lines.append(f"expected rating {self.expected:.2f}{likely}")
        return "\n".join(lines)
