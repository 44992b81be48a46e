"""Read ids that are written as texts, and look up ids, which may be of the wrong type."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError, DataError, callers_level

__all__ = [
    "codes_of",
    "ids_like",
    "ids_of_texts",
    "warn_of_other_type",
    "warn_of_twins",
    "with_further_ids",
]

WHOLE_NUMBER = r"[+-]?[0-9]{1,20}(\.0*)?"
AS_NUMBERS_ARE_WRITTEN = r"-?(0|[1-9][0-9]{0,18})(\.0*)?"  # "007" and "1e2" are texts
DECIMAL = r"-?[0-9]{1,15}(\.[0-9]*)?"  # what is left of numbers after arithmetic: no ids
LEADING_ZERO = r"-?0[0-9]"
LARGEST = 2**63  # of ids that are numbers


def ids_of_texts(texts: pd.Series, known: pd.Index | None = None, name: str = "id") -> pd.Series:
    """Return the ids of a column of texts, in which an empty one is missing.

    Parameters
    ----------
    texts : Series of str
        Blanks around them are ignored.
    known : Index, optional
        Ids whose type the new ones get. Without them, ids become numbers if all are written as
        numbers are: with leading zeros, exponents or more than 19 digits they stay texts.
    name : str
        For errors.

    Examples
    --------
    >>> ids_of_texts(pd.Series(["7", "10"])).tolist()
    [7, 10]
    >>> ids_of_texts(pd.Series(["07", "10"])).tolist()
    ['07', '10']
    """
    codes, distinct = pd.factorize(texts)
    stripped = pd.Series(distinct, dtype=object).map(str.strip)
    missing = (stripped == "").to_numpy(bool)
    codes = np.where((codes >= 0) & ~np.append(missing, True)[codes], codes, -1)
    own: Any = stripped.to_numpy(object)
    if (codes < 0).any():
        own = np.array([*own, None], dtype=object)  # the last one, which the code -1 names
    elif known is not None:
        return pd.Series(_at_rows(ids_like, known, own, codes, name)[codes], name=texts.name)
    elif stripped.str.fullmatch(AS_NUMBERS_ARE_WRITTEN).all():
        numbers = [int(text.partition(".")[0]) for text in own]
        if all(-LARGEST <= number < LARGEST for number in numbers):
            own = np.array(numbers, dtype=np.int64)
    elif stripped.str.fullmatch(DECIMAL).all() and not stripped.str.match(LEADING_ZERO).any():
        broken = np.flatnonzero(~stripped.str.fullmatch(WHOLE_NUMBER))
        if broken.size:
            row = int(np.argmax(np.isin(codes, broken)))
            raise DataError(
                f"row {row}: {name} id {own[codes[row]]} is not a whole number: turn the ids into "
                "integers or strings"
            )
    return pd.Series(own[codes], name=texts.name)


def _at_rows(convert: Any, known: pd.Index, distinct: Any, codes: np.ndarray, name: str) -> Any:
    """Convert distinct ids; an error names rows, so that it is raised for all of them."""
    try:
        return convert(known, distinct, name)
    except DataError:
        convert(known, distinct[codes], name)
        raise


def ids_like(known: pd.Index, written: Any, name: str) -> np.ndarray:
    """Convert ids given as texts to the type of a model's own ids.

    Blanks around them are ignored, unless a known id has them too.

    Examples
    --------
    >>> ids_like(pd.Index([1, 2]), ["2", "17"], "user").tolist()
    [2, 17]
    >>> ids_like(pd.Index(["1", "b"]), ["2", "17"], "user").tolist()
    ['2', '17']
    >>> ids_like(pd.Index(["tea ", "b"]), ["tea ", " b"], "item").tolist()
    ['tea ', 'b']
    """
    given = pd.Series(written, dtype=object)
    texts = given.map(str.strip)
    if known.dtype.kind not in "iu":
        texts = given.where(given.isin(known), texts)
        _refuse(texts, (texts == "").to_numpy(), name, "an id")
        return texts.to_numpy()
    are_whole = texts.str.fullmatch(WHOLE_NUMBER).to_numpy(bool)
    _refuse(texts, ~are_whole, name, "a whole number, as the ids of this model are")
    numbers = [int(text.partition(".")[0]) for text in texts]
    kind = np.uint64 if known.dtype == np.uint64 else np.int64
    least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    beyond = np.array([not least <= number <= most for number in numbers], dtype=np.bool_)
    _refuse(
        texts, beyond, name, f"a whole number from {least} to {most}, as the ids of this model are"
    )
    return np.array(numbers, dtype=kind)


def _refuse(texts: pd.Series, bad: np.ndarray, name: str, wanted: str) -> None:
    rows = np.flatnonzero(bad)
    if rows.size:
        shown = ", ".join(f"row {row} ({texts.iloc[row][:30]!r})" for row in rows[:5])
        more = f" and {rows.size - 5} more" if rows.size > 5 else ""
        raise DataError(f"{shown}{more}: {name} is not {wanted}")


def codes_of(index: pd.Index, ids: Any) -> np.ndarray:
    """Return the position of each original id in the index, -1 for the unknown.

    Examples
    --------
    >>> codes_of(pd.Index(["a", "b"]), ["b", "c"]).tolist()
    [1, -1]
    """
    if isinstance(ids, str) or not hasattr(ids, "__len__"):
        raise ArgumentError(f"users and items must be sequences of ids, got {ids!r}")
    integers = getattr(ids, "dtype", None) == np.int64 == index.dtype and ids.ndim == 1
    if integers and index.is_monotonic_increasing:
        return _codes_of_integers(index.to_numpy(), np.asarray(ids))
    try:
        asked = pd.Index(ids)
        codes = np.asarray(index.get_indexer(asked), dtype=np.int64)
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"an id holds {error.object[error.start]!r}, half of a character: decode the ids again"
        ) from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(
            f"users and items must be sequences of ids, one id per pair ({error})"
        ) from None
    return codes


def _codes_of_integers(known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """`codes_of` for integers in ascending order, without an index: lists ask for a few ids often.

    Examples
    --------
    >>> _codes_of_integers(np.array([2, 5]), np.array([5, 1, 9])).tolist()
    [1, -1, -1]
    """
    if not known.size:
        return np.full(asked.size, -1)
    places = np.minimum(np.searchsorted(known, asked), known.size - 1)
    return np.where(known[places] == asked, places, -1)


def with_further_ids(known: pd.Index, given: pd.Series, name: str) -> pd.Index:
    """Return the known ids, followed by the others of a column of events.

    Ids of another type are refused, and users none of whom is known.

    Examples
    --------
    >>> with_further_ids(pd.Index([3, 7]), pd.Series([9, 7, 9]), "item").tolist()
    [3, 7, 9]
    """
    distinct = pd.Index(pd.unique(given))
    further = distinct[codes_of(known, distinct) < 0].sort_values()
    types = {index.inferred_type for index in (known, further)}
    strangers = name == "user" and len(further) == len(distinct)
    if len(known) and len(further) and (strangers or types == {"integer", "string"}):
        raise DataError(
            f"{'none' if strangers else 'not all'} of the {len(distinct)} {name}s of the events, "
            f"such as {_first(further)!r}, are among those of the ratings, such as "
            f"{_first(known)!r}: check the ids",
            parameter="events",
        )
    return known.append(further) if len(further) else known


def warn_of_twins(ids: pd.Index, name: str) -> None:
    """Warn if an id occurs both as a number and as the same digits in a string."""
    if ids.inferred_type != "mixed-integer":
        return
    texts = {key for key in ids if isinstance(key, str)}
    twins = [key for key in ids if not isinstance(key, str) and str(key) in texts]
    if twins:
        warnings.warn(
            f"column {name!r}: {twins[0]!r} and {str(twins[0])!r} are taken for two ids "
            f"({len(twins)} such cases): turn all ids into integers or all into strings",
            stacklevel=callers_level(),
        )


def warn_of_other_type(index: pd.Index, ids: Any, codes: np.ndarray) -> None:
    """Warn if no id is known, and they are strings where the known ones are integers or so."""
    if not codes.size or codes.max() >= 0 or not len(index):
        return
    asked = pd.Index(ids)
    known, given = index.inferred_type, asked.inferred_type
    if {known, given} == {"integer", "string"}:
        warnings.warn(
            f"none of the {len(asked)} ids is known: they are {given}s such as {_first(asked)!r}, "
            f"the known ones are {known}s such as {_first(index)!r}: convert them",
            stacklevel=callers_level(),
        )


def _first(ids: pd.Index) -> Any:
    return ids[:1].tolist()[0]
