"""Rating models on benchmarks: which model gets which inputs, and how results are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import HoldOut
from ordrec.experiments.rating_benchmarks import (
    benchmark,
    means_with_errors,
    rating_model,
    rmse_in_words,
)
from ordrec.experiments.runner import list_pipelines
from ordrec.recommend import BiasModel, OrdinalFactors


def dated_ratings() -> Ratings:
    plain = synthetic_ratings(30, 20, n_ratings=300, seed=0).to_frame()
    plain["timestamp"] = np.arange(len(plain)) * 86_400
    return Ratings.from_frame(plain, scale=range(1, 6), name="toy")


def test_inputs_say_what_a_model_knows() -> None:
    for inputs, side, time in (
        ("ids", False, False),
        ("side", True, False),
        ("time", True, "auto"),
    ):
        for name in ("factors", "full", "large", "process-fast"):
            model = rating_model(name, inputs)
            assert (model.use_side, model.use_time) == (side, time)
    assert isinstance(rating_model("bias"), BiasModel)
    with pytest.raises(ArgumentError, match="'bias' knows ids only"):
        rating_model("bias", "side")
    with pytest.raises(ArgumentError, match="inputs are ids, side, time, not 'dates'"):
        rating_model("full", "dates")


def test_only_models_with_times_are_given_the_time_of_a_test_rating(monkeypatch) -> None:
    calls = []
    predict = OrdinalFactors.predict_proba

    def listening(self, users, items, timestamps=None):
        calls.append((self.use_time, timestamps is not None))
        return predict(self, users, items, timestamps)

    monkeypatch.setattr(OrdinalFactors, "predict_proba", listening)
    result = benchmark(dated_ratings(), HoldOut(0.2, repeats=2), ["bias", "factors"])
    assert set(calls) == {(False, False), ("auto", True)}
    assert list(result.frame["model"].unique()) == [
        "bias",
        "factors, ids",
        "factors, side",
        "factors, time",
    ]
    assert set(result.frame["average"]) == {"micro"}
    assert result.complete
    words = rmse_in_words(result.frame)
    assert len(words) == 4
    assert words[-1].endswith("over 2 folds, which knew the time of each test rating")
    table = means_with_errors(result.frame)
    assert table.shape == (4, 6)
    assert " ± " in table["rmse"].iloc[0]


def test_bins_of_a_fine_scale_are_made_from_the_training_part(tmp_path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "user": np.repeat(np.arange(40), 5),
            "item": np.tile(np.arange(5), 40),
            "rating": rng.integers(1, 101, 200),
            "part": np.where(np.arange(200) % 5 == 0, "test", "train"),
        }
    )
    frame.to_csv(tmp_path / "yahoo_music.csv.gz", index=False)
    load = list_pipelines()["monti"].load().load_split
    first = load(tmp_path, "yahoo-music")
    test = first.folds["published"]
    assert test.sum() == 40
    assert first.values.tolist() == frame["rating"].tolist()
    frame.loc[test, "rating"] = 100  # other test ratings
    frame.to_csv(tmp_path / "yahoo_music.csv.gz", index=False)
    second = load(tmp_path, "yahoo-music")
    assert first.scale.edges.tolist() == second.scale.edges.tolist()
    parts = [each.select(~each.folds["published"]) for each in (first, second)]
    assert parts[0].scale.values.tolist() == parts[1].scale.values.tolist()
