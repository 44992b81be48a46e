"""Ratings in a folder of partitions, from the command line."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import load, save
from ordrec.cli import app
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.recommend import HeldOut, OrdinalFactors


def ordrec(*words: str | Path):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A csv of ratings, its partitions, and a model of some of the users."""
    place = tmp_path_factory.mktemp("scan")
    ratings = synthetic_ratings(80, 30, n_ratings=1200, seed=1)
    frame = pd.DataFrame(
        {
            "user": ratings.user_ids[ratings.users],
            "item": ratings.item_ids[ratings.items],
            "rating": ratings.values,
        }
    )
    frame.to_csv(place / "ratings.csv", index=False)
    done = ordrec("data", "partition", place / "ratings.csv", place / "parts", "--rows", "300")
    assert done.exit_code == 0, done.output
    done = ordrec(
        "fit", place / "parts", "-o", place / "model.ordrec", "-m", "factors",
        "--set", "n_factors=4", "--sample-users", "40",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return place


def predictions(path: Path) -> pd.DataFrame:
    parts = [pd.read_parquet(file) for file in sorted(path.glob("part-*.parquet"))]
    return pd.concat(parts, ignore_index=True)


def test_everybody_is_predicted_for_and_a_second_call_changes_nothing(folder: Path) -> None:
    words = ["predict-all", folder / "model.ordrec", folder / "parts", "-o", folder / "out"]
    first = ordrec(*words)
    assert first.exit_code == 0, first.output
    frame = predictions(folder / "out")
    assert f"{len(frame):,} predictions" in first.output
    assert 60 < len(frame) < 180  # a tenth of 1200
    assert frame["user"].nunique() > 40  # more than the model was fitted to
    assert np.isfinite(frame["expected"]).all()
    times = {file: file.stat().st_mtime_ns for file in (folder / "out").glob("part-*")}
    assert ordrec(*words).output == first.output
    assert {file: file.stat().st_mtime_ns for file in times} == times


def test_pairs_of_a_file_on_two_processes(folder: Path) -> None:
    (folder / "pairs.csv").write_text("user,item\n3,4\n70,5\n")
    done = ordrec(
        "predict-all", folder / "model.ordrec", folder / "parts", "-o", folder / "asked",
        "--pairs", folder / "pairs.csv", "--engine", "processes", "--jobs", "2",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert set(predictions(folder / "asked")["user"]) == {3, 70}


def test_a_folder_of_partitions_is_data_for_every_command(folder: Path) -> None:
    done = ordrec("evaluate", folder / "parts", "-m", "bias", "--metrics", "rmse", "--quiet")
    assert done.exit_code == 0, done.output


def test_a_model_without_fold_in_is_refused(folder: Path) -> None:
    ordrec("fit", folder / "ratings.csv", "-o", folder / "mean.ordrec", "-m", "mean")
    done = ordrec("predict-all", folder / "mean.ordrec", folder / "parts", "-o", folder / "no")
    assert isinstance(done.exception, ArgumentError)
    assert "cannot take in new users" in str(done.exception)
    assert not (folder / "no").exists()


def test_pairs_are_predicted_for_their_times(tmp_path: Path) -> None:
    ratings = synthetic_ratings(60, 20, n_ratings=900, seed=2)
    days = np.random.default_rng(0).integers(0, 700, ratings.n_ratings)
    # users think better of everything as time goes by
    levels = np.clip(ratings.levels + days // 250 - 1, 0, 4)
    frame = ratings._replaced(levels=levels).to_frame()
    frame["timestamp"] = 1_500_000_000 + 86_400 * days
    frame.to_csv(tmp_path / "dated.csv", index=False)
    ordrec("data", "partition", tmp_path / "dated.csv", tmp_path / "parts", "--rows", "300")
    model = tmp_path / "model.ordrec"
    done = ordrec("fit", tmp_path / "parts", "-o", model, "-m", "factors", "--set", "n_factors=2")
    assert done.exit_code == 0, done.output
    lines = ["user,item,when"]
    for user in range(60):
        lines += [f"{user},{user % 20},1500000000", f"{user},{user % 20},1560000000"]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    words = ["--pairs", tmp_path / "pairs.csv", "--time-col", "when"]
    done = ordrec("predict-all", model, tmp_path / "parts", "-o", tmp_path / "out", *words)
    assert done.exit_code == 0, done.output
    found = predictions(tmp_path / "out")
    early, late = found["expected"][::2].to_numpy(), found["expected"][1::2].to_numpy()
    assert np.abs(early - late).max() > 0.1
    asked = ordrec(
        "predict", model, tmp_path / "pairs.csv", *words[2:], "--proba", "-o", tmp_path / "p.csv"
    )
    assert asked.exit_code == 0, asked.output
    expected = pd.read_csv(tmp_path / "p.csv").set_index("user")["expected"]
    own = found.set_index("user")["expected"].loc[expected.index.unique()]
    np.testing.assert_allclose(own, expected, atol=0.05)  # folded in, rather than fitted
    other = (tmp_path / "pairs.csv").read_text().replace("1560000000", "1550000000")
    (tmp_path / "pairs.csv").write_text(other)
    done = ordrec("predict-all", model, tmp_path / "parts", "-o", tmp_path / "out", *words)
    assert "predictions of other pairs" in str(done.exception)


def test_what_a_model_of_all_users_was_not_fitted_to_is_predicted(folder, tmp_path) -> None:
    words = ["fit-all", folder / "parts", "--set", "n_factors=2", "--set", "max_iter=2", "-o"]
    for share in ("0", "0.3"):
        done = ordrec(*words, tmp_path / f"{share}.ordrec", "--hold-out", share)
        assert done.exit_code == 0, done.output
    held = HeldOut(0.3)
    assert load(tmp_path / "0.3.ordrec").held_out_ == held
    assert load(tmp_path / "0.ordrec").held_out_ is None
    ask = ["predict-all", tmp_path / "0.3.ordrec", folder / "parts", "-o"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ordrec(*ask, tmp_path / "honest").exit_code == 0
        assert ordrec(*ask, tmp_path / "fewer", "--hold-out", "0.2").exit_code == 0
    assert (
        len(predictions(tmp_path / "honest"))
        == held.mask(Ratings.scan(folder / "parts").collect()).sum()
    )
    with pytest.warns(UserWarning, match=r"held out 0\.3 of the ratings.*held_out="):
        ordrec(*ask, tmp_path / "more", "--hold-out", "0.5")
    ask[1] = tmp_path / "0.ordrec"
    with pytest.warns(UserWarning, match=r"nothing was held out.*too small.*held_out="):
        ordrec(*ask, tmp_path / "leak")


def test_ratings_that_a_model_was_fitted_to_are_not_held_out(folder, tmp_path) -> None:
    with pytest.warns(UserWarning, match=r"the model was fitted to \d+ of the ratings that"):
        ordrec("predict-all", folder / "model.ordrec", folder / "parts", "-o", tmp_path / "out")
    scan, held = Ratings.scan(folder / "parts"), HeldOut(0.1)
    honest = OrdinalFactors(n_factors=2, max_iter=2).fit(held.parted(scan.sample_users(40))[0])
    save(honest, tmp_path / "honest.ordrec")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = ordrec(
            "predict-all", tmp_path / "honest.ordrec", folder / "parts", "-o", tmp_path / "two"
        )
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_the_share_of_predicted_ratings_is_that_asked_for(folder: Path, share: float) -> None:
    out = folder / f"held {share}"
    done = ordrec(
        "predict-all", folder / "model.ordrec", folder / "parts", "-o", out, "--hold-out", share
    )
    assert done.exit_code == 0, done.output
    frame = predictions(out)
    assert len(frame) == pytest.approx(1200 * share, abs=50)
    held, given = HeldOut(share).parted(Ratings.scan(folder / "parts").collect())[::-1]
    assert len(frame) == held.n_ratings
    pairs = set(zip(frame["user"], frame["item"], strict=True))
    left = held.user_ids.take(held.users), held.item_ids.take(held.items)
    assert pairs == set(zip(*left, strict=True))
    assert given.n_ratings + held.n_ratings == 1200
    words = ["predict-all", folder / "model.ordrec", folder / "parts", "-o", folder / "no"]
    wrong = ordrec(*words, "--hold-out", "1.5")
    assert wrong.exit_code != 0
    assert "between 0 and 1" in str(wrong.exception)


def test_a_model_of_all_users_is_fitted_on_disk(folder, tmp_path):
    items = tmp_path / "items.csv"
    pd.DataFrame({"item": range(30), "kind": list("abc") * 10}).to_csv(items, index=False)
    model = tmp_path / "all.ordrec"
    found = ordrec(
        "fit-all", folder / "parts", "-o", model, "--set", "n_factors=2", "--set", "max_iter=2",
        "--items", items, "--blocks", tmp_path / "blocks", "--engine", "threads", "--jobs", "2",
    )  # fmt: skip
    assert found.exit_code == 0, found.output
    fitted = load(model)
    assert fitted.side_columns_["item"] == {"kind": "categorical"}
    assert len(fitted.user_ids_) == 0
    predicted = ordrec("predict-all", model, folder / "parts", "-o", tmp_path / "out")
    assert predicted.exit_code == 0, predicted.output
    for more in ([], ["--by", "expected"]):  # for somebody of whom nothing is known
        listed = ordrec("recommend", model, "-u", "3", "-n", "4", *more, "-o", tmp_path / "l.csv",
                        "--overwrite")  # fmt: skip
        assert listed.exit_code == 0, listed.output
        assert len(pd.read_csv(tmp_path / "l.csv")) == 4
    again = ordrec("fit-all", folder / "parts", "-o", model, "--set", "n_factors=0")
    assert isinstance(again.exception, ArgumentError)
    assert "n_factors must be at least 1" in str(again.exception)


def test_a_choice_model_is_fitted_measured_and_makes_lists_from_the_folder(
    folder: Path, tmp_path: Path
) -> None:
    model = tmp_path / "ease.ordrec"
    words = ["fit-all", folder / "parts", "-m", "ease", "--hold-out", "0.2", "-o", model]
    done = ordrec(*words, "--blocks", tmp_path / "kept", "--quiet")
    assert done.exit_code == 0, done.output
    assert list((tmp_path / "kept").iterdir()) == []
    done = ordrec("evaluate-all", model, folder / "parts", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "recall@10" in done.output
    top = tmp_path / "top.csv"
    done = ordrec("recommend", model, "--for", folder / "parts", "-n", "3", "-o", top, "--quiet")
    assert done.exit_code == 0, done.output
    lengths = pd.read_csv(top).groupby("user").size()
    assert len(lengths) > 60  # some have rated all 30 items
    assert lengths.max() == lengths.median() == 3
    done = ordrec("recommend", model, "--for", "all", "-o", tmp_path / "none.csv")
    assert done.exit_code != 0
    assert "--for FOLDER" in str(done.exception)
