"""Every command gives, number by number, what the call of Python gives that it stands for."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import load, save
from ordrec.cli import app
from ordrec.data import Ratings
from ordrec.datasets import load_ratings, synthetic_ratings
from ordrec.evaluation import evaluate, evaluate_predictions, tune_model
from ordrec.lists.frames import predict_pairs
from ordrec.recommend import HeldOut, OrdinalFactors, fit_scan, make_model, predict_scan

FACTORS = {"n_factors": 2, "pattern": 2, "max_iter": 3}
SETTINGS = [word for name, value in FACTORS.items() for word in ("--set", f"{name}={value}")]
SECONDS = ["fit_seconds", "predict_seconds"]


def ordrec(*words: Any) -> str:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def equal(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(
        found, expected.reset_index(drop=True), check_dtype=False, rtol=1e-12
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Dated ratings, a table of items, pairs, and a model of them."""
    place = tmp_path_factory.mktemp("faces")
    frame = synthetic_ratings(30, 20, n_ratings=300, seed=1).to_frame()
    frame["timestamp"] = 1_500_000_000 + 86_400 * np.random.default_rng(1).permutation(300)
    frame.to_csv(place / "ratings.csv", index=False)
    kinds = pd.DataFrame({"item": range(20), "kind": [["a", "b"][k % 2] for k in range(20)]})
    kinds.to_csv(place / "items.csv", index=False)
    times = [1_500_000_000, 1_510_000_000, 1_520_000_000, 0]
    pairs = pd.DataFrame({"user": [0, 3, 77, 5], "item": [1, 2, 3, 88], "timestamp": times})
    pairs.to_csv(place / "pairs.csv", index=False)
    load_ratings(place / "ratings.csv").to_partitions(place / "parts", rows_per_part=100)
    ordrec("fit", place / "ratings.csv", "-m", "factors", *SETTINGS, "-o", place / "model")
    return place


@pytest.fixture(scope="module")
def ratings(folder: Path) -> Ratings:
    return load_ratings(folder / "ratings.csv")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return load(folder / "model")


def test_fit_and_predict(folder: Path, ratings: Ratings, tmp_path: Path) -> None:
    save(make_model("factors", **FACTORS).fit(ratings), tmp_path / "own")
    own = load(tmp_path / "own")
    ordrec("predict", folder / "model", folder / "pairs.csv", "--proba", "-o", tmp_path / "p.csv")
    pairs = pd.read_csv(folder / "pairs.csv")
    equal(pd.read_csv(tmp_path / "p.csv"), predict_pairs(own, pairs, proba=True))


