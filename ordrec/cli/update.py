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
from ordrec.cli.side_data import ItemsOption, UsersOption, with_side_data

if TYPE_CHECKING:
    import pandas as pd

    from ordrec.data import Ratings


@options_of_reading(
    "user_col",
    "item_col",
    "rating_col",
    "time_col",
    "weight_col",
    "count_col",
    "sep",
    "duplicates",
    "encoding",
    "missing",
)
def update(
    model: ModelArgument,
    data: Annotated[
        Path, typer.Argument(metavar="RATINGS", help="A csv or parquet file of further ratings.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the updated model.")
    ],
    reading: Reading,
    items: ItemsOption = None,
    users: UsersOption = None,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Take further ratings into a model.

    The ratings may be by users and of items that the model does not know yet. A rating of an item
    that the user has rated before replaces the old one. What the model learnt from everybody stays
    as it is: fit again when much has changed.
    """
    from ordrec.errors import ArgumentError
    from ordrec.files import save
    from ordrec.models.base import replacing_ratings

    check_output(output, "model", [model, data, users, items], overwrite=overwrite)
    fitted = loaded(model, max_memory, own_class)
    if not hasattr(fitted, "update"):
        raise ArgumentError(
            f"a {type(fitted).__name__} cannot take in further ratings: fit one that can, such as "
            "--model recommender, or fit again to all ratings"
        )
    new = _in_ids_of(fitted, reading.ratings(str(data), fitted))
    more = users or items or "weight" in new
    if more and not hasattr(fitted, "known_ratings"):
        raise ArgumentError(
            f"--items, --users and --weight-col: a {type(fitted).__name__} cannot take in tables "
            "of new items and users, nor weights: leave them out, or fit again"
        )
    if more:
        merged = _with_known_ratings(fitted, new)
        with replacing_ratings():
            merged = with_side_data(merged, reading, users, items, new_items="all")
            updated = fitted.fold_in(merged)
    else:
        columns = {name: column.tolist() for name, column in new.items()}
        updated = fitted.update(
            columns["user"],
            columns["item"],
            columns.get("rating", columns.get("count")),
            columns.get("timestamp"),
        )
    save(updated, output)
    _say_what_was_new(fitted, new)


def _in_ids_of(fitted: Any, ratings: Ratings) -> pd.DataFrame:
    """The ratings with their ids in the types of the model's own."""
    from ordrec.data.ids import ids_like

    frame = ratings.to_frame()
    for name, known, ids in (
        ("user", fitted.user_ids_, ratings.user_ids),
        ("item", fitted.item_ids_, ratings.item_ids),
    ):
        own = ids_like(known, [str(key) for key in ids.tolist()], name)
        frame[name] = own[ratings.users if name == "user" else ratings.items]
    return frame


def _with_known_ratings(fitted: Any, new: pd.DataFrame) -> Ratings:
    """All ratings of the users who rated: the known ones, replaced by the new ones."""
    import pandas as pd

    from ordrec.data import Ratings

    known = fitted.known_ratings().to_frame()
    known = known[known["user"].isin(new["user"])]
    both = pd.concat([known, new] if len(known) else [new])
    if "timestamp" in both:
        both["timestamp"] = both["timestamp"].fillna(0).astype("int64")
    both = both.drop_duplicates(["user", "item"], keep="last")
    weight = "weight" if "weight" in both else None
    return Ratings.from_frame(both.fillna({"weight": 1.0}), scale=fitted.scale_, weight=weight)


def _say_what_was_new(fitted: Any, new: pd.DataFrame) -> None:
    counts = []
    for name, known in (("user", fitted.user_ids_), ("item", fitted.item_ids_)):
        distinct = new[name].drop_duplicates()
        counts.append(f"{int((~distinct.isin(known)).sum())} of {len(distinct)} {name}s")
    print(f"ordrec: {len(new)} ratings; new: {counts[0]}, {counts[1]}", file=sys.stderr)
