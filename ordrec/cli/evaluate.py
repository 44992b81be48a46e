"""``ordrec evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ordrec.cli.options import (
    DataArgument,
    OfflineOption,
    QuietOption,
    console,
    progress_bar,
    ratings_of,
    result_writer,
    words_of,
)

BUNDLED = "ml-latest-small-2016"
DEFAULT_MODELS = "mean,histogram,bias,item-knn,factors,als"


def evaluate(
    data: DataArgument = BUNDLED,
    models: Annotated[
        str,
        typer.Option(
            "--models",
            "--model",
            "-m",
            metavar="NAMES",
            help="Models to compare, joined by commas.",
        ),
    ] = DEFAULT_MODELS,
    split: Annotated[
        str,
        typer.Option(
            "--split",
            "-s",
            metavar="SPLIT",
            help="How to part the ratings: holdout:0.2, kfold:5, user-holdout:0.2, leave-out:5, "
            "strong:0.2, time:0.2, user-time:0.2, or fold:NAME for a published fold.",
        ),
    ] = "holdout:0.2",
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            metavar="NAMES",
            help="Metrics, joined by commas; all the usual ones by default.",
        ),
    ] = "",
    decision: Annotated[
        str,
        typer.Option(
            "--decision",
            help="What makes one rating of a distribution: mean, median, mode, or auto for the "
            "one that is best for each metric.",
        ),
    ] = "auto",
    average: Annotated[
        str, typer.Option("--average", help="Pool all ratings (micro) or average users (macro).")
    ] = "micro",
    seed: Annotated[int, typer.Option("--seed", help="Seed of splits and models.")] = 0,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the results to FILE.csv or FILE.json.",
        ),
    ] = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rating models on held-out ratings.

    Without arguments: the quicker models on the bundled MovieLens ratings.
    """
    from ordrec.evaluation import DEFAULT_METRICS
    from ordrec.evaluation import evaluate as compare

    writers = [result_writer(path) for path in output or []]
    ratings = ratings_of(data, offline)
    with progress_bar(quiet) as progress:
        result = compare(
            ratings,
            words_of(models, "--models"),
            split,
            metrics=words_of(metrics, "--metrics") if metrics else DEFAULT_METRICS,
            decision=decision,
            seed=seed,
            progress=progress,
        )
    for write in writers:
        write(result)
    if not quiet:
        from ordrec.report.tables import summary_table

        console().print(summary_table(result, average))
