"""``ordrec recommend``, ``explain`` and ``similar``: lists, the reasons behind, similar items."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.chosen_models import ClassOption, loaded
from ordrec.cli.options import (
    EngineOption,
    JobsOption,
    MemoryOption,
    ModelArgument,
    NoBarOption,
    SchedulerOption,
    TableOption,
    engine_of,
    progress_bar,
)
from ordrec.cli.outputs import OverwriteOption, check_output, table_writer

if TYPE_CHECKING:
    import pandas as pd

FILE_OF_ITEMS = "A csv file with a column item, or one item id per line."


def recommend(
    model: ModelArgument,
    users: Annotated[
        list[str] | None,
        typer.Option("--user", "-u", metavar="ID", help="User to recommend to. Can be repeated."),
    ] = None,
    many: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="WHO",
            help="All users of the model (all), or those of a file: csv with a column user, or one "
            "user id per line.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", metavar="N", help="Number of items per user.")] = 10,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="ORDER",
            help="Order by what users pick and what they will think of it (recommended, the "
            "default of a recommender), by the expected rating alone (expected, the default of a "
            "rating model), by the probability of a high rating (p_at_least), or by a rating that "
            "is probably reached (lower_quantile).",
        ),
    ] = None,
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            metavar="WHICH",
            help="For orders by rating: rank all items (all), or those that the user is likeliest "
            "to pick (likely, for a recommender).",
        ),
    ] = "all",
    exclude: Annotated[
        Path | None,
        typer.Option(
            "--exclude", metavar="FILE", help=f"Items that must not be listed. {FILE_OF_ITEMS}"
        ),
    ] = None,
    only: Annotated[
        Path | None,
        typer.Option(
            "--only", metavar="FILE", help=f"The only items that may be listed. {FILE_OF_ITEMS}"
        ),
    ] = None,
    include_rated: Annotated[
        bool, typer.Option("--include-rated", help="Also list items that the user has rated.")
    ] = False,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    output: TableOption = None,
    overwrite: OverwriteOption = False,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    quiet: NoBarOption = False,
) -> None:
    """List the best items for a user, or for all users.

    The table has one row per user and place: user, place, item, its title if known, the score, and
    the expected rating; for a recommender also the probability that the item is among the user's
    next picks, and the probability that it is liked. With --for, the output may be .csv or
    .parquet; an interrupted run goes on where it stopped when the same command is given again.
    """
    from ordrec.errors import ArgumentError

    if bool(users) == bool(many):
        raise ArgumentError("name the users: --user ID for some, or --for all or a file for many")
    if many and (output is None or output.suffix not in (".csv", ".parquet")):
        raise ArgumentError("--for: name a file to write to, -o top.csv or -o top.parquet")
    inputs = [Path(place) for place in (model, many, exclude, only) if place is not None]
    if output is not None:
        check_output(output, "lists", inputs, overwrite=overwrite)
    fitted = loaded(model, max_memory, own_class)
    _must_have(fitted, "recommend")
    options: dict[str, Any] = {}
    for name, file in (("exclude", exclude), ("only", only)):
        if file is not None:
            options[name] = _ids_of_file(fitted.item_ids_, file, "item", f"--{name}")
    if include_rated:
        options["include_rated"] = True
    where = engine_of(engine, scheduler)
    with progress_bar(quiet) as progress:
        if many:
            _check_order(fitted, by, candidates, batch=True)
            ids = (
                None if many == "all" else _ids_of_file(fitted.user_ids_, Path(many), "user", many)
            )
            fitted.recommend_all(
                n, ids, out=output, engine=where, n_jobs=jobs, progress=progress, **options
            )
            return
        lists = _lists_one_by_one(fitted, users or [], n, by, candidates, options, progress)
    # after the bar, which would break the lines
    table_writer(output, "lists", inputs=inputs, overwrite=overwrite)(lists)


def _lists_one_by_one(
    fitted: Any,
    users: list[str],
    n: int,
    by: str | None,
    candidates: str,
    options: Any,
    progress: Any,
) -> pd.DataFrame:
    """Return the lists of the users named on the command line."""
    import pandas as pd

    options = options | _check_order(fitted, by, candidates)
    ids = [_id_of(fitted.user_ids_, user, "--user") for user in users]
    parts: list[pd.DataFrame] = []
    for k, user in enumerate(ids):
        _note_if_unknown(fitted, user=user)
        best = fitted.recommend(user, n, **options)
        best.insert(0, "user", user)
        best.insert(1, "place", range(1, len(best) + 1))
        parts.append(best)
        progress(k + 1, len(ids), "recommending")
    return pd.concat(parts, ignore_index=True)


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
    _must_have(fitted, "explain")
    user_id = _id_of(fitted.user_ids_, user, "--user")
    item_id = _id_of(fitted.item_ids_, item, "--item")
    seconds = int(seconds_of([timestamp])[0])
    _note_if_unknown(fitted, user=user_id, item=item_id)
    explained = fitted.explain(user_id, item_id, seconds or None)
    table = _with_titles(fitted, explained.largest(n), "id")
    write(table.round({"contribution": 7}))  # so that a line fits into a terminal


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
    _must_have(fitted, "similar_items")
    found = fitted.similar_items(_id_of(fitted.item_ids_, item, "--item"), n)
    found.insert(0, "place", range(1, len(found) + 1))
    write(found.round({"similarity": 7}))


# ---- shared by the commands -------------------------------------------------------------------


def _id_of(known: pd.Index, text: str, option: str) -> Any:
    """Return an id in the type of the model's ids, a number or a string."""
    from ordrec.errors import ArgumentError, DataError
    from ordrec.lists.frames import ids_like

    try:
        return ids_like(known, [text], option).tolist()[0]
    except DataError:
        raise ArgumentError(
            f"{option} {text!r}: the ids of this model look like {known[0]}"
        ) from None


