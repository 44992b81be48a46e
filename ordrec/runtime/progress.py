"""How far long work has come: one line on standard error, with the time left.

A fit opens a stage with `progress`, and its loops call `report`. What a stage with a name takes is
part of the fit's report (`ordrec.runtime.fit_report`). Stages within stages share one line, which
is shown from `DELAY` seconds on:

    RatingPredictor: 31 %, 9 s left (OrdinalFactors: sweep 7)

On a terminal and in a notebook, rich draws it in place, and it is gone at the end. Elsewhere
nothing is printed, unless ``verbose=True`` asks for it: then a line now and then, and one at the
end with the seconds taken. ``verbose=False`` keeps silent, as do threads and processes that are
only workers.

Compiling is not work: while numba compiles, the line says so, and `work_clock` stands still. What
is measured with it, the seconds of results, tables and figures among them, does not depend on
whether the code was compiled before. `ordrec.runtime.compiling` reports to `compiling_began` and
`compiling_ended`.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from importlib.util import find_spec
from typing import Any, TypeVar

from ordrec.errors import visible
from ordrec.runtime.fit_report import FitReport, measured

__all__ = [
    "Stage",
    "current_line",
    "progress",
    "report",
    "shows_progress",
    "tracked",
    "work_clock",
]

DELAY = 2.0  # seconds before anything is shown
DRAWN_PER_SECOND = 4
PRINTED = 10.0  # seconds between two lines where nothing is drawn
LEAST_SHARE = 0.01  # of the work, from which on the time left is shown
INNERMOST = 3  # stages that are named, beside the outermost

FIRST_PROCESS = os.getpid()
clock = time.perf_counter
Thing = TypeVar("Thing")


# ---- what is reported ------------------------------------------------------------------------


@contextmanager
def progress(name: str, verbose: bool | None = None, *, drawn: bool = False) -> Iterator[Stage]:
    """Open a stage of work for the block; `report` then says how far it has come.

    Parameters
    ----------
    name : str
        What the work is called.
    verbose : bool, optional
        Whether it is shown: True also without a terminal, False never, None on a terminal. A
        stage within another is shown where that one is.
    drawn : bool
        Whether the caller draws the line, which is `current_line`, beside other things.

    Examples
    --------
    >>> with progress("counting"):
    ...     for k in range(3):
    ...         report(k, 3, f"number {k}")
    """
    with measured(name) as found, _shown(name, verbose, drawn) as stage:
        stage.found = found
        yield stage


@contextmanager
def _shown(name: str, verbose: bool | None, drawn: bool) -> Iterator[Stage]:
    """Open the stage of `progress` on the line."""
    if not _may_show():
        yield Stage(name)
        return
    line = _Line.current
    own = line is None or (verbose is True and line.asked is None and not line.shown)
    if own:
        line = _Line(name, verbose, drawn)
    assert line is not None
    before, _Line.current = _Line.current, line
    stage = line.enter(name)
    try:
        yield stage
    finally:
        line.leave(stage)
        _Line.current = before
        if own:
            line.close()


def report(done: float, total: float | None = None, text: str = "", *, span: float = 1.0) -> None:
    """Say how far the innermost stage has come.

    Parameters
    ----------
    done, total : float
        In any unit; without a total, the time left is not known.
    text : str
        What is being done.
    span : float
        How much of the total a stage within this one, if one follows, accounts for.
    """
    line = _Line.current
    if line is not None and line.shown and _may_show():
        line.stages[-1].set(done, total, text, span)
        line.print_now_and_then()


def tracked(things: Sequence[Thing], text: str) -> Iterator[Thing]:
    """Yield things one after the other, as a stage in which each takes the same time.

    Examples
    --------
    >>> sum(tracked(range(4), "number"))
    6
    """
    with progress(""):
        for number, thing in enumerate(things):
            report(number, len(things), f"{text} {number + 1}")
            yield thing


def shows_progress(fit: Any) -> Any:
    """Make a method a stage that has the name of its class; ``self.verbose``, if any, shows it."""

    @wraps(fit)
    def with_progress(self: Any, *args: Any, **options: Any) -> Any:
        with progress(type(self).__name__, getattr(self, "verbose", None)):
            return fit(self, *args, **options)

    return with_progress


def _may_show() -> bool:
    """Whether this is the main thread of the process that was started first, and not forked."""
    return (
        threading.get_ident() == threading.main_thread().ident
        and multiprocessing.current_process().name == "MainProcess"
        and os.getpid() == FIRST_PROCESS
    )


class Stage:
    """Work with a name: how much of it is done, what is being done, and what it took in the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[FitReport] = []
        self.set(0.0, None, "", 1.0)

    def set(self, done: float, total: float | None, text: str, span: float) -> None:
        """Remember how far it has come."""
        self.done, self.total, self.text, self.span = done, total, text, span

    def __call__(self, done: float, total: float | None, text: str) -> None:
        """Report, as functions that take ``progress=`` call it."""
        report(done, total, text)

    @property
    def words(self) -> str:
        """The name, and what is being done."""
        return ": ".join(part for part in (self.name, self.text) if part)


# ---- compiling -------------------------------------------------------------------------------


class _Compiling:
    """Functions that are being compiled, the one that was asked for first, and how long it took."""

    depth, name, since, seconds = 0, "", 0.0, 0.0