def test_predictions_of_many_pairs_are_those_of_each(
    folder: Path, model: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No pair is lost where one block ends and the next begins."""
    users, items = np.divmod(np.arange(30 * 20), 20)
    pd.DataFrame({"user": users, "item": items}).to_csv(tmp_path / "all.csv", index=False)
    monkeypatch.setattr(sys.modules["ordrec.cli.predict"], "PAIRS_AT_A_TIME", 7)
    ordrec("predict", folder / "model", tmp_path / "all.csv", "-o", tmp_path / "p.csv")
    found = pd.read_csv(tmp_path / "p.csv")
    assert found[["user", "item"]].to_numpy().tolist() == np.stack([users, items], 1).tolist()
    np.testing.assert_allclose(found["rating"], model.predict(users, items), rtol=1e-12)


def test_update(folder: Path, ratings: Ratings, model: Any, tmp_path: Path) -> None:
    """A rating of a known pair replaces the old one; times and new users count."""
    user, item = int(ratings.user_ids[ratings.users[0]]), int(ratings.item_ids[ratings.items[0]])
    new = pd.DataFrame({"user": [user, 77, user], "item": [item, 3, 3], "rating": [1, 5, 2],
                        "timestamp": [1_600_000_000, 1_500_000_500, 1_600_000_001]})  # fmt: skip
    new.to_csv(tmp_path / "new.csv", index=False)
    ordrec("update", folder / "model", tmp_path / "new.csv", "-o", tmp_path / "updated")
    found = load(tmp_path / "updated")
    save(model.update(*(new[name].tolist() for name in new)), tmp_path / "own")
    expected = load(tmp_path / "own")
    pairs = [user, 77, 5], [item, 4, 5], [1_600_000_002] * 3
    np.testing.assert_array_equal(found.predict_proba(*pairs), expected.predict_proba(*pairs))
    ordrec("update", folder / "model", tmp_path / "new.csv", "--items", folder / "items.csv",
           "-o", tmp_path / "with-items")  # fmt: skip
    for each in (found, load(tmp_path / "with-items")):
        known = each.known_ratings().to_frame().set_index(["user", "item"])
        assert known.loc[(user, item), ["rating", "timestamp"]].tolist() == [1, 1_600_000_000]
        assert known.loc[(77, 3), ["rating", "timestamp"]].tolist() == [5, 1_500_000_500]
        before = ratings.to_frame().set_index(["user", "item"]).drop((user, item))
        before = before.drop((user, 3), errors="ignore")  # which is among the new ones, too
        assert known.loc[before.index, "rating"].tolist() == before["rating"].tolist()


def test_recommend_explain_and_similar(folder: Path, model: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    ordrec("recommend", folder / "model", "--user", "4", "-n", "5", "-o", out)
    equal(pd.read_csv(out)[["item", "score"]], model.recommend(4, 5)[["item", "score"]])
    ordrec("recommend", folder / "model", "--for", "all", "-n", "3", "-o", tmp_path / "all.csv")
    equal(pd.read_csv(tmp_path / "all.csv"), model.recommend_all(3))
    when = 1_510_000_000
    words = ["explain", folder / "model", "-u", "4", "-i", "2", "--timestamp", when, "-o"]
    ordrec(*words, tmp_path / "why.csv")
    why = model.explain(4, 2, when).largest(20)
    found = pd.read_csv(tmp_path / "why.csv")
    assert found["contribution"].tolist() == pytest.approx(why["contribution"].tolist(), abs=1e-6)
    ordrec("similar", folder / "model", "--item", "4", "-n", "3", "-o", tmp_path / "similar.csv")
    similar = pd.read_csv(tmp_path / "similar.csv")
    expected = model.similar_items(4, 3)
    assert similar["item"].tolist() == expected["item"].tolist()
    assert similar["similarity"].tolist() == pytest.approx(expected["similarity"], abs=1e-7)


@pytest.mark.parametrize("resume", [[], ["--resume"], ["--resume", "--overwrite"]])
def test_evaluate(
    folder: Path, ratings: Ratings, resume: list[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    """Also where it goes on after an interruption: what is finished is not computed again."""
    chosen = {"metrics": ["mae", "recall@3"], "split": "kfold:2", "seed": 3}
    expected = evaluate(ratings, ["bias", "popularity"], **chosen).frame
    words = ["evaluate", folder / "ratings.csv", "-m", "bias,popularity", "--quiet", "--jobs", "1",
             "--metrics", "mae,recall@3", "--split", "kfold:2", "--seed", "3",
             "-o", tmp_path / "r.csv"]  # fmt: skip
    fitted: list[str] = []
    kinds = {name: type(make_model(name)) for name in ("bias", "popularity")}
    for name, kind in kinds.items():
        real = kind.fit

        def counted(self: Any, *given: Any, _name: str = name, _real: Any = real) -> Any:
            fitted.append(_name)
            if resume and len(fitted) == 4:
                raise KeyboardInterrupt
            return _real(self, *given)

        monkeypatch.setattr(kind, "fit", counted)
    if resume:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 130
        assert len(fitted) == 4
    ordrec(*words, *resume)
    assert len(fitted) == (5 if resume else 4)
    found = pd.read_csv(tmp_path / "r.csv")
    expected = pd.read_csv(io.StringIO(expected.to_csv(index=False)))  # folds are texts
    equal(found.drop(columns=SECONDS), expected.drop(columns=SECONDS)[found.columns.drop(SECONDS)])


def test_score(folder: Path, ratings: Ratings, tmp_path: Path) -> None:
    test = ratings.to_frame().iloc[::3][["user", "item", "rating"]]
    said = test.assign(prediction=np.linspace(1, 5, len(test)))[["user", "item", "prediction"]]
    said.to_csv(tmp_path / "said.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    ordrec("score", tmp_path / "said.csv", tmp_path / "test.csv", "--metrics", "rmse,mae",
           "-o", tmp_path / "out.csv", "--quiet")  # fmt: skip
    found = pd.read_csv(tmp_path / "out.csv")
    error = said["prediction"] - test["rating"]
    by_hand = {"mae": error.abs().mean(), "rmse": np.sqrt((error**2).mean())}
    for metric, value in by_hand.items():
        assert found.loc[found["metric"] == metric, "value"].iloc[0] == pytest.approx(value)
    own = evaluate_predictions({"said": said}, test, metrics=["rmse", "mae"]).frame
    assert found["value"].tolist() == pytest.approx(own["value"].tolist(), rel=1e-12)


def test_tune(folder: Path, ratings: Ratings, tmp_path: Path) -> None:
    ordrec("tune", folder / "ratings.csv", "-m", "bias", "--trials", "4", "--method", "random",
           "--seed", "2", "--split", "kfold:2", "-o", tmp_path / "best")  # fmt: skip
    found = tune_model(ratings, "bias", n_trials=4, method="random", seed=2, split="kfold:2")
    assert {name: getattr(load(tmp_path / "best"), name) for name in found.best_params} == (
        found.best_params
    )
    pairs = [0, 3, 5], [1, 2, 4]
    np.testing.assert_array_equal(
        load(tmp_path / "best").predict(*pairs), found.model.predict(*pairs)
    )


@pytest.mark.filterwarnings("ignore:.*does not use the times")
def test_all_users_on_disk(folder: Path, tmp_path: Path) -> None:
    words = ["--set", "n_factors=2", "--set", "max_iter=2", "--hold-out", "0.2", "-o"]
    ordrec("fit-all", folder / "parts", *words, tmp_path / "m")
    scan, held = Ratings.scan(folder / "parts"), HeldOut(0.2)
    save(fit_scan(OrdinalFactors(n_factors=2, max_iter=2), scan, held_out=held), tmp_path / "own")
    own = load(tmp_path / "own")
    ordrec("predict-all", tmp_path / "m", folder / "parts", "-o", tmp_path / "predictions")
    files = sorted((tmp_path / "predictions").glob("part-*"))
    found = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    expected = predict_scan(own, scan, held, tmp_path / "own-predictions", engine="serial")
    equal(found, pd.concat(list(expected.frames()), ignore_index=True))
