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
from ordrec.choice.base import histories
from ordrec.choice.choosing import Chosen
from ordrec.choice.inner_splits import entry_times
from ordrec.choice.order import DatedRows
from ordrec.choice.ordered_features import FEATURES, OrderedFeatures, log_shares
from ordrec.choice.successions import DirectedCosines
from ordrec.choice.trend import RatingTimes
from ordrec.cli.chosen_models import say_chosen
from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError
from ordrec.evaluation.splits.ratings import split_from_name
from ordrec.lists.best import best_columns
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


def test_what_is_learnt_takes_a_byte_for_each_number(model) -> None:
    order, mixture = model.order_, model.mixture_
    for table in (
        order.cosines.table, order.sequence.contexts, order.sequence.targets,
        mixture.ease_.weights_, mixture.als_.item_factors_,
    ):  # fmt: skip
        assert np.unique(table).size <= 255
        assert np.array_equal(table, table.astype(np.float16))


def test_tables_of_the_order_and_weights_share_the_memory() -> None:
    """There is room for half of the cells where tables of the order stand beside the weights."""
    gigabytes = 4 * 8 * 36**2 / 1e9  # in double precision, EASE alone has room for 36 items
    undated = Ratings.from_frame(FRAME.drop(columns="timestamp"), scale=SCALE)
    for ratings, n_items in ((RATINGS, 25), (undated, 32)):
        model = OrderedChoice(n_factors=4, max_memory=gigabytes).fit(ratings)
        ease = model.mixture_.ease_
        assert not ease.is_exact
        assert ease.block_items.size == n_items
        assert (model.order_ is not None) == (ratings is RATINGS)
    assert len(model.recommend(3, 5)) == 5


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


def twins(model: OrderedChoice, history: list, everybody: list) -> dict[str, list[float]]:
    """Every feature of one history, from its definition; histories are (item, value, time)."""
    ease, als, order = model.mixture_.ease_, model.mixture_.als_, model.order_
    items, values, times = (np.array(part) for part in zip(*history, strict=True))
    places = np.array(naive_order.places(history))
    days = (times.max() - times) / 86_400
    q = (model.item_counts_ + 0.5) / (model.item_counts_ + 0.5).sum()

    def regressed(weights: np.ndarray) -> list[float]:
        return naive_order.log_shares((weights * values) @ ease.weights_[items])

    def factored(weights: np.ndarray) -> list[float]:
        weights, Q = weights / weights.max(), als.item_factors_.astype(np.float64)
        A = als.unseen_weight * Q.T @ Q + (Q[items].T * (weights * values)) @ Q[items]
        ridge = als.regularization * (weights.sum() + als.unseen_weight * N_ITEMS)
        p = np.linalg.solve(A + ridge * np.eye(len(A)), Q[items].T @ (weights * values))
        return naive_order.log_shares(Q @ p)

    x, y, z = order.sequence.contexts.reshape(3, N_ITEMS, -1)[:, items]
    h = np.exp(-places / 1.5) @ x + np.exp(-places / 6) @ y + z.sum(axis=0) / np.sqrt(4 * len(z))
    after = np.exp(-places / 5)
    after[after < 0.003 * after.max()] = 0.0
    found = {
        "ease": regressed(np.ones(len(items))),
        "ease_near": regressed(0.05 + 0.95 * np.exp(-places / 5)),
        "ease_month": regressed(np.exp(-days / 30)),
        "als": factored(np.ones(len(items))),
        "als_near": factored(0.1 + 0.9 * np.exp(-places / 10)),
        "popularity": np.log(q),
        "after": naive_order.log_shares(after @ order.cosines.table[items]),
        "sequence": order.sequence.targets @ h + order.sequence.biases,
    }
    for name, low, high in (("lag_0", 0, 1), ("lag_1", 1, 2), ("lag_2", 2, 5), ("lag_5", 5, 10)):
        found[name] = order.lifts[items[(low <= places) & (places < high)]].sum(axis=0)
    for name, half_life in (("week", 7), ("month", 30)):
        found[name] = naive_order.trend(everybody, N_ITEMS, times.max(), half_life)
    return found


