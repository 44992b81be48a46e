"""Where a command may write: never over its inputs, over others' files only with --overwrite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ordrec.errors import ArgumentError, visible

__all__ = [
    "OverwriteOption",
    "check_output",
    "frame_writer",
    "report_writer",
    "result_writer",
    "saying_what_stays",
    "table_writer",
]

OverwriteOption = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace an output file even if this command did not write it. Inputs are never "
        "replaced.",
    ),
]

DIGITS_TO_READ = 4
KEPT_TABLES = {
    "values of users": ["model", "fold", "users"],
    "test predictions": ["model", "fold", "user"],
}  # and the names of their first columns
START = 4096  # bytes from which an earlier output is recognised


@contextmanager
def saying_what_stays(output: Path, finished: str | None = None) -> Iterator[None]:
    """Say on an interruption or a signal to terminate what has been written.

    ``finished`` says what is kept of an output that is written in parts; others are written whole.
    """
    try:
        yield
    except KeyboardInterrupt:
        whole = f"{output} stays as it was" if output.exists() else f"{output} was not written"
        print(f"ordrec: interrupted: {finished or whole}", file=sys.stderr)
        raise


def check_output(
    path: Path, kind: str, inputs: Iterable[str | Path | None] = (), *, overwrite: bool = False
) -> None:
    """Raise before the work starts if its result could not, or should not, be written.

    Parameters
    ----------
    path : Path
    kind : {"model", "predictions", "lists", "rankings", "reasons", "lifts", "results", ...}
        An existing file of this kind is replaced; any other only with ``overwrite``.
    inputs : iterable of paths or None
        What the command reads; None and names that are no files or folders are ignored. They are
        never replaced, also not through links.
    overwrite : bool
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ArgumentError(f"{path}: the folder {folder} does not exist")
    if path.exists() and not path.is_file():
        raise ArgumentError(f"{path}: is not a file: choose another name")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{path}: the folder {folder} cannot be written to")
    if not path.exists():
        return
    ours = path.stat().st_size == 0 or _is_earlier_output(path, kind)
    for source in (Path(each) for each in inputs if each is not None):
        if source.is_file() and source.samefile(path):
            raise ArgumentError(f"{path}: is also the input {source}: choose another name")
        inside = source.is_dir() and path.resolve().is_relative_to(source.resolve())
        if inside and not ours:
            raise ArgumentError(f"{path}: is a file of the input {source}: choose another name")
    if not (ours or overwrite):
        raise ArgumentError(
            f"{path}: exists and does not look like earlier {kind} of ordrec: choose another "
            "name, or replace it with --overwrite"
        )


def result_writer(path: Path, **about: Any) -> Callable[[Any], Any]:
    """Return the function that writes a result; the other arguments are those of `check_output`."""
    if path.suffix not in (".csv", ".json"):
        raise ArgumentError(f"{path}: results are written as .csv or .json")
    check_output(path, "results", **about)
    return lambda result: result.to_csv(path) if path.suffix == ".csv" else result.to_json(path)


def report_writer(path: Path, **about: Any) -> Callable[[Any], Any]:
    """Return the function that writes the report of an evaluation, after checking the name."""
    if path.suffix != ".html":
        raise ArgumentError(f"{path}: a report is written as .html")
    check_output(path, "report", **about)

    def write(result: Any) -> None:
        from ordrec.report.evaluation import evaluation_report
        from ordrec.runtime.files import write_text

        write_text(path, evaluation_report(result).html())

    return write


def frame_writer(
    path: Path, kind: str, table_of: Callable[[Any], Any], **about: Any
) -> Callable[[Any], None]:
    """Return the function that writes a table made of a result, as csv or parquet."""
    if path.suffix not in (".csv", ".parquet"):
        raise ArgumentError(f"{path}: {kind} are written as .csv or .parquet")
    check_output(path, kind, **about)
    if path.suffix == ".parquet":
        from ordrec.data.on_disk.partitions import parquet_engine

        parquet_engine(path)

    def write(result: Any) -> None:
        from ordrec.runtime.files import replace_file

        with replace_file(path) as file:
            if path.suffix == ".csv":
                table_of(result).to_csv(file, index=False, lineterminator="\n")
            else:
                table_of(result).to_parquet(file, engine="pyarrow", index=False)

    return write


def table_writer(path: Path | None, kind: str, **about: Any) -> Callable[[Any], None]:
    """Return the function that writes a table as csv, to standard output without a path."""
    if path is None:
        return _print_csv
    check_output(path, kind, **about)

    def write(table: Any) -> None:
        from ordrec.runtime.files import write_text

        write_text(path, table.to_csv(index=False, lineterminator="\n"))

    return write


def _print_csv(table: Any) -> None:
    """Print a table as csv, with as many digits as one can read if somebody does."""
    if sys.stdout.isatty():
        table = _visible_in(table.round(DIGITS_TO_READ))
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    table.to_csv(sys.stdout, index=False, lineterminator="\n")


def _visible_in(table: Any) -> Any:
    """The table with control characters in its texts and names written out; line ends too."""

    def written_out(value: Any) -> Any:
        return " ".join(visible(value).splitlines()) if isinstance(value, str) else value

    texts = table.select_dtypes(exclude="number").columns
    return table.assign(**{name: table[name].map(written_out) for name in texts}).rename(
        columns=written_out
    )


# ---- what earlier runs wrote -------------------------------------------------------------------


def _is_earlier_output(path: Path, kind: str) -> bool:
    """Whether a file begins as this kind of output does."""
    with open(path, "rb") as stream:
        start = stream.read(START)
    if kind == "model":
        return _is_model(path)
    if kind == "report":
        return b'<meta name="generator" content="ordrec">' in start
    if kind == "results" and path.suffix == ".json":
        return start.startswith(b'{\n "ordrec": ')
    if kind == "lists" and start.startswith(b"PAR1"):
        return _columns_of_parquet(path)[:3] == ["user", "place", "item"]
    if start.startswith(b"PAR1") and kind in KEPT_TABLES:
        return _columns_of_parquet(path)[:3] == KEPT_TABLES[kind]
    columns = start.split(b"\n", 1)[0].decode("utf-8", "replace").strip().split(",")
    if kind == "results":
        from ordrec.evaluation.result import COLUMNS

        return columns[:4] == COLUMNS[:4]
    if kind in KEPT_TABLES:
        return columns[:3] == KEPT_TABLES[kind]
    if kind == "rankings":
        return columns[:4] == ["query", "document", "score", "rank"]
    if kind == "values of queries":
        return columns == ["model", "query", "fold", "metric", "value"]
    if kind == "lifts":
        return columns == ["feature", "value", "other", "lift"]
    if kind == "predictions":
        return columns[-2:] == ["known_user", "known_item"]
    if kind == "lists":
        return columns[:3] == ["user", "place", "item"]
    return columns[-1] == ("similarity" if kind == "similar items" else "contribution")


def _is_model(path: Path) -> bool:
    import zipfile

    from ordrec.storage.archive import HEADER

    try:
        with zipfile.ZipFile(path) as archive:
            return HEADER in archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _columns_of_parquet(path: Path) -> list[str]:
    from ordrec.data.on_disk.row_blocks import column_names
    from ordrec.errors import DataError

    try:
        return column_names(path)
    except DataError:
        return []
