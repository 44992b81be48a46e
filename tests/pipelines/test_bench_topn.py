"""The benchmarks of lists on invented ratings: complete, and their measures right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.recommend import Popularity

FOLDER = Path(__file__).parents[2] / "pipelines" / "lists"


def printed(script: str, *options: str) -> str:
    command = [sys.executable, str(FOLDER / script), "--quick", "--jobs", "1", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def measures(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import topn_measures

    return topn_measures


def test_all_rows_and_differences() -> None:
    said = printed("bench_topn.py")
    for row in ("popularity", "implicit item-kNN", "implicit ALS", "EASE, lambda 300",
                "EASE, lambda left-out", "EASE of ones, left-out", "ordrec choice mixture",
                "ordrec, fast predictor", "ordrec, factors"):  # fmt: skip
        assert f"\n{row} " in said
    assert said.count("minus EASE, lambda left-out: graded") == 2
    assert said.count("minus ordrec choice mixture: graded") == 2
    assert said.count("lowest of the peers") == 2
    assert "nan" not in said


def test_new_users_and_seconds() -> None:
    said = printed("bench_topn.py", "--cold")
    for given in ("0", "1", "2", "5", "all"):
        assert f"given {given}: popularity graded 0." in said
    assert "fold-in of a user and a list: median" in printed("bench_topn.py", "--speed")


def test_many_items() -> None:
    said = printed("bench_many_items.py")
    assert "failed" not in said
    assert "    300 mixture      45000      30000 " in said  # 100 for each item
    assert "on 10 nearest items" in said


def test_gowalla() -> None:
    said = printed("gowalla.py").splitlines()
    assert [line.split()[0] for line in said[2:]] == ["ease", "ease-scaled", "mixture", "mixture:"]
    assert all(0.1 < float(line.split()[1]) < 1.0 for line in said[2:5])


def test_items_that_nobody_has_rated() -> None:
    said = printed("bench_cold_items.py").splitlines()
    recall = {line.split()[-4]: float(line.split()[-3]) for line in said if " NaN" in line}
    assert 0 < recall["random"] < recall["popular"] <= 1
    assert any("new items" in line for line in said)


def test_measures_are_those_of_ir_measures(measures) -> None:
    ratings = synthetic_ratings(40, 60, n_ratings=1200, seed=4)
    test = np.random.default_rng(0).random(ratings.n_ratings) < 0.4
    model, held = Popularity().fit(ratings.select(~test)), ratings.select(test)
    truth = measures.Truth.of(held)
    best, _ = measures.ten_best(model, truth.users)
    found = truth.measured(best)
    names = [(f"u{user}", f"i{item}") for user, item in zip(held.users, held.items, strict=True)]
    frame = pd.DataFrame(names, columns=["query_id", "doc_id"])
    run = pd.DataFrame(
        [
            (f"u{user}", f"i{item}", 10.0 - place)
            for user, row in zip(truth.users, best, strict=True)
            for place, item in enumerate(row)
        ],
        columns=["query_id", "doc_id", "score"],
    )
    ndcg = ir_measures.nDCG @ 10
    ranks = held.ranks
    for metric, gains in (("graded", 2**ranks - 1), ("liked", (ranks >= 4).astype(int))):
        there = {m.query_id: m.value for m in ndcg.iter_calc(frame.assign(relevance=gains), run)}
        ours = dict(zip((f"u{user}" for user in truth.users), found[metric], strict=True))
        for user, value in ours.items():
            assert np.isnan(value) or value == pytest.approx(there[user], abs=1e-9)
    hits = [(row, user) for row, user in zip(best, truth.users, strict=True)]
    for at, (row, user) in enumerate(hits):
        mine = held.rows_of_user(int(user))
        rank = dict(zip(held.items[mine].tolist(), held.ranks[mine].tolist(), strict=True))
        listed = [rank[item] for item in row.tolist() if item in rank]
        liked = sum(r >= 4 for r in rank.values())
        assert found["hits"][at] == len(listed)
        assert found["disliked"][at] == sum(r < 3 for r in listed)
        if liked:
            assert found["recall"][at] == pytest.approx(
                sum(r >= 4 for r in listed) / min(liked, 10)
            )
