"""Models fitted from disk: the digits of a fit in memory, on any engine, after a stop."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from ordrec import Ratings, load, save
from ordrec.choice import als
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.evaluation import evaluate_scan
from ordrec.models import workplace
from ordrec.recommend import (
    EASE,
    BiasModel,
    ChoiceMixture,
    HeldOut,
    ImplicitALS,
    OrderedChoice,
    OrdinalFactors,
    Popularity,
    RatingPredictor,
    Recommender,
    fit_scan,
    recommend_scan,
)
from ordrec.storage.archive import load_arrays

FACTORS = {"n_factors": 2, "max_iter": 3, "pattern": 0, "use_time": False}
CHOICE = {
    "popularity": Popularity(),
    "ease": EASE(),
    "ease, nearest": EASE(max_memory=1e-5, n_nearest=8),
    "als": ImplicitALS(n_factors=4, n_iter=4),
    "mixture": ChoiceMixture(n_factors=4),
    "ordered": OrderedChoice(n_factors=4),
}


def dated(ratings: Ratings) -> pd.DataFrame:
    frame = ratings.to_frame()
    rng = np.random.default_rng(0)
    return frame.assign(timestamp=1_000_000_000 + rng.integers(0, 30_000_000, len(frame)))


@pytest.fixture(scope="module")
def scan(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scan") / "ratings"
    ratings = synthetic_ratings(120, 60, n_ratings=3000, seed=3)
    Ratings.from_frame(dated(ratings)).to_partitions(folder, rows_per_part=900)
    return Ratings.scan(folder)


def fitted_copy(model, scan, **options):
    return fit_scan(copy.deepcopy(model), scan, rows=500, **options)


def lists_of(model, scan, place, **options) -> pd.DataFrame:
    return pd.read_csv(recommend_scan(model, scan, place / "lists.csv", 5, rows=400, **options))


def learnt(model, name: str = "") -> dict[str, object]:
    """What a choice model has learnt of items, and of users in general; members too."""
    names = (
        "weights_", "weighted_items_", "regularization_", "item_factors_", "_average_user", "mix_",
        "cold_", "calibration_", "item_counts_", "n_fitted_users_",
    )  # fmt: skip
    values = {name + each: getattr(model, each) for each in names if hasattr(model, each)}
    for each, value in values.items():
        values[each] = value.toarray() if sparse.issparse(value) else value
    for member in ("mixture_", "ease_", "als_"):
        if hasattr(model, member):
            values |= learnt(getattr(model, member), f"{name}{member}.")
    return values


@pytest.mark.parametrize("name", CHOICE)
def test_choice_models_learn_the_digits_of_a_fit_in_memory(name, scan, tmp_path) -> None:
    model = fitted_copy(CHOICE[name], scan)
    assert len(model.user_ids_) == 0
    save(model, tmp_path / "model.ordrec")
    whole = copy.deepcopy(CHOICE[name]).fit(scan.collect())
    own, theirs = learnt(model), learnt(whole)
    assert own.keys() == theirs.keys()
    for each, value in theirs.items():
        assert np.array_equal(own[each], value), each
    expected = whole.recommend_all(5)
    found = lists_of(load(tmp_path / "model.ordrec"), scan, tmp_path)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-6)  # blocks of users differ


def test_the_recommender_and_its_files(scan, tmp_path) -> None:
    """Its factors are those of a fit in memory up to rounding, and users are folded in."""
    ready = Recommender(rating=OrdinalFactors(**FACTORS))
    model = fitted_copy(ready, scan)
    save(model, tmp_path / "model.ordrec")
    found = lists_of(load(tmp_path / "model.ordrec"), scan, tmp_path)
    expected = copy.deepcopy(ready).fit(scan.collect()).recommend_all(5)
    pd.testing.assert_frame_equal(found[["user", "place"]], expected[["user", "place"]])
    assert (found["item"] == expected["item"]).mean() > 0.97
    same = found["item"] == expected["item"]
    assert np.abs(found["score"] - expected["score"])[same].max() < 0.03
    np.testing.assert_allclose(found["p_pick"][same], expected["p_pick"][same], rtol=1e-5)


def test_a_predictor_is_its_factors(scan) -> None:
    model = fit_scan(RatingPredictor(use_time=False, max_memory=8.0), scan, rows=500)
    alone = fit_scan(OrdinalFactors(use_time=False), scan, rows=500)
    people = scan.sample_users(10)
    pairs = people.user_ids[people.users], people.item_ids[people.items]
    both = (each.fold_in(people).predict_proba(*pairs) for each in (model, alone))
    np.testing.assert_array_equal(*both)
    with pytest.raises(ArgumentError, match='only "large" is fitted to ratings on disk'):
        fit_scan(RatingPredictor("full"), scan)


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_any_engine_gives_the_same_digits(engine, scan, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(workplace, "LITTLE_WORK", -1)
    for name in ("ease, nearest", "als"):
        here = lists_of(fitted_copy(CHOICE[name], scan, n_jobs=1), scan, tmp_path)
        there = fitted_copy(CHOICE[name], scan, engine=engine, n_jobs=2)
        listed = lists_of(there, scan, tmp_path, engine=engine, n_jobs=2)
        pd.testing.assert_frame_equal(listed, here, check_exact=True)


class Stop(Exception):
    pass


def test_a_stopped_fit_of_a_choice_model_goes_on(scan, tmp_path, monkeypatch) -> None:
    expected = lists_of(fitted_copy(CHOICE["mixture"], scan), scan, tmp_path)
    calls = []
    solve = als._solve_rows

    def counted(*arguments):
        calls.append(len(arguments))
        if len(calls) == 27:  # within the second of the fits of ALS
            raise Stop
        return solve(*arguments)

    monkeypatch.setattr(als, "_solve_rows", counted)
    with pytest.raises(Stop):
        fitted_copy(CHOICE["mixture"], scan, folder=tmp_path / "kept")
    assert list((tmp_path / "kept").rglob("*.stage"))
    monkeypatch.setattr(als, "_solve_rows", lambda *arguments: calls.append(0) or solve(*arguments))
    model = fitted_copy(CHOICE["mixture"], scan, folder=tmp_path / "kept")
    again = calls.count(0)
    assert list((tmp_path / "kept").iterdir()) == []
    pd.testing.assert_frame_equal(lists_of(model, scan, tmp_path), expected, check_exact=True)
    calls.clear()
    fitted_copy(CHOICE["mixture"], scan)
    assert again <= len(calls) - 24  # the sweeps that were done were not done again


def test_a_stopped_fit_of_factors_goes_on(scan, tmp_path) -> None:
    settings = FACTORS | {"max_iter": 4}
    expected = fitted_copy(OrdinalFactors(**settings), scan)
    steps: list[str] = []

    def stop(done: int, total: int, text: str) -> None:
        steps.append(text)
        if text == "sweep 3":
            raise Stop

    with pytest.raises(Stop):
        fitted_copy(OrdinalFactors(**settings), scan, folder=tmp_path / "kept", progress=stop)
    (state,) = (tmp_path / "kept").rglob("*.stage")
    assert load_arrays(state)[0]["up.sweeps"].tolist() == [3]  # a file of arrays, and no pickle
    steps.clear()
    found = fitted_copy(
        OrdinalFactors(**settings), scan, folder=tmp_path / "kept",
        progress=lambda *step: steps.append(step[2]),
    )  # fmt: skip
    assert [text for text in steps if "sweep" in text] == ["sweep 4"]
    assert found.fit_report_.name == "fit_scan"
    for own, theirs in zip(found.directions_, expected.directions_, strict=True):
        for one, other in zip(own.items.arrays, theirs.items.arrays, strict=True):
            np.testing.assert_array_equal(one, other)
    assert list((tmp_path / "kept").iterdir()) == []


def test_progress_is_counted_from_one_step_to_the_next(scan) -> None:
    steps: list[tuple[int, int, str]] = []
    fitted_copy(CHOICE["als"], scan, progress=lambda *step: steps.append(step))
    assert steps == [(1, 2, "histories written"), (2, 3, "ImplicitALS")]
    steps.clear()
    fitted_copy(OrdinalFactors(**FACTORS), scan, progress=lambda *step: steps.append(step))
    assert all(done <= total for done, total, _ in steps)
    assert [done for done, _, _ in steps] == sorted(done for done, _, _ in steps)


def test_a_folder_of_another_fit_is_left_alone(scan, tmp_path) -> None:
    def stop(*step: object) -> None:
        raise Stop

    with pytest.raises(Stop):
        fitted_copy(CHOICE["als"], scan, folder=tmp_path / "kept", progress=stop)
    (theirs,) = (tmp_path / "kept").iterdir()
    fitted_copy(ImplicitALS(n_factors=3, n_iter=2), scan, folder=tmp_path / "kept")
    assert list((tmp_path / "kept").iterdir()) == [theirs]


def test_what_is_held_out_is_measured(scan, tmp_path) -> None:
    held = HeldOut(0.2)
    model = fitted_copy(EASE(100.0), scan, held_out=held)
    save(model, tmp_path / "model.ordrec")
    model = load(tmp_path / "model.ordrec")
    assert model.held_out_ == held
    given, test = held.parted(scan.collect())
    whole = EASE(100.0).fit(given)
    result = evaluate_scan(
        model, scan, tmp_path / "measured", metrics=["recall@10"], cold_users=None
    )
    wanted = test.to_frame()[["user", "item", "rating"]]
    wanted = wanted[wanted["rating"] >= test.scale.liked_from][["user", "item"]]
    listed = whole.recommend_all(10)[["user", "item"]]
    hits = wanted.merge(listed).groupby("user").size()
    shares = hits.reindex(wanted["user"].unique(), fill_value=0) / wanted.groupby("user").size()
    assert len(result.frame)
    assert result.summary().loc["EASE", "recall@10"] == pytest.approx(shares.mean(), abs=1e-9)
    # what the model was fitted on is not here: nothing is said of what it has seen
    assert f"own test part ({test.n_ratings} ratings)" in result.caption()
    assert "unseen" not in result.caption()


def test_ratings_that_are_held_out_are_measured(scan, tmp_path) -> None:
    model = fitted_copy(OrdinalFactors(**FACTORS), scan, held_out=HeldOut(0.2))
    result = evaluate_scan(model, scan, tmp_path / "measured", of="ratings")
    _, test = HeldOut(0.2).parted(scan.collect())
    spread = float(np.std(test.values))
    assert 0.3 * spread < result.summary().loc["OrdinalFactors", "rmse"] < spread
    with pytest.raises(ArgumentError, match="nothing was held out"):
        evaluate_scan(fitted_copy(Popularity(), scan), scan, tmp_path / "other")


def test_what_cannot_be_fitted_from_disk_is_refused(scan, tmp_path) -> None:
    with pytest.raises(ArgumentError, match="a BiasModel cannot be fitted to ratings on disk"):
        fit_scan(BiasModel(), scan)
    with pytest.raises(ArgumentError, match="a BiasModel cannot fold in users and list items"):
        recommend_scan(BiasModel(), scan, tmp_path / "lists.csv")
