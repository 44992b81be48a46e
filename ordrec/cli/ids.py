"""Ids of users and items named on the command line or in files, for a fitted model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["id_of", "ids_of_file", "note_if_unknown"]


def id_of(known: pd.Index, text: str, option: str) -> Any:
    """Return an id in the type of the model's ids, a number or a string."""
    from ordrec.errors import ArgumentError, DataError
    from ordrec.lists.frames import ids_like

    try:
        return ids_like(known, [text], option).tolist()[0]
    except DataError:
        raise ArgumentError(
            f"{option} {text!r}: the ids of this model look like {known[0]}"
        ) from None


def ids_of_file(known: pd.Index, path: Path, column: str, option: str) -> Any:
    """Return the ids in a file, in the type of the model's ids."""
    import pandas as pd

    from ordrec.errors import ArgumentError
    from ordrec.lists.frames import ids_like

    if not path.is_file():
        raise ArgumentError(f"{option}: there is no file {path}")
    table = pd.read_csv(path, dtype=str, header=None, keep_default_na=False)
    first = table.iloc[0].tolist() if len(table) else []
    if column in first:
        texts = table[first.index(column)].iloc[1:]
    elif table.shape[1] == 1:
        texts = table[0]
    else:
        raise ArgumentError(f"{path}: no column {column!r}, and more than one id per line")
    return ids_like(known, texts.tolist(), str(path))


def note_if_unknown(fitted: Any, user: Any, item: Any = None) -> None:
    """Print a line on standard error for a user or an item that the model does not know."""
    first_item = fitted.item_ids_[:1]
    known_user, known_item = fitted._known([user], first_item if item is None else [item])
    if not known_user[0]:
        print(
            f"ordrec: user {user!r} is not in the model: an average user is used instead",
            file=sys.stderr,
        )
    if item is not None and not known_item[0]:
        print(
            f"ordrec: item {item!r} is not in the model: an average item is used instead",
            file=sys.stderr,
        )
