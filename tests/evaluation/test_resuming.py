"""An evaluation that goes on where it stopped gives what one without a break gives."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.table import Table

from ordrec.cli.live_table import live_table
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import evaluate
from ordrec.evaluation.run import Interrupted
from ordrec.recommend import GlobalMean, RatingHistogram

RATINGS = synthetic_ratings(25, 20, n_ratings=300, seed=0)
OPTIONS: dict[str, Any] = {
    "split": "kfold:2", "metrics": ["mae", "log_loss", "ndcg@5"], "keep_predictions": True,
}  # fmt: skip
SECONDS = ["fit_seconds", "predict_seconds"]


@dataclass(eq=False)
class Counting(RatingHistogram):
    """Counts its fits, and is interrupted at one of them."""

    stop_at: int = 0
    fits = 0

    def fit(self, ratings):
        type(self).fits += 1
        if type(self).fits == self.stop_at:
            raise KeyboardInterrupt
        return super().fit(ratings)


@dataclass(eq=False)
class Failing(GlobalMean):
    fits = 0

    def fit(self, ratings):
        type(self).fits += 1
        raise RuntimeError("no")


def models(stop_at: int = 0) -> dict[str, Any]:
    Counting.fits = 0
    return {"mean": "mean", "counting": Counting(stop_at=stop_at), "bias": "bias"}


def without_seconds(result: Any) -> pd.DataFrame:
    return result.frame.drop(columns=SECONDS)


def test_a_resumed_evaluation_equals_one_without_a_break(tmp_path: Path) -> None:
    whole = evaluate(RATINGS, models(), **OPTIONS)
    with pytest.raises(Interrupted) as stopped:
        evaluate(RATINGS, models(stop_at=2), store=tmp_path / "folds", **OPTIONS)
    assert stopped.value.result.manifest["measured"] == "4 of 6"
    kept = {file.name for file in (tmp_path / "folds").iterdir()}
    assert len(kept) == 4
    started = []
    # another model of the same name, as its parameters differ: measured again
    result = evaluate(
        RATINGS, models(), store=tmp_path / "folds",
        progress=lambda done, total, text: started.append(text), **OPTIONS,
    )  # fmt: skip
    assert started == ["counting, fold 1", "counting, fold 2", "bias, fold 2", "done"]
    pd.testing.assert_frame_equal(without_seconds(result), without_seconds(whole))
    pd.testing.assert_frame_equal(result.comparison, whole.comparison)
    for name, (levels, p) in whole.distributions.items():
        np.testing.assert_array_equal(result.distributions[name][0], levels)
        np.testing.assert_array_equal(result.distributions[name][1], p)
    assert "measured" not in result.manifest


def test_other_data_options_and_damaged_files_are_measured_again(tmp_path: Path) -> None:
    def fits(ratings: Any = RATINGS, **options: Any) -> int:
        known = models()
        evaluate(ratings, known, store=tmp_path, **(OPTIONS | options))
        return Counting.fits

    assert fits() == 2
    assert fits() == 0
    assert fits(seed=1) == 2
    assert fits(metrics=["mae"]) == 2
    assert fits(split="kfold:3") == 3
    assert fits(like=5.0) == 2
    assert fits(ratings=RATINGS.select(np.arange(300) > 0)) == 2
    assert fits() == 0
    for file in tmp_path.glob("*.part"):
        file.write_bytes(file.read_bytes()[:-40])
    assert fits() == 2


@pytest.mark.filterwarnings("ignore:.*ignores the weights")
def test_other_side_tables_times_weights_and_folds_are_measured_again(tmp_path: Path) -> None:
    """What models may use beside the ratings is part of what a measurement depends on."""
    n, rng = RATINGS.n_ratings, np.random.default_rng(0)
    genres = pd.DataFrame({"genre": list("ab" * (RATINGS.n_items // 2))})
    published = {"x": np.arange(n) < 60}
    others = [
        {"item_table": genres},
        {"item_table": genres[::-1].reset_index(drop=True)},
        {"user_table": pd.DataFrame({"age": np.arange(RATINGS.n_users)})},
        {"timestamps": rng.integers(1, 1000, n)},
        {"timestamps": rng.integers(1, 1000, n)},
        {"weights": rng.random(n)},
        {"folds": published},
        {"folds": {"x": ~published["x"]}},
    ]
    for changed in others:
        ratings = RATINGS._replaced(**changed)
        options = OPTIONS | ({"split": "fold:x"} if "folds" in changed else {})
        for fits in (1 if "folds" in changed else 2, 0):
            evaluate(ratings, models(), store=tmp_path, **options)
            assert Counting.fits == fits, changed


@pytest.mark.parametrize(
    "changed", [{"times": "known"}, {"metrics": ["mae", "log_loss"]}, {"decision": "mode"},
                {"candidates": "rated"}, {"models": "other parameters"}],
    ids=str,
)  # fmt: skip
def test_other_options_are_measured_again(changed: dict[str, Any], tmp_path: Path) -> None:
    ratings = RATINGS._replaced(timestamps=np.arange(1, RATINGS.n_ratings + 1))

    def fits(options: dict[str, Any]) -> int:
        options = dict(options)
        known = models()
        if options.pop("models", None):
            known["counting"] = Counting(damping=2.0)
        evaluate(ratings, known, store=tmp_path, **(OPTIONS | options))
        return Counting.fits

    assert [fits(each) for each in ({}, {}, changed, changed, {})] == [2, 0, 2, 0, 0]


def test_failures_are_tried_again(tmp_path: Path) -> None:
    for fits in (2, 4):
        result = evaluate(
            RATINGS, {"failing": Failing(), "mean": "mean"}, store=tmp_path, **OPTIONS
        )
        assert Failing.fits == fits
        assert len(result.failures) == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_results_grow_as_models_finish() -> None:
    seen: list[list[str]] = []
    evaluate(
        RATINGS, ["mean", "bias"], metrics=["mae"],
        finished=lambda result: seen.append(list(result.frame["model"].unique())),
    )  # fmt: skip
    assert seen == [["mean"], ["mean", "bias"]]


def test_a_store_must_be_a_folder_and_models_must_have_a_hash(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ArgumentError, match="is a file"):
        evaluate(RATINGS, ["mean"], store=tmp_path / "file")
    model = GlobalMean()
    model.secret = lambda: None  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError, match="cannot be pickled"):
        evaluate(RATINGS, {"mean": model}, store=tmp_path / "folds")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_table_is_shown_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table("model")
    table.add_row("the mean")
    for stream, quiet, shown in ((Terminal(), False, True), (Terminal(), True, False),
                                 (io.StringIO(), False, False)):  # fmt: skip
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with live_table(quiet) as live:
            live.show(table)
        assert ("the mean" in stream.getvalue()) == shown
