"""The command line: each command is a few lines that call the library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.errors import OrdrecError

if TYPE_CHECKING:
    from ordrec.ratings import Ratings

BUNDLED = "ml-latest-small-2016"
DEFAULT_MODELS = "mean,histogram,bias,item-knn,factors,als"

app = typer.Typer(
    help="Predict ratings, rank by graded relevance and evaluate recommenders offline, with "
    "ratings treated as what they are: ordered categories.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="List, describe and fetch data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Name of a data set (see 'ordrec data list'), or a folder, zip, csv or parquet file.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never touch the network.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from ordrec import __version__

        print(f"ordrec {__version__}")
        raise typer.Exit


@app.command()
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

    writers = [_writer(path) for path in output or []]
    ratings = _ratings(data, offline)
    with _progress(quiet) as progress:
        result = compare(
            ratings,
            _words(models, "--models"),
            split,
            metrics=_words(metrics, "--metrics") if metrics else DEFAULT_METRICS,
            decision=decision,
            seed=seed,
            progress=progress,
        )
    for write in writers:
        write(result)
    if not quiet:
        from ordrec.report.tables import summary_table

        _console().print(summary_table(result, average))


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one; see --list.")] = "",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of data sets; default ORDREC_DATA."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="How many; as published by default.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Processes.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="A minute's worth of it.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="For the results; default reproduced/NAME."
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="Name all experiments.")] = False,
) -> None:
    """Run a published experiment and print ours next to the published numbers.

    Writes csv, figures and a report; a stopped run continues where it was. The exit code is 1
    where a part of it failed.
    """
    from ordrec.errors import ArgumentError
    from ordrec.report.reproduce import list_pipelines
    from ordrec.report.reproduce import reproduce as run

    if list_them:
        from ordrec.report.tables import pipeline_table

        _console().print(pipeline_table(list_pipelines().values()))
        return
    if not name:
        raise ArgumentError("name an experiment: 'ordrec reproduce --list' shows them")
    found = run(name, data=data, trials=trials, jobs=jobs, quick=quick, out=output)
    if not found.complete:
        raise typer.Exit(1)


@data_app.command("list")
def list_data() -> None:
    """All data sets ordrec knows by name, and where they are found on this machine."""
    from ordrec.datasets import describe_dataset, list_datasets
    from ordrec.datasets.registry import find_dataset
    from ordrec.report.tables import dataset_table

    rows = []
    for name in list_datasets():
        info = describe_dataset(name)
        size = ", ".join(f"{number:,} {what}" for what, number in info.counts.items())
        place = find_dataset(name)
        rows.append((name, info.title, size, "-" if place is None else str(place)))
    _console().print(dataset_table(rows))


@data_app.command("describe")
def describe_data(name: Annotated[str, typer.Argument(help="Name of a data set.")]) -> None:
    """Where a data set comes from, its terms, what to cite; its contents if it is here."""
    from ordrec.datasets import describe_dataset, load_dataset
    from ordrec.datasets.registry import find_dataset

    print(describe_dataset(name))
    if find_dataset(name) is not None:
        print(f"  contents     {load_dataset(name, offline=True)!r}")


@data_app.command("fetch")
def fetch_data(
    name: Annotated[str, typer.Argument(help="Name of a data set.")],
    quiet: QuietOption = False,
    offline: OfflineOption = False,
) -> None:
    """Download a data set into the cache, checking its checksum."""
    from ordrec.datasets import fetch_dataset, load_dataset
    from ordrec.datasets.registry import find_dataset

    place = find_dataset(name)
    if place is None and offline:
        load_dataset(name, offline=True)  # raises the message that says where to get it
    print(place or fetch_dataset(name, progress=not quiet and sys.stderr.isatty()))


# ---- what the commands share -----------------------------------------------------------


def _ratings(data: str, offline: bool) -> Ratings:
    """Ratings by the name of a data set or by path."""
    from ordrec.datasets import list_datasets, load_dataset, load_path
    from ordrec.errors import ArgumentError, DataError, DatasetMissing
    from ordrec.ratings import Ratings

    if data in list_datasets():
        loaded = load_dataset(data, offline=offline)
    elif Path(data).exists():
        loaded = load_path(data)
    elif any(mark in data for mark in "/\\.") or not data:
        raise DatasetMissing(f"{data!r}: no such file or folder")
    else:
        load_dataset(data)  # raises the message with the nearest names
        raise ArgumentError(f"unknown data set {data!r}")
    if not isinstance(loaded, Ratings):
        raise DataError(f"{data} holds no ratings but {type(loaded).__name__}")
    return loaded


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        from ordrec.errors import ArgumentError

        raise ArgumentError(f"{option} names nothing: give names joined by commas")
    return words


def _writer(path: Path) -> Callable[[Any], Any]:
    """The function that writes a result; a wrong ending is noticed before the work, not after."""
    from ordrec.errors import ArgumentError

    if path.suffix not in (".csv", ".json"):
        raise ArgumentError(f"{path}: results are written as .csv or .json")
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path}: the folder {path.absolute().parent} does not exist")
    return lambda result: result.to_csv(path) if path.suffix == ".csv" else result.to_json(path)


def _console() -> Any:
    from rich.console import Console

    # Redirected output has no width of its own: keep tables whole there.
    return Console(width=None if sys.stdout.isatty() else 160)


class _progress:
    """A progress bar on a terminal, silence elsewhere."""

    def __init__(self, quiet: bool):
        self.shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> Callable[[int, int, str], None] | None:
        if not self.shown:
            return None
        from rich.console import Console
        from rich.progress import Progress

        self.bar = Progress(console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=None)
        self.bar.start()
        return lambda done, total, text: self.bar.update(
            self.task, completed=done, total=total, description=text
        )

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self.bar.stop()


def main() -> None:
    """Entry point: an `OrdrecError` is one line on standard error and exit code 2."""
    try:
        app()
    except OrdrecError as error:
        print(f"ordrec: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)


if __name__ == "__main__":
    main()
