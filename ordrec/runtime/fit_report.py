"""What a fit takes, stage by stage: seconds, CPU seconds and memory.

`ordrec.runtime.progress.progress` opens the stages that a line shows, and the same stages are
`measured`. The largest memory of a stage is that of the whole process:
what a thread reads `EVERY` so many seconds, and the peak that the operating system keeps, if it
rose meanwhile.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ordrec.runtime.notebooks import facts_html

try:
    import resource
except ImportError:  # not on Windows, where memory is reported as 0
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FitReport", "measured", "peak_memory", "resident_memory"]

EVERY = 0.02  # seconds between two looks at the memory
STATM = "/proc/self/statm"
UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of the peak's unit


@dataclass(frozen=True)
class FitReport:
    """What a fit, or a stage of it, took.

    Attributes
    ----------
    name : str
        The class of the model, or what is done in the stage.
    seconds : float
        By the clock, without compiling.
    cpu_seconds : float
        Of all threads of the process.
    peak_gb : float
        Largest memory of the process during the stage, in gigabytes: what it held before and what
        libraries take are part of it.
    stages : tuple of FitReport
        In their order; what they do not account for was spent between them.

    Examples
    --------
    >>> from ordrec.datasets import synthetic_ratings
    >>> from ordrec.recommend import RatingPredictor
    >>> model = RatingPredictor(preset="large")
    >>> report = model.fit(synthetic_ratings(60, 40, n_ratings=1200)).fit_report_
    >>> report.name, [stage.name for stage in report.stages]
    ('RatingPredictor', ['OrdinalFactors'])
    >>> report.seconds >= report.stages[0].seconds
    True
    >>> list(report.to_frame().columns)
    ['stage', 'seconds', 'cpu_seconds', 'peak_gb']
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_gb: float
    stages: tuple[FitReport, ...] = field(default=(), repr=False)

    def walk(self) -> Iterator[tuple[tuple[str, ...], FitReport]]:
        """Yield the fit and all stages within it, each with the names that lead to it."""
        yield (self.name,), self
        for stage in self.stages:
            for names, inner in stage.walk():
                yield (self.name, *names), inner

    def to_frame(self) -> pd.DataFrame:
        """Return one row per stage, the whole fit first; names are joined by " > "."""
        import pandas as pd

        return pd.DataFrame(
            [
                (" > ".join(names), each.seconds, each.cpu_seconds, each.peak_gb)
                for names, each in self.walk()
            ],
            columns=["stage", "seconds", "cpu_seconds", "peak_gb"],
        )

    def __str__(self) -> str:
        lines = [f"{'stage':44s} {'seconds':>8s} {'CPU s':>8s} {'peak GB':>8s}"]
        for names, each in self.walk():
            label = "  " * (len(names) - 1) + each.name
            lines.append(
                f"{label:44s} {each.seconds:8.1f} {each.cpu_seconds:8.1f} {each.peak_gb:8.2f}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = {
            " > ".join(names[1:]) or "all": f"{each.seconds:.1f} s, {each.cpu_seconds:.1f} CPU s, "
            f"up to {each.peak_gb:.2f} GB"
            for names, each in self.walk()
        }
        return facts_html(self.name, facts)


class _OpenStage:
    """A stage that has not ended."""

    def __init__(self, name: str, clock: float) -> None:
        self.name = name
        self.clock, self.cpu = clock, time.process_time()
        self.peak = 0.0
        self.stages: list[FitReport] = []

    def ended(self, clock: float) -> FitReport:
        """What it took."""
        seconds, cpu = clock - self.clock, time.process_time() - self.cpu
        return FitReport(self.name, seconds, cpu, self.peak, tuple(self.stages))


class _Recorder(threading.local):
    """The open stages of a thread, and its largest memory since a stage began or ended."""

    def __init__(self) -> None:
        self.open: list[_OpenStage] = []
        self.mark = _Mark()

    def look(self) -> None:
        """Count the memory of the time since the last look for all open stages."""
        high = peak_memory()
        largest = max(self.mark.largest, resident_memory(), high if high > self.mark.high else 0.0)
        for stage in self.open:
            stage.peak = max(stage.peak, largest)
        self.mark.largest, self.mark.high = resident_memory(), high


class _Mark:
    """The largest memory since the last look, and the peak of the process at that time."""

    def __init__(self) -> None:
        self.largest, self.high = 0.0, peak_memory()


class _Watcher:
    """A thread that reads the memory of the process while somebody records."""

    lock = threading.Lock()
    marks: list[_Mark] = []  # noqa: RUF012
    thread: threading.Thread | None = None
    none_left = threading.Event()

    @classmethod
    def add(cls, mark: _Mark) -> None:
        """Keep a mark up to date."""
        with cls.lock:
            cls.marks.append(mark)
            if cls.thread is None:
                cls.none_left = threading.Event()
                cls.thread = threading.Thread(target=cls.watch, args=(cls.none_left,), daemon=True)
                cls.thread.start()

    @classmethod
    def remove(cls, mark: _Mark) -> None:
        """Leave a mark alone."""
        with cls.lock:
            if mark in cls.marks:
                cls.marks.remove(mark)
            if not cls.marks:
                cls.none_left.set()
                cls.thread = None

    @classmethod
    def watch(cls, none_left: threading.Event) -> None:
        """Read the memory again and again."""
        while not none_left.wait(EVERY):
            now = resident_memory()
            for mark in tuple(cls.marks):
                mark.largest = max(mark.largest, now)

    @classmethod
    def forget(cls) -> None:
        """Begin anew: a forked process has no other threads."""
        cls.lock, cls.marks, cls.thread = threading.Lock(), [], None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Watcher.forget)


@contextmanager
def measured(name: str) -> Iterator[list[FitReport]]:
    """Measure the block as a stage of what this thread measures; the list has its report then.

    Stages that follow each other under the same name count as one. Without a name, nothing is
    measured.

    Examples
    --------
    >>> with measured("both") as found:
    ...     with measured("first"):
    ...         pass
    >>> [stage.name for stage in found[0].stages]
    ['first']
    """
    from ordrec.runtime.progress import work_clock

    found: list[FitReport] = []
    if not name:
        yield found
        return
    recorder, outermost = _recorder, not _recorder.open
    if outermost:
        recorder.mark = _Mark()
        _Watcher.add(recorder.mark)
    recorder.look()
    stage = _OpenStage(name, work_clock())
    recorder.open.append(stage)
    try:
        yield found
    finally:
        recorder.look()
        report = stage.ended(work_clock())
        found.append(report)
        if stage in recorder.open:
            del recorder.open[recorder.open.index(stage) :]
        if recorder.open:
            _add(report, recorder.open[-1].stages)
        if outermost:
            _Watcher.remove(recorder.mark)


def _add(report: FitReport, stages: list[FitReport]) -> None:
    """Append a stage, or add it to the one before if that has the same name."""
    if not stages or stages[-1].name != report.name:
        stages.append(report)
        return
    before = stages[-1]
    stages[-1] = FitReport(
        report.name,
        before.seconds + report.seconds,
        before.cpu_seconds + report.cpu_seconds,
        max(before.peak_gb, report.peak_gb),
        before.stages + report.stages,
    )


def resident_memory() -> float:
    """Return the gigabytes that the process has now; where nobody tells, its peak."""
    try:
        with open(STATM, "rb") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return peak_memory()
    return pages * resource.getpagesize() / 1e9


def peak_memory() -> float:
    """Return the largest memory of the process so far, in gigabytes."""
    if resource is None:
        return 0.0  # type: ignore[unreachable]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 1e9


_recorder = _Recorder()
