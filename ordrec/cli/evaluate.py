"""``ordrec evaluate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordrec.cli.options import (
    DataArgument,
    EngineOption,
    JobsOption,
    OfflineOption,
    QuietOption,
    SchedulerOption,
    console,
    engine_of,
    progress_bar,
    ratings_of,
    report_writer,
    result_writer,
    words_of,
)
from ordrec.recommend.registry import default_model_names

if TYPE_CHECKING:
    from ordrec.ratings import Ratings

BUNDLED = "ml-latest-small-2016"


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
    ] = ",".join(default_model_names()),
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
        str,
        typer.Option(
            "--average", help="Pool all ratings (micro), average users (macro), or show both."
        ),
    ] = "micro",
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            help="What ranking metrics rank: the whole catalogue but what the user rated in "
            "training, or only the items he rated in the test part (rated).",
        ),
    ] = "catalogue",
    ranking_users: Annotated[
        str,
        typer.Option(
            "--ranking-users",
            metavar="N",
            help="For how many test users, drawn at random, the catalogue is ranked: a number, "
            "all, or auto for as many as make a million pairs of a user and an item.",
        ),
    ] = "auto",
    cold: Annotated[
        int,
        typer.Option(
            "--cold",
            metavar="N",
            help="Users with at most N training ratings are cold; where the test part has "
            "such users, warm and cold ones are also shown apart.",
        ),
    ] = 0,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of splits, models and draws of users.")
    ] = 0,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also write the results to FILE.csv or FILE.json.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Also write a report with tables and figures to FILE.html.",
        ),
    ] = None,
    offline: OfflineOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rating models on held-out ratings.

    Without arguments: the predictor, one model a user and the baselines on the bundled MovieLens
    ratings. A model that fails is named and the others go on; the exit code is then 1. Ctrl-C
    ends the work but for printing and writing what was finished; the exit code is then 130.
    """
    from ordrec.errors import ArgumentError
    from ordrec.evaluation import DEFAULT_METRICS
    from ordrec.evaluation import evaluate as compare
    from ordrec.evaluation.comparison import EvaluationInterrupted

    if average not in ("micro", "macro", "both"):
        raise ArgumentError(f"--average must be micro, macro or both, got {average!r}")
    writers = [result_writer(path) for path in output or []]
    if report is not None:
        writers.append(report_writer(report))
    chosen = engine_of(engine, scheduler)
    ratings = ratings_of(data, offline)
    interrupted = False
    try:
        with progress_bar(quiet) as progress:
            result = compare(
                ratings,
                words_of(models, "--models"),
                split,
                metrics=words_of(metrics, "--metrics") if metrics else DEFAULT_METRICS,
                decision=decision,
                candidates=candidates,  # type: ignore[arg-type]
                ranking_users=int(ranking_users) if ranking_users.isdecimal() else ranking_users,  # type: ignore[arg-type]
                cold_users=cold,
                seed=seed,
                n_jobs=_jobs_for(ratings) if jobs is None else jobs,
                engine=chosen,
                keep_distributions=report is not None,
                progress=progress,
            )
    except EvaluationInterrupted as interruption:
        result, interrupted = interruption.result, True
        print("ordrec: interrupted: this is what was finished", file=sys.stderr)
    for write in writers:
        write(result)
    if not quiet:
        from ordrec.report.tables import summary_table

        for users in result.user_groups or ["all"]:
            for one in ("micro", "macro") if average == "both" else (average,):
                console().print(summary_table(result, one, users))
    for failed in result.failures.itertuples():
        words = " ".join(str(failed.error).split())
        print(f"ordrec: {failed.model} failed on fold {failed.fold}: {words}", file=sys.stderr)
    if interrupted:
        raise typer.Exit(130)
    if not result.complete:
        raise typer.Exit(1)


def _jobs_for(ratings: Ratings) -> int:
    """All processors, unless starting them takes longer than the work, or memory may not do."""
    return -1 if 10_000 <= ratings.n_ratings <= 1_000_000 else 1
