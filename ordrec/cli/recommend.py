"""``ordrec recommend``: lists for some users, or for all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.chosen_models import ClassOption, loaded, must_have
from ordrec.cli.ids import caps_of_texts, id_of, ids_of_file, note_if_unknown, rule_of_file
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
from ordrec.cli.reading import USUAL, Reading, options_of_reading

if TYPE_CHECKING:
    import pandas as pd

FILE_OF_ITEMS = (
    "A csv file with a column item, or one item id per line; with a column user as well, pairs."
)


@options_of_reading("user_col", "item_col")
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
            help="All users of the model (all), those of a file (csv with a column user, or one "
            "user id per line), or all users of a folder of ratings, who are folded in.",
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
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            "--at-most",
            metavar="COLUMN=N",
            help="List at most N items with the same category or label in a column of the item "
            "table of training, such as genres=3. Can be repeated.",
        ),
    ] = None,
    explore: Annotated[
        float,
        typer.Option(
            "--explore",
            metavar="SHARE",
            help="The share of each list that is for new items, such as 0.1: those in the table "
            "of items (fit --items) that nobody had rated.",
        ),
    ] = 0.0,
    include_rated: Annotated[
        bool, typer.Option("--include-rated", help="Also list items that the user has rated.")
    ] = False,
    reading: Reading = USUAL,
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
    must_have(fitted, "recommend")
    options: dict[str, Any] = {}
    for name, file in (("exclude", exclude), ("only", only)):
        if file is not None:
            options[name] = rule_of_file(fitted, file, f"--{name}", reading)
    if at_most:
        options["at_most"] = caps_of_texts(at_most)
    if explore:
        fitted.item_filter(explore=explore)  # which says what is needed for it
        options["explore"] = explore
    if include_rated:
        options["include_rated"] = True
    where = engine_of(engine, scheduler)
    with progress_bar(quiet) as progress:
        if many:
            _check_order(fitted, by, candidates, batch=True)
            parallel: dict[str, Any] = {"engine": where, "n_jobs": jobs, "progress": progress}
            if Path(many).is_dir():
                from ordrec.data import Ratings
                from ordrec.recommend import recommend_scan

                assert output is not None
                scan = Ratings.scan(many)
                options |= parallel | {"overwrite": overwrite}
                recommend_scan(fitted, scan, output, n, **options)
                return
            if many == "all" and not len(fitted.user_ids_):
                raise ArgumentError(
                    "--for all: a model of 'ordrec fit-all' knows items and no users: name the "
                    "folder of ratings whose users are meant, --for FOLDER"
                )
            ids = (
                None
                if many == "all"
                else ids_of_file(fitted.user_ids_, Path(many), "user", "--for", reading.user_col)
            )
            fitted.recommend_all(n, ids, out=output, overwrite=overwrite, **parallel, **options)
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
    ids = [id_of(fitted.user_ids_, user, "--user") for user in users]
    parts: list[pd.DataFrame] = []
    for k, user in enumerate(ids):
        note_if_unknown(fitted, user=user)
        best = fitted.recommend(user, n, **options)
        best.insert(0, "user", user)
        best.insert(1, "place", range(1, len(best) + 1))
        parts.append(best)
        progress(k + 1, len(ids), "recommending")
    return pd.concat(parts, ignore_index=True)


def _check_order(
    fitted: Any, by: str | None, candidates: str, batch: bool = False
) -> dict[str, Any]:
    """Return the options that order a list."""
    from inspect import signature

    from ordrec.errors import ArgumentError

    if batch:
        must_have(fitted, "recommend_all")
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
