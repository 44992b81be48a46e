"""Ids of users and items named on the command line or in files, for a fitted model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ordrec.errors import visible

if TYPE_CHECKING:
    import pandas as pd

    from ordrec.cli.reading import Reading

__all__ = ["caps_of_texts", "id_of", "ids_of_file", "note_if_unknown", "rule_of_file"]


def id_of(known: pd.Index, text: str, option: str) -> Any:
    """Return an id in the type of the model's ids, a number or a string."""
    from ordrec.data.ids import ids_like
    from ordrec.errors import ArgumentError, DataError

    try:
        return ids_like(known, [text], option).tolist()[0]
    except DataError:
        raise ArgumentError(
            f"{option} {text!r}: the ids of this model look like {known[0]}"
        ) from None


def ids_of_file(
    known: pd.Index, path: Path, kind: str, option: str, column: str | None = None
) -> list[Any]:
    """Return those ids in a file that a model knows, and say on standard error which it does not.

    Parameters
    ----------
    known : Index
        The ids of the model.
    path : Path
        One id per line, or a csv with a header that names the column of ids.
    kind : {"user", "item"}
    option : str
        The option that names the file, for messages.
    column : str, optional
        The column of ids, if it is not called as ids usually are.
    """
    from ordrec.data.ids import ids_like
    from ordrec.errors import ArgumentError, DataError

    texts = list(dict.fromkeys(_ids_in(path, kind, option, column)))
    found: list[Any] = []
    unknown: list[str] = []
    for text in texts:
        try:
            key = ids_like(known, [text], kind).tolist()[0]
        except DataError:  # no number, as all ids of the model are
            unknown.append(text)
            continue
        (found if key in known else unknown).append(key)
    if unknown:
        shown = ", ".join(visible(str(key)) for key in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        said = f"{option} {path}: {len(unknown)} of {len(texts)} {kind}s are not in the model"
        if not found and option != "--exclude":
            raise ArgumentError(f"{said} ({shown}{more}): its ids look like {known[0]}")
        print(f"ordrec: {said} and are left out: {shown}{more}", file=sys.stderr)
    return found


def rule_of_file(fitted: Any, path: Path, option: str, reading: Reading) -> Any:
    """Return the items in a file, or, where it has columns of users and items, its pairs."""
    import pandas as pd

    from ordrec.data.ids import ids_like

    lines = _rows_in(path, "item", option)
    header = [name.strip() for name in lines[0][1]]
    of_users = _column_of(header, "user", reading.user_col)
    of_items = _column_of(header, "item", reading.item_col)
    if of_users is None or of_items is None:
        return ids_of_file(fitted.item_ids_, path, "item", option, reading.item_col)
    pairs = {}
    for kind, name, known in (
        ("user", of_users, fitted.user_ids_),
        ("item", of_items, fitted.item_ids_),
    ):
        pairs[kind] = ids_like(known, _texts_at(lines[1:], header.index(name), path, kind), kind)
    return pd.DataFrame(pairs)


def caps_of_texts(texts: list[str]) -> dict[str, int]:
    """Return what ``--at-most genre=3`` says."""
    from ordrec.errors import ArgumentError

    caps = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not number.isdecimal():
            raise ArgumentError(f"--at-most {text}: write it as genre=3")
        caps[name] = int(number)
    return caps


def _ids_in(path: Path, kind: str, option: str, column: str | None) -> list[str]:
    """The ids in a file as they are written."""
    from ordrec.errors import ArgumentError

    lines = _rows_in(path, kind, option)
    header = [name.strip() for name in lines[0][1]]
    if column is not None and header.count(column) != 1:
        raise ArgumentError(
            f"{option}: {path} has {header.count(column) or 'no'} columns {column!r}: its first "
            f"line is {', '.join(header)}"
        )
    name = _column_of(header, kind, column)
    if name is not None:
        at = header.index(name)
        lines = lines[1:]
    elif all(len(row) == 1 for _, row in lines):
        at = 0
    else:
        raise ArgumentError(
            f"{option}: {path} has no column {kind!r}, and more than one id per line: put a line "
            f"with the names of its columns first, one of which is {kind!r}, or name the column "
            f"with --{kind}-col"
        )
    if not lines:
        raise ArgumentError(f"{option}: {path} has a header and no ids: write one per line")
    return _texts_at(lines, at, path, kind)


def _column_of(header: list[str], kind: str, column: str | None) -> str | None:
    """The column of ids of a kind; None if there is none, or there are several."""
    from ordrec.data.columns import is_usual_name

    named = [kind] if kind in header else [n for n in header if is_usual_name(n, kind)]
    if column is not None:
        named = [name for name in header if name == column]
    return named[0] if len(named) == 1 else None


def _texts_at(lines: list[tuple[int, list[str]]], at: int, path: Path, kind: str) -> list[str]:
    """What stands in one column."""
    from ordrec.errors import DataError

    short = next((line for line, row in lines if len(row) <= at or not row[at].strip()), None)
    if short is not None:
        raise DataError(f"{path}, line {short}: no {kind} id: fill it in, or remove the line")
    return [row[at] for _, row in lines]


def _rows_in(path: Path, kind: str, option: str) -> list[tuple[int, list[str]]]:
    """The lines of a file that are not blank, with their numbers."""
    import csv

    from ordrec.data.formats.archives import open_source
    from ordrec.errors import ArgumentError, DataError

    if not path.is_file():
        raise ArgumentError(f"{option}: there is no file {path}")
    with open_source(path) as source:
        member = next(iter(source.members)) if len(source.members) == 1 else ""
        if not member:
            raise ArgumentError(f"{option}: {path} holds {len(source.members)} files: name one")
        text = source.text(member, ("utf-8", "latin-1"))
    try:
        sample = text.partition("\n")[0]
        separator = max(",;\t", key=sample.count)
        rows = list(csv.reader(text.splitlines(), delimiter=separator, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}: not a csv table ({error}): correct the line") from None
    lines = [(line, row) for line, row in enumerate(rows, start=1) if any(map(str.strip, row))]
    if not lines:
        raise ArgumentError(f"{option}: {path} is empty: write one {kind} id per line")
    return lines


def note_if_unknown(fitted: Any, user: Any, item: Any = None) -> None:
    """Print a line on standard error for a user or an item that the model does not know."""
    first_item = fitted.item_ids_[:1]
    known_user, known_item = fitted._known([user], first_item if item is None else [item])
    if not known_user[0]:
        why = "" if len(fitted.user_ids_) else ", which was fitted from disk and keeps no users"
        remedy = "" if len(fitted.user_ids_) else " ('ordrec update' brings in their ratings)"
        print(
            f"ordrec: user {user!r} is not in the model{why}: an average user is used instead"
            f"{remedy}",
            file=sys.stderr,
        )
    if item is not None and not known_item[0]:
        print(
            f"ordrec: item {item!r} is not in the model: an average item is used instead",
            file=sys.stderr,
        )
