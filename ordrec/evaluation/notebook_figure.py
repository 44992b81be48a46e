"""A figure that a notebook shows by itself, whether or not pyplot was imported there."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["NotebookFigure"]


class NotebookFigure(Figure):
    """A figure of matplotlib that is a picture as the last line of a notebook's cell.

    Examples
    --------
    >>> NotebookFigure()._repr_png_()[:4]
    b'\\x89PNG'
    """

    def _repr_png_(self) -> bytes:
        """The picture, on white since figures are made for any ground."""
        stream = io.BytesIO()
        self.savefig(stream, format="png", dpi=100, facecolor="white", bbox_inches="tight")
        return stream.getvalue()
