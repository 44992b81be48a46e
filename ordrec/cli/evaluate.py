"""``ordrec evaluate``."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.chosen_models import made_models
from ordrec.cli.live_table import live_table
from ordrec.cli.options import (
    DataArgument,
    EngineOption,
    JobsOption,
    QuietOption,
    SchedulerOption,
    console,
    engine_of,
    place_of,
    words_of,
)
from ordrec.cli.outputs import OverwriteOption, report_writer, result_writer
from ordrec.cli.reading import USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, with_side_data
from ordrec.evaluation.defaults import (
    CANDIDATES,
    COLD_USERS,
    DECISION,
    RANKING_USERS,
    SPLIT,
    TIMES,
)
from ordrec.recommend.registry import default_model_names

if TYPE_CHECKING:
    from ordrec.data import Ratings
    from ordrec.evaluation import EvaluationResult
    from ordrec.storage.parts import PartStore

BUNDLED = "ml-latest-small-2016"
DEFAULT_MODELS = default_model_names()

ModelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--models",
        "--model",
        "-m",
        metavar="NAMES",
        help="Models to compare, separated by commas or each with its own -m: names, or "
        f"package.module:Class for your own. By default {', '.join(DEFAULT_MODELS)}; without "
        f"ratings {', '.join(default_model_names(has_ratings=False))}.",
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="MODEL.NAME=VALUE",
        help="A parameter of one of the models, such as factors.n_factors=8. Can be repeated.",
    ),
]
SplitOption = Annotated[
    str,
    typer.Option(
        "--split",
        "-s",
        metavar="SPLIT",
        help="How to split the ratings: holdout:0.2, kfold:5, user-holdout:0.2, leave-out:5, "
        "strong:0.2, time:0.2, user-time:0.2, or fold:NAME for a published fold.",
    ),
]
MetricsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="Metrics, separated by commas or repeated; all the usual ones by default.",
    ),
]
DecisionOption = Annotated[
    str,
    typer.Option(
        "--decision",
        help="What turns a distribution into a rating: mean, median, mode, or auto for the "
        "one that is best for each metric.",
    ),
]
AverageOption = Annotated[
    str,
    typer.Option(
        "--average", help="Pool all ratings (micro), average over users (macro), or show both."
    ),
]
CandidatesOption = Annotated[
    str,
    typer.Option(
        "--candidates",
        help="What ranking metrics rank: the whole catalogue except what the user rated in "
        "training (catalogue), or only the items they rated in the test part (rated).",
    ),
]
RankingUsersOption = Annotated[
    str,
    typer.Option(
        "--ranking-users",
        metavar="N",
        help="The number of test users, drawn at random, for whom the catalogue is ranked, the "
        "same for all models: a number, all, or auto for all, unless they make more than ten "
        "million pairs with the items and some model is asked for each pair.",
    ),
]
LikeOption = Annotated[
    float | None,
    typer.Option(
        "--like",
        metavar="RATING",
        help="The lowest rating that counts as liked, and as relevant for precision, recall, map, "
        "mrr and hit_rate; by default the top fifth of the scale (4 of 5 stars).",
    ),
]
TimesOption = Annotated[
    str,
    typer.Option(
        "--times",
        metavar="WHICH",
        help="Whether models may use the time of each test rating: unknown, as when predicting "
        "the future, or known.",
    ),
]
ColdOption = Annotated[
    int,
    typer.Option(
        "--cold",
        metavar="N",
        help="Users with at most N training ratings are cold; where the test part has such "
        "users, warm and cold users are also shown separately.",
    ),
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of splits, models and draws of users.")
]
OutputOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Also write the results to FILE.csv or FILE.json, as far as they are finished.",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with an evaluation that was interrupted: what it finished is kept in a folder "
        "beside the first --output until all is done.",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Also write a report with tables and figures to FILE.html.",
    ),
]


@options_of_reading()
def evaluate(
    data: DataArgument = BUNDLED,
    models: ModelsOption = None,
    settings: SettingsOption = None,
    split: SplitOption = SPLIT,
    metrics: MetricsOption = None,
    decision: DecisionOption = DECISION,
    average: AverageOption = "micro",
    candidates: CandidatesOption = CANDIDATES,
    ranking_users: RankingUsersOption = RANKING_USERS,
    like: LikeOption = None,
    times: TimesOption = TIMES,
    cold: ColdOption = COLD_USERS,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    seed: SeedOption = 0,
    output: OutputOption = None,
    report: ReportOption = None,
    reading: Reading = USUAL,
    items: ItemsOption = None,
    users: UsersOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rating models on held-out ratings.

    Without arguments: the recommender, ordinal factors, and baselines for ratings and for lists
    on the bundled MovieLens ratings. A model that fails is named and the others go on; the exit
    code is then 1. Ctrl-C or a signal to terminate stops the work, prints and writes what was
    finished, and makes the exit code 130; the same command with --resume does the rest.
    """
    from ordrec.errors import ArgumentError, StorageError
    from ordrec.evaluation import DEFAULT_METRICS
    from ordrec.evaluation import evaluate as compare
    from ordrec.evaluation.run import Interrupted

    if average not in ("micro", "macro", "both"):
        raise ArgumentError(f"--average must be micro, macro or both, got {average!r}")
    about: dict[str, Any] = {"inputs": [place_of(data), users, items], "overwrite": overwrite}
    writers = [result_writer(path, **about) for path in output or []]
    at_the_end = [*writers] if report is None else [*writers, report_writer(report, **about)]
    parts = _finished_parts(output, resume, overwrite)
    averages = ("micro", "macro") if average == "both" else (average,)
    chosen_engine = engine_of(engine, scheduler)
    compared = (
        {} if models is None else made_models(words_of(models, "--models"), settings or [], seed)
    )
    ratings = with_side_data(reading.ratings(data), reading, users, items)
    if models is None:
        named = default_model_names(has_ratings=ratings.has_ratings)
        compared = made_models(named, settings or [], seed)
    interrupted = False
    latest: EvaluationResult | None = None
    try:
        with live_table(quiet) as live:

            def show_and_write(so_far: EvaluationResult) -> None:
                from ordrec.report.tables import summary_tables

                nonlocal latest
                latest = so_far
                with suppress(StorageError):  # there may be room again at the end
                    for write in writers:
                        write(so_far)
                if live.shown:
                    live.show(
                        *summary_tables(so_far, averages[0], plain=live.plain, width=live.width)
                    )

            result = compare(
                ratings,
                compared,
                split,
                metrics=DEFAULT_METRICS if metrics is None else words_of(metrics, "--metrics"),
                decision=decision,
                candidates=candidates,  # type: ignore[arg-type]
                ranking_users=int(ranking_users) if ranking_users.isdecimal() else ranking_users,  # type: ignore[arg-type]
                like=like,
                times=times,  # type: ignore[arg-type]
                cold_users=cold,
                seed=seed,
                n_jobs=_jobs_for(ratings) if jobs is None else jobs,
                engine=chosen_engine,
                keep_distributions=report is not None,
                store=None if parts is None else parts.path,
                finished=show_and_write,
            )
    except Interrupted as interruption:
        result, interrupted = interruption.result, True
        print("ordrec: interrupted: this is what was finished", file=sys.stderr)
    except StorageError:  # of the finished parts
        if latest is not None:
            _print_tables(latest, averages)
        raise
    try:
        for write in at_the_end:
            write(result)
    except StorageError:
        _print_tables(result, averages)
        raise
    if not quiet:
        _print_tables(result, averages)
    _print_failures(result)
    if interrupted:
        raise typer.Exit(130)
    if parts is not None:
        parts.clear()
    if not result.complete:
        raise typer.Exit(1)


