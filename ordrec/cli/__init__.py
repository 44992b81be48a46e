"""The command line: each command is a few lines that call the library."""

from __future__ import annotations

import errno
import io
import signal
import sys
import warnings
from typing import Annotated, Any

import typer

from ordrec.cli.data import describe_data, fetch_data, list_data, partition
from ordrec.cli.docs import docs
from ordrec.cli.evaluate import evaluate
from ordrec.cli.explain import explain, similar
from ordrec.cli.fit import fit
from ordrec.cli.on_disk import evaluate_all, fit_all, predict_all
from ordrec.cli.parameters import in_options
from ordrec.cli.predict import predict
from ordrec.cli.rank import rank_evaluate, rank_explain, rank_fit, rank_predict, rank_update
from ordrec.cli.recommend import recommend
from ordrec.cli.reproduce import reproduce
from ordrec.cli.score import score
from ordrec.cli.serve import serve
from ordrec.cli.tune import tune
from ordrec.cli.update import update
from ordrec.errors import OrdrecError, shortened, visible

__all__ = ["app", "main"]

app = typer.Typer(
    help="Predict ratings, rank by graded relevance and evaluate recommenders offline, with "
    "ratings treated as what they are: ordered categories.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="List, describe and fetch data sets.", no_args_is_help=True)

rank_app = typer.Typer(help="Rank documents by graded relevance.", no_args_is_help=True)

app.command()(fit)
app.command()(predict)
app.command("fit-all")(fit_all)
app.command("evaluate-all")(evaluate_all)
app.command("predict-all")(predict_all)
app.command()(recommend)
app.command()(explain)
app.command()(update)
app.command()(similar)
app.command()(serve)
app.command()(evaluate)
app.command()(score)
app.command()(tune)
app.command()(reproduce)
app.command()(docs)
data_app.command("list")(list_data)
data_app.command("describe")(describe_data)
data_app.command("fetch")(fetch_data)
data_app.command("partition")(partition)
rank_app.command("fit")(rank_fit)
rank_app.command("evaluate")(rank_evaluate)
rank_app.command("predict")(rank_predict)
rank_app.command("explain")(rank_explain)
rank_app.command("update")(rank_update)
app.add_typer(rank_app, name="rank")
app.add_typer(data_app, name="data")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        from ordrec import __version__

        print(f"ordrec {__version__}")
        raise typer.Exit


def main(words: list[str] | None = None) -> None:
    """Run the command line; errors are one line on standard error and exit code 2.

    Parameters
    ----------
    words : list of str, optional
        The words after ``ordrec``; by default those that the program was started with.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character shows "?" instead
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.stdout = sys.stdout or _ClosedOutput()
    warnings.showwarning = _say  # type: ignore[assignment]
    try:
        code = app(words, standalone_mode=False)
        sys.stdout.flush()  # here, where an error still has an effect on the exit code
    except OrdrecError as error:
        _refuse(in_options(error), 2)
    except (KeyboardInterrupt, BrokenPipeError):
        _leave_interrupted()
    except OSError as error:  # names that are too long, folders without permission, full disks
        _refuse(
            f"{error.filename or 'the output'}: {error.strerror or error}: name another place", 2
        )
    except Exception as error:
        # Wrong usage: click and its copy inside typer raise classes without a common base.
        if type(error).__name__ == "Abort":  # Ctrl-C in the words of earlier versions of typer
            _leave_interrupted()
        if not hasattr(error, "format_message"):
            raise
        if "NoArgsIsHelp" in type(error).__name__:
            error.show()  # type: ignore[attr-defined]
        else:
            message = error.format_message().rstrip(". ")  # type: ignore[attr-defined]
            _refuse(f"{message}: see 'ordrec --help'", error.exit_code)  # type: ignore[attr-defined]
        code = 2
    if code == 130:
        _leave_interrupted()
    if (
        words is None
    ):  # all is written: Ctrl-C while the program ends would only spoil its exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code or 0)


class _ClosedOutput(io.TextIOBase):
    """Standard output that the caller has closed: whatever is printed there would be lost."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "is closed", "standard output")


def _leave_interrupted() -> None:
    # Where a KeyboardInterrupt leaves text that is executed, as in numba's compiler, Python notes
    # it and would end the program by a signal in place of the exit code that is chosen here.
    # Executing another text clears the note.
    exec("pass")
    sys.exit(130)


def _interrupt(number: int, frame: object) -> None:
    """End the work as Ctrl-C does when the process is asked to terminate; finished parts stay."""
    raise KeyboardInterrupt


def _say(message: Warning | str, *_: Any) -> None:
    """Show a warning as one line, without the place in the source."""
    words = in_options(message) if isinstance(message, Warning) else message
    print(f"ordrec: {visible(words)}", file=sys.stderr)


def _refuse(message: str, code: int) -> None:
    print(f"ordrec: {visible(shortened(' '.join(message.split())))}", file=sys.stderr)
    sys.exit(code)
