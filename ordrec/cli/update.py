"""``ordrec update``: take further ratings into a model without fitting it again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.chosen_models import ClassOption, loaded
from ordrec.cli.options import MemoryOption, ModelArgument
from ordrec.cli.outputs import OverwriteOption, check_output
from ordrec.cli.reading import Reading, options_of_reading

if TYPE_CHECKING:
    from ordrec.ratings import Ratings


@options_of_reading("user_col", "item_col", "rating_col", "time_col", "sep", "duplicates")
def update(
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(metavar="RATINGS", help="A csv or parquet file of further ratings.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the updated model.")
    ],
    reading: Reading,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Take further ratings into a model, in seconds, and save the result.

    The ratings may be by users and of items that the model does not know yet. A rating of an item
    that the user has rated before replaces the old one. What the model learnt from everybody stays
    as it is: fit again when much has changed.
    """
    from ordrec.errors import ArgumentError
    from ordrec.persistence import save

    check_output(output, "model", [model, data], overwrite=overwrite)
    fitted = loaded(model, max_memory, own_class)
    if not hasattr(fitted, "update"):
        raise ArgumentError(
            f"a {type(fitted).__name__} cannot take in further ratings: fit one that can, such as "
            "--model recommender, or fit again to all ratings"
        )
    ratings = reading.ratings(str(data), ids_like=fitted.user_ids_)
    users, items = _ids(fitted, ratings)
    values = ratings.values.tolist()
    if ratings.timestamps is None:
        updated = fitted.update(users, items, values)
    else:
        updated = fitted.update(users, items, values, ratings.timestamps.tolist())
    save(updated, output)
    _say_what_was_new(fitted, users, items)


def _ids(fitted: Any, ratings: Ratings) -> tuple[list[Any], list[Any]]:
    """Users and items of each rating, in the types of the model's ids."""
    from ordrec.recommend.pair_table import ids_like

    columns = []
    for known, ids, codes, name in (
        (fitted.user_ids_, ratings.user_ids, ratings.users, "user"),
        (fitted.item_ids_, ratings.item_ids, ratings.items, "item"),
    ):
        own = ids_like(known, [str(key) for key in ids.tolist()], name)
        columns.append(own[codes].tolist())
    return columns[0], columns[1]


def _say_what_was_new(fitted: Any, users: list[Any], items: list[Any]) -> None:
    counts = []
    for known, ids, name in ((fitted.user_ids_, users, "user"), (fitted.item_ids_, items, "item")):
        distinct = set(ids)
        new = len(distinct.difference(known.tolist()))
        counts.append(f"{new} of {len(distinct)} {name}s")
    print(f"ordrec: {len(users)} ratings; new: {counts[0]}, {counts[1]}", file=sys.stderr)
