"""``ordrec fit-all``, ``predict-all`` and ``evaluate-all``, for ratings that stay on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ordrec.cli.chosen_models import ClassOption, loaded, made_model
from ordrec.cli.options import (
    EngineOption,
    FolderArgument,
    JobsOption,
    MemoryOption,
    ModelArgument,
    NoBarOption,
    SchedulerOption,
    engine_of,
    progress_bar,
)
from ordrec.cli.outputs import OverwriteOption, check_output, saying_what_stays
from ordrec.cli.reading import PAIRS, USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, read_side_table

__all__ = []


def fit_all(
    folder: FolderArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File for the model.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter of the model, such as n_factors=16. Can be repeated.",
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="recommender, factors, predictor (its preset large), or a model of what users "
            "pick: ordered, choice, ease, als, popularity.",
        ),
    ] = "factors",
    items: ItemsOption = None,
    users: UsersOption = None,
    blocks: Annotated[
        Path | None,
        typer.Option(
            "--blocks",
            metavar="FOLDER",
            help="Where to keep files meanwhile; workers on other machines need access to it. "
            "When the same command is given again after a stop, it goes on with them. By default "
            "the system's folder for temporary files, and a stopped fit begins anew.",
        ),
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option(
            "--hold-out",
            metavar="SHARE",
            help="Leave out the share of the ratings that 'ordrec predict-all' predicts and "
            "'ordrec evaluate-all' measures by.",
        ),
    ] = 0.0,
    overwrite: OverwriteOption = False,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    quiet: NoBarOption = False,
) -> None:
    """Fit a model to all users of a folder of ratings.

    The ratings are read block by block and never are in memory together. The model knows all
    items; 'ordrec recommend --for FOLDER' and 'ordrec predict-all' bring in the users.
    """
    from ordrec.data import Ratings
    from ordrec.files import save
    from ordrec.recommend import HeldOut, fit_scan

    check_output(output, "model", [folder, users, items], overwrite=overwrite)
    model = made_model(kind, settings or [])
    tables: dict[str, Any] = {
        f"{kind}_table": read_side_table(path, kind, USUAL)
        for kind, path in (("user", users), ("item", items))
        if path is not None
    }
    on_workers = None if (engine, scheduler) == ("auto", None) else engine_of(engine, scheduler)
    with saying_what_stays(output), progress_bar(quiet) as progress:
        fitted = fit_scan(
            model,
            Ratings.scan(folder),
            held_out=HeldOut(hold_out) if hold_out else None,
            folder=blocks,
            engine=on_workers,
            n_jobs=jobs,
            progress=progress,
            **tables,
        )
    save(fitted, output)


@options_of_reading(*PAIRS)
def predict_all(
    model: ModelArgument,
    folder: FolderArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the predictions.")
    ],
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="FILE", help="A csv file with columns user and item."),
    ] = None,
    hold_out: Annotated[
        float | None,
        typer.Option(
            "--hold-out",
            metavar="SHARE",
            help="Without --pairs: leave out and predict this share of the ratings. By default "
            "what 'ordrec fit-all' held out, or 0.1.",
        ),
    ] = None,
    reading: Reading = USUAL,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    quiet: NoBarOption = False,
) -> None:
    """Predict for all users of a folder of ratings.

    Writes parquet files as they are finished; the same command continues a stopped run.
    """
    from ordrec.data import Ratings
    from ordrec.errors import ArgumentError
    from ordrec.recommend import HeldOut, predict_scan

    chosen_engine = engine_of(engine, scheduler)
    fitted = loaded(model, max_memory, own_class)
    if not hasattr(fitted, "fold_in"):
        raise ArgumentError(
            f"a {type(fitted).__name__} cannot take in new users: fit one that can, "
            "such as --model factors"
        )
    wanted: Any
    if pairs is not None:
        wanted = reading.pairs(pairs, fitted)
    elif hold_out is not None:
        wanted = HeldOut(hold_out)
    else:
        wanted = getattr(fitted, "held_out_", None) or HeldOut()
    go_on = f"finished parts stay in {output}, and the same command goes on with them"
    with saying_what_stays(output, go_on), progress_bar(quiet) as progress:
        found = predict_scan(
            fitted,
            Ratings.scan(folder),
            wanted,
            output,
            engine=chosen_engine,
            n_jobs=jobs,
            progress=progress,
        )
    print(f"{found.n_pairs:,} predictions in {found.path}")


def evaluate_all(
    model: ModelArgument,
    folder: FolderArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder for lists and predictions."),
    ],
    of: Annotated[
        str, typer.Option("--of", metavar="WHAT", help="Measure lists or ratings.")
    ] = "lists",
    metrics: Annotated[
        str | None, typer.Option("--metrics", metavar="NAMES", help="Joined by commas.")
    ] = None,
    length: Annotated[int, typer.Option("-n", metavar="N", help="Length of the lists.")] = 10,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
) -> None:
    """Measure a model of 'fit-all' on what was held out of it.

    All users of the folder are folded in with the ratings that were not held out, and their lists
    or predictions are measured. The same command continues a stopped run.
    """
    from ordrec.cli.evaluate import print_tables
    from ordrec.data import Ratings
    from ordrec.evaluation import evaluate_scan

    fitted = loaded(model, max_memory, own_class)
    result = evaluate_scan(
        fitted,
        Ratings.scan(folder),
        output,
        of=of,  # type: ignore[arg-type]
        metrics=None if metrics is None else metrics.split(","),
        length=length,
        engine=engine_of(engine, scheduler),
        n_jobs=jobs,
    )
    print_tables(result, ("micro",))
