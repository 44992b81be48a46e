"""The items of a model as people look for them: by words of a title, the best known first."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.ids import ids_like
from ordrec.errors import ArgumentError, DataError, OrdrecError
from ordrec.models.base import codes_of

__all__ = ["Catalogue", "UnknownItem", "as_ids", "plain_id"]


class UnknownItem(OrdrecError, LookupError):
    """An item that the model does not know."""


class Catalogue:
    """Ids, titles and numbers of ratings of a model's items.

    Parameters
    ----------
    model : fitted model
        Titles are its ``titles_``, or those of its rating model; without any, an item is called by
        its id.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import Popularity
    >>> items = Catalogue(Popularity().fit(synthetic_ratings(20, 12, n_ratings=100, seed=0)))
    >>> items.titles[items.id_of("7")]
    '7'
    >>> len(items.search("1", n=20))  # 1, 10 and 11
    3
    """

    def __init__(self, model: Any) -> None:
        self._ids = model.item_ids_
        self._users = model.user_ids_
        ids = self._ids.tolist()
        named = _titles_of(model) or [""] * len(ids)
        self.titles = {item: title or str(item) for item, title in zip(ids, named, strict=True)}
        order = np.argsort(-_counts_of(model), kind="stable")
        self._by_fame = [(ids[k], _folded(self.titles[ids[k]])) for k in order]

    def search(self, text: str, n: int) -> list[Any]:
        """Return the ids of n items whose titles contain all words, the most rated first."""
        words = _folded(text).split()
        found = []
        for item, title in self._by_fame:
            if all(word in title for word in words):
                found.append(item)
                if len(found) == n:
                    break
        return found

    def id_of(self, written: int | str) -> Any:
        """Return the id of a known item in the type of the model's ids."""
        item = self.ids_of([written], "item")[0]
        if item not in self.titles:
            raise UnknownItem(f"item {written!r} is not in the model: look for it in /api/items?q=")
        return item

    def ids_of(self, written: list[int | str], name: str) -> list[Any]:
        """Return ids of users or items, known or not, in the type of the model's ids."""
        known = self._users if name == "user" else self._ids
        if known.dtype == np.int64 and all(map(_is_plain_integer, written)):
            return [int(each) for each in written]
        try:
            ids = ids_like(known, [str(each) for each in written], name).tolist()
        except DataError:
            raise ArgumentError(f"{name}: the ids of this model look like {known[0]}") from None
        codes_of(known, ids)  # refuses halves of characters
        return ids

    def knows_user(self, user: Any) -> bool:
        """Whether a user was in training."""
        return bool(self.code_of_user(user) >= 0)

    def code_of_user(self, user: Any) -> int:
        """Return the place of a user among those of training, -1 for an unknown one."""
        return int(codes_of(self._users, as_ids([user], self._users))[0])

    def new_user(self) -> Any:
        """Return an id that no user has, in the type of the model's ids."""
        if self._users.dtype.kind in "iu":
            if not len(self._users):
                return 0
            last = int(self._users.max())
            largest = np.iinfo(self._users.dtype).max  # type: ignore[arg-type]
            return last + 1 if last < largest else int(self._users.min()) - 1
        name = "visitor"
        while self.knows_user(name):
            name += "'"
        return name


def as_ids(ids: list[Any], like: pd.Index) -> Any:
    """Return ids as an array where those that they are compared with are integers, too.

    Examples
    --------
    >>> as_ids([3, 4], pd.Index([1, 2, 3]))
    array([3, 4])
    """
    return np.array(ids, dtype=np.int64) if like.dtype == np.int64 else ids


def _is_plain_integer(written: int | str) -> bool:
    """Whether an id is written as integers are shown, with few enough digits for 64 bits."""
    text = str(written)
    return len(text) < 18 and text.isascii() and text.isdigit() and (text[0] != "0" or text == "0")


def plain_id(value: Any) -> str:
    """Return an id as a text: readers of json, browsers among them, round integers beyond 2^53."""
    return str(value)


def _titles_of(model: Any) -> list[str] | None:
    for part in (model, getattr(model, "rating_", None)):
        titles = getattr(part, "titles_", None)
        if titles is not None and len(titles) == len(model.item_ids_):
            return titles
    return None


def _counts_of(model: Any) -> np.ndarray:
    """How often each item was rated; zeros where the model does not remember it."""
    for part in (model, getattr(model, "choice_", None)):
        counts = getattr(part, "item_counts_", None)
        if counts is not None:
            return np.asarray(counts)
    for name in ("known_ratings", "_known_ratings"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name)().item_counts)
    return np.zeros(len(model.item_ids_))


def _folded(text: str) -> str:
    """Lower case without accents, so that "amelie" finds "Amélie"."""
    letters = unicodedata.normalize("NFKD", text)
    return "".join(each for each in letters if not unicodedata.combining(each)).casefold()