def test_every_feature_is_what_its_definition_says(model) -> None:
    mixture, rng = model.mixture_, np.random.default_rng(5)
    features = OrderedFeatures(mixture.ease_, mixture.als_, model.order_, model.item_counts_)
    assert np.array_equal(mixture.ease_.weighted_items_, np.arange(N_ITEMS))
    table = model._history
    everybody = [
        list(zip(own.indices.tolist(), own.data.tolist(), when.tolist(), strict=True))
        for own, when in (
            (table[[user]], model._times[table.indptr[user] : table.indptr[user + 1]])
            for user in range(table.shape[0])
        )
    ]
    end = max(time for history in everybody for _, _, time in history)
    histories = [everybody[3]]
    for size, n_times in ((1, 1), (5, 3), (16, 6), (30, 30)):  # days apart, many at one time
        items = np.sort(rng.permutation(N_ITEMS)[:size])
        days = rng.integers(0, n_times, size)
        histories.append(
            [(int(i), rng.integers(1, 6) / 5, end - 86_400.0 * 9 * d)
             for i, d in zip(items, days, strict=True)]
        )  # fmt: skip
    rows = DatedRows.of(
        sparse.csr_array(
            (
                [value for history in histories for _, value, _ in history],
                [item for history in histories for item, _, _ in history],
                np.cumsum([0, *map(len, histories)]),
            ),
            shape=(len(histories), N_ITEMS),
        ),
        np.array([time for history in histories for _, _, time in history]),
    )
    expected = [twins(model, history, everybody) for history in histories]
    assert all(set(own) == set(FEATURES) for own in expected)
    for name in FEATURES:
        twin = np.array([own[name] for own in expected])
        np.testing.assert_allclose(features.of(name, rows), twin, atol=3e-4, err_msg=name)
    items = np.array([4, 7, 20])
    block = features.block(FEATURES, rows, items)
    assert np.array_equal(block[:, 2], features.of(FEATURES[2], rows)[:, items])


def test_scores_that_cannot_be_divided_by_say_nothing() -> None:
    tiny = np.array([[1e-42, 0.0, 3e-41], [1.0, 0.0, 5.0]], dtype=np.float32)
    found = log_shares(tiny, 3)
    assert np.allclose(found[0], np.log(0.01))
    np.testing.assert_allclose(found[1], naive_order.log_shares([1.0, 0.0, 5.0]), atol=1e-6)


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
    exact = DirectedCosines.of(DatedRows.of(model._history, model._times), np.arange(N_ITEMS))
    gained = order.cosines.spread(single) - model.order_.cosines.table  # that is rounded
    np.testing.assert_allclose(gained, fresh.table - exact.table, atol=1e-3)
    assert np.abs(gained).max() > 2e-3
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


def looking_back(model: OrderedChoice, history: sparse.csr_array) -> ordered._Trial:
    """The trial of a model that also sets aside, for some users, what came before."""
    rows, rng = DatedRows.of(history, model._times), np.random.default_rng(1)
    found = model._inner_trial(rows, 0.5, rng, FEATURES, looks_back=True)
    assert found is not None
    assert found.earlier is not None
    return found


def test_the_part_before_reaches_no_table_and_is_given_where_the_last_is_asked_for(
    model, monkeypatch
) -> None:
    monkeypatch.setattr(ordered, "EARLIER_PICKS", 0.04)
    history = model._history
    trial = looking_back(model, history)
    assert 20 <= trial.earlier.rows.size < trial.users.size
    given = set(zip(*trial.earlier.given.nonzero(), strict=True))
    last = set(zip(*trial.split.held.nonzero(), strict=True))
    row = np.repeat(np.arange(history.shape[0]), np.diff(history.indptr))
    pairs = list(zip(row, history.indices, strict=True))
    before = np.array([pair not in given and pair not in last for pair in pairs])
    assert before.sum() == trial.earlier.rows.size
    changed = history.copy()
    changed.data[before] = 1.2 - changed.data[before]
    again = looking_back(model, changed)
    of_some = {"ease": 1.0, "als_near": 1.0, "after": 1.0, "lag_0": 1.0, "sequence": 1.0}
    one, other = trial.earlier_lists(of_some), again.earlier_lists(of_some)
    assert np.array_equal(one.scores, other.scores)
    assert not np.array_equal(trial.block, again.block)
    newest = dict(zip(*trial.earlier.held.nonzero(), strict=True))
    for place in trial.looks_back:
        assert newest[trial.users[place]] in trial.rows.history[[place]].indices


