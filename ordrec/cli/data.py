"""``ordrec data list``, ``describe``, ``fetch`` and ``partition``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ordrec.cli.options import DataArgument, OfflineOption, QuietOption, console
from ordrec.cli.reading import USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, with_side_data


def list_data() -> None:
    """List the data sets known by name, and where they are."""
    from ordrec.data.catalogue import find_dataset
    from ordrec.datasets import describe_dataset, list_datasets
    from ordrec.report.tables import dataset_table

    rows = []
    for name in list_datasets():
        info = describe_dataset(name)
        size = ", ".join(f"{number:,} {what}" for what, number in info.counts.items())
        place = find_dataset(name)
        rows.append((name, info.title, size, "-" if place is None else str(place)))
    console().print(dataset_table(rows))


@options_of_reading()
def describe_data(data: DataArgument, reading: Reading) -> None:
    """Show what would be read from a data set or a file.

    For a data set known by name: also its source, terms and citation. Judged documents (files and
    folders of LETOR and of OHSUMED, tables with columns query and grade) are shown as
    'ordrec rank' reads them.
    """
    from ordrec.data.catalogue import find_dataset
    from ordrec.datasets import describe_dataset, list_datasets
    from ordrec.errors import visible

    if data in list_datasets():
        print(describe_dataset(data))
        if find_dataset(data) is None:
            return
    print(f"  contents     {visible(_contents(data, reading))}")


def _contents(data: str, reading: Reading) -> str:
    from ordrec.datasets import describe_dataset, list_datasets, load_dataset

    if data in list_datasets() and "ratings" not in describe_dataset(data).counts:
        return _described(load_dataset(data, offline=True))
    if data not in list_datasets() and Path(data).exists():
        from ordrec.data.formats.ohsumed import load_ohsumed
        from ordrec.documents.judgements import holds_judgements, read_judgements

        kind = holds_judgements(data)
        if kind is not None:
            if kind == "ohsumed":
                return _described(load_ohsumed(data))
            options = reading.judgement_options() if kind == "table" else {}
            return _described(read_judgements(data, **options))
    return repr(reading.ratings(data))


def _described(found: Any) -> str:
    """What a data set that holds no ratings is, in a line or a few."""
    from ordrec.data.formats.letor import Letor
    from ordrec.data.formats.ohsumed import Ohsumed
    from ordrec.documents import Judgements

    if isinstance(found, Letor | Judgements):
        return repr(Judgements.of(found)).strip("<>")
    if isinstance(found, Ohsumed):
        judged = found.judgements
        grades = ", ".join(f"{g} ({n:,})" for g, n in judged["grade"].value_counts().items())
        known = int(judged["ui"].isin(found.documents["ui"]).sum())
        return (
            f"{len(found.documents):,} documents, {len(found.topics):,} topics, {len(judged):,} "
            f"judgements with grades {grades}; {known:,} of the judged documents are there"
        )
    return repr(found)


def fetch_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a data set.")],
    quiet: QuietOption = False,
    offline: OfflineOption = False,
) -> None:
    """Download a data set into the cache and verify its checksum."""
    from ordrec.data.catalogue import find_dataset
    from ordrec.datasets import fetch_dataset, load_dataset

    place = find_dataset(name)
    if place is None and offline:
        load_dataset(name, offline=True)  # raises the message that says where to get it
    print(place or fetch_dataset(name, progress=not quiet and sys.stderr.isatty()))


@options_of_reading()
def partition(
    data: DataArgument,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    rows: Annotated[
        int, typer.Option("--rows", metavar="N", help="Approximate number of ratings per file.")
    ] = 1_000_000,
    reading: Reading = USUAL,
    items: ItemsOption = None,
    users: UsersOption = None,
) -> None:
    """Write ratings as parquet files, partitioned by user.

    Each file has all ratings of its users; side tables are written, too. Such a folder can be
    larger than memory: 'ordrec fit-all', 'ordrec predict-all' and 'ordrec fit FOLDER
    --sample-users N' read it file by file.
    """
    ratings = with_side_data(reading.ratings(data), reading, users, items)
    ratings.to_partitions(folder, rows_per_part=rows)
