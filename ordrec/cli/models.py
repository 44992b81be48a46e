"""``ordrec fit``, ``predict``, ``recommend`` and ``explain``: model files and csv tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.options import (
    DataArgument,
    ModelArgument,
    NoBarOption,
    OfflineOption,
    TableOption,
    check_output,
    progress_bar,
    ratings_of,
    settings_of,
    table_writer,
)
from ordrec.recommend.registry import storable_model_names

if TYPE_CHECKING:
    import pandas as pd

PAIRS_AT_A_TIME = 20_000


def fit(
    data: DataArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the model.")
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help=f"The model to fit: {', '.join(storable_model_names())}.",
        ),
    ] = "predictor",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the model, such as preset=fast. Can be repeated.",
        ),
    ] = None,
    sample_users: Annotated[
        int | None,
        typer.Option(
            "--sample-users",
            metavar="N",
            help="Fit to N users drawn at random; DATA is a folder of partitions.",
        ),
    ] = None,
    offline: OfflineOption = False,
    quiet: NoBarOption = False,
) -> None:
    """Fit a model to ratings and save it.

    The file holds numbers and no code. 'ordrec predict' reads every model, 'ordrec recommend' and
    'ordrec explain' those that can recommend or explain.
    """
    from ordrec.errors import ArgumentError, OrdrecError
    from ordrec.persistence import save
    from ordrec.ratings import Ratings
    from ordrec.recommend import make_model

    check_output(output)
    unfitted = make_model(model, **settings_of(settings or []))
    if not hasattr(unfitted, "to_state"):
        raise ArgumentError(f"model {model!r} cannot be saved: choose one that can")
    if sample_users is None:
        ratings = ratings_of(data, offline)
    else:
        ratings = Ratings.scan(data).sample_users(sample_users)
    with progress_bar(quiet) as progress:
        if progress:
            progress(0, None, f"fitting {model} to {ratings.n_ratings:,} ratings")
        try:
            fitted = unfitted.fit(ratings)
        except (TypeError, ValueError) as error:
            if isinstance(error, OrdrecError) or not settings:
                raise
            raise ArgumentError(f"--set {' '.join(settings)}: {error}") from error
    save(fitted, output)


def predict(
    model: ModelArgument,
    pairs: Annotated[
        Path,
        typer.Argument(metavar="PAIRS", help="A csv file with columns user and item."),
    ],
    output: TableOption = None,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Add the expected rating and the probability of each rating."),
    ] = False,
    quiet: NoBarOption = False,
) -> None:
    """Predict the ratings of pairs of users and items.

    A column timestamp (seconds since 1970, or dates) says when the ratings are given. The csv
    output has the rating, and whether the model knows the user and the item.
    """
    import pandas as pd

    from ordrec.errors import ArgumentError
    from ordrec.persistence import load
    from ordrec.recommend.pair_table import predict_pairs, read_pairs

    write = table_writer(output)
    fitted = load(model)
    if proba and not hasattr(fitted, "predict_proba"):
        raise ArgumentError(f"--proba: a {type(fitted).__name__} has no probabilities")
    table = read_pairs(pairs, fitted)
    parts: list[pd.DataFrame] = []
    with progress_bar(quiet) as progress:
        for first in range(0, max(len(table), 1), PAIRS_AT_A_TIME):
            part = table.iloc[first : first + PAIRS_AT_A_TIME]
            parts.append(predict_pairs(fitted, part, proba=proba))
            if progress:
                progress(first + len(part), len(table), "predicting")
    write(pd.concat(parts, ignore_index=True))


def recommend(
    model: ModelArgument,
    users: Annotated[
        list[str],
        typer.Option("--user", "-u", metavar="ID", help="User to recommend to. Can be repeated."),
    ],
    n: Annotated[int, typer.Option("-n", metavar="N", help="Number of items per user.")] = 10,
    by: Annotated[
        str,
        typer.Option(
            "--by",
            metavar="ORDER",
            help="Best first by the expected rating (expected), by the probability of a high "
            "rating (p_at_least), or by a rating that is probably reached (lower_quantile).",
        ),
    ] = "expected",
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            metavar="WHICH",
            help="Rank all items (all), or those that implicit ranks first (implicit).",
        ),
    ] = "all",
    output: TableOption = None,
    quiet: NoBarOption = False,
) -> None:
    """List the best items that a user has not rated.

    The csv has one row per item: user, place, item, its title if known, and the values by which
    items are ordered.
    """
    import pandas as pd

    from ordrec.persistence import load

    write = table_writer(output)
    fitted = load(model)
    _must_have(fitted, "recommend")
    options = {} if _ranks_only(fitted, by, candidates) else {"by": by, "candidates": candidates}
    ids = [_id_of(fitted.user_ids_, user, "--user") for user in users]
    parts: list[pd.DataFrame] = []
    with progress_bar(quiet) as progress:
        for k, user in enumerate(ids):
            _note_if_unknown(fitted, user=user)
            best = fitted.recommend(user, n, **options)
            best.insert(0, "user", user)
            best.insert(1, "place", range(1, len(best) + 1))
            parts.append(_with_titles(fitted, best, "item"))
            if progress:
                progress(k + 1, len(ids), "recommending")
    write(pd.concat(parts, ignore_index=True))


def explain(
    model: ModelArgument,
    user: Annotated[
        str, typer.Option("--user", "-u", metavar="ID", help="User whose score is explained.")
    ],
    item: Annotated[str, typer.Option("--item", "-i", metavar="ID", help="Item that is scored.")],
    timestamp: Annotated[
        str,
        typer.Option(
            "--timestamp", metavar="TIME", help="Time of the rating: seconds since 1970, or a date."
        ),
    ] = "",
    n: Annotated[
        int,
        typer.Option(
            "-n", metavar="N", help="Number of reasons; the others are summed in one row."
        ),
    ] = 20,
    output: TableOption = None,
) -> None:
    """Show what contributes to a user's score for an item.

    The csv has one row per reason, the largest first: the user's own ratings, other users'
    ratings of the item, and what all ratings share. The contributions add up to the score, in
    units of the rating scale.
    """
    from ordrec.errors import ArgumentError
    from ordrec.persistence import load
    from ordrec.recommend.pair_table import seconds_of

    write = table_writer(output)
    if n < 1:
        raise ArgumentError(f"-n must be at least 1, got {n}")
    fitted = load(model)
    _must_have(fitted, "explain")
    user_id = _id_of(fitted.user_ids_, user, "--user")
    item_id = _id_of(fitted.item_ids_, item, "--item")
    seconds = int(seconds_of([timestamp])[0])
    _note_if_unknown(fitted, user=user_id, item=item_id)
    explained = fitted.explain(user_id, item_id, seconds or None)
    write(_with_titles(fitted, explained.largest(n), "id"))


# ---- shared by the commands -------------------------------------------------------------------


def _id_of(known: pd.Index, text: str, option: str) -> Any:
    """Return an id in the type of the model's ids, a number or a string."""
    from ordrec.errors import ArgumentError, DataError
    from ordrec.recommend.pair_table import ids_like

    try:
        return ids_like(known, [text], option).tolist()[0]
    except DataError:
        raise ArgumentError(
            f"{option} {text!r}: the ids of this model look like {known[0]}"
        ) from None


def _must_have(fitted: Any, method: str) -> None:
    from ordrec.errors import ArgumentError

    if not hasattr(fitted, method):
        able = {"recommend": "RatingPredictor and ALSRanking", "explain": "RatingPredictor"}[method]
        raise ArgumentError(
            f"a {type(fitted).__name__} cannot {method}: fit one that can ({able}), "
            "such as --model predictor"
        )


def _ranks_only(fitted: Any, by: str, candidates: str) -> bool:
    """Return whether the model only ranks, so that there is no choice of order."""
    from ordrec.errors import ArgumentError

    if hasattr(fitted, "predict_proba"):
        return False
    if (by, candidates) != ("expected", "all"):
        raise ArgumentError(
            f"--by and --candidates need rating distributions, which a {type(fitted).__name__} "
            "does not have"
        )
    return True


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
    if titles is None:
        return table
    of_item = dict(zip(fitted.item_ids_.tolist(), titles, strict=True))
    items = table[column]
    if "source" in table:
        items = items.where(table["source"] == "own rating")
    place = list(table.columns).index(column) + 1
    table.insert(place, "title", items.map(of_item).fillna(""))
    return table
