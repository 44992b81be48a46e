"""``ordrec reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ordrec.cli.options import (
    EngineOption,
    JobsOption,
    SchedulerOption,
    console,
    engine_of,
    settings_of,
)


def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Which one; see --list.")] = "",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of data sets; default ORDREC_DATA."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", help="How many; as published by default.")
    ] = None,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute's worth of it.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of that experiment alone, such as sets=pyrim,housing. Can be given "
            "again.",
        ),
    ] = None,
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
    from ordrec.experiments.runner import list_pipelines
    from ordrec.experiments.runner import reproduce as run
    from ordrec.parallel import default_engine

    if list_them:
        from ordrec.report.tables import pipeline_table

        console().print(pipeline_table(list_pipelines().values()))
        return
    if not name:
        raise ArgumentError("name an experiment: 'ordrec reproduce --list' shows them")
    with default_engine(engine_of(engine, scheduler)):
        found = run(
            name, data=data, trials=trials, jobs=jobs, quick=quick, out=output,
            **settings_of(settings or []),
        )  # fmt: skip
    if not found.complete:
        raise typer.Exit(1)
