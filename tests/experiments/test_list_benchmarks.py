"""Lists beside peers: what is said beside the table."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd

from ordrec.data import Ratings
from ordrec.evaluation.metrics.outcome import UserSums
from ordrec.experiments.list_benchmarks import (
    LAST_METRICS,
    ListTask,
    calibration_findings,
    list_models,
    read_sequences,
    run_task,
)


def test_means_over_users_with_long_histories(tmp_path) -> None:
    rng, rows = np.random.default_rng(0), []
    for user in range(60):
        for step, item in enumerate(rng.permutation(30)[: rng.integers(2, 12)]):
            rows.append((1000 - user, item + 50, rng.integers(1, 6), 10**9 + 100 * step))
    frame = pd.DataFrame(rows, columns=["user", "item", "rating", "timestamp"])
    sizes = frame.groupby("user")["item"].size()
    long = frame[frame["user"].isin(sizes.index[sizes >= 5])]
    found = []
    for number, some in enumerate((frame, long)):
        task = ListTask(Ratings.from_frame(some).renamed("some"), "last:1", LAST_METRICS, (1, 2))
        # popularity hardly changes with the few ratings of the others
        lines = run_task(task, list_models(("popularity",)), tmp_path / str(number))[1]
        found.append([line for line in lines if "hit_rate" in line])
    assert len(found[1]) == 1  # all histories are long
    whole, part = found[0]
    assert f"over the users with 5 or more ratings, {(sizes >= 5).sum()} of them" in part
    values = [float(re.findall(r"popularity (0\.\d+)", line)[0]) for line in (whole, part)]
    assert values[0] != values[1]
    alone = float(re.findall(r"popularity (0\.\d+)", found[1][0])[0])
    assert abs(values[1] - alone) < 0.08


def test_hits_that_are_expected_have_a_standard_error_over_users() -> None:
    """As great as the ratio differs where users are drawn anew; both draws of a user together."""
    rng = np.random.default_rng(1)
    hits = rng.poisson(0.5, (2, 500)) * 1.0
    expected = rng.random((2, 500))
    results = []
    for own in zip(expected, hits, strict=True):
        sums = UserSums(np.arange(500), *own)
        found = SimpleNamespace(sums={("all", "pick_calibration@10", "micro"): sums})
        results.append(SimpleNamespace(measured=[("some", None, found)]))
    (line,) = calibration_findings(results, "pick_calibration@10", "data")
    ratio, error = map(float, re.findall(r"[01]\.\d{4}", line))
    assert line.endswith(f", {hits.sum():.0f} hits")
    assert abs(ratio - expected.sum() / hits.sum()) < 1e-4
    drawn = rng.integers(0, 500, (2000, 500))
    again = expected.sum(axis=0)[drawn].sum(axis=1) / hits.sum(axis=0)[drawn].sum(axis=1)
    assert 0.9 < error / again.std() < 1.1


def test_lines_of_picks_are_in_the_order_of_time_if_declared(tmp_path) -> None:
    (tmp_path / "train").write_text("1: 7 5 9\n2 5\n")
    (tmp_path / "test").write_text("1 2\n2: 9\n")
    plain = read_sequences(tmp_path / "train", tmp_path / "test", "picks", dated=False)
    assert plain.timestamps is None
    dated = read_sequences(tmp_path / "train", tmp_path / "test", "picks", dated=True).to_frame()
    own = dated[dated["user"] == 1].sort_values("timestamp")
    assert own["item"].tolist() == [7, 5, 9, 2]
    assert own["timestamp"].tolist() == [1, 2, 3, 4]
