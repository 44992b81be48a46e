"""A figure that a notebook shows."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["ShownFigure"]


class ShownFigure(Figure):
    """A figure that is shown as the last line of a notebook's cell, although pyplot is not used."""

    def _repr_png_(self) -> bytes:
        """The figure as an image, on white: its text is dark."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=120, facecolor="white")
        return file.getvalue()
