"""``ordrec predict``: ratings of pairs of users and items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ordrec.cli.chosen_models import ClassOption, loaded
from ordrec.cli.options import MemoryOption, ModelArgument, NoBarOption, TableOption, progress_bar
from ordrec.cli.outputs import OverwriteOption, table_writer
from ordrec.cli.reading import PAIRS, USUAL, Reading, options_of_reading

if TYPE_CHECKING:
    import pandas as pd

PAIRS_AT_A_TIME = 20_000


@options_of_reading(*PAIRS)
def predict(
    model: ModelArgument,
    pairs: Annotated[
        Path,
        typer.Argument(metavar="PAIRS", help="A csv file with columns user and item."),
    ],
    output: TableOption = None,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Add the expected rating and the probability of each rating."),
    ] = False,
    reading: Reading = USUAL,
    own_class: ClassOption = None,
    max_memory: MemoryOption = None,
    overwrite: OverwriteOption = False,
    quiet: NoBarOption = False,
) -> None:
    """Predict the ratings of pairs of users and items.

    A column timestamp (seconds since 1970, or dates) says when the ratings are given. The csv
    output has the rating, and whether the model knows the user and the item.
    """
    import pandas as pd

    from ordrec.errors import ArgumentError
    from ordrec.lists.frames import predict_pairs

    write = table_writer(output, "predictions", inputs=[model, pairs], overwrite=overwrite)
    fitted = loaded(model, max_memory, own_class)
    if proba and not hasattr(fitted, "predict_proba"):
        raise ArgumentError(f"--proba: a {type(fitted).__name__} has no probabilities")
    table = reading.pairs(pairs, fitted)
    parts: list[pd.DataFrame] = []
    with progress_bar(quiet) as progress:
        for first in range(0, max(len(table), 1), PAIRS_AT_A_TIME):
            part = table.iloc[first : first + PAIRS_AT_A_TIME]
            parts.append(predict_pairs(fitted, part, proba=proba))
            progress(first + len(part), len(table), "predicting")
    write(pd.concat(parts, ignore_index=True))
