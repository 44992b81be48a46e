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
from ordrec.cli.outputs import OverwriteOption, frame_writer, report_writer, result_writer
from ordrec.cli.reading import USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, with_side_data
from ordrec.errors import ArgumentError, visible
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
        help="How to split the ratings: holdout:0.2 (a random share; holdout:0.2,5 five times), "
        "kfold:5, user-holdout:0.2 (of each user's), leave-out:5 (ratings of each user), "
        "strong:0.2 (whole users; strong:0.2,0.5 shows half of their ratings), time:0.2 (the "
        "latest), user-time:0.2 (of each user's), last:1 (rating of each user), cold-items:0.1 "
        "(whole items), or fold:NAME for a published fold. user-time:0.2,file and last:1,file take "
        "ratings of the same second in the order of the file, and not at random.",
    ),
]
TestOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="A test part of your own: DATA is then the training part. Given again, with --train, "
        "for further folds.",
    ),
]
TrainOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--train",
        metavar="FILE",
        help="The training part of a further fold, for the second --test and so on.",
    ),
]
ValidOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--valid",
        metavar="FILE",
        help="A validation part, one for each --test; models are fitted on it too.",
    ),
]
MetricsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="Metrics, separated by commas or repeated; all the usual ones by default. Your own: "
        "package.module:function:higher or ...:lower, by where better values are; with :lists or "
        ":distributions behind it for what the function takes besides ratings.",
    ),
]
DecisionOption = Annotated[
    str,
    typer.Option(
        "--decision",
        metavar="NAME",
        help="What turns a distribution into a rating: mean, median, mode, or auto for the "
        "one that is best for each metric.",
    ),
]
AverageOption = Annotated[
    str,
    typer.Option(
        "--average",
        metavar="NAME",
        help="Pool all ratings (micro), average over users (macro), or show both; with "
        "--propensity also ips and snips.",
    ),
]
CandidatesOption = Annotated[
    str,
    typer.Option(
        "--candidates",
        metavar="WHICH",
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
PropensityOption = Annotated[
    str | None,
    typer.Option(
        "--propensity",
        metavar="WHAT",
        help="Also estimate errors for all pairs of users and items, where users chose what they "
        "rated: popularity, or a table with columns user, item and propensity.",
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option(
        "--by-group",
        metavar="COLUMN",
        help="A column of the table of users (--users): users are also shown separately by its "
        "values.",
    ),
]
SaveUsersOption = Annotated[
    Path | None,
    typer.Option(
        "--save-users",
        metavar="FILE",
        help="Also write the values of each user to FILE.csv or FILE.parquet.",
    ),
]
SavePredictionsOption = Annotated[
    Path | None,
    typer.Option(
        "--save-predictions",
        metavar="FILE",
        help="Also write what was predicted for each test rating to FILE.csv or FILE.parquet.",
    ),
]
OverlapOption = Annotated[
    int | None,
    typer.Option(
        "--overlap",
        metavar="K",
        min=1,
        max=20,
        help="Also show which share of the first K items of a list two models have in common.",
    ),
]
AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="NAME",
        help="The model that all others are tested against; by default the best by each metric.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option("--seed", metavar="N", min=0, help="Seed of splits, models and draws of users."),
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
    test: TestOption = None,
    train: TrainOption = None,
    valid: ValidOption = None,
    metrics: MetricsOption = None,
    decision: DecisionOption = DECISION,
    average: AverageOption = "micro",
    candidates: CandidatesOption = CANDIDATES,
    ranking_users: RankingUsersOption = RANKING_USERS,
    like: LikeOption = None,
    times: TimesOption = TIMES,
    cold: ColdOption = COLD_USERS,
    groups: GroupsOption = None,
    propensity: PropensityOption = None,
    against: AgainstOption = None,
    overlap: OverlapOption = None,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    seed: SeedOption = 0,
    output: OutputOption = None,
    report: ReportOption = None,
    save_users: SaveUsersOption = None,
    save_predictions: SavePredictionsOption = None,
    reading: Reading = USUAL,
    items: ItemsOption = None,
    users: UsersOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare rating models on held-out ratings.

    Without arguments: the recommender, ordinal factors, and baselines for ratings and for lists
    on the bundled MovieLens ratings. With --test, DATA is for training alone. A model that fails
    is named and the others go on; the exit code is then 1. Ctrl-C or a signal to terminate stops
    the work, prints and writes what was finished, and makes the exit code 130; the same command
    with --resume does the rest.
    """
    from ordrec.errors import StorageError
    from ordrec.evaluation import DEFAULT_METRICS
    from ordrec.evaluation import evaluate as compare
    from ordrec.evaluation.run import Interrupted

    if test and split != SPLIT:
        raise ArgumentError("--split: the test part is given by --test: leave out one of them")
    averages = chosen_averages(average, propensity)
    own_files = [*(train or []), *(test or []), *(valid or [])]
    about: dict[str, Any] = {
        "inputs": [place_of(data), users, items, propensity, *own_files],
        "overwrite": overwrite,
    }
    writers = [result_writer(path, **about) for path in output or []]
    at_the_end = [*writers, *further_writers(report, save_users, save_predictions, **about)]
    parts = _finished_parts(output, resume, overwrite)
    chosen_engine = engine_of(engine, scheduler)
    compared = (
        {} if models is None else made_models(words_of(models, "--models"), settings or [], seed)
    )
    ratings = reading.ratings(data)
    parts_of = _own_parts(reading, ratings, train, test, valid)
    if parts_of is not None:
        ratings, split = parts_of  # type: ignore[assignment]
    ratings = with_side_data(ratings, reading, users, items)
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
                metrics=chosen_metrics(metrics) or DEFAULT_METRICS,
                decision=decision,
                candidates=candidates,  # type: ignore[arg-type]
                ranking_users=int(ranking_users) if ranking_users.isdecimal() else ranking_users,  # type: ignore[arg-type]
                like=like,
                times=times,  # type: ignore[arg-type]
                cold_users=cold,
                groups=groups,
                propensity=read_propensity(propensity, ratings),
                against=against,
                seed=seed,
                n_jobs=_jobs_for(ratings) if jobs is None else jobs,
                engine=chosen_engine,
                keep_predictions=any((report, save_predictions, overlap)),
                store=None if parts is None else parts.path,
                finished=show_and_write,
            )
    except Interrupted as interruption:
        result, interrupted = interruption.result, True
        print("ordrec: interrupted: this is what was finished", file=sys.stderr)
    except StorageError:  # of the finished parts
        if latest is not None:
            print_tables(latest, averages)
        raise
    try:
        for write in at_the_end:
            write(result)
    except StorageError:
        print_tables(result, averages)
        raise
    if not quiet:
        print_tables(result, averages, overlap)
    _print_failures(result)
    if interrupted:
        raise typer.Exit(130)
    if parts is not None:
        parts.clear()
    if not result.complete:
        raise typer.Exit(1)


def _own_parts(
    reading: Reading,
    first: Ratings,
    train: list[Path] | None,
    test: list[Path] | None,
    valid: list[Path] | None,
) -> tuple[Ratings, Any] | None:
    """Return all parts in files of your own as one table with its split; None without any."""
    from ordrec.evaluation.splits.own import own_parts

    if test is None:
        for option, given in (("--train", train), ("--valid", valid)):
            if given:
                raise ArgumentError(f"{option}: name the test part with --test")
        return None
    further = [first, *(reading.part(path, first) for path in train or [])]
    return own_parts(
        further,
        [reading.part(path, first) for path in test],
        None if valid is None else [reading.part(path, first) for path in valid],
    )


def _finished_parts(output: list[Path] | None, resume: bool, overwrite: bool) -> PartStore | None:
    """Return the store of what is finished; that of another run is resumed or overwritten."""
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


def print_tables(
    result: EvaluationResult, averages: tuple[str, ...], overlap: int | None = None
) -> None:
    """Print the tables of all groups of users, and what lists have in common if asked for."""
    from ordrec.report.tables import overlap_table, print_summary

    for users in result.user_groups or ["all"]:
        for average in averages:
            print_summary(console(), result, average, users)
    if overlap is not None:
        console().print(overlap_table(result, overlap))


def chosen_averages(average: str, propensity: str | None) -> tuple[str, ...]:
    """Return the averages that tables show."""
    weighted = average in ("ips", "snips")
    if average not in ("micro", "macro", "both") and not weighted:
        raise ArgumentError(f"--average must be micro, macro, both, ips or snips, got {average!r}")
    if weighted and propensity is None:
        raise ArgumentError(f"--average {average} needs --propensity")
    return ("micro", "macro") if average == "both" else (average,)


def read_propensity(propensity: str | None, ratings: Ratings) -> Any:
    """Return the word, or the table in a file with ids of the types of the ratings."""
    from ordrec.data.columns import find_pair_columns
    from ordrec.data.ids import ids_like
    from ordrec.data.read import load_side_table

    if propensity is None or not Path(propensity).is_file():
        return propensity
    table = load_side_table(propensity)
    names = find_pair_columns(table.columns, "user", "item", None)[:2]
    for name, known in zip(names, (ratings.user_ids, ratings.item_ids), strict=True):
        table[name] = ids_like(known, table[name].astype(str), name)
    return table


def chosen_metrics(texts: list[str] | None) -> list[Any]:
    """Return the metrics that are named, with those of one's own; none if nothing is."""
    from ordrec.cli.chosen_models import imported
    from ordrec.evaluation import OwnMetric

    chosen: list[Any] = []
    for word in words_of(texts, "--metrics") if texts else []:
        if ":" not in word:
            chosen.append(word)
            continue
        module, name, *further = word.split(":")
        better = next((text for text in further if text in ("higher", "lower")), None)
        if better is None:
            raise ArgumentError(
                f"--metrics {word}: say where better values are, {module}:{name}:higher or :lower"
            )
        on = [text for text in further if text != better] or ["ratings"]
        function = imported(f"{module}:{name}", "no function")
        chosen.append(OwnMetric(function, better, on[0]))  # type: ignore[arg-type]
    return chosen


def further_writers(
    report: Path | None, users: Path | None, predictions: Path | None, **about: Any
) -> list[Any]:
    """Return what writes a report, the values of users, and predictions; those that are named."""
    writers = [] if report is None else [report_writer(report, **about)]
    if users is not None:
        writers.append(frame_writer(users, "values of users", lambda r: r.per_user(), **about))
    if predictions is not None:
        writers.append(
            frame_writer(predictions, "test predictions", lambda r: r.predictions(), **about)
        )
    return writers


def _print_failures(result: EvaluationResult) -> None:
    for failed in result.failures.itertuples():
        words = " ".join(str(failed.error).split())
        said = f"{failed.model} failed on fold {failed.fold}: {words}"
        print(f"ordrec: {visible(said)}", file=sys.stderr)


def _jobs_for(ratings: Ratings) -> int:
    """Return -1 (all processors), or 1 where starting them is slow or memory may not suffice."""
    return -1 if 10_000 <= ratings.n_ratings <= 1_000_000 else 1
