"""The table that `EvaluationResult.summary` returns: a frame that prints within a terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["SummaryTable"]

WIDTH = 80  # characters


class SummaryTable(pd.DataFrame):
    """A frame of results. Printed, no line is longer than 80 characters and nothing is left out.

    What is made of it, such as a selection, is an ordinary frame.
    """

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __str__(self) -> str:
        """Return the table, in several blocks of columns if one is too wide."""
        names = {str(name): str(name).replace("_seconds", " s") for name in self.columns}
        texts = pd.DataFrame(
            {
                short: [_text(value, 2 if short.endswith(" s") else 4) for value in self[name]]
                for name, short in names.items()
            },
            index=[_shortened(str(model)) for model in self.index],
        )
        blocks, first = [], 0
        label = max([len(name) for name in texts.index] + [0])
        widths = [max([len(name), *map(len, texts[name])]) + 2 for name in texts.columns]
        while first < len(widths):
            last = first + 1
            while last < len(widths) and label + sum(widths[first : last + 1]) <= WIDTH:
                last += 1
            blocks.append(texts.iloc[:, first:last].to_string(line_width=10 * WIDTH))
            first = last
        return "\n\n".join(blocks)

    __repr__ = __str__


def _text(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _shortened(name: str) -> str:
    return name if len(name) <= WIDTH // 2 else f"{name[: WIDTH // 2 - 3]}..."