def test_models_of_another_part_list_for_the_same_histories(model) -> None:
    dated, rng = DatedRows.of(model._history, model._times), np.random.default_rng(1)
    latest = OrderedChoice("latest", n_factors=4)
    latest.__dict__ |= {name: model.__dict__[name] for name in ("mixture_", "scale_", "_events")}
    half = latest._inner_trial(dated, 0.5, rng, FEATURES)
    part = latest._inner_trial(dated, 0.2, rng, FEATURES, half.features, looks_back=True)
    assert half.n_learnt < part.n_learnt < model._history.nnz
    weights = {"ease": 0.5, "after": 1.0, "month": 0.5}
    own, lists = part.lists(weights), half.lists_from(part.split, part.users, weights)
    again = part.lists_from(part.split, part.users, weights)
    np.testing.assert_allclose(again.scores, own.scores, atol=1e-5)
    assert np.array_equal(lists.counts, own.counts)
    assert not np.allclose(lists.scores[:, 0], own.scores[:, 0])
    for place in (0, 7, 30):
        user = part.users[[place]]
        given = DatedRows.taken(part.split.given, part.split.given_times, user)
        scores = half.features.weighted_sum(weights, given)[0, half.items]
        scores[np.isin(half.items, given.history.indices)] = -np.inf
        best = np.argsort(-scores)[:10]
        np.testing.assert_allclose(lists.scores[place, :10], scores[best], atol=1e-4)
        held = part.split.held[user].indices
        assert lists.hits[place] == np.isin(half.items[best], held).sum()


def test_lists_of_the_part_before_are_those_of_shorter_histories(model, monkeypatch) -> None:
    """By the weights that have not seen the user's picks, as for the last part."""
    monkeypatch.setattr(ordered, "EARLIER_PICKS", 0.04)
    monkeypatch.setattr(ordered, "CHOOSING_USERS", 70)
    trial = looking_back(model, model._history)
    weights = trial.logit()
    found, later = trial.earlier_lists(weights, crossed=True), trial.lists(weights, crossed=True)
    assert later.counts.size == trial.users.size > 70 == trial.held.shape[0]
    assert set(trial.users[trial.looks_back]) == set(trial.earlier.rows.tolist())
    assert set(range(70, trial.users.size)) < set(trial.looks_back.tolist())
    assert (trial.looks_back < 70).any()
    dated = DatedRows.of(model._history, model._times)
    for number, place in enumerate(trial.looks_back):
        user = trial.users[place]
        own = DatedRows.taken(dated.history, dated.times, np.array([user]))
        time = dict(zip(own.history.indices, own.times, strict=True))
        history = trial.earlier.given[[user]]
        (held,), (last,) = trial.earlier.held[[user]].indices, trial.split.held[[user]].indices
        assert {*history.indices, held, last} == set(own.history.indices)
        times = np.array([time[item] for item in history.indices])
        assert times.max() <= time[held] <= time[last]
        used = trial.halves[place % 2] if place < 70 else weights
        scores = trial.features.weighted_sum(used, DatedRows.of(history, times))
        scores = scores[0, trial.items]
        scores[np.isin(trial.items, history.indices)] = -np.inf
        order = np.argsort(-scores)
        np.testing.assert_allclose(found.scores[number, :10], scores[order[:10]], rtol=1e-4)
        assert found.hits[number] == (held in trial.items[order[:10]])
        assert found.counts[number] == times.size
        assert later.counts[place] == times.size + 1


def trial_of(model: OrderedChoice, frame: pd.DataFrame) -> ordered._Trial:
    """The trial of a model for the next pick, on other ratings of the same users and items."""
    ratings = Ratings.from_frame(frame, scale=SCALE)
    assert np.array_equal(ratings.user_ids, model.user_ids_)
    assert np.array_equal(ratings.item_ids, model.item_ids_)
    history = histories(ratings)
    rows = DatedRows.of(history, entry_times(ratings, history))
    found = model._inner_trial(rows, 0.5, np.random.default_rng(1), FEATURES)
    assert found is not None
    return found


def test_neither_the_item_nor_the_time_of_what_is_set_aside_reaches_a_feature(model) -> None:
    frame = FRAME.assign(timestamp=1_000_000 + 60 * np.arange(len(FRAME)))
    last = frame.groupby("user").tail(1).index
    seen = frame.groupby("user")["item"].agg(set)
    other, rng = frame.copy(), np.random.default_rng(0)
    for row in last:
        unseen = sorted(set(range(N_ITEMS)) - seen[frame.at[row, "user"]])
        other.at[row, "item"] = rng.choice(unseen)
    other.loc[last, "rating"] = 6 - other.loc[last, "rating"]
    other.loc[last, "timestamp"] += 31
    trial, again = trial_of(model, frame), trial_of(model, other)
    assert np.array_equal(trial.block, again.block)
    assert np.array_equal(trial.allowed, again.allowed)
    assert trial.held.nnz == again.held.nnz == len(last)
    assert not np.array_equal(trial.held.indices, again.held.indices)


