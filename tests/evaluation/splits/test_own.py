"""Training and test parts of one's own, against splits that make the same parts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import Candidates, KFold, evaluate
from ordrec.evaluation.splits.base import joined_ratings
from ordrec.evaluation.splits.own import own_parts
from ordrec.recommend import BiasModel

ITEMS = pd.DataFrame({"item": range(12), "price": np.arange(12.0)})


def frame_of(seed: int, n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(15 * 12)[:n]
    return pd.DataFrame(
        {
            "user": [f"u{p // 12}" for p in pairs],
            "item": pairs % 12,
            "rating": rng.integers(1, 6, n),
            "timestamp": rng.integers(1, 100, n),
        }
    )


@given(seed=st.integers(0, 10**6), cut=st.integers(20, 70))
def test_all_rows_come_back_in_their_parts(seed, cut):
    frame = frame_of(seed)
    train, test = frame[:cut], frame[cut:].reset_index(drop=True)
    ratings, split = own_parts(train, test)
    [fold] = split.split(ratings)
    for part, given_frame in ((fold.train, train), (fold.test, test)):
        back = part.to_frame()
        for column in ("user", "item", "rating", "timestamp"):
            assert back[column].tolist() == given_frame[column].tolist()
    assert fold.train.user_ids is fold.test.user_ids
    assert ratings.user_ids.is_monotonic_increasing


def test_two_pairs_are_the_folds_of_a_cross_validation():
    whole = Ratings.from_frame(frame_of(1), scale=range(1, 6), item_table=ITEMS)
    folds = list(KFold(3, random_state=4).split(whole))
    by_split = evaluate(whole, ["bias", "ease"], KFold(3, random_state=4), n_resamples=200)
    own = evaluate(
        [fold.train for fold in folds],
        ["bias", "ease"],
        test=[fold.test for fold in folds],
        n_resamples=200,
    )
    pd.testing.assert_frame_equal(own.summary().iloc[:, :-2], by_split.summary().iloc[:, :-2])
    columns = ["model", "metric", "low", "high", "p"]
    pd.testing.assert_frame_equal(own.comparison[columns], by_split.comparison[columns])
    assert "own parts (60+60+60 training, 30+30+30 test ratings), 3 folds" in own.caption()


def test_models_are_fitted_on_validation_ratings_too():
    frame = frame_of(2)
    train, valid, test = frame[:40], frame[40:60], frame[60:]
    options = {"metrics": ["rmse"], "n_resamples": 0}
    with_valid = evaluate(train, ["bias"], test=test, valid=valid, **options)
    together = evaluate(frame[:60], ["bias"], test=test, **options)
    assert with_valid.summary().loc["bias", "rmse"] == together.summary().loc["bias", "rmse"]


def test_candidates_are_chosen_on_the_validation_part():
    """The damping that is best there is planted: validation ratings repeat what items have."""
    rng = np.random.default_rng(0)
    pairs = rng.permutation(40 * 12)
    frame = pd.DataFrame({"user": pairs // 12, "item": pairs % 12})
    frame["rating"] = 1 + frame["item"] % 5
    train, valid, test = frame[:60], frame[60:160], frame[160:]
    models = {"0.01": BiasModel(item_damping=0.01), "1000": BiasModel(item_damping=1000.0)}
    result = evaluate(
        train, {"chosen": Candidates(models, "rmse")}, test=test, valid=valid, metrics=["rmse"]
    )
    assert set(result.frame["chosen"]) == {"0.01"}
    backwards = valid.assign(rating=6 - valid["rating"])
    result = evaluate(
        train, {"chosen": Candidates(models, "rmse")}, test=test, valid=backwards, metrics=["rmse"]
    )
    assert set(result.frame["chosen"]) == {"1000"}


def test_a_rating_in_both_parts_is_refused_with_its_rows():
    frame = frame_of(3)
    test = pd.concat([frame[80:], frame[17:19]])
    with pytest.raises(DataError, match=r"row 10 of the test part: user .* row 17 of the tr.*\(2 "):
        evaluate(frame[:80], ["mean"], test=test)
    with pytest.raises(DataError, match=r"row 0 of the test part: .* validation part"):
        evaluate(frame[:50], ["mean"], test=frame[80:], valid=frame[70:85])
    with pytest.raises(DataError, match="test part of fold 2"):
        evaluate([frame[:80], frame[:80]], ["mean"], test=[frame[80:], frame[79:]])


def test_what_does_not_go_together_is_refused():
    frame = frame_of(4)
    with pytest.raises(ArgumentError, match="1 training, 2 test"):
        evaluate(frame[:50], ["mean"], test=[frame[50:70], frame[70:]])
    with pytest.raises(ArgumentError, match="leave out split="):
        evaluate(frame[:50], ["mean"], "kfold:5", test=frame[50:])
    with pytest.raises(ArgumentError, match="valid= is a part beside test="):
        evaluate(frame[:50], ["mean"], valid=frame[50:])
    numbers = frame[50:].assign(user=lambda table: table["user"].str[1:].astype(int))
    with pytest.raises(DataError, match="ids of users are numbers in one table"):
        evaluate(frame[:50], ["mean"], test=numbers)


def test_the_scale_holds_the_ratings_of_all_parts():
    frame = frame_of(5)
    train = Ratings.from_frame(frame[:50], scale=range(1, 6))
    few = pd.DataFrame({"user": ["u1"], "item": [99], "rating": [4]})
    assert own_parts(train, few)[0].scale == Scale.regular(1, 5)
    low = frame[:50][frame[:50]["rating"] < 5]
    high = frame[50:].assign(rating=lambda table: np.where(table["rating"] > 3, 5, 2))
    assert own_parts(low, high)[0].scale == Scale.regular(1, 5)


def test_side_tables_reach_the_joined_table():
    frame = frame_of(6)
    train = Ratings.from_frame(frame[:50], item_table=ITEMS)
    new = pd.DataFrame({"user": ["u1", "x"], "item": [50, 3], "rating": [4, 2]})
    test = Ratings.from_frame(
        new, item_table=pd.DataFrame({"item": [50, 3], "price": [7.0, -1.0]}), scale=range(1, 6)
    )
    joined = joined_ratings([train, test])
    prices = dict(zip(joined.item_ids, joined.item_table["price"], strict=True))
    assert prices[50] == 7.0
    assert prices[3] == 3.0  # the first table is right
    assert joined.item_table.index.equals(joined.item_ids)
    assert joined.timestamps is None  # one part has none


# ---- bins come from the training part --------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_test_ratings_move_no_bin_of_a_fine_scale(seed):
    rng = np.random.default_rng(seed)
    frame = frame_of(seed).assign(rating=rng.integers(0, 101, 90))
    moved = frame.assign(rating=np.where(np.arange(90) < 60, frame["rating"], rng.integers(0, 101)))
    scale = Scale.binned(frame["rating"], low=0, high=100)
    parts = []
    for table in (frame, moved):
        fine = Ratings.from_frame(table, scale=Scale.binned(table["rating"], low=0, high=100))
        mask = np.arange(90) >= 60
        folds = {"x": mask}
        published = Ratings.from_frame(table, scale=fine.scale, folds=folds)
        [fold] = evaluate_split(published)
        parts.append(fold)
    assert np.array_equal(parts[0].train.levels, parts[1].train.levels)
    assert parts[0].train.scale == parts[1].train.scale
    again = Scale.binned(frame["rating"][:60], low=0, high=100)
    assert parts[0].train.scale == again
    assert scale.most_bins == again.most_bins == 10


def evaluate_split(ratings):
    from ordrec.evaluation import PublishedFolds

    return PublishedFolds(("x",)).split(ratings)


def test_declared_cut_points_stay():
    frame = frame_of(7).assign(rating=np.arange(90))
    ratings = Ratings.from_frame(frame, scale=Scale.binned(frame["rating"], bins=[20, 60]))
    fold = next(KFold(2).split(ratings))
    assert fold.train.scale.edges.tolist() == [0, 20, 60, 89]


def test_folds_with_bins_of_their_own_are_evaluated_together():
    rng = np.random.default_rng(8)
    frame = frame_of(8).assign(rating=np.round(rng.gamma(2, 10, 90), 1))
    ratings = Ratings.from_frame(frame, scale=Scale.binned(frame["rating"], low=0, high=1000))
    result = evaluate(ratings, ["histogram"], "kfold:3", keep_predictions=True)
    levels, p = result.distributions["histogram"]
    assert len(levels) == len(p) == 90
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
