"""Histories of a scan, in files that choice models learn from as if they were in memory.

What a choice model learns is a function of the histories of all users. They are written to files
chunk by chunk, 12 bytes per rating (20 with times), and mapped: pages that are not in use take no
memory. The loops of the models (`ordrec.models.workplace`) read them in blocks, here or on the
workers of a cluster, so that a fit from disk runs the same code as one in memory and gives the
same digits.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

from ordrec.choice.base import ChoiceModel, histories
from ordrec.choice.inner_splits import entry_times
from ordrec.data import Scale
from ordrec.data.on_disk.held_out import HeldOut
from ordrec.data.on_disk.scan import RatingsScan
from ordrec.errors import DataError
from ordrec.runtime.files import make_folder, storage_errors

__all__ = ["StoredHistories"]

TYPES = {"data": np.float64, "indices": np.int32, "times": np.float64}


@dataclass(frozen=True)
class StoredHistories:
    """The histories of all users of a scan.

    Attributes
    ----------
    history : csr_array of shape (n_users, n_items)
        Its arrays are maps of files.
    times : array or None
        Of the entries.
    scale : Scale
    user_ids, item_ids : Index
    held_out : HeldOut or None
        The ratings that are not in the histories.
    """

    history: sparse.csr_array
    times: np.ndarray | None
    scale: Scale
    user_ids: pd.Index
    item_ids: pd.Index
    held_out: HeldOut | None

    @classmethod
    def of(
        cls, scan: RatingsScan, folder: Path, rows: int, held_out: HeldOut | None
    ) -> StoredHistories:
        """Write the histories of a scan, reading about ``rows`` ratings at a time."""
        ids, sizes, dated, scale = [], [np.zeros(1, np.int64)], False, scan.scale
        with ExitStack() as stack, storage_errors(folder):
            make_folder(folder)
            files = {name: stack.enter_context(open(folder / name, "wb")) for name in TYPES}
            for chunk in scan.chunks(rows):
                if scan.weight is not None:
                    chunk = chunk.without_weights()
                if held_out is not None:
                    chunk = held_out.parted(chunk)[0]
                table = histories(chunk)
                found = entry_times(chunk, table)
                dated |= found is not None
                columns = {
                    "data": table.data,
                    "indices": table.indices,
                    "times": np.zeros(table.nnz) if found is None else found,
                }
                for name, column in columns.items():
                    column.astype(TYPES[name]).tofile(files[name])
                sizes.append(np.diff(table.indptr).astype(np.int64))
                ids.append(chunk.user_ids)
        start = np.cumsum(np.concatenate(sizes))
        if start[-1] == 0:
            raise DataError(f"{scan.path}: no ratings to learn from")
        data, indices, times = (
            np.asarray(np.memmap(folder / name, dtype=TYPES[name], mode="c")) for name in TYPES
        )
        if start[-1] < 2**31:
            start = start.astype(np.int32)
        shape = start.size - 1, scan.n_items
        history = sparse.csr_array((data, indices, start), shape=shape, copy=False)
        user_ids = ids[0].append(ids[1:])
        return cls(history, times if dated else None, scale, user_ids, scan.item_ids, held_out)

    def teach(self, model: ChoiceModel, items: pd.DataFrame | None) -> None:
        """Fit a choice model, which then knows all users; ``items`` is the item table."""
        model.scale_, model.user_ids_, model.item_ids_ = self.scale, self.user_ids, self.item_ids
        model.learn(self.history, self.times if model._dated else None, items)
        model.held_out_ = self.held_out
