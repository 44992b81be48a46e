"""Bring a side table into the order of the users or items that it describes."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
import pandas as pd

from ordrec.data.columns import as_pandas, is_usual_name, plain, shown
from ordrec.errors import ArgumentError, DataError, OrdrecWarning, callers_level

__all__ = ["extended_side_table", "side_table"]

log = logging.getLogger(__name__)


def side_table(
    frame: Any, ids: pd.Index, kind: str, column: str, present: pd.DataFrame | None = None
) -> pd.DataFrame | None:
    """Return side information in the order of the ids, with gaps for ids without any.

    Parameters
    ----------
    frame : DataFrame, array or None
        Indexed by id, or with a column of ids called ``column``, or as ids usually are ("item",
        "item_id", "movieId", ...). An array of numbers has one row per id, in the order of the ids,
        and becomes the column "vector".
    ids : Index
    kind : {"user", "item"}
    column : str
        The name of the ids in the table of ratings.
    present : DataFrame, optional
        A table that the ratings have already, whose other columns are kept.

    Raises
    ------
    DataError
        If an id has two rows, or no row has a known id.
    """
    if frame is None:
        return present
    table = _checked(frame, ids, kind, column)
    log.info(
        "%s_table: %d rows have an id without ratings and are left out",
        kind, int((~table.index.isin(ids)).sum()),
    )  # fmt: skip
    return _joined(table.reindex(ids), present)


def extended_side_table(
    frame: Any, ids: pd.Index, kind: str, column: str, present: pd.DataFrame | None = None
) -> tuple[pd.Index, pd.DataFrame]:
    """Return the ids followed by further ones that the table has, and its rows for all of them.

    See `side_table` for the parameters.
    """
    table = _checked(frame, ids, kind, column, some_are_known=False)
    known = table.index.isin(ids)
    if len(table) and not known.any():
        warnings.warn(
            OrdrecWarning(
                f"{kind}_table: none of its {len(table)} ids ({_first(table.index)}) is one of the "
                f"ratings ({_first(ids)}): all of them are new",
                parameter=f"{kind}_table",
            ),
            stacklevel=callers_level(),
        )
    further = table.index[~known]
    if ids.dtype.kind in "iu" and len(further):
        try:
            further = pd.Index(further.astype(np.int64))
        except (TypeError, ValueError):
            raise DataError(
                f"{kind}_table: id {shown(further[0])} is no whole number, as those of the ratings "
                "are: correct it, or leave its row out",
                parameter=f"{kind}_table",
            ) from None
    elif len(further):
        further = pd.Index([str(plain(key)) for key in further], dtype=object)
    rows = pd.concat([table[known].reindex(ids), table[~known]])
    everything = ids.append(further) if len(further) else ids
    rows = rows.set_axis(everything, axis=0)
    return everything, _joined(rows, None if present is None else present.reindex(everything))


def _joined(table: pd.DataFrame, present: pd.DataFrame | None) -> pd.DataFrame:
    """The table, after those columns of another one that it does not have."""
    if present is None:
        return table
    other_columns = [name for name in present.columns if name not in table.columns]
    return pd.concat([present[other_columns], table], axis=1)


def _checked(
    frame: Any, ids: pd.Index, kind: str, column: str, some_are_known: bool = True
) -> pd.DataFrame:
    """The table indexed by distinct ids, some of which must be known, or may be."""
    if isinstance(frame, np.ndarray):
        frame = _of_vectors(frame, ids, kind)
    table = _indexed(as_pandas(frame), ids, kind, column, some_are_known)
    if not table.index.is_unique:
        twice = table.index[table.index.duplicated()][0]
        raise DataError(
            f"{kind}_table: id {plain(twice)!r} has two rows: keep one", parameter=f"{kind}_table"
        )
    if not some_are_known:
        return table
    found = int(ids.isin(table.index).sum())
    if len(table) and not found:
        raise DataError(
            f"{kind}_table: none of its ids ({_first(table.index)}) is one of the ratings "
            f"({_first(ids)}): call its column of ids {column!r}, or make them its index",
            parameter=f"{kind}_table",
        )
    if 2 * found < len(ids) and len(table):
        warnings.warn(
            OrdrecWarning(
                f"{kind}_table: only {found} of {len(ids)} {kind}s have a row, and {len(table)} "
                "rows are given: check its ids",
                parameter=f"{kind}_table",
            ),
            stacklevel=callers_level(),
        )
    return table


def _of_vectors(rows: np.ndarray, ids: pd.Index, kind: str) -> pd.DataFrame:
    """A table with one column of vectors, from the rows of an array in the order of the ids."""
    if rows.ndim != 2 or len(rows) != len(ids):
        raise ArgumentError(
            f"{kind}_table: an array must have one row per {kind}, {len(ids)} of them in the order "
            f"of {kind}_ids, got shape {rows.shape}",
            parameter=f"{kind}_table",
        )
    return pd.DataFrame({"vector": list(rows.astype(np.float64))}, index=ids)


def _indexed(
    table: pd.DataFrame, ids: pd.Index, kind: str, column: str, some_are_known: bool
) -> pd.DataFrame:
    """The table indexed by ids of the same type as those of the ratings."""
    names = [name for name in table.columns if _is_id_name(name, kind, column)]
    names.sort(key=lambda name: name != column)  # the name of the ratings' own column comes first
    if names and not some_are_known:
        return _same_type(table.set_index(names[0]), ids)
    numbered = isinstance(table.index, pd.RangeIndex) and table.index.name is None
    by_column = [_same_type(table.set_index(name), ids) for name in names]
    tables = [*by_column, table] if numbered else [_same_type(table, ids), *by_column]
    return next((one for one in tables if one.index.isin(ids).any()), tables[0])


def _is_id_name(name: Any, kind: str, column: str) -> bool:
    return name == column or str(name).lower() == "id" or is_usual_name(name, kind)


def _same_type(table: pd.DataFrame, ids: pd.Index) -> pd.DataFrame:
    """The table with "7" for 7 as an id, or the reverse, if only then ids agree."""
    if table.index.isin(ids).any():
        return table
    by_text = {str(plain(key)): key for key in ids}
    texts = [str(plain(key)) for key in table.index]
    if ids.dtype.kind in "iu":  # "007" describes item 7
        texts = [text.lstrip("0") or "0" if text.isdecimal() else text for text in texts]
    if not any(text in by_text for text in texts):
        return table
    return table.set_axis(pd.Index([by_text.get(text, text) for text in texts], dtype=object))


def _first(ids: pd.Index) -> str:
    return ", ".join(shown(key) for key in ids[:3]) + (", ..." if len(ids) > 3 else "")
