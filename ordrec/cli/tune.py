"""``ordrec tune``: search the parameters of a model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.chosen_models import made_model, remember_class
from ordrec.cli.options import DataArgument, QuietOption, console, place_of, progress_bar
from ordrec.cli.outputs import OverwriteOption, check_output
from ordrec.cli.reading import USUAL, Reading, options_of_reading
from ordrec.cli.side_data import ItemsOption, UsersOption, with_side_data
from ordrec.errors import visible

if TYPE_CHECKING:
    from ordrec.evaluation import TunedModel

SHOWN = 10  # settings in the table


@options_of_reading()
def tune(
    data: DataArgument,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="The model: a name as in 'ordrec evaluate', or package.module:Class.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for the best model, fitted to all ratings.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter that stays, such as n_factors=8. Can be repeated.",
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            metavar="NAME=VALUES",
            help="Values to try: n_factors=4,8,16, or mix=0..1, or damping=1..1000:log. Can be "
            "repeated; by default a few parameters that matter are searched.",
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="What decides; by default graded_ndcg@10 for models that make lists, rmse for "
            "others.",
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            "--split", "-s", metavar="SPLIT", help="The inner splits, as in 'ordrec evaluate'."
        ),
    ] = "kfold:3",
    trials: Annotated[
        int,
        typer.Option("--trials", metavar="N", help="Settings to try, the defaults included."),
    ] = 20,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="N", help="Start no further fit after N seconds."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="NAME",
            help="grid (all settings), optuna (pip install 'ordrec[tune]') or random; auto takes a "
            "grid if it is small, else optuna if it is installed.",
        ),
    ] = "auto",
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of splits, models and draws.")
    ] = 0,
    reading: Reading = USUAL,
    items: ItemsOption = None,
    users: UsersOption = None,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search the parameters of a model.

    They are compared on inner splits of the ratings, the defaults first. The table shows the best
    settings, and the line below it how to fit the winner. Its value is the best of many and a
    little too good: hold ratings back to know how good it is. Ctrl-C shows what was tried until
    then, and makes the exit code 130.
    """
    from ordrec.errors import ArgumentError
    from ordrec.evaluation import tune_model
    from ordrec.evaluation.run import Interrupted
    from ordrec.files import save

    unfitted = made_model(model, settings or [])
    if output is not None:
        check_output(output, "model", [place_of(data), users, items], overwrite=overwrite)
        if not hasattr(unfitted, "stored"):
            raise ArgumentError(f"-o: model {model!r} cannot be saved")
        if ":" in model:
            remember_class(type(unfitted), model)
    space = _space_of(search, unfitted) if search else None
    ratings = with_side_data(reading.ratings(data), reading, users, items)
    interrupted = False
    try:
        with progress_bar(quiet, f"searching parameters of {model}"):
            found = tune_model(
                ratings,
                unfitted,
                space,
                metric=metric,
                split=split,
                n_trials=trials,
                seconds=seconds,
                method=method,  # type: ignore[arg-type]
                refit=output is not None,
                seed=seed,
            )
    except Interrupted as interruption:
        found, interrupted = interruption.result, True
        print("ordrec: interrupted: this is what was tried", file=sys.stderr)
    if output is not None and not interrupted:
        save(found.model, output)
    if not quiet:
        _print(found, split)
        words = ["ordrec", "fit", data, *reading.words(), "--model", model]
        for option, file in (("--items", items), ("--users", users)):
            words += [] if file is None else [option, str(file)]
        for setting in (*(settings or []), *_as_settings(found.best_params)):
            words += ["--set", setting]
        print(shlex.join([*words, "-o", "FILE"]))
    if interrupted:
        raise typer.Exit(130)


def _space_of(search: list[str], model: Any) -> dict[str, Any]:
    """The space in "n_factors=4,8", "mix=0..1" and "damping=1..1000:log"."""
    from ordrec.errors import ArgumentError

    space: dict[str, Any] = {}
    for text in search:
        name, equals, values = text.partition("=")
        if not (name.strip().isidentifier() and equals and values):
            raise ArgumentError(f"--search {text!r}: write it as n_factors=4,8,16 or mix=0..1")
        try:
            space[name.strip()] = _values_of(values, getattr(model, name.strip(), None))
        except ValueError as error:
            raise ArgumentError(f"--search {text!r}: {error}") from None
    return space


def _values_of(text: str, default: Any) -> Any:
    """A range, of whole numbers where the default is one, or a list of values."""
    import json

    from ordrec.evaluation import Between

    if ".." in text:
        bounds, _, kind = text.partition(":")
        low, _, high = bounds.partition("..")
        whole = isinstance(default, int) or (default is None and "." not in low + high)
        return Between(float(low), float(high), log=kind == "log", whole=whole)
    values = []
    for word in text.split(","):
        try:
            values.append(json.loads(word))
        except ValueError:
            values.append(word.strip())
    return values


def _as_settings(parameters: dict[str, Any]) -> list[str]:
    """Parameters as ``--set`` takes them."""
    import json

    return [
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in parameters.items()
    ]


def _print(found: TunedModel, split: str) -> None:
    """Print the best settings, the defaults among them wherever they stand."""
    from ordrec.report.tables import tuning_table

    console().print(tuning_table(found, SHOWN))
    failed = int((found.table["error"] != "").sum())
    notes = f"{len(found.table)} settings by {found.method}, mean over {split}; *: the defaults"
    if failed:
        first = found.table.loc[found.table["error"] != "", "error"].iloc[0]
        said = f"{failed} settings failed, the first with {first}"
        print(f"ordrec: {visible(said)}", file=sys.stderr)
    console().print(f"{notes}.", style="dim", highlight=False, markup=False)
