"""A progress bar and the table so far, on a terminal and while the work lasts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

__all__ = ["live_table"]


class live_table:
    """Context of a progress bar and, below it, a table that grows; nothing without a terminal."""

    def __init__(self, quiet: bool):
        self.shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> live_table:
        if self.shown:
            from rich.console import Console
            from rich.live import Live
            from rich.progress import Progress

            console = Console(stderr=True)
            self._bar = Progress(console=console)
            self._task = self._bar.add_task("", total=None)
            self._live = Live(self._bar, console=console, transient=True, refresh_per_second=4)
            self._live.start()
        return self

    @property
    def progress(self) -> Callable[[int, int | None, str], None] | None:
        """The function that moves the bar; None if there is none."""
        if not self.shown:
            return None
        return lambda done, total, text: self._bar.update(
            self._task, completed=done, total=total, description=text
        )

    def show(self, *tables: Any) -> None:
        """Show tables below the bar, in place of those before."""
        if self.shown:
            from rich.console import Group

            self._live.update(Group(self._bar, *tables))

    @property
    def width(self) -> int:
        """Characters in a line of the terminal."""
        return self._live.console.width

    @property
    def plain(self) -> bool:
        """Whether the terminal shows ASCII characters only."""
        return self.shown and not self._live.console.encoding.lower().startswith("utf")

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self._live.stop()
