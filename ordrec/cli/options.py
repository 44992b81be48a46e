"""What the commands share: arguments, reading ratings, the progress bar, the console."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ordrec.ratings import Ratings

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Name of a data set (see 'ordrec data list'), or a folder, zip, csv or parquet file.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never touch the network.")]


def ratings_of(data: str, offline: bool) -> Ratings:
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


def words_of(text: str, option: str) -> list[str]:
    """The names joined by commas in an option."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        from ordrec.errors import ArgumentError

        raise ArgumentError(f"{option} names nothing: give names joined by commas")
    return words


def result_writer(path: Path) -> Callable[[Any], Any]:
    """The function that writes a result; a wrong ending is noticed before the work, not after."""
    from ordrec.errors import ArgumentError

    if path.suffix not in (".csv", ".json"):
        raise ArgumentError(f"{path}: results are written as .csv or .json")
    if not path.absolute().parent.is_dir():
        raise ArgumentError(f"{path}: the folder {path.absolute().parent} does not exist")
    return lambda result: result.to_csv(path) if path.suffix == ".csv" else result.to_json(path)


def console() -> Any:
    """Where tables go: standard output."""
    from rich.console import Console

    # Redirected output has no width of its own: keep tables whole there.
    return Console(width=None if sys.stdout.isatty() else 160)


class progress_bar:
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
