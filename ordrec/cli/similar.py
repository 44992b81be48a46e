"""``ordrec similar``: items that the same people like."""

from __future__ import annotations

from typing import Annotated

import typer

from ordrec.cli.chosen_models import loaded, must_have
from ordrec.cli.ids import id_of
from ordrec.cli.options import MemoryOption, ModelArgument, TableOption
from ordrec.cli.outputs import OverwriteOption, table_writer


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
    """List the items that are most like one: those that the same people like.

    The csv has one row per item, most similar first: place, item, its title if known, and the
    similarity, which is at most 1 and the lower, the less is known of an item.
    """
    write = table_writer(output, "similar items", inputs=[model], overwrite=overwrite)
    fitted = loaded(model, max_memory)
    must_have(fitted, "similar_items")
    found = fitted.similar_items(id_of(fitted.item_ids_, item, "--item"), n)
    found.insert(0, "place", range(1, len(found) + 1))
    write(found.round({"similarity": 7}))
