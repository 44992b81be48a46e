"""``ordrec data list``, ``describe`` and ``fetch``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ordrec.cli.options import OfflineOption, QuietOption, console


def list_data() -> None:
    """List all data sets that ordrec knows by name, and where they are on this machine."""
    from ordrec.datasets import describe_dataset, list_datasets
    from ordrec.datasets.registry import find_dataset
    from ordrec.report.tables import dataset_table

    rows = []
    for name in list_datasets():
        info = describe_dataset(name)
        size = ", ".join(f"{number:,} {what}" for what, number in info.counts.items())
        place = find_dataset(name)
        rows.append((name, info.title, size, "-" if place is None else str(place)))
    console().print(dataset_table(rows))


def describe_data(name: Annotated[str, typer.Argument(help="Name of a data set.")]) -> None:
    """Show the source, terms and citation of a data set, and its contents if it is present."""
    from ordrec.datasets import describe_dataset, load_dataset
    from ordrec.datasets.registry import find_dataset

    print(describe_dataset(name))
    if find_dataset(name) is not None:
        print(f"  contents     {load_dataset(name, offline=True)!r}")


def fetch_data(
    name: Annotated[str, typer.Argument(help="Name of a data set.")],
    quiet: QuietOption = False,
    offline: OfflineOption = False,
) -> None:
    """Download a data set into the cache and verify its checksum."""
    from ordrec.datasets import fetch_dataset, load_dataset
    from ordrec.datasets.registry import find_dataset

    place = find_dataset(name)
    if place is None and offline:
        load_dataset(name, offline=True)  # raises the message that says where to get it
    print(place or fetch_dataset(name, progress=not quiet and sys.stderr.isatty()))
