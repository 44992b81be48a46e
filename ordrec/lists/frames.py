"""Tables of pairs of users and items: reading them from csv, adding predictions to them."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import find_pair_columns
from ordrec.data.formats.archives import prefix_errors
from ordrec.data.ids import ids_like
from ordrec.data.read import load_texts
from ordrec.data.times import seconds_of
from ordrec.errors import ArgumentError, DataError
from ordrec.ordinal.decisions import decide

__all__ = ["predict_pairs", "read_pairs"]

OPTIONAL = {"timestamps": "timestamp", "scores": "score"}  # argument of a model, column of a table


def predict_pairs(model: Any, pairs: pd.DataFrame, *, proba: bool = True) -> pd.DataFrame:
    """Return a model's predictions for a table with the columns user and item.

    Parameters
    ----------
    model : object
        A fitted rating or ranking model.
    pairs : DataFrame
        A column ``timestamp`` is passed to models that use times, a column ``score`` to
        `PersonalThresholds` without a wrapped model.
    proba : bool
        Whether the expected rating and the probability of each scale value are added, for
        models that have them.

    Returns
    -------
    DataFrame
        user, item, ``rating`` (``score`` for a ranking model), the distribution, and whether the
        model knows the user and the item.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import RatingHistogram
    >>> model = RatingHistogram().fit(synthetic_ratings(10, 10, n_ratings=50, seed=0))
    >>> table = predict_pairs(model, pd.DataFrame({"user": [0, 99], "item": [1, 1]}))
    >>> table["known_user"].tolist()
    [True, False]
    """
    for column in ("user", "item"):
        if column not in pairs:
            raise ArgumentError(f"no column {column!r} in the table of pairs")
    users, items = pairs["user"].to_numpy(), pairs["item"].to_numpy()
    frame = pd.DataFrame({"user": users, "item": items})
    if not hasattr(model, "predict"):
        frame["score"] = model.scores(users, items)
    else:
        taken = set(inspect.signature(model.predict).parameters)
        if getattr(model, "model", None) is not None:
            taken.discard("scores")  # the wrapped model computes them
        more = {
            name: pairs[column].to_numpy()
            for name, column in OPTIONAL.items()
            if name in taken and column in pairs
        }
        decision = getattr(model, "decision", None)
        p = None
        if hasattr(model, "predict_proba") and (proba or decision is not None):
            p = model.predict_proba(users, items, **more)
        if decision is None or p is None:
            frame["rating"] = model.predict(users, items, **more)
        else:
            frame["rating"] = decide(p, decision, model.scale_.values)
        if proba and p is not None:
            frame["expected"] = p @ model.scale_.values
            for k, value in enumerate(model.scale_.values):
                frame[f"p_{value:g}"] = p[:, k]
    frame["known_user"], frame["known_item"] = model._known(users, items)
    return frame


# ---- csv -------------------------------------------------------------------------------


def read_pairs(
    path: str | Path,
    model: Any,
    *,
    user: str = "user",
    item: str = "item",
    timestamp: str | None = "timestamp",
    separator: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read pairs from a csv file with columns user, item and optionally timestamp and score.

    Ids are read in the type of the model's ids, numbers or strings. Other columns are ignored.

    Parameters
    ----------
    path : path
    model : fitted model
    user, item, timestamp : str
        Column names, as in `ordrec.datasets.load_ratings`; times may be unknown.
    separator : str, optional
        The character between the fields; found by itself if omitted.
    encoding : str, optional
        How the characters are written, such as "latin-1"; UTF-8 by default.

    Raises
    ------
    DataError
        If the file cannot be read; the message names the faulty rows (0-based, without header).
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    table = load_texts(path, separator=separator, encoding=encoding)
    with prefix_errors(str(path)):
        user, item, timestamp = find_pair_columns(table, user, item, timestamp)
        pairs = {
            "user": ids_like(model.user_ids_, table[user], user),
            "item": ids_like(model.item_ids_, table[item], item),
        }
        if timestamp is not None:
            pairs["timestamp"] = seconds_of(table[timestamp], timestamp)
        if "score" in table:
            numbers = pd.to_numeric(table["score"], errors="coerce").to_numpy(np.float64)
            wrong = np.flatnonzero(~np.isfinite(numbers))
            if wrong.size:
                raise DataError(
                    f"row {wrong[0]} ({table['score'].iloc[wrong[0]][:30]!r}): score is not a "
                    f"number ({wrong.size} in all): correct or drop them"
                )
            pairs["score"] = numbers
    return pd.DataFrame(pairs)
