"""A line of progress and the table so far, on a terminal and while the work lasts."""

from __future__ import annotations

import sys
from typing import Any

from ordrec.runtime.progress import DRAWN_PER_SECOND, current_line, progress, report

__all__ = ["live_table"]


class live_table:
    """Context of a line of progress and, below it, a table that grows; only on a terminal."""

    def __init__(self, quiet: bool):
        self.shown = not quiet and sys.stderr.isatty()
        self._tables: tuple[Any, ...] = ()
        # the line is part of what is drawn here, so that neither overwrites the other
        self._stage = progress("", False if quiet else None, drawn=self.shown)

    def __enter__(self) -> live_table:
        if self.shown:
            from rich.console import Console
            from rich.live import Live

            self._live = Live(
                console=Console(stderr=True),
                get_renderable=self._drawn,
                refresh_per_second=DRAWN_PER_SECOND,
                transient=True,
                redirect_stdout=False,  # it may be a file
            )
            self._live.start()
        self._stage.__enter__()
        report(0.0, 1.0)  # all of it is what is done in the block
        return self

    def show(self, *tables: Any) -> None:
        """Show tables below the line, in place of those before."""
        self._tables = tables

    @property
    def width(self) -> int:
        """Characters in a line of the terminal."""
        return self._live.console.width

    def _drawn(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        return Group(Text(current_line(), no_wrap=True, overflow="ellipsis"), *self._tables)

    @property
    def plain(self) -> bool:
        """Whether the terminal shows ASCII characters only."""
        return self.shown and not self._live.console.encoding.lower().startswith("utf")

    def __exit__(self, *error: Any) -> None:
        self._stage.__exit__(*error)
        if self.shown:
            self._live.stop()
