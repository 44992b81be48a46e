"""How far long work has come: one line on standard error, with the time left.

A fit opens a stage with `progress`, and its loops call `report`. Stages within stages share one
line, which is shown from `DELAY` seconds on:

    RatingPredictor: 31 %, 9 s left (OrdinalFactors: sweep 7)

It is rewritten in place on a terminal and is gone at the end. Elsewhere nothing is printed, unless
``verbose=True`` asks for it: then a line now and then, and one at the end with the seconds taken.
``verbose=False`` keeps silent, as do threads and processes that are only workers.

Compiling is not work: while numba compiles, the line says so, and `work_clock` stands still. What
is measured with it, the seconds of results, tables and figures among them, does not depend on
whether the code was compiled before. `ordrec.runtime.compiling` reports to `compiling_began` and
`compiling_ended`.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, TextIO, TypeVar

__all__ = ["Stage", "progress", "report", "shows_progress", "tracked", "work_clock"]

DELAY = 2.0  # seconds before anything is shown
REWRITTEN = 0.25  # seconds between two lines on a terminal
PRINTED = 10.0  # seconds between two lines elsewhere
LEAST_SHARE = 0.01  # of the work, from which on the time left is told
INNERMOST = 3  # stages that are named, beside the outermost
CLEAR = "\r\x1b[K"

clock = time.perf_counter
Show = Callable[[str], None]
Thing = TypeVar("Thing")


# ---- what is reported ------------------------------------------------------------------------


@contextmanager
def progress(name: str, verbose: bool | None = None, show: Show | None = None) -> Iterator[Stage]:
    """Open a stage of work for the block; `report` then says how far it has come.

    Parameters
    ----------
    name : str
        What the work is called.
    verbose : bool, optional
        Whether it is shown: True also without a terminal, False never, None on a terminal. A
        stage within another is shown where that one is.
    show : callable, optional
        What shows the line, in place of standard error; it is called with "" at the end.

    Examples
    --------
    >>> with progress("counting"):
    ...     for k in range(3):
    ...         report(k, 3, f"number {k}")
    """
    if not _may_show():
        yield Stage(name)
        return
    line = _Line.current
    own = line is None or (verbose is True and line.asked is None and not line.shown)
    if own:
        line = _Line(name, verbose, show)
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
        line.draw()


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
    """Whether this is the main thread of the process that was started first."""
    return (
        threading.get_ident() == threading.main_thread().ident
        and multiprocessing.current_process().name == "MainProcess"
    )


class Stage:
    """Work with a name: how much of it is done, and what is being done."""

    def __init__(self, name: str) -> None:
        self.name = name
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
        _Line.current.draw()


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


class _Line:
    """The line of the outermost stage, and of all stages within it."""

    current: _Line | None = None

    def __init__(self, name: str, asked: bool | None, show: Show | None) -> None:
        self.name, self.asked, self._show = name, asked, show
        self._stream: TextIO = sys.stderr
        self._terminal = show is not None or _is_terminal(self._stream)
        self.shown = asked is not False and (asked is True or self._terminal)
        self.stages: list[Stage] = []
        self._started, self._work = clock(), work_clock()
        self._drawn = -float("inf")
        self._farthest = 0.0
        self._visible = False
        if self.shown:
            _Drawing.begin()

    def enter(self, name: str) -> Stage:
        """Begin a stage within the innermost one."""
        with _Drawing.lock:
            self.stages.append(Stage(name))
        return self.stages[-1]

    def leave(self, stage: Stage) -> None:
        """End a stage, and those within it that an error left open."""
        with _Drawing.lock:
            if stage in self.stages:
                del self.stages[self.stages.index(stage) :]

    def draw(self) -> None:
        """Show the line if it is time to."""
        now = clock()
        every = REWRITTEN if self._terminal else PRINTED
        if not self.shown or now - self._started < DELAY or now - self._drawn < every:
            return
        with _Drawing.lock:
            if self.stages:
                self._drawn = now
                self._put(self.text())

    def text(self) -> str:
        """What is being done, and how long it will take."""
        done, spent = self.share(), work_clock() - self._work
        first, *others = self.stages
        if _Compiling.depth:
            what = f"compiling, once: {_Compiling.name}"
        elif done is None or done < LEAST_SHARE:
            what = f"{_duration(spent)} so far"
        else:
            what = f"{100 * done:.0f} %, {_duration(spent * (1.0 - done) / done)} left"
        doing = [words for words in (first.text, *(stage.words for stage in others)) if words]
        within = f" ({': '.join(doing[-INNERMOST:])})" if doing else ""
        return f"{first.name}: {what}{within}" if first.name else f"{what}{within}"

    def share(self) -> float | None:
        """Which share of the work of all stages is done, if that is known; it never falls."""
        inner: float | None = None
        for stage in reversed(self.stages):
            done = stage.done + stage.span * (inner or 0.0)
            inner = min(done / stage.total, 1.0) if stage.total else None
        if inner is not None:  # estimates of what is to come may have changed
            self._farthest = inner = max(inner, self._farthest)
        return inner

    def close(self) -> None:
        """Take the line away; where it was asked for, say how long the work took."""
        if not self.shown:
            return
        _Drawing.wanted.clear()
        with _Drawing.lock:
            if self._show is not None:
                self._show("")
                return
            if self._visible and self._terminal:
                self._write(CLEAR)
            if self.asked is True and self.name:
                compiled = (clock() - self._started) - (work_clock() - self._work)
                more = f", and {_duration(compiled)} of compiling, once" if compiled >= 1 else ""
                self._write(f"{self.name}: {_duration(work_clock() - self._work)}{more}\n")

    def _put(self, text: str) -> None:
        self._visible = True
        if self._show is not None:
            self._show(text)
        elif self._terminal:
            width = shutil.get_terminal_size().columns - 1
            self._write(f"{CLEAR}{text[:width]}")
        else:
            self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed, or full: nobody looks
            self.shown = False


class _Drawing:
    """A thread that draws the line now and then, while a single step takes long.

    One for all lines, because small fits must not wait for the start of a thread.
    """

    lock = threading.RLock()  # of what is drawn
    wanted = threading.Event()
    thread: threading.Thread | None = None

    @classmethod
    def begin(cls) -> None:
        """Draw until ``wanted`` is cleared."""
        if cls.thread is None:
            cls.thread = threading.Thread(target=cls._keep_drawing, daemon=True)
            cls.thread.start()
        cls.wanted.set()

    @classmethod
    def _keep_drawing(cls) -> None:
        while True:
            cls.wanted.wait()
            time.sleep(REWRITTEN)
            line = _Line.current
            if line is not None:
                line.draw()

    @classmethod
    def forget(cls) -> None:
        """Begin anew in a forked process, which has no such thread, and may have its lock."""
        cls.lock, cls.wanted, cls.thread = threading.RLock(), threading.Event(), None
        _Line.current = None


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_Drawing.forget)


def _is_terminal(stream: Any) -> bool:
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
