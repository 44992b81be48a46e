"""Arguments and helpers shared by the commands: settings, progress, the console."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.runtime.progress import Stage, progress, report

if TYPE_CHECKING:
    from ordrec.runtime.parallel import Engine

DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Name of a data set (see 'ordrec data list'), or a folder, zip, csv or parquet file.",
    ),
]
ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by 'ordrec fit'.")
]
FolderArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Ratings, from 'ordrec data partition'.")
]
TableOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write the csv to FILE instead of standard output."
    ),
]
KINDS = {
    int: "a whole number", float: "a number", bool: "true or false", str: "a text",
    type(None): "null",
}  # fmt: skip
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")]
NoBarOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N",
        help="Number of tasks at a time; -1 for one per processor. By default one, or as many as "
        "the engine has.",
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        help="Where tasks run: serial, threads, processes, dask, or auto.",
        metavar="NAME",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Address of the scheduler of a Dask cluster, such as tcp://host:8786, for "
        "--engine dask. By default a cluster is started on this machine.",
    ),
]
MemoryOption = Annotated[
    float | None,
    typer.Option(
        "--max-memory",
        metavar="GB",
        help="Gigabytes that the model may take in memory; 8 by default.",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="How the characters of a csv are written, such as latin-1; UTF-8 by default.",
    ),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Never use the network.")]


def engine_of(engine: str, scheduler: str | None) -> Engine:
    """Return the engine that two options name."""
    from ordrec.errors import ArgumentError
    from ordrec.runtime.parallel import Engine

    if scheduler is None:
        return Engine.of(engine)
    if engine not in ("auto", "dask"):
        raise ArgumentError(f"--scheduler is for --engine dask, not {engine}")
    return Engine("dask", scheduler)


def place_of(data: str) -> Path:
    """Return the file or folder that DATA stands for, whether or not it exists."""
    from ordrec.data.catalogue import find_dataset
    from ordrec.datasets import list_datasets

    return (data in list_datasets() and find_dataset(data)) or Path(data)


def words_of(texts: list[str], option: str) -> list[str]:
    """Return the names in an option: separated by commas, or from each time that it was given."""
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    if not words:
        from ordrec.errors import ArgumentError

        raise ArgumentError(f"{option} names nothing: give names separated by commas")
    return words


def check_kinds(settings: dict[str, Any], model: Any) -> None:
    """Raise an error for a parameter that is set to another kind of value than it has.

    Parameters
    ----------
    settings : dict
    model : object
        With the default values; the kinds are those that its class declares.
    """
    import typing

    from ordrec.errors import ArgumentError
    from ordrec.storage.parameters import fits

    hints = typing.get_type_hints(type(model))
    for name, value in settings.items():
        if name in hints and not fits(value, hints[name]):
            raise ArgumentError(
                f"--set {name}={value}: {name} is {_in_words(hints[name])}, "
                f"{_in_words(getattr(model, name))} by default"
            )


def _in_words(kind: Any) -> str:
    """Describe a type, or a value as it is written on a command line."""
    import json
    import types
    import typing

    origin = typing.get_origin(kind)
    if origin in (typing.Literal, typing.Union, types.UnionType):
        return " or ".join(map(_in_words, typing.get_args(kind)))
    if isinstance(kind, type) or origin is not None:
        return KINDS.get(kind, "a list or table of values")
    return kind if isinstance(kind, str) else json.dumps(kind, default=str)


def settings_of(assignments: list[str]) -> dict[str, Any]:
    """Return parameters from "name=value"; values are read as json if possible, else as text."""
    import json
    import math

    from ordrec.errors import ArgumentError

    settings: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not (name.strip().isidentifier() and equals):
            raise ArgumentError(
                f"--set {assignment!r}: write it as name=value, such as preset=fast"
            )
        if not text.strip():
            raise ArgumentError(f"--set {assignment!r}: has no value: name=null sets it to none")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        if isinstance(value, float) and not math.isfinite(value):
            raise ArgumentError(f"--set {assignment!r}: {text.strip()} is not a finite number")
        settings[name.strip()] = value
    return settings


def console() -> Any:
    """Return the console for tables: standard output."""
    from rich.console import Console

    # Redirected output has no width of its own: keep tables in one piece there.
    return Console(width=None if sys.stdout.isatty() else 160)


@contextmanager
def progress_bar(quiet: bool, name: str = "") -> Iterator[Stage]:
    """Show how far the block has come, on a terminal only; yields what it reports to."""
    with progress(name, verbose=False if quiet else None) as stage:
        report(0.0, 1.0)  # all of it is what is done in the block
        yield stage
