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
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of an experiment; see --list.")
    ] = "",
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of data sets; by default ORDREC_DATA."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", help="Number of trials; as published by default."),
    ] = None,
    jobs: JobsOption = None,
    engine: EngineOption = "auto",
    scheduler: SchedulerOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run a small part that takes about a minute.")
    ] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option of this experiment only, such as sets=pyrim,housing. Can be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Folder for results; by default reproduced/NAME."
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List all experiments.")] = False,
) -> None:
    """Run a published experiment, beside the published numbers.

    Writes csv, figures and a report; a stopped run continues where it was. The exit code is 1
    if a part failed.
    """
    from ordrec.errors import ArgumentError
    from ordrec.experiments.runner import list_pipelines
    from ordrec.experiments.runner import reproduce as run
    from ordrec.runtime.parallel import default_engine

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
