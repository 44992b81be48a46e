"""The benchmark tables: published partitions of the small ones, equal shares of the large ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ordrec.datasets import OrdinalTable
from ordrec.experiments.benchmarks import LARGE, SMALL, benchmark_problem, equal_shares


def test_training_parts_have_equal_shares_and_follow_the_seed() -> None:
    rng = np.random.default_rng(0)
    table = OrdinalTable(np.zeros((100, 1)), rng.permutation(np.repeat([1, 2, 3, 4], 25)), ["x"], 4)
    train, test = equal_shares(table, 40, 3)
    assert np.bincount(table.y[train]).tolist() == [0, 10, 10, 10, 10]
    assert sorted([*train, *test]) == list(range(100))
    assert np.array_equal(train, equal_shares(table, 40, 3)[0])
    assert not np.array_equal(train, equal_shares(table, 40, 4)[0])


@pytest.mark.realdata
@pytest.mark.parametrize("name", [SMALL[0], next(iter(LARGE))])
def test_twenty_partitions_of_the_published_size(real_data: Path, name: str) -> None:
    problem = benchmark_problem(real_data / "ordinal-regression-frequency", name, 10)
    assert len(problem.folds) == 20
    rows = problem.table.partitions[0] if problem.parts is None else problem.parts[0][0]
    assert rows.size == (50 if name == "pyrim" else LARGE[name])
    few = benchmark_problem(real_data / "ordinal-regression-frequency", name, 10, trials=5)
    assert few.folds == problem.folds[:5]
    assert np.array_equal(few._rows("5")[0], problem._rows("5")[0])