def compiling_began(name: str) -> None:
    """Note that a function is being compiled; others that it calls may follow."""
    if _Compiling.depth == 0:
        _Compiling.name, _Compiling.since = name, clock()
    _Compiling.depth += 1
    if _Line.current is not None:
        _Line.current.print_now_and_then()


def compiling_ended() -> None:
    """Note that a function is compiled."""
    _Compiling.depth -= 1
    if _Compiling.depth == 0:
        _Compiling.seconds += clock() - _Compiling.since


def work_clock() -> float:
    """Return seconds that go by while nothing is compiled, for differences.

    Examples
    --------
    >>> start = work_clock()
    >>> work_clock() - start < 1.0
    True
    """
    waiting = clock() - _Compiling.since if _Compiling.depth else 0.0
    return clock() - _Compiling.seconds - waiting


# ---- what is shown ---------------------------------------------------------------------------


def current_line() -> str:
    """Return what is being done and how long it will take; "" if nothing has taken long yet."""
    line = _Line.current
    return line.text() if line is not None and line.is_due else ""


class _Line:
    """The line of the outermost stage, and of all stages within it."""

    current: _Line | None = None

    def __init__(self, name: str, asked: bool | None, drawn_by_caller: bool) -> None:
        self.name, self.asked = name, asked
        self._stream = sys.stderr
        draws = drawn_by_caller or _can_draw(self._stream)
        self.shown = asked is not False and (asked is True or draws)
        self.prints = self.shown and not draws
        self.stages: list[Stage] = []
        self._started, self._work = clock(), work_clock()
        self._printed = -float("inf")
        self._farthest = 0.0
        self._live: Any = None
        self._timer: threading.Timer | None = None
        if self.shown and draws and not drawn_by_caller:
            self._timer = threading.Timer(DELAY, self._draw_from_now_on)
            self._timer.daemon = True
            self._timer.start()

    def enter(self, name: str) -> Stage:
        """Begin a stage within the innermost one."""
        self.stages.append(Stage(name))
        return self.stages[-1]

    def leave(self, stage: Stage) -> None:
        """End a stage, and those within it that an error left open."""
        if stage in self.stages:
            del self.stages[self.stages.index(stage) :]

    @property
    def is_due(self) -> bool:
        """Whether the work has taken so long that it is shown."""
        return self.shown and clock() - self._started >= DELAY

    def text(self) -> str:
        """What is being done, and how long it will take."""
        stages = list(self.stages)  # another thread may draw
        if not stages:
            return ""
        done, spent = self.share(stages), work_clock() - self._work
        first, *others = stages
        if _Compiling.depth:
            what = f"compiling, once: {_Compiling.name}"
        elif done is None or done < LEAST_SHARE:
            what = f"{_duration(spent)} so far"
        else:
            what = f"{100 * done:.0f} %, {_duration(spent * (1.0 - done) / done)} left"
        doing = [words for words in (first.text, *(stage.words for stage in others)) if words]
        within = f" ({': '.join(doing[-INNERMOST:])})" if doing else ""
        return visible(f"{first.name}: {what}{within}" if first.name else f"{what}{within}")

    def share(self, stages: list[Stage]) -> float | None:
        """Which share of the work of all stages is done, if that is known; it never falls."""
        inner: float | None = None
        for stage in reversed(stages):
            done = stage.done + stage.span * (inner or 0.0)
            inner = min(done / stage.total, 1.0) if stage.total else None
        if inner is not None:  # estimates of what is to come may have changed
            self._farthest = inner = max(inner, self._farthest)
        return inner

    def print_now_and_then(self) -> None:
        """Print the line where it is asked for and cannot be drawn, if it is time to."""
        if self.prints and self.is_due and clock() - self._printed >= PRINTED:
            self._printed = clock()
            self._print(self.text())

    def close(self) -> None:
        """Take the line away; where it was asked for, say how long the work took."""
        if not self.shown or not _may_show():  # a forked process has no thread that draws
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()  # it may be starting to draw
        if self._live is not None:
            with suppress(OSError, ValueError):  # closed: nobody looks
                self._live.stop()
        if self.asked is True and self.name:
            compiled = (clock() - self._started) - (work_clock() - self._work)
            more = f", and {_duration(compiled)} of compiling, once" if compiled >= 1 else ""
            self._print(f"{visible(self.name)}: {_duration(work_clock() - self._work)}{more}")

    def _draw_from_now_on(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self._live = Live(
            console=Console(file=self._stream, highlight=False),
            get_renderable=lambda: Text(self.text(), no_wrap=True, overflow="crop"),
            refresh_per_second=DRAWN_PER_SECOND,
            transient=True,
            redirect_stdout=False,  # it may be a file
        )
        with suppress(OSError, ValueError):
            self._live.start(refresh=True)

    def _print(self, text: str) -> None:
        try:
            print(text, file=self._stream, flush=True)
        except (OSError, ValueError):  # closed, or full: nobody looks
            self.shown = self.prints = False


def _can_draw(stream: Any) -> bool:
    """Whether somebody looks at the stream, on a terminal or in a notebook."""
    if "ipykernel" in sys.modules:
        return find_spec("ipywidgets") is not None  # rich draws with it
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


def _duration(seconds: float) -> str:
    """Seconds in words.

    Examples
    --------
    >>> _duration(0.4), _duration(42.1), _duration(125), _duration(7300)
    ('1 s', '42 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