def _finished_parts(output: list[Path] | None, resume: bool, overwrite: bool) -> PartStore | None:
    """Return the store of what is finished; that of another run is resumed or overwritten."""
    from ordrec.errors import ArgumentError
    from ordrec.storage.parts import PartStore

    if not output:
        if resume:
            raise ArgumentError("--resume: name the results of the interrupted run with -o")
        return None
    parts = PartStore(output[0].absolute().with_name(f"{output[0].name}.parts"))
    if overwrite and not resume:
        parts.clear()
    if len(parts) and not resume:
        raise ArgumentError(
            f"{output[0]}: an interrupted run left {len(parts)} finished parts beside it: "
            "go on with --resume, or start again with --overwrite"
        )
    return parts


def _print_tables(result: EvaluationResult, averages: tuple[str, ...]) -> None:
    from ordrec.report.tables import print_summary

    for users in result.user_groups or ["all"]:
        for average in averages:
            print_summary(console(), result, average, users)


def _print_failures(result: EvaluationResult) -> None:
    for failed in result.failures.itertuples():
        words = " ".join(str(failed.error).split())
        print(f"ordrec: {failed.model} failed on fold {failed.fold}: {words}", file=sys.stderr)


def _jobs_for(ratings: Ratings) -> int:
    """Return -1 (all processors), or 1 where starting them is slow or memory may not suffice."""
    return -1 if 10_000 <= ratings.n_ratings <= 1_000_000 else 1
