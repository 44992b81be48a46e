"""Splits, metrics, tests of significance and tables of results are as recorded."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.invented_by_taste import invented_by_taste
from support.recorded_answers import compare_with_record, recorded_names
from support.small_pieces import make_pieces_small

from ordrec.evaluation import (
    ColdItems,
    GlobalTime,
    HoldOut,
    KFold,
    LeaveLast,
    LeaveOut,
    StratifiedHoldOut,
    StratifiedKFold,
    StrongGeneralisation,
    UserHoldOut,
    UserTime,
    evaluate,
    metric_names,
)
from ordrec.evaluation.significance import (
    average_ranks,
    bootstrap_interval,
    corrected_t,
    critical_difference,
    friedman,
    holm_against,
    nemenyi,
    paired_effect,
    rank_sum,
    signed_rank,
    win_draw_loss,
)

RECORD = Path(__file__).with_suffix(".json")
RATINGS = invented_by_taste(dated=True)
SPLITS: dict[str, Any] = {
    "kfold": KFold(3, random_state=2),
    "holdout": HoldOut(0.25, random_state=1),
    "user-holdout": UserHoldOut(0.3, random_state=1),
    "user-time": UserTime(0.3),
    "global-time": GlobalTime(0.2),
    "leave-last": LeaveLast(2),
    "leave-out": LeaveOut(1, random_state=3),
    "cold-items": ColdItems(0.3, random_state=4),
    "strong": StrongGeneralisation(0.3, random_state=5),
}


@pytest.mark.parametrize("name", SPLITS)
def test_recorded_answers_of_splits(name: str) -> None:
    said = []
    for split in SPLITS[name].split(RATINGS):
        parts = {field.name: getattr(split, field.name) for field in dataclasses.fields(split)}
        said.append(
            {
                part: [value.n_ratings, value.to_frame().head(20).astype(str)]
                if hasattr(value, "to_frame")
                else str(value)
                for part, value in parts.items()
            }
        )
    compare_with_record(RECORD, name, said)


def test_recorded_answers_of_splits_of_rows() -> None:
    y = np.arange(40) ** 2 % 7 % 4
    said = [
        [[split.train, split.test] for split in splitter.split(y)]
        for splitter in (StratifiedHoldOut(0.3, random_state=1), StratifiedKFold(3, random_state=1))
    ]
    compare_with_record(RECORD, "rows", said)


@pytest.mark.parametrize("split", ["user-time", "kfold"])  # the second is pooled over its folds
def test_recorded_answers_of_all_metrics(split: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate(
            RATINGS, ["bias", "popularity", "factors"], split=SPLITS[split],
            metrics=[name.replace("@k", "@4") for name in metric_names()],
        )  # fmt: skip
    frame = result.frame.drop(columns=[c for c in result.frame if "seconds" in c])
    frame = frame.astype({c: str for c in frame if frame[c].dtype == object})
    compare_with_record(RECORD, f"metrics, {split}", frame, rtol=1e-3, atol=1e-4)


def test_recorded_answers_do_not_depend_on_the_size_of_pieces(monkeypatch) -> None:
    make_pieces_small(monkeypatch)
    test_recorded_answers_of_all_metrics("user-time")


A, B = np.sin(np.arange(12)), np.sin(np.arange(12)) + 0.1 * np.cos(3 * np.arange(12)) + 0.02
SCORES = pd.DataFrame(
    np.random.default_rng(0).random((7, 4)) + np.array([0, 0.2, 0.4, 0.5]), columns=list("abcd")
)
FOLDS = pd.MultiIndex.from_arrays([list("xxxyyyy"), range(7)], names=["data", "fold"])
SIGNIFICANCE: dict[str, Callable[[], Any]] = {
    "signed rank": partial(signed_rank, A, B),
    "rank sum": partial(rank_sum, A, B),
    "corrected t": partial(corrected_t, A, B, n_train=90, n_test=10),
    "effect": partial(paired_effect, A, B),
    "bootstrap": partial(bootstrap_interval, A, np.arange(12) // 2, n_resamples=500, seed=3),
    "ranks": partial(average_ranks, SCORES),
    "friedman": partial(friedman, SCORES),
    "nemenyi": partial(nemenyi, SCORES),
    "critical": partial(critical_difference, 5, 9),
    "holm": partial(holm_against, SCORES, "a"),
    "wins": partial(win_draw_loss, SCORES.set_index(FOLDS), "a", "b"),
}


@pytest.mark.parametrize("name", SIGNIFICANCE)
def test_recorded_answers_of_significance(name: str) -> None:
    said = SIGNIFICANCE[name]()
    if dataclasses.is_dataclass(said):
        said = {field.name: getattr(said, field.name) for field in dataclasses.fields(said)}
    compare_with_record(RECORD, name, said)


def test_every_record_has_a_test() -> None:
    assert recorded_names(RECORD) == {
        *SPLITS,
        *SIGNIFICANCE,
        "rows",
        "metrics, user-time",
        "metrics, kfold",
    }
