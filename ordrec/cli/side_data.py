"""Options that name tables of users and items, and what is said about them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ordrec.cli.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

    from ordrec.data import Ratings

ItemsOption = Annotated[
    Path | None,
    typer.Option(
        "--items",
        metavar="FILE",
        help="A csv or parquet table of items: a column of ids (item, item_id, movieId, ...) and "
        "any others: numbers, categories, labels (a|b), text.",
    ),
]
UsersOption = Annotated[
    Path | None,
    typer.Option("--users", metavar="FILE", help="A table of users, likewise."),
]


def with_side_data(
    ratings: Ratings,
    reading: Reading,
    users: Path | None,
    items: Path | None,
    *,
    new_items: Literal[False, "all", "beside known ones"] = False,
) -> Ratings:
    """Add the tables in these files to ratings, and say on standard error what they hold.

    A column of ids may be called as in the table of ratings. With ``new_items``, the items that
    nobody has rated are added, of any table or of one that also describes rated ones.
    """
    from ordrec.data.formats.archives import prefix_errors
    from ordrec.errors import visible
    from ordrec.features import SideEncoder

    for kind, path in (("user", users), ("item", items)):
        if path is None:
            continue
        table = read_side_table(path, kind, reading)
        with prefix_errors(str(path)):
            given = {f"{kind}_table": table}
            if new_items == "beside known ones":
                ratings.with_side_tables(**given)  # refuses a table none of whose ids is known
            ratings = ratings.with_side_tables(
                **given, new_items=bool(new_items) and kind == "item"
            )
        added = getattr(ratings, f"{kind}_table")
        columns = SideEncoder().fit(added).columns_
        said = [f"{name} ({use})" for name, use in columns.items()]
        print(
            f"ordrec: {path}: {len(table)} rows for {len(added)} {kind}s; "
            f"{visible(', '.join(said))}",
            file=sys.stderr,
        )
    return ratings


def read_side_table(path: Path, kind: str, reading: Reading) -> pd.DataFrame:
    """The table of users or items in a file, its column of ids called by the kind."""
    from ordrec.datasets import load_side_table

    column = reading.user_col if kind == "user" else reading.item_col
    table = load_side_table(path, id_column=column, encoding=reading.encoding)
    if column in table and kind not in table:
        table = table.rename(columns={column: kind})
    return table


def say_if_unused(fitted: Any, name: str) -> None:
    """Say on standard error that a model has not used the side data, if so."""
    members = (fitted, getattr(fitted, "rating_", None))
    if not any(hasattr(member, "side_columns_") for member in members):
        print(f"ordrec: model {name!r} does not use tables of users and items", file=sys.stderr)
