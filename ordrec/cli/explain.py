"""``ordrec explain``, the reasons behind an expected rating, and ``ordrec similar``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.chosen_models import ClassOption, loaded, must_have
from ordrec.cli.ids import id_of, note_if_unknown
from ordrec.cli.options import MemoryOption, ModelArgument, TableOption
from ordrec.cli.outputs import OverwriteOption, table_writer

__all__ = []

if TYPE_CHECKING:
    import pandas as pd


def explain(
    model: ModelArgument,
    user: Annotated[
        str, typer.Option("--user", "-u", metavar="ID", help="User whose opinion is explained.")
    ],
    item: Annotated[str, typer.Option("--item", "-i", metavar="ID", help="Item that it is about.")],
    timestamp: Annotated[
        str,
        typer.Option(
            "--timestamp", metavar="TIME", help="Time of the rating: seconds since 1970, or a date."
        ),
    ] = "",
    n: Annotated[
        int,
        typer.Option(
            "-n", metavar="N", help="Number of own ratings; the others are summed in one row."
        ),
    ] = 20,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    output: TableOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Show what a user's expected rating of an item is made of.

    The csv has one row per reason: the mean of all ratings, what others think of the item, how the
    user rates in general, and then the user's own ratings behind their taste for it, the weightiest
    first. The contributions add up to the expected rating. For a recommender, the reasons why the
    item is likely to be picked come first (pick), and those for its expected rating after them
    (like).
    """
    from ordrec.data.times import seconds_of
    from ordrec.errors import ArgumentError

    write = table_writer(output, "reasons", inputs=[model], overwrite=overwrite)
    if n < 1:
        raise ArgumentError(f"-n must be at least 1, got {n}")
    fitted = loaded(model, max_memory, own_class)
    must_have(fitted, "explain")
    user_id = id_of(fitted.user_ids_, user, "--user")
    item_id = id_of(fitted.item_ids_, item, "--item")
    seconds = int(seconds_of([timestamp])[0])
    note_if_unknown(fitted, user=user_id, item=item_id)
    explained = fitted.explain(user_id, item_id, seconds or None)
    table = _with_titles(fitted, explained.largest(n), "id")
    write(table.round({"contribution": 7}))  # so that a line fits into a terminal


def _with_titles(fitted: Any, table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the table with titles next to the ids of items, if the model has titles."""
    titles = getattr(fitted, "titles_", None)
    if titles is None or "title" in table:
        return table
    of_item = dict(zip(fitted.item_ids_.tolist(), titles, strict=True))
    items = table[column]
    if "source" in table:
        items = items.where(table["source"].isin(["own rating", "own pick"]))
    place = list(table.columns).index(column) + 1
    table.insert(place, "title", items.map(of_item).fillna(""))
    return table


def similar(
    model: ModelArgument,
    item: Annotated[
        str, typer.Option("--item", "-i", metavar="ID", help="Item to which others are compared.")
    ],
    n: Annotated[int, typer.Option("-n", metavar="N", help="Number of items.")] = 10,
    max_memory: MemoryOption = None,
    output: TableOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """List the items that the same people like as a given one.

    The csv has one row per item, most similar first: place, item, its title if known, and the
    similarity, which is at most 1 and the lower, the less is known of an item.
    """
    write = table_writer(output, "similar items", inputs=[model], overwrite=overwrite)
    fitted = loaded(model, max_memory)
    must_have(fitted, "similar_items")
    found = fitted.similar_items(id_of(fitted.item_ids_, item, "--item"), n)
    found.insert(0, "place", range(1, len(found) + 1))
    write(found.round({"similarity": 7}))
