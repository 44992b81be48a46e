"""Lists that know the order of histories: when it counts, fold-in, updates, reasons, files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from naive import naive_order
from scipy import sparse
from support.walks import N_ITEMS, walks

from ordrec import load, save
from ordrec.choice import ordered
from ordrec.choice.choosing import Chosen
from ordrec.choice.order import DatedRows
from ordrec.choice.ordered_features import FEATURES, OrderedFeatures
from ordrec.choice.successions import DirectedCosines
from ordrec.choice.trend import RatingTimes
from ordrec.cli.chosen_models import say_chosen
from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.recommend import ChoiceMixture, OrderedChoice, Recommender

SCALE = Scale.regular(1, 5)
FRAME = walks()
RATINGS = Ratings.from_frame(FRAME, scale=SCALE)


@pytest.fixture(scope="module")
def model() -> OrderedChoice:
    return OrderedChoice("next", n_factors=4).fit(RATINGS)


def test_the_order_counts_where_it_says_what_comes_next(model) -> None:
    assert model.weights_
    assert model.chosen_.name != "mixture"
    best = dict(zip(model.chosen_.names, model.chosen_.quality, strict=True))
    assert best[model.chosen_.name] > best["mixture"] + 0.1
    last = FRAME.groupby("user").tail(1)
    near = 0
    for user, item in zip(last["user"], last["item"], strict=True):
        listed = model.recommend(user, 5)["item"]
        near += ((listed - item) % N_ITEMS <= 5).sum()
    assert near > 2 * len(last)  # by chance, 5 of 40 items are so near: 0.6 for each user


def test_without_times_or_with_equal_times_it_is_the_mixture_to_the_digit() -> None:
    plain = FRAME.drop(columns="timestamp")
    mixture = ChoiceMixture(n_factors=4).fit(Ratings.from_frame(plain, scale=SCALE))
    users = mixture.user_ids_
    for frame in (plain, plain.assign(timestamp=7_000)):
        again = OrderedChoice(n_factors=4).fit(Ratings.from_frame(frame, scale=SCALE))
        assert not again.weights_
        assert np.array_equal(again.scores_block(users), mixture.scores_block(users))
        pd.testing.assert_frame_equal(again.recommend(3), mixture.recommend(3))


def test_for_a_random_part_the_order_does_not_count() -> None:
    told = OrderedChoice("random", n_factors=4).fit(RATINGS)
    mixture = ChoiceMixture(n_factors=4, future="random").fit(RATINGS)
    assert np.array_equal(told.scores_block(range(20)), mixture.scores_block(range(20)))


def test_shuffled_times_do_not_make_an_order() -> None:
    model = OrderedChoice("next", n_factors=4).fit(Ratings.from_frame(shuffled(1), scale=SCALE))
    lags = [abs(weight) for name, weight in model.weights_.items() if name.startswith("lag")]
    assert model.chosen_.name == "mixture" or max(lags, default=1.0) < 0.5


def shuffled(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    times = FRAME.groupby("user")["timestamp"]
    return FRAME.assign(timestamp=times.transform(lambda own: rng.permutation(own.to_numpy())))


def test_shuffled_times_do_not_make_lists_worse() -> None:
    ratings = Ratings.from_frame(shuffled(2), scale=SCALE)
    (split,) = split_from_name("last:1", random_state=0).split(ratings)
    held = dict(zip(split.test.users.tolist(), split.test.items.tolist(), strict=True))
    found = []
    for kind in (OrderedChoice, ChoiceMixture):
        scores = kind(future="next", n_factors=4).fit(split.train).scores_block(list(held))
        scores[np.arange(len(held))[:, None], items_of(split.train, held)] = -np.inf
        place = (scores > scores[range(len(held)), list(held.values())][:, None]).sum(axis=1)
        found.append(1.0 / np.log2(place + 2.0))
    difference = found[0] - found[1]
    assert difference.mean() > -difference.std() / np.sqrt(len(held)) - 0.01


def items_of(ratings: Ratings, users) -> np.ndarray:
    """The items of users who rated equally many, one row each."""
    return np.stack([ratings.items[ratings.users == user] for user in users])


def test_without_an_order_times_change_nothing() -> None:
    first, second = (
        OrderedChoice("random", n_factors=4).fit(Ratings.from_frame(frame, scale=SCALE))
        for frame in (FRAME, shuffled(3))
    )
    assert np.array_equal(first.scores_block(range(20)), second.scores_block(range(20)))


def test_features_of_tied_histories_are_those_without_order(model) -> None:
    mixture = model.mixture_
    features = OrderedFeatures(mixture.ease_, mixture.als_, model.order_, model.item_counts_)
    rows = DatedRows.of(model._history, np.full(model._history.nnz, 5.0))
    np.testing.assert_array_equal(features.of("ease_near", rows), features.of("ease", rows))
    np.testing.assert_allclose(features.of("als_near", rows), features.of("als", rows), atol=1e-4)


def test_sums_over_recent_items_by_hand(model) -> None:
    mixture, order = model.mixture_, model.order_
    features = OrderedFeatures(mixture.ease_, mixture.als_, order, model.item_counts_)
    rows = DatedRows.taken(model._history, model._times, np.array([3]))
    items, places = rows.history.indices, rows.places
    history = list(zip(items.tolist(), rows.history.data.tolist(), rows.times, strict=True))
    np.testing.assert_allclose(places, naive_order.places(history))
    assert np.array_equal(mixture.ease_.weighted_items_, np.arange(N_ITEMS))
    after = [
        sum(np.exp(-p / 5) * order.cosines.table[i, j] for i, p in zip(items, places, strict=True))
        for j in range(N_ITEMS)
    ]
    expected = naive_order.log_shares(after)
    np.testing.assert_allclose(features.of("after", rows)[0], expected, atol=0.05)  # cut at .003
    recent = [
        sum(
            v * (0.05 + 0.95 * np.exp(-p / 5)) * mixture.ease_.weights_[i, j]
            for (i, v, _), p in zip(history, places, strict=True)
        )
        for j in range(N_ITEMS)
    ]
    found = features.of("ease_near", rows)[0]
    np.testing.assert_allclose(found, naive_order.log_shares(recent), atol=1e-4)
    lag = [
        sum(order.lifts[i, j] for i, p in zip(items, places, strict=True) if 2 <= p < 5)
        for j in range(N_ITEMS)
    ]
    np.testing.assert_allclose(features.of("lag_2", rows)[0], lag, atol=1e-5)


def test_fold_in_of_dated_ratings_gives_the_scores_of_training(model) -> None:
    mine = FRAME[FRAME["user"] == 7].assign(user=10_007)
    folded = model.fold_in(Ratings.from_frame(mine.sample(frac=1.0, random_state=0), scale=SCALE))
    expected = model.scores_block([7])
    np.testing.assert_allclose(folded.scores_block([10_007]), expected, atol=1e-5)
    others = list(range(7))
    assert np.array_equal(folded.scores_block(others), model.scores_block(others))
    undated = model.fold_in(Ratings.from_frame(mine.drop(columns="timestamp"), scale=SCALE))
    assert not np.allclose(undated.scores_block([10_007]), expected, atol=1e-2)


def test_an_update_is_the_newest_rating(model) -> None:
    rated = set(FRAME.loc[FRAME["user"] == 7, "item"])
    item = next(i for i in range(N_ITEMS) if i not in rated)
    newest = int(FRAME.loc[FRAME["user"] == 7, "timestamp"].max())
    dated = model.update(7, item, 4, newest + 1)
    np.testing.assert_allclose(
        model.update(7, item, 4).scores_block([7]), dated.scores_block([7]), atol=1e-6
    )
    whole = pd.concat(
        [FRAME[FRAME["user"] == 7],
         pd.DataFrame({"user": [7], "item": item, "rating": 4, "timestamp": newest + 1})]
    ).assign(user=70_000)  # fmt: skip
    folded = dated.fold_in(Ratings.from_frame(whole, scale=SCALE))
    np.testing.assert_allclose(dated.scores_block([7]), folded.scores_block([70_000]), atol=1e-6)
    before = model.update(7, item, 4, 5)
    assert not np.allclose(before.scores_block([7]), dated.scores_block([7]), atol=1e-2)


def test_updates_count_what_a_refit_counts(model) -> None:
    rated = FRAME[FRAME["user"] == 7]
    again, newest = int(rated["item"].iloc[3]), int(rated["timestamp"].max())
    items = [i for i in range(N_ITEMS) if i not in set(rated["item"])]
    updated = model.update(7, items[0], 4, newest + 5).update(7, items[1], 2, newest - 100)
    updated = updated.update([7, 8_000, 8_000], [again, 3, 4], [5, 5, 1], [newest + 9, 50, 60])
    rows, order = DatedRows.of(updated._history, updated._times), updated.order_
    fresh = DirectedCosines.of(rows, model.mixture_.ease_.block_items)
    single = sparse.csr_array(np.eye(N_ITEMS))
    np.testing.assert_allclose(order.cosines.spread(single), fresh.table, atol=1e-4)
    assert np.abs(model.order_.cosines.table - fresh.table).max() > 2e-3
    whole = RatingTimes.of(rows)
    assert np.array_equal(order.rated.times, whole.times)
    assert np.array_equal(order.rated.counts(N_ITEMS), np.bincount(rows.history.indices))
    assert np.array_equal(order.lifts, model.order_.lifts)


def test_reasons_are_what_the_score_loses_without_an_entry(model) -> None:
    item = int(model.recommend(7, 1)["item"].iloc[0])
    reasons = model.reasons(7, item)
    assert sorted(reasons["item"]) == sorted(FRAME.loc[FRAME["user"] == 7, "item"])
    newest = FRAME.loc[FRAME["user"] == 7].tail(4)["item"].tolist()
    assert reasons["item"].iloc[0] in newest
    assert model.reasons(12_345, item).empty
    own = FRAME[FRAME["user"] == 7]
    newer = (own["timestamp"].to_numpy() > own["timestamp"].to_numpy()[:, None]).sum(axis=1)
    same = own.groupby("timestamp")["item"].transform("size").to_numpy()
    expected = dict(zip(own["item"], newer + (same + 1) / 2, strict=True))
    assert dict(zip(reasons["item"], reasons["place"], strict=True)) == expected
    undated = own.drop(columns="timestamp").assign(user=10_008)
    folded = model.fold_in(Ratings.from_frame(undated, scale=SCALE))
    assert folded.reasons(10_008, item)["place"].isna().all()


def test_a_reason_that_was_rated_just_now_is_said_to_be() -> None:
    model = Recommender(rating=None, future="next").fit(RATINGS)
    item = int(model.recommend(7, 1)["item"].iloc[0])
    explained = model.explain(7, item)
    first = explained.pick.iloc[0]
    assert first["place"] < 4
    assert f"  {first['item']:g} ({first['rating']:g}), just rated" in str(explained).splitlines()
    far = explained.pick[explained.pick["place"] >= 4]
    assert not any(f"  {item:g} (" in line and "just" in line
                   for line in str(explained).splitlines() for item in far["item"])  # fmt: skip
    largest = explained.largest(3)
    assert largest["place"].iloc[:3].tolist() == explained.pick["place"].iloc[:3].tolist()


def test_what_somebody_new_rates_without_a_time_is_the_newest(model) -> None:
    dated = model.update(70_001, 3, 5).ratings_with(70_001, 9, 4).to_frame()
    assert dated["timestamp"].tolist() == [model.newest_time + 1, model.newest_time + 2]


def test_there_and_back(model, tmp_path) -> None:
    folded = model.fold_in(
        Ratings.from_frame(FRAME[FRAME["user"] == 7].assign(user=900), scale=SCALE)
    )
    for number, saved in enumerate((model, folded)):
        save(saved, tmp_path / f"{number}.ordrec")
        again = load(tmp_path / f"{number}.ordrec")
        users = [*saved.user_ids_, -1]
        assert np.array_equal(again.scores_block(users), saved.scores_block(users))
        pd.testing.assert_frame_equal(again.recommend(7), saved.recommend(7))
        assert str(again.chosen_) == str(saved.chosen_)
        assert again.update(7, 3, 2).recommend(7).equals(saved.update(7, 3, 2).recommend(7))


def test_a_table_that_no_feature_reads_is_not_kept(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(ordered, "LATEST_ORDER", tuple(ordered.SUMS))  # logits read all tables
    model = OrderedChoice("latest", n_factors=4).fit(RATINGS)
    assert model.weights_
    assert model.order_ is not None
    assert model.order_.lifts is None
    save(model, tmp_path / "model.ordrec")
    again = load(tmp_path / "model.ordrec")
    users = model.user_ids_
    assert np.array_equal(again.scores_block(users), model.scores_block(users))


def test_nobody_gets_what_is_popular(model) -> None:
    assert len(model.recommend(-1, 5)) == 5
    assert np.isfinite(model.scores_block([-1])).all()


def test_futures_that_cannot_be_are_refused() -> None:
    plain = Ratings.from_frame(FRAME.drop(columns="timestamp"), scale=SCALE)
    for kind in (OrderedChoice, ChoiceMixture):
        with pytest.raises(ArgumentError, match="the ratings have no times"):
            kind(future="next").fit(plain)
        with pytest.raises(ArgumentError, match="future must be one of"):
            kind(future="past").fit(plain)
    with pytest.raises(ArgumentError, match="future must be one of"):
        Recommender(future="past").fit(plain)


def test_no_more_than_one_hit_is_expected_of_the_next_pick(model) -> None:
    listed = pd.concat([model.recommend(user, 10) for user in range(30)])
    assert listed["p_pick"].between(0, 1).all()
    assert 3 < listed["p_pick"].sum() < 1.1 * 30


def test_recommender_says_what_was_chosen() -> None:
    fitted = Recommender(rating=None, future="next").fit(RATINGS)
    assert fitted.chosen_.name in str(fitted.chosen_)
    assert fitted.choice_.weights_
    newer = fitted.update(7, 3, 4, 10**9)
    assert newer.recommend(7)["item"].tolist() != fitted.recommend(7)["item"].tolist()


def test_ordrec_fit_says_what_was_chosen_and_by_how_much(model, capsys) -> None:
    say_chosen(model, RATINGS.n_ratings)
    said = capsys.readouterr().err
    assert f"chosen for lists: {model.chosen_.name} (NDCG of inner lists: mixture ." in said
    assert all(name in said for name in model.chosen_.names)


# ---- choosing -----------------------------------------------------------------------------


def test_the_simplest_within_a_standard_error_is_chosen() -> None:
    rng = np.random.default_rng(0)
    base, noise = rng.random(400), rng.standard_normal(400)
    noise -= noise.mean()
    error = noise.std() / 20
    within = Chosen.among({"simple": base, "best": base + noise + 0.9 * error})
    beyond = Chosen.among({"simple": base, "best": base + noise + 1.1 * error})
    assert (within.name, beyond.name) == ("simple", "best")
    assert within.errors[0] == pytest.approx(error)
    assert within.errors[1] == 0.0


# ---- nothing of what is set aside is known ---------------------------------------------------


def test_ratings_set_aside_reach_no_feature(model) -> None:
    history, rng = model._history, np.random.default_rng
    trial = model._inner_trial(DatedRows.of(history, model._times), 0.5, rng(1), FEATURES)
    changed = history.copy()
    row = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
    given = set(zip(*trial.split.given.nonzero(), strict=True))
    aside = np.array([pair not in given for pair in zip(row, history.indices, strict=True)])
    assert 100 < aside.sum() < 200
    changed.data[aside] = 1.2 - changed.data[aside]
    again = model._inner_trial(DatedRows.of(changed, model._times), 0.5, rng(1), FEATURES)
    assert np.array_equal(trial.block, again.block)
    assert not np.array_equal(trial.held.data, again.held.data)


def test_the_order_of_times_does_not_reach_the_order_free_models(model) -> None:
    turned = FRAME.assign(timestamp=2_000_000_000 - FRAME["timestamp"])
    other = OrderedChoice("next", n_factors=4).fit(Ratings.from_frame(turned, scale=SCALE))
    assert np.array_equal(other.mixture_.als_.item_factors_, model.mixture_.als_.item_factors_)
    if other.mixture_.ease_.regularization_ == model.mixture_.ease_.regularization_:
        assert np.array_equal(other.mixture_.ease_.weights_, model.mixture_.ease_.weights_)
    assert not np.array_equal(other.scores_block([7]), model.scores_block([7]))


def test_the_number_of_threads_does_not_matter(model) -> None:
    for n_jobs in (1, 3):
        again = OrderedChoice("next", n_factors=4, n_jobs=n_jobs).fit(RATINGS)
        assert np.array_equal(again.scores_block(range(20)), model.scores_block(range(20)))
