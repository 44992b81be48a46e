"""The form of the tables in docs/benchmarks: means over trials, by what they are of.

A `grid` has a row and a column for each combination of values that occurs in the cells of an
experiment. ``benchmark_tables.py`` says which they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.experiments.runner import published_csv

Where = Mapping[str, object]  # the values of columns that pick the trials of a number
Table = Callable[[pd.DataFrame], pd.DataFrame]

CORNER = {"data": "table", "n_train": "training rows"}


# ---- the usual table -------------------------------------------------------------------------


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    shown: Mapping[str, Mapping] | None = None,
    prepare: Table | None = None,
    published: str = "",
    digits: int = 3,
    counts: Sequence[str] = (),
) -> Table:
    """Return a table with a row and a column for each combination of values that occurs.

    Parameters
    ----------
    rows, columns : sequence of str
        Columns of the cells; their values become headings.
    shown : mapping, optional
        For some of these columns, the values to show, in this order, and their headings.
    prepare : callable, optional
        What is done to the cells first, to make columns that they do not have.
    published : str
        The file of published numbers.
    digits : int
        Decimals.
    counts : sequence of str
        Metrics that are whole numbers.
    """
    shown = dict(shown or {})

    def table(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame if prepare is None else prepare(frame)
        for column, headings in shown.items():
            frame = frame[frame[column].isin(list(headings))]
        return crossed(
            frame,
            combinations(frame, rows, shown),
            combinations(frame, columns, shown),
            digits=digits,
            published=published_of(published) if published else None,
            counts=counts,
        ).rename_axis(", ".join(CORNER.get(row, row) for row in rows))

    return table


def combinations(
    frame: pd.DataFrame, columns: Sequence[str], shown: Mapping[str, Mapping]
) -> dict[str, Where]:
    """Return the combinations of values of some columns that occur, by heading, in order.

    Numbers are in their order, texts in that of ``shown`` or of their first appearance.
    """
    order = {}
    for column in columns:
        values = shown.get(column, frame[column].unique())
        by_size = column not in shown and pd.api.types.is_numeric_dtype(frame[column])
        order[column] = {v: place for place, v in enumerate(sorted(values) if by_size else values)}
    found = frame[list(columns)].drop_duplicates().to_dict("records")
    found.sort(key=lambda where: [order[column][where[column]] for column in columns])
    return {
        ", ".join(str(shown.get(c, {}).get(value, value)) for c, value in where.items()): where
        for where in found
    }


def crossed(
    frame: pd.DataFrame,
    rows: Mapping[str, Where],
    columns: Mapping[str, Where],
    *,
    digits: int = 3,
    errors: bool = True,
    published: pd.DataFrame | None = None,
    counts: Sequence[str] = (),
) -> pd.DataFrame:
    """Return a table of means and, with several trials and ``errors``, standard errors.

    A published number for the same data set, model and metric stands in brackets.
    """
    table = {}
    for head, of_column in columns.items():
        cells = []
        for of_row in rows.values():
            where = {**of_row, **of_column}
            found = pick(frame, where)
            if "average" in found and found["average"].nunique() > 1:
                raise ArgumentError(f"{where}: several averages: keep one of them")
            counted = bool(counts) and found["metric"].isin(counts).all()
            text = mean(found["value"], 0 if counted else digits, errors)
            if published is not None and len(found):
                same = {key: found[key].iloc[0] for key in ("data", "model", "metric")}
                theirs = pick(published, same)["mean"]
                text += f" ({number(theirs.iloc[0], digits)})" if len(theirs) == 1 else ""
            cells.append(text)
        table[head] = cells
    return pd.DataFrame(table, index=list(rows))


def pick(frame: pd.DataFrame, where: Where) -> pd.DataFrame:
    """Return the rows that have these values."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame


def mean(values: pd.Series, digits: int, errors: bool = True) -> str:
    """Return a mean, with its standard error if wanted; a dash if there is no value."""
    if values.empty:
        return "-"
    text = number(values.mean(), digits)
    return f"{text} ± {number(values.sem(), digits)}" if errors and len(values) > 1 else text


def number(value: float, digits: int) -> str:
    """Return a number without the zero before the point.

    Examples
    --------
    >>> number(0.25, 3), number(-0.25, 2), number(1.5, 1)
    ('.250', '-.25', '1.5')
    """
    if np.isnan(value):
        return "-"
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def names(frame: pd.DataFrame, column: str) -> dict[str, Where]:
    """Return the distinct values of a column, as rows of a table."""
    return {str(value): {column: value} for value in frame[column].unique()}


def sizes(numbers: Iterable[int], unit: str = "rows") -> dict[int, str]:
    """Return headings for numbers of training rows.

    Examples
    --------
    >>> sizes([50, 1000])
    {50: '50 rows', 1000: '1000 rows'}
    """
    return {each: f"{each} {unit}" for each in numbers}


# ---- cells with further columns --------------------------------------------------------------


def split(column: str, *parts: str) -> Table:
    """Return what divides a column of texts at its first commas."""

    def prepare(frame: pd.DataFrame) -> pd.DataFrame:
        texts = frame[column].str.split(", ", n=len(parts) - 1, expand=True)
        return frame.assign(**{part: texts[place] for place, part in enumerate(parts)})

    return prepare


def with_seconds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cells and, as one more metric, the seconds of the fits."""
    once = frame[frame["metric"] == frame["metric"].iloc[0]]
    return pd.concat([frame, once.assign(metric="seconds", value=once["fit_seconds"])])


# ---- published numbers -----------------------------------------------------------------------


def published_of(name: str) -> pd.DataFrame:
    """Return the published numbers of an experiment."""
    return pd.read_csv(published_csv(name))


def published_rows(name: str, columns: Mapping[str, Where]) -> pd.DataFrame:
    """Return the numbers of other methods as they were published, each row with its source."""
    rows = {}
    as_printed = pd.read_csv(published_csv(name), dtype={"mean": str})
    for (model, source), part in as_printed.groupby(["model", "table"], sort=False):
        values = []
        for where in columns.values():
            of_column = {key: where[key] for key in ("data", "metric") if key in where}
            found = pick(part, of_column)["mean"]
            values.append("-" if found.empty else found.iloc[0].removeprefix("0"))
        rows[f"{model}, published: {source}"] = values
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(columns))
