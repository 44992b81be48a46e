"""Compare measured numbers with published ones."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import DataError
from ordrec.report.html import TableSection

__all__ = ["beside_published", "in_words", "published_numbers", "published_section", "within"]

NEAR = 2.0  # standard errors up to which two numbers count as equal
ENOUGH = 5  # trials needed for a useful standard error of our own


def beside_published(
    frame: pd.DataFrame, published: str | Path, keys: Sequence[str] = ("data", "model")
) -> pd.DataFrame:
    """Return means of results beside published ones, with differences in standard errors.

    Parameters
    ----------
    frame : DataFrame
        Tidy results: ``metric``, ``value`` and the columns of ``keys``.
    published : path
        A csv with ``table``, ``metric``, the keys, ``mean``, and ``standard_error`` (empty where
        none was printed). Rows that were not measured are omitted.
    keys : sequence of str

    Returns
    -------
    DataFrame
        Indexed by metric and keys: ``table n ours error published published_error difference
        in_errors``. The difference is ours minus theirs; its standard error combines both
        (ours alone where none was printed). With fewer than five trials our standard
        error is too rough, and the difference in standard errors is NaN.
    """
    try:
        theirs = pd.read_csv(published, dtype={"table": str})
    except (
        OSError,
        ValueError,
        OverflowError,
    ) as error:  # ValueError includes those of pandas and Unicode
        raise DataError(f"{published}: not a csv table ({' '.join(str(error).split())})") from None
    if not isinstance(theirs.index, pd.RangeIndex):  # pandas takes surplus fields as row names
        raise DataError(f"{published}: its rows have more fields than the header: correct them")
    columns = ["metric", *keys]
    missing = [c for c in [*columns, "table", "mean", "standard_error"] if c not in theirs]
    if missing:
        raise DataError(f"{published}: no column {missing[0]!r}: add it")
    for column in ("mean", "standard_error"):
        if not pd.api.types.is_numeric_dtype(theirs[column]):
            raise DataError(f"{published}: column {column!r} holds more than numbers: correct it")
    for key in keys:
        theirs[key] = theirs[key].astype(str)
    plain = frame.assign(**{key: frame[key].astype(str) for key in keys})
    grouped = plain.groupby(columns, sort=False)["value"]
    ours = pd.DataFrame({"n": grouped.size(), "ours": grouped.mean(), "error": grouped.sem()})
    joined = theirs.set_index(columns).join(ours, how="inner")
    combined = np.hypot(joined["error"].to_numpy(), joined["standard_error"].fillna(0.0).to_numpy())
    unit = np.where((joined["n"] >= ENOUGH) & (combined > 0.0), combined, np.nan)
    return pd.DataFrame(
        {
            "table": joined["table"],
            "n": joined["n"],
            "ours": joined["ours"],
            "error": joined["error"],
            "published": joined["mean"],
            "published_error": joined["standard_error"],
            "difference": joined["ours"] - joined["mean"],
            "in_errors": (joined["ours"] - joined["mean"]) / unit,
        }
    )


def in_words(file: str | Path, name: str) -> list[str]:
    """Return what a paper says in words of an experiment, and notes on numbers that differ.

    Parameters
    ----------
    file : path
        A toml file with a table per experiment: ``says`` and ``notes``, lists of sentences.
    name : str
        The experiment; one that is not in the file has no sentences.
    """
    try:
        with Path(file).open("rb") as stream:
            found = tomllib.load(stream).get(name, {})
    except FileNotFoundError:
        return []
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: not a toml file ({error}): correct it") from None
    said = [f"published: {sentence}" for sentence in found.get("says", ())]
    return said + [f"note: {sentence}" for sentence in found.get("notes", ())]


def within(comparison: pd.DataFrame, errors: float = NEAR) -> str:
    """Return a sentence that says how many of the published numbers are met."""
    known = comparison["in_errors"].dropna()
    if known.empty:
        return f"fewer than {ENOUGH} trials: too few for a comparison in standard errors"
    near = int((known.abs() <= errors).sum())
    better = int((known < -errors).sum())
    return (
        f"{near} of {len(known)} published numbers met within {errors:g} standard errors; "
        f"{better} lower, {len(known) - near - better} higher"
    )


def published_section(comparison: pd.DataFrame, source: str) -> TableSection:
    """Return the comparison as a section of a report; large differences are marked."""

    def mark(row: Any, column: Any, value: Any) -> str:
        if column != "in standard errors":
            return ""
        return "far" if abs(comparison.loc[row, "in_errors"]) > NEAR else ""

    shown = pd.DataFrame(
        {
            "table": comparison["table"],
            "n": comparison["n"],
            "ours": _with_error(comparison["ours"], comparison["error"]),
            "published": _with_error(comparison["published"], comparison["published_error"]),
            "difference": comparison["difference"].map("{:+.4f}".format),
            "in standard errors": [
                "" if np.isnan(value) else f"{value:+.1f}" for value in comparison["in_errors"]
            ],
        }
    )
    return TableSection(
        "Beside the published numbers",
        shown,
        f"Published: {source}. Means ± standard errors, ours over n trials. Differences of "
        f"more than {NEAR:g} standard errors are marked; with fewer than {ENOUGH} trials they are "
        "not given.",
        mark=mark,
    )


def published_numbers(file: str | Path) -> TableSection:
    """Return the numbers of other methods, with their sources, as a section of a report."""
    frame = pd.read_csv(file).rename(columns={"table": "source", "mean": "value"})
    shown = frame[["model", "data", "metric", "value", "source"]]
    return TableSection("Published numbers of other methods", shown.set_index("model"))


def _with_error(means: pd.Series, errors: pd.Series) -> list[str]:
    return [
        f"{mean:.4f}" + ("" if np.isnan(error) else f" ±\N{NO-BREAK SPACE}{error:.4f}")
        for mean, error in zip(means, errors, strict=True)
    ]
