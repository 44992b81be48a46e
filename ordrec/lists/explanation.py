"""An expected rating as a sum that a reader can follow.

With E the expected rating of the model, u the user, i the item and "-" for unknown ones:

(1) ``E(u, i) = mean + [E(-, i) - mean] + [E(u, -) - E(-, -)] + rest``: what is thought of all
    items, of this one, and how this user differs from others; the rest is their taste for this
    one. It is 0 for an unknown user and for an unknown item.
(2) The rest is shared out among the user's ratings a with ``c_a = q_i' Cov[p_u] q_a (r_a - E(-, a)
    - E(u, -) + E(-, -))``: how much a surprise about a moves the score of i, times the surprise.
    Those that speak against the rest are netted: only ``c_a`` of its sign have a share, in
    proportion.

(2) is the posterior mean of the user's factors, taken apart. With prior mean m and precision P, and
for each rating a weight w, a target z and the factors q_a, the mean p solves ``(P + sum_a w q_a
q_a') p = P m + sum_a w z q_a``. Subtract the matrix times m: ``p - m = Cov[p] sum_a w q_a (z - m'
q_a)``, a sum over ratings of the weight times the surprise, with no remainder. The weights of
ratings hardly differ, and the surprise is given in the units of the ratings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data import Ratings

__all__ = ["Explanation", "explain_rating", "largest_contributions"]

SOURCES = {
    "all ratings": "the mean of all ratings",
    "this item": "what others think of this item",
    "you": "how you rate in general",
    "taste": "your taste as a whole",
}
ROUNDING = 1e-9  # below which a term is 0
SEEN, MOST_REASONS, LINE = 0.005, 5, 80  # of an explanation in words
JUST = 4.0  # places before which a rating was given just now: the newest has place 1
Expected = Callable[[Any, Any], np.ndarray]
Influence = Callable[[Any, Any, Any], np.ndarray]


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model expects a rating of an item, and why a recommender lists the item.

    Attributes
    ----------
    expected : float or None
        The expected rating; None for a recommender without a rating model.
    table : DataFrame
        One row per term of the expected rating, in units of the ratings: ``source`` ("all
        ratings", "this item", "you", "own rating"), ``id`` (of an item that the user has rated),
        ``title`` if known, ``rating`` and ``contribution``. The contributions add up to the
        expected rating.
    user, item : ids
    title : str
        What the item is called; empty if unknown.
    p_like : float or None
        Probability that the user likes the item; only from a `Recommender`.
    p_pick : float or None
        Probability that the item is among the user's next picks; only from a `Recommender`. NaN
        for an item that only its rating model knows.
    pick : DataFrame or None
        Which of the user's ratings speak for picking the item: ``item``, ``title`` if known,
        ``rating`` (``count`` without ratings), ``place`` where the order counts (1 is the newest)
        and ``contribution``, the weightiest first; only from a `Recommender`.
    """

    expected: float | None
    table: pd.DataFrame
    user: Any = None
    item: Any = None
    title: str = ""
    p_like: float | None = None
    p_pick: float | None = None
    pick: pd.DataFrame | None = None

    def largest(self, n: int = 10) -> pd.DataFrame:
        """Return the weightiest reasons: the general terms, n others, and the sum of the rest.

        A `Recommender` also says which ratings speak for picking the item: the column ``why`` is
        then "pick" for these, and "like" for the terms of the expected rating.
        """
        general = self.table["source"].isin(SOURCES)
        others = largest_contributions(self.table[~general], n)
        like = pd.concat([self.table[general], others], ignore_index=True)
        if "title" in like:
            like = like.fillna({"title": ""})
        if self.pick is None:
            return like
        picked = "count" in self.pick
        source = "own pick" if picked else "own rating"
        pick = self.pick.rename(columns={"item": "id"}).assign(source=source)
        place = ["place"] if "place" in pick else []
        columns = ["why", "source", "id", "count" if picked else "rating", *place, "contribution"]
        parts = [largest_contributions(pick, n).assign(why="pick")[columns]]
        if self.expected is not None:
            parts.append(like.assign(why="like").reindex(columns=columns))
        return pd.concat(parts, ignore_index=True)

    def __str__(self) -> str:
        if self.pick is None:
            return "\n".join([f"expected rating {self.expected:.2f}", *self._terms()])
        lines = [f"{self.title or self.item} for user {self.user}", *self._picks()]
        if self.expected is not None:
            likely = ""
            if self.p_like is not None:
                likely = f", liked with probability {_percent(self.p_like)}"
            lines.append(f"expected rating {self.expected:.2f}{likely}")
            lines += [f"  {line}" for line in self._terms()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first line in words, and the weightiest reasons."""
        said = f"{self.title or self.item} for user {self.user}"
        if self.p_pick is not None and not math.isnan(self.p_pick):
            said += f", picked next with probability {_percent(self.p_pick)}"
        if self.expected is not None:
            said += f", expected rating {self.expected:.2f}"
        if self.p_like is not None:
            said += f", liked with probability {_percent(self.p_like)}"
        return f"<p>{escape(said)}</p>{self.largest().to_html(index=False, na_rep='')}"

    def _terms(self) -> list[str]:
        """What the expected rating is made of, in words."""
        own = self.table["source"] == "own rating"
        lines = [
            f"{row.contribution:+.2f} {SOURCES[str(row.source)]}"
            for row in self.table[~own].itertuples()
        ]
        reasons = largest_contributions(self.table[own], int(own.sum()))
        shown = (reasons["contribution"].abs() >= SEEN) & (reasons.index < MOST_REASONS)
        for row in reasons[shown].itertuples():
            lines.append(f"{row.contribution:+.2f} because you gave {_rating_in_words(row)}")
        rest = reasons[~shown]
        if len(rest):
            line = f"{rest['contribution'].sum():+.2f} from {len(rest)} "
            if shown.any():
                line += "more ratings" if len(rest) > 1 else "more rating"
            else:
                line += "of your ratings, such as "
                line += _rating_in_words(next(rest.itertuples()))
            lines.append(line)
        return [shorten(line, LINE, placeholder=" ...") for line in lines]

    def _picks(self) -> list[str]:
        """Why the item is picked, in words."""
        assert self.pick is not None
        assert self.p_pick is not None
        if math.isnan(self.p_pick):
            return ["too new for a probability that it is picked"]
        reasons = ""
        if len(self.pick):
            picked = "count" in self.pick
            reasons = f", because of their {'picks' if picked else 'ratings'} of"
        lines = [f"picked next with probability {_percent(self.p_pick)}{reasons}"]
        for row in self.pick.iloc[:MOST_REASONS].to_dict("records"):
            said = f" ({row['rating']:g})" if "rating" in row else ""
            if math.isnan(row.get("rating", row.get("count", 0.0))):
                said = " (seen)"
            if row.get("count", 1.0) > 1.0:
                said = f" ({row['count']:g} times)"
            if row.get("place", math.inf) < JUST:
                said += ", just picked" if "count" in row else ", just rated"
            lines.append(f"  {row.get('title') or row['item']}{said}")
        return lines


def largest_contributions(table: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the n rows with the largest contributions, and one row with the sum of the others.

    ``table`` has columns ``source``, ``id``, ``rating`` and ``contribution``.
    """
    weight = table["contribution"].abs().to_numpy()
    order = np.argsort(-weight, kind="stable")
    best, others = table.iloc[order[:n]], table.iloc[order[n:]]
    if len(others):
        rest = {"source": "others", "id": f"{len(others)} more", "rating": np.nan,
                "contribution": others["contribution"].sum()}  # fmt: skip
        best = pd.concat([best, pd.DataFrame([rest])])
    return best.reset_index(drop=True)


def _percent(p: float) -> str:
    """A probability in percent; one that is not 0 or 1 is never written as if it were.

    Examples
    --------
    >>> _percent(0.25), _percent(0.9999), _percent(0.0004)
    ('25%', 'over 99%', 'under 1%')
    """
    if p > 0.99:
        return "over 99%"
    return "under 1%" if 0 < p < 0.01 else f"{p:.0%}"


def _rating_in_words(row: Any) -> str:
    return f"{row.rating:g} to {getattr(row, 'title', '') or row.id}"


def explain_rating(
    expected_of: Expected,
    known: Ratings,
    history: tuple[np.ndarray, np.ndarray],
    titles: Mapping[Any, str] | None,
    user: Any,
    item: Any,
    influence: Influence | None = None,
) -> Explanation:
    """Take the expected rating of one pair apart, (1) and (2).

    Parameters
    ----------
    expected_of : callable
        Expected ratings of pairs of ids.
    known : Ratings
        All ratings that the model knows.
    history : (ndarray, ndarray)
        Item codes and levels of the user's ratings.
    titles : mapping or None
        Titles by item id.
    user, item : ids
    influence : callable or None
        ``q_i' Cov[p_u] q_a`` of a user, an item i and other items a, by ids; without it, or where
        it is 0 for all of them, the taste is one term.
    """
    values = known.scale.values
    nobody = _Nobody()
    items, levels = history
    rated = known.item_ids.take(items)

    def expected(users: list[Any], ids: Any) -> np.ndarray:
        return expected_of(pd.Index(users, dtype=object), pd.Index(ids, dtype=object))

    mean = float(known.values.mean())
    of_pair, of_user, of_nobody = expected([user, user, nobody], [item, nobody, nobody])
    of_items = expected([nobody] * (len(rated) + 1), [item, *rated])
    terms = [mean, of_items[0] - mean, of_user - of_nobody]
    rest = of_pair - sum(terms)
    if abs(rest) < ROUNDING:
        rest = 0.0
    general = pd.DataFrame(
        {"source": list(SOURCES)[:3], "id": None, "rating": np.nan, "contribution": terms}
    )
    shares = np.zeros(len(rated))
    if influence is not None and len(rated):
        surprise = values[levels] - of_items[1:] - terms[2]
        shares = np.maximum(influence(user, item, rated) * surprise * np.sign(rest), 0.0)
    if shares.sum() > 0:
        own = pd.DataFrame(
            {
                "source": "own rating",
                "id": np.asarray(rated, dtype=object),
                "rating": values[levels],
                "contribution": rest * shares / shares.sum(),
            }
        )[shares > 0]
    else:
        own = pd.DataFrame({"source": ["taste"], "contribution": [rest]})
    table = pd.concat([general.astype({"id": object}), own], ignore_index=True)
    if titles is not None:
        table.insert(2, "title", [titles.get(each, "") for each in table["id"]])
    title = "" if titles is None else titles.get(item, "")
    return Explanation(float(of_pair), table, user, item, title)


class _Nobody:
    """An id that no model knows."""