def test_an_order_by_chance_gets_hardly_any_weight(monkeypatch) -> None:
    frame, found = walks(seed=4, n_users=400), []
    rng = np.random.default_rng(7)
    by_chance = frame.groupby("user")["timestamp"].transform(
        lambda own: rng.permutation(own.to_numpy())
    )
    for times in (frame["timestamp"], by_chance):
        ratings = Ratings.from_frame(frame.assign(timestamp=times), scale=SCALE)
        model = OrderedChoice("next", n_factors=4).fit(ratings)
        history = histories(ratings)
        rows = DatedRows.of(history, entry_times(ratings, history))
        trial = model._inner_trial(rows, 0.5, np.random.default_rng(1), FEATURES)
        found.append((model, trial))
    (first, true), (second, chance) = found
    assert first.chosen_.name != "mixture"
    assert second.chosen_.name == "mixture"
    # the same histories, in another order: what forgets the order scores them alike
    assert np.array_equal(first.mixture_.als_.item_factors_, second.mixture_.als_.item_factors_)
    rows = DatedRows.of(first._history, first._times)
    turned = DatedRows.of(second._history, second._times)
    block, other = (true.features.block(FEATURES, own, true.items) for own in (rows, turned))
    order_free = [FEATURES.index(name) for name in ("ease", "als", "popularity")]
    assert np.array_equal(block[:, order_free], other[:, order_free])
    assert not np.array_equal(block[:, FEATURES.index("after")], other[:, FEATURES.index("after")])
    # what pairs of items say without an order is in the tables, too: weighed is what a score
    # changes by if a history is turned round, relative to what scores differ by
    monkeypatch.setattr(ordered, "CONFIDENCE", 1.0)  # as many more users would say
    effects = []
    for trial in (true, chance):
        backwards = DatedRows.of(trial.rows.history, 2e9 - trial.rows.times)
        weights = trial.logit()
        scores, turned = (
            trial.features.weighted_sum(weights, own) for own in (trial.rows, backwards)
        )
        effects.append(np.std(scores - turned) / np.std(scores))
    assert effects[0] > 1.0
    assert effects[1] < 0.25 * effects[0]


def test_calibration_asks_weights_that_have_not_seen_the_picks(model) -> None:
    trial = model._inner_trial(
        DatedRows.of(model._history, model._times), 0.5, np.random.default_rng(1), FEATURES
    )
    crossed, halves = trial.lists({}, crossed=True), trial.halves
    first = np.arange(len(trial.allowed)) % 2 == 0
    for half, weights in zip((first, ~first), halves, strict=True):
        own = trial.lists(weights)
        assert np.array_equal(crossed.scores[half, :20], own.scores[half, :20])
    del trial.__dict__["halves"]
    turned = trial.targets.toarray()
    turned[first] = np.roll(turned[first], 1, axis=0)
    turned[first] *= trial.allowed[first]
    turned[first] /= np.maximum(turned[first].sum(axis=1, keepdims=True), 1e-300)
    trial.targets = sparse.csr_array(turned)
    assert trial.halves[0] == halves[0]
    assert trial.halves[1] != halves[1]


def test_a_trial_lists_the_items_that_have_weights() -> None:
    rare = pd.DataFrame({"user": [0, 1, 2, 3], "item": [-3, -3, -1, 17_000], "rating": 5,
                         "timestamp": 5})  # fmt: skip
    frame = pd.concat([walks(n_users=90), rare])
    ratings = Ratings.from_frame(frame.assign(item=frame["item"] * 3), scale=SCALE)
    wide = [pd.DataFrame({"user": np.arange(50), "item": 1_000 + k, "rating": 3,
                          "timestamp": 10**9 + k}) for k in range(20)]  # fmt: skip
    ratings = Ratings.from_frame(pd.concat([ratings.to_frame(), *wide]), scale=SCALE)
    model = OrderedChoice("next", n_factors=4).fit(ratings)
    history = histories(ratings)
    rows = DatedRows.of(history, entry_times(ratings, history))
    trial = model._inner_trial(rows, 0.5, np.random.default_rng(1), FEATURES)
    assert 50 <= trial.items.size < history.shape[1]
    assert trial.items[0] > 0
    weights = ordered.SHORT
    whole = trial.features.weighted_sum(weights, trial.rows)
    hidden = np.ones(whole.shape, dtype=bool)
    hidden[:, trial.items] = False
    own = trial.rows.history
    hidden[np.repeat(np.arange(own.shape[0]), np.diff(own.indptr)), own.indices] = True
    whole[hidden] = -np.inf
    expected = trial.measure(best_columns(whole.astype(np.float32), trial.depth))
    np.testing.assert_allclose(trial._quality(trial._summed(weights)), expected, atol=1e-12)


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