def _must_have(fitted: Any, method: str) -> None:
    from ordrec.errors import ArgumentError

    if not hasattr(fitted, method):
        all_three = "Recommender, RatingPredictor, OrdinalFactors"
        what, able = {
            "recommend": ("recommend", f"{all_three} and the choice models"),
            "recommend_all": ("recommend to all", f"{all_three} and the choice models"),
            "explain": ("explain", all_three),
            "similar_items": ("tell what is similar", all_three),
        }[method]
        raise ArgumentError(
            f"a {type(fitted).__name__} cannot {what}: fit one that can ({able}), "
            "such as --model recommender"
        )


def _check_order(
    fitted: Any, by: str | None, candidates: str, batch: bool = False
) -> dict[str, Any]:
    """Return the options that order a list."""
    from inspect import signature

    from ordrec.errors import ArgumentError

    if batch:
        _must_have(fitted, "recommend_all")
    options = {} if by is None else {"by": by}
    if candidates != "all":
        options["candidates"] = candidates
    if not options:
        return {}
    if batch:
        raise ArgumentError("--by and --candidates are for --user; --for has the default order")
    if "by" not in signature(fitted.recommend).parameters:
        raise ArgumentError(
            "--by and --candidates need rating distributions, which a "
            f"{type(fitted).__name__} does not have"
        )
    return options


def _ids_of_file(known: pd.Index, path: Path, column: str, option: str) -> Any:
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


def _note_if_unknown(fitted: Any, user: Any, item: Any = None) -> None:
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


def _with_titles(fitted: Any, table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the table with titles next to the ids of items, if the model has titles."""
    titles = getattr(fitted, "titles_", None)
    if titles is None or "title" in table:
        return table
    of_item = dict(zip(fitted.item_ids_.tolist(), titles, strict=True))
    items = table[column]
    if "source" in table:
        items = items.where(table["source"] == "own rating")
    place = list(table.columns).index(column) + 1
    table.insert(place, "title", items.map(of_item).fillna(""))
    return table
