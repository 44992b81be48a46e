"""The eight benchmark tables of Chu and Keerthi (2007), which Lin and Li (2006) use as well.

Regression tables cut into 5 or 10 ranks of equal size. Partitions of the papers' sizes were
published for the four small tables (not the papers' own draws); for the four large ones they are
drawn here, with equal shares of all ranks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ordrec.datasets import OrdinalTable, load_table
from ordrec.evaluation import TableProblem

__all__ = ["LARGE", "SMALL", "benchmark_problem", "equal_shares"]

SMALL = ("pyrim", "machine", "housing", "abalone")
LARGE = {"bank2": 3000, "computer2": 4000, "calhousing": 5000, "census2": 6000}  # training rows
TRIALS = 20


def benchmark_problem(
    folder: Path, name: str, n_ranks: int, *, trials: int = TRIALS
) -> TableProblem:
    """Return a table with its twenty partitions, or the first of them.

    Parameters
    ----------
    folder : path
        The folder of the tables cut by frequency.
    name : str
        One of `SMALL` or `LARGE`.
    n_ranks : {5, 10}
    trials : int
        At most 20.
    """
    table = load_table(folder / f"{name}.csv.gz", label=f"y{n_ranks}", partitions=name in SMALL)
    if name in SMALL:
        return TableProblem(replace(table, partitions=table.partitions[:trials]))
    parts = [equal_shares(table, LARGE[name], seed) for seed in range(trials)]
    return TableProblem(table, parts, split_name=f"drawn:{LARGE[name]}")


def equal_shares(table: OrdinalTable, size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw training rows with the same number of every rank; return them and the other rows.

    Examples
    --------
    >>> table = OrdinalTable(np.zeros((9, 1)), np.array([1, 2, 3] * 3), ["x"], 3)
    >>> train, test = equal_shares(table, 6, 0)
    >>> sorted(table.y[train].tolist()), test.size
    ([1, 1, 2, 2, 3, 3], 3)
    """
    rng = np.random.default_rng(seed)
    train = np.concatenate(
        [
            rng.permutation(np.flatnonzero(table.y == rank))[: size // table.n_ranks]
            for rank in range(1, table.n_ranks + 1)
        ]
    )
    return train, np.setdiff1d(np.arange(table.y.size), train)
