"""What a served model answers: plain lists and numbers, whatever the model can do."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from ordrec.choice.ordered import OrderedChoice
from ordrec.data import Ratings
from ordrec.data.times import seconds_of
from ordrec.errors import ArgumentError, OrdrecError
from ordrec.lists.best import RatingOrder, best_by_rating
from ordrec.lists.frames import predict_pairs
from ordrec.lists.listing import ListingModel
from ordrec.models.base import codes_of
from ordrec.serve.catalogue import Catalogue, as_ids, plain_id

__all__ = ["ServedModel"]

DIGITS = 6
MOST_KEPT = 5_000  # lists of users, of some kilobytes each
MOST_AT_ONCE = 200_000  # items of which a model without lists of its own is asked


class ServedModel:
    """A fitted model that answers one request at a time and never changes.

    Parameters
    ----------
    model : fitted model
        Any that can be saved. What it cannot do is refused with a sentence, and left out of rows.
    name : str
        Shown on the page.

    Attributes
    ----------
    abilities : dict of bool
        Of "distributions", "recommend", "explain" and "fold_in", found by trying each once; this
        also compiles what must be compiled, so that the first visitor does not wait for it.
    """

    def __init__(self, model: Any, name: str = "") -> None:
        self._model, self._lock = model, threading.Lock()
        self._kept = _KeptAnswers(MOST_KEPT)
        self.name = name or type(model).__name__
        self.items = Catalogue(model)
        self.abilities = self._tried()

    def about(self) -> dict[str, Any]:
        """Return what the page must know: the scale, the sizes, and what the model can do."""
        scale = self._model.scale_
        values = scale.values[1:] if scale.only_picks else scale.values
        like = getattr(self._model, "like_", None)
        return {
            "name": self.name,
            "model": type(self._model).__name__,
            "n_users": len(self._model.user_ids_),
            "n_items": len(self._model.item_ids_),
            "scale": values.tolist(),
            "low": float(values[0] if scale.only_picks else scale.low),
            "high": float(values[-1] if scale.only_picks else scale.high),
            "binned": scale.edges is not None and not scale.only_picks,
            "like": scale.liked_from if like is None else float(like),
            "can": self.abilities,
        }

    def example(self) -> dict[str, Any]:
        """Return a user, an item and a rating that the model knows."""
        return {
            "user": plain_id(self._model.user_ids_[0]),
            "item": plain_id(self.items.search("", 1)[0]),
            "rating": float(self._model.scale_.values[-1]),
        }

    # ---- the four questions -------------------------------------------------------------------

    def predict(self, pairs: list[tuple[int | str, int | str, str]]) -> list[dict[str, Any]]:
        """Return a rating and its distribution for each user, item and time (may be "")."""
        users, items, times = zip(*pairs, strict=True)
        frame = pd.DataFrame(
            {
                "user": pd.Series(self.items.ids_of(list(users), "user")),
                "item": pd.Series(self.items.ids_of(list(items), "item")),
                "timestamp": seconds_of(times),
            }
        )
        with self._lock:
            table = predict_pairs(self._model, frame, proba=self.abilities["distributions"])
        spread = [column for column in table if str(column).startswith("p_")]
        rows = []
        for row in table.to_dict("records"):
            title = self.items.titles.get(row["item"], "")
            rows.append(
                {"user": plain_id(row["user"]), "item": plain_id(row["item"]), "title": title}
                | _numbers({name: row.get(name) for name in ("rating", "score", "expected")})
                | {"known_user": bool(row["known_user"]), "known_item": bool(row["known_item"])}
                | {"distribution": _rounded([row[name] for name in spread]) if spread else None}
            )
        return rows

    def recommend(
        self,
        user: int | str,
        n: int,
        n_reasons: int,
        *,
        exclude: list[int | str] | None = None,
        only: list[int | str] | None = None,
    ) -> dict[str, Any]:
        """Return the best items for a user, without those to exclude, or of some only."""
        known = self.items.ids_of([user], "user")[0]
        filters = self._filters(exclude, only)
        kept = None if filters else (known, n, n_reasons)
        answer = self._kept.get(kept)
        if answer is None:
            answer = self._recommended(known, n, n_reasons, filters)
            if kept is not None:
                self._kept.keep(kept, answer)
        return answer

    def _recommended(
        self, known: Any, n: int, n_reasons: int, filters: dict[str, list[Any]]
    ) -> dict[str, Any]:
        with self._lock:
            rows, order = self._listed(self._model, known, n, filters)
            rows = self._with_details(self._model, known, rows, n_reasons)
        return {
            "user": plain_id(known),
            "known_user": self.items.knows_user(known),
            "ordered_by": order,
            "items": rows,
        }

    def explain(self, user: int | str, item: int | str, when: str, n: int) -> dict[str, Any]:
        """Return why a model thinks what it thinks of one pair."""
        known, item_id = self.items.ids_of([user], "user")[0], self.items.id_of(item)
        if not self.abilities["explain"]:
            raise ArgumentError(f"a {type(self._model).__name__} cannot explain its predictions")
        seconds = int(seconds_of([when])[0]) or None
        with self._lock:
            rows = self._with_details(self._model, known, [{"item": item_id}], n, seconds)
        return {"user": plain_id(known), "known_user": self.items.knows_user(known)} | rows[0]

    def fold_in(
        self,
        ratings: list[tuple[int | str, float]],
        n: int,
        n_reasons: int,
        items: list[int | str] | None = None,
        *,
        exclude: list[int | str] | None = None,
        only: list[int | str] | None = None,
        ordered: bool = False,
    ) -> dict[str, Any]:
        """Return the list of somebody who has given these ratings, or what they think of items.

        With ``ordered``, the ratings are in the order in which they were given, the newest last.
        """
        filters = self._filters(exclude, only)
        if items is not None and filters:
            raise ArgumentError("items are answered as asked: send them without exclude and only")
        visitor = self.items.new_user()
        rated = [(self.items.id_of(item), value) for item, value in ratings]
        asked = None if items is None else [{"item": self.items.id_of(item)} for item in items]
        with self._lock:
            model = self._with_visitor(visitor, rated, ordered)
            order = "as asked"
            if asked is None:
                asked, order = self._listed(model, visitor, n, filters)
            rows = self._with_details(model, visitor, asked, n_reasons)
        return {"ordered_by": order, "items": rows}

    # ---- the steps ----------------------------------------------------------------------------

    def _filters(
        self, exclude: list[int | str] | None, only: list[int | str] | None
    ) -> dict[str, list[Any]]:
        """The ids of items to leave out, or to list at most; an unknown one is refused by name."""
        return {
            name: [self.items.id_of(each) for each in written]
            for name, written in (("exclude", exclude), ("only", only))
            if written is not None
        }

    def _with_visitor(
        self, visitor: Any, rated: list[tuple[Any, float]], ordered: bool = False
    ) -> Any:
        """A model that knows one user more; the served one stays as it is.

        Ratings whose order is known are the newest of all, one a second, for a model whose lists
        look at times.
        """
        if not hasattr(self._model, "fold_in"):
            raise ArgumentError(f"a {type(self._model).__name__} cannot take in new users")
        if not rated:
            return self._model
        items, values = zip(*rated, strict=True)
        scale = self._model.scale_
        for place in np.flatnonzero(scale.levels_of(np.array(values)) < 0)[:1]:
            raise ArgumentError(
                f"ratings[{place}].rating: {values[place]:g} is not on the scale of the model, "
                f"{', '.join(f'{value:g}' for value in scale.values)}"
                if scale.edges is None
                else f"ratings[{place}].rating: {values[place]:g} is not between {scale.low:g} and "
                f"{scale.high:g}"
            )
        frame = pd.DataFrame({"user": visitor, "item": items, "rating": values})
        choice = getattr(self._model, "choice_", self._model)
        if ordered and isinstance(choice, OrderedChoice):
            newest = int(choice.newest_time)
            frame["timestamp"] = np.arange(newest + 1, newest + 1 + len(items))
        return self._model.fold_in(Ratings.from_frame(frame, scale=scale))

    def _listed(
        self, model: Any, user: Any, n: int, filters: dict[str, Any] | None = None
    ) -> tuple[list[dict[str, Any]], str]:
        """Items for a user, best first, and what they are ordered by."""
        filters = filters or {}
        if isinstance(model, ListingModel):
            code = codes_of(model.user_ids_, as_ids([user], model.user_ids_))
            best, columns = model.lists(code, n, model.item_filter(**filters))
            there = best[0] >= 0
            items = model.item_ids_.take(best[0][there]).tolist()
            numbers = {name: values[0][there].tolist() for name, values in columns.items()}
            rows = [
                {"item": item} | _numbers({name: numbers[name][place] for name in numbers})
                for place, item in enumerate(items)
            ]
            return rows, model.ordered_by
        if not hasattr(model, "predict_proba") or len(model.item_ids_) > MOST_AT_ONCE:
            raise ArgumentError(f"a {type(model).__name__} makes no lists: serve a recommender")
        ids = model.item_ids_
        p = model.predict_proba([user] * len(ids), ids)
        listable = np.ones(len(ids), dtype=bool)
        if "only" in filters:
            listable &= ids.isin(filters["only"])
        listable &= ~ids.isin(filters.get("exclude", []))
        best, _ = best_by_rating(p, listable[None], model.scale_, n, RatingOrder())
        return [{"item": item} for item in ids.take(best[0][best[0] >= 0])], "expected"

    def _with_details(
        self,
        model: Any,
        user: Any,
        rows: list[dict[str, Any]],
        n_reasons: int,
        seconds: int | None = None,
    ) -> list[dict[str, Any]]:
        """Titles, distributions and reasons added to rows about items."""
        ids = [row["item"] for row in rows]
        spread: list[Any] = [None] * len(ids)
        expected: dict[Any, float] = {}
        if ids and self.abilities["distributions"]:
            times = {} if seconds is None else {"timestamps": [seconds] * len(ids)}
            users = as_ids([user] * len(ids), model.user_ids_)
            p = model.predict_proba(users, as_ids(ids, model.item_ids_), **times)
            spread = [_rounded(each) for each in p]
            expected = dict(zip(ids, p @ model.scale_.values, strict=True))
        full = []
        for row, distribution in zip(rows, spread, strict=True):
            item = row["item"]
            reasons = None
            if n_reasons and self.abilities["explain"]:
                reasons = self._reasons(model, user, item, n_reasons, seconds)
            full.append(
                {name: row.get(name) for name in ("score", "p_pick", "p_like")}
                | _numbers({"expected": expected.get(item, row.get("expected"))})
                | {"item": plain_id(item), "title": self.items.titles[item]}
                | {"distribution": distribution, "reasons": reasons}
            )
        return full

    def _reasons(
        self, model: Any, user: Any, item: Any, n: int, seconds: int | None
    ) -> list[dict[str, Any]]:
        """The largest contributions, those to the expected rating with its sum."""
        table = model.explain(user, item, seconds).largest(n)
        reasons = []
        for row in table.to_dict("records"):
            own = row["source"] in ("own rating", "own pick")
            reasons.append(
                {"why": row.get("why", "like"), "source": str(row["source"])}
                | {"item": plain_id(row["id"]) if own else None}
                | {"title": self.items.titles.get(row["id"], "") if own else None}
                | _numbers({name: row.get(name) for name in ("rating", "place", "contribution")})
            )
        return reasons

    def _tried(self) -> dict[str, bool]:
        model, user = self._model, self.items.new_user()
        best = self.items.search("", 2)

        def works(method: str, step: Callable[[], Any]) -> bool:
            if not hasattr(model, method):
                return False
            try:
                step()
            except OrdrecError:  # such as a recommender whose rating model takes in nobody
                return False
            return True

        rated = list(zip(best, model.scale_.values[-2:].tolist(), strict=False))
        lister = "recommend" if hasattr(model, "recommend") else "predict_proba"
        return {
            "distributions": works("predict_proba", lambda: model.predict_proba([user], best[:1])),
            "recommend": works(lister, lambda: self._listed(model, user, 1)),
            "explain": works("explain", lambda: model.explain(user, best[0]).largest(1)),
            "fold_in": works(
                "fold_in", lambda: self._listed(self._with_visitor(user, rated), user, 1)
            ),
        }


class _KeptAnswers:
    """The lists that were asked for last: a model never changes, and so neither do they.

    Examples
    --------
    >>> kept = _KeptAnswers(most=1)
    >>> kept.keep(("ann", 3, 0), {"items": []}), kept.keep(("bob", 3, 0), {"items": []})
    (None, None)
    >>> kept.get(("ann", 3, 0)) is None
    True
    """

    def __init__(self, most: int) -> None:
        self._most, self._answers = most, OrderedDict[Any, dict[str, Any]]()
        self._lock = threading.Lock()

    def get(self, key: Any) -> dict[str, Any] | None:
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def keep(self, key: Any, answer: dict[str, Any]) -> None:
        with self._lock:
            self._answers[key] = answer
            if len(self._answers) > self._most:
                self._answers.popitem(last=False)


def _numbers(row: dict[str, Any]) -> dict[str, float | None]:
    """Numbers as json can write them: rounded, and None where there is none."""
    return {
        name: None if value is None or not np.isfinite(value) else round(float(value), DIGITS)
        for name, value in row.items()
    }


def _rounded(values: Any) -> list[float]:
    return [round(float(value), DIGITS) for value in values]
