"""``ordrec fit``: fit a model and save it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ordrec.cli.chosen_models import made_model, remember_class, say_chosen
from ordrec.cli.options import DataArgument, NoBarOption, place_of, progress_bar
from ordrec.cli.outputs import OverwriteOption, check_output, saying_what_stays
from ordrec.cli.reading import USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, say_if_unused, with_side_data
from ordrec.recommend.registry import storable_model_names


@options_of_reading()
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
            help=f"The model to fit: {', '.join(storable_model_names())}; or one of your own, "
            "package.module:Class.",
        ),
    ] = "recommender",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the model, such as rating=factors. Can be repeated.",
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
    reading: Reading = USUAL,
    items: ItemsOption = None,
    users: UsersOption = None,
    overwrite: OverwriteOption = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Say in the end what each stage of the fit took: seconds, CPU seconds, and the "
            "largest memory of the process.",
        ),
    ] = False,
    quiet: NoBarOption = False,
) -> None:
    """Fit a model to ratings, or to what was picked, and save it.

    A rating predictor says which preset it has chosen for the size of the data, unless one is set.
    The file holds numbers and no code. 'ordrec predict' reads every model, 'ordrec recommend' and
    'ordrec explain' those that can recommend or explain.
    """
    from ordrec.errors import ArgumentError, OrdrecError
    from ordrec.files import save

    check_output(output, "model", [place_of(data), users, items], overwrite=overwrite)
    unfitted = made_model(model, settings or [])
    if not hasattr(unfitted, "stored"):
        raise ArgumentError(
            f"model {model!r} cannot be saved: choose one that can"
            + (", or declare what it stores, as IdMappedModel does" if ":" in model else "")
        )
    if ":" in model:
        remember_class(type(unfitted), model)
    if sample_users is None:
        ratings = reading.ratings(data)
    else:
        ratings = reading.scan(data).sample_users(sample_users)
    ratings = with_side_data(ratings, reading, users, items, new_items="beside known ones")
    what = "ratings" if ratings.has_ratings else "picks"
    text = f"fitting {model} to {ratings.n_ratings:,} {what}"
    with saying_what_stays(output), progress_bar(quiet, text):
        try:
            fitted = unfitted.fit(ratings)
        except (TypeError, ValueError) as error:
            if isinstance(error, OrdrecError) or not settings:
                raise
            raise ArgumentError(f"--set {' '.join(settings)}: {error}") from error
    if users or items:
        say_if_unused(fitted, model)
    say_chosen(fitted, ratings.n_ratings)
    if verbose and hasattr(fitted, "fit_report_"):
        print(fitted.fit_report_, file=sys.stderr)
    save(fitted, output)
