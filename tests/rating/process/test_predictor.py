"""`ProcessPredictor`: its face, its corner cases, and that nothing leaks."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from support.two_taste_ratings import entropy, ids, log_loss, parts, two_taste_ratings

from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError, DataError
from ordrec.rating.process.kernel.weights import DEFAULTS, Layout
from ordrec.rating.process.model import ProcessPredictor
from ordrec.rating.process.preparation import (
    Preparation,
    SideFeatures,
    memory_needed,
    memory_parts,
    prepare,
)
from ordrec.rating.process.solve.covariance import Covariance
from ordrec.rating.units import Units


@pytest.fixture(scope="module")
def fitted() -> dict[str, ProcessPredictor]:
    train, _ = parts(two_taste_ratings())
    return {
        "full": ProcessPredictor(learn="defaults", decision="median").fit(train),
        "fast": ProcessPredictor(preset="fast", decision="median").fit(train),
    }


PRESETS = ["full", "fast"]


@pytest.mark.parametrize("preset", PRESETS)
def test_it_predicts(fitted, preset: str) -> None:
    train, test = parts(two_taste_ratings())
    model = fitted[preset]
    p = model.predict_proba(*ids(test))
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    assert log_loss(model, test) < entropy(train, test) - 0.15
    assert set(model.predict(*ids(test))) <= set(test.scale.values)
    error = np.abs(p @ test.scale.values - test.values).mean()
    assert error < 0.85 * np.abs(test.values - np.median(train.values)).mean()


@pytest.mark.parametrize("preset", PRESETS)
def test_batch_equals_single(fitted, preset: str) -> None:
    _, test = parts(two_taste_ratings())
    users, items = ids(test)
    whole = fitted[preset].predict_proba(users, items)
    for k in (0, 7, 30):
        one = fitted[preset].predict_proba(users[k : k + 1], items[k : k + 1])
        assert np.allclose(whole[k], one[0], atol=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
def test_unknown_users_and_items_are_flagged_and_get_sensible_predictions(fitted, preset) -> None:
    model = fitted[preset]
    users, items = [100, -1, 100, -1], [500, 500, -7, -7]
    known_users, known_items = model._known(users, items)
    assert known_users.tolist() == [True, False, True, False]
    assert known_items.tolist() == [True, True, False, False]
    p = model.predict_proba(users, items)
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1.0)
    assert set(model.predict(users, items)) <= {1, 2, 3, 4, 5}
    expected = model.predict_proba([-1] * 30, range(500, 530)) @ model.scale_.values
    train, _ = parts(two_taste_ratings())
    mean = np.bincount(train.items, train.values) / np.maximum(train.item_counts, 1)
    assert np.corrcoef(expected, mean)[0, 1] > 0.9  # the pooled model knows the items


@pytest.mark.parametrize("preset", PRESETS)
def test_explanations_add_up(fitted, preset: str) -> None:
    model = fitted[preset]
    for user, item in ((100, 500), (105, 510), (-1, 503), (101, -1)):
        explained = model.explain(user, item)
        pairs = model._resolve([user], [item], None)
        score = model.units_.outward(model._scores(pairs))[0]
        assert explained.score == pytest.approx(score, abs=1e-6)
        assert explained.table["contribution"].sum() == pytest.approx(score, abs=1e-6)
        assert explained.components.sum() == pytest.approx(score, abs=1e-6)
    assert "because you gave" in str(model.explain(100, 500))


@pytest.mark.parametrize("preset", PRESETS)
def test_fold_in_is_close_to_training_with_the_user(preset: str) -> None:
    ratings = two_taste_ratings(2, n_users=60)
    train, test = parts(ratings)
    newcomer = train.users == 17
    without = ProcessPredictor(preset=preset, learn="defaults").fit(train.select(~newcomer))
    folded = without.fold_in(train.select(newcomer))
    retrained = ProcessPredictor(preset=preset, learn="defaults").fit(train)
    items = ratings.item_ids
    users = np.repeat(ratings.user_ids[17], len(items))
    values = ratings.scale.values
    a, b, before = (m.predict_proba(users, items) @ values for m in (folded, retrained, without))
    assert np.abs(a - b).mean() < 0.12  # the stated tolerance, in stars
    assert np.abs(a - b).mean() < 0.5 * np.abs(before - b).mean()
    # nobody else changes
    assert np.array_equal(
        folded.predict_proba(*ids(test)[:1], ids(test)[1])[test.users != 17],
        without.predict_proba(*ids(test))[test.users != 17],
    )


@pytest.mark.parametrize(
    ("preset", "refit", "most"), [("full", True, 0.1), ("full", False, 0.03), ("fast", False, 1e-5)]
)
def test_folding_in_a_known_user_again_changes_little(preset, refit, most) -> None:
    train, _ = parts(two_taste_ratings())
    model = ProcessPredictor(preset=preset, learn="defaults", refit=refit).fit(train)
    again = model.fold_in(train.select(train.users == 5))
    users, items = np.repeat(105, 30), np.arange(500, 530)
    before, after = (m._scores(m._resolve(users, items, None)) for m in (model, again))
    assert np.abs(before - after).mean() < most  # a refit draws thresholds without each rating
    explained = again.explain(105, 507)
    score = again._scores(again._resolve([105], [507], None))
    assert explained.score == pytest.approx(again.units_.outward(score)[0], abs=1e-6)


def test_update_moves_the_prediction_towards_the_rating(fitted) -> None:
    model = fitted["full"]
    train, _ = parts(two_taste_ratings())
    expected = pd.Series(model.predict_proba([107] * 30, range(500, 530)) @ train.scale.values)
    item = 500 + int(expected.idxmin())
    before = model.predict_proba([107], [item]) @ train.scale.values
    after = model.update(107, item, 5.0)
    assert (after.predict_proba([107], [item]) @ train.scale.values) > before
    assert (model.predict_proba([107], [item]) @ train.scale.values) == before
    one_by_one = model.update("newcomer", item, 5.0).update("newcomer", 501, 4.0, 12_000)
    at_once = model.update(["newcomer"] * 2, [item, 501], [5.0, 4.0], [0, 12_000])
    for fresh in (one_by_one, at_once):
        assert fresh._known(["newcomer"], [502])[0].all()
    pairs = ["newcomer"] * 30, range(500, 530)
    assert np.array_equal(one_by_one.predict_proba(*pairs), at_once.predict_proba(*pairs))
    with pytest.raises(ArgumentError, match="must pair up"):
        model.update("newcomer", [item, 501], 5.0)


def left_out_correlation(model: ProcessPredictor) -> float:
    """Of leave-one-out scores with their ratings; leaking ones are correlated with any ratings."""
    return float(np.corrcoef(model.process_.left_out, model.process_.data.y)[0, 1])


def test_permuted_targets_cannot_be_predicted() -> None:
    train, test = parts(two_taste_ratings(4))
    rng = np.random.default_rng(0)
    frame = train.to_frame()
    frame["rating"] = rng.permutation(frame["rating"])
    shuffled = Ratings.from_frame(frame, scale=train.scale)
    for preset in PRESETS:
        model = ProcessPredictor(preset=preset, learn="defaults").fit(shuffled)
        assert log_loss(model, test) > entropy(shuffled, test) - 0.03
        assert left_out_correlation(model) < 0.1  # two deviations of what chance gives
        honest = ProcessPredictor(preset=preset, learn="defaults").fit(train)
        assert left_out_correlation(honest) > 0.4


def test_numbers_do_not_depend_on_n_jobs() -> None:
    train, test = parts(two_taste_ratings(5, dated=True))
    models = [ProcessPredictor(max_iter=2, n_jobs=n).fit(train) for n in (1, 3)]
    p = [model.predict_proba(*ids(test), test.timestamps) for model in models]
    assert np.array_equal(p[0], p[1])
    assert models[0].weights_ == models[1].weights_
    assert len(models[0].hold_out_rmse_) >= 2
    assert min(models[0].hold_out_rmse_) <= models[0].hold_out_rmse_[0]


def test_refit_under_the_ordinal_likelihood() -> None:
    train, test = parts(two_taste_ratings(6))
    plain = ProcessPredictor(learn="defaults", refit=False).fit(train)
    refit = ProcessPredictor(learn="defaults").fit(train)
    assert log_loss(refit, test) < log_loss(plain, test) + 0.03
    assert not np.array_equal(refit.process_.a, plain.process_.a)


def test_decisions() -> None:
    train, test = parts(two_taste_ratings(7))
    model = ProcessPredictor(preset="fast").fit(train)
    p = model.predict_proba(*ids(test))
    model.decision = "mode"
    assert np.array_equal(model.predict(*ids(test)), test.scale.values[p.argmax(axis=1)])
    model.decision = "mean"
    assert np.allclose(model.predict(*ids(test)), p @ test.scale.values)
    model.decision = 1.0 - np.eye(5)
    assert np.array_equal(model.predict(*ids(test)), test.scale.values[p.argmax(axis=1)])


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("scale", [Scale.regular(0.5, 5, 0.5), Scale([0, 1]), Scale([-1, 0, 7])])
def test_any_scale(preset: str, scale: Scale) -> None:
    train, test = parts(two_taste_ratings(8, scale=scale))
    model = ProcessPredictor(preset=preset, learn="defaults", decision="median").fit(train)
    assert model.predict_proba(*ids(test)).shape == (test.n_ratings, scale.n_ranks)
    assert set(model.predict(*ids(test))) <= set(scale.values)
    assert log_loss(model, test) < entropy(train, test)


@pytest.mark.parametrize("preset", PRESETS)
def test_corner_cases(preset: str) -> None:
    """One rating a user, constant raters, items seen once, a user without any rating."""
    ratings = two_taste_ratings(9, n_users=20, n_items=15)
    frame = ratings.to_frame()
    extra = pd.DataFrame(
        {
            "user": [900, *[901] * 10, 902],
            "item": [500, *range(500, 510), 999],
            "rating": [1.0, *[5.0] * 10, 3.0],
        }
    )
    whole = Ratings.from_frame(pd.concat([frame, extra]), scale=ratings.scale)
    train = whole.select(whole.user_ids.take(whole.users) != 902)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = ProcessPredictor(preset=preset, max_iter=1).fit(train)
        p = model.predict_proba([900, 901, 901, 902, 105], [503, 512, 501, 501, 999])
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1.0)
    assert p[1] @ ratings.scale.values > p[0] @ ratings.scale.values
    assert not np.any(model._known([902], [999]))


@pytest.mark.parametrize("preset", PRESETS)
def test_everybody_rated_everything(preset: str) -> None:
    """The logarithms of equal counts have a spread of rounding errors, which is none."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"user": np.repeat(np.arange(5), 3), "item": np.tile(np.arange(3), 5)})
    frame["rating"] = rng.integers(1, 6, 15)
    model = ProcessPredictor(preset=preset, learn="defaults")
    p = model.fit(Ratings.from_frame(frame, scale=range(1, 6))).predict_proba([0, 1, 9], [0, 2, 1])
    assert np.allclose(p.sum(axis=1), 1.0)
    assert (p > 0).all()


def test_all_ratings_equal() -> None:
    frame = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2], "rating": 4.0})
    for preset in PRESETS:
        model = ProcessPredictor(preset=preset, decision="median")
        model.fit(Ratings.from_frame(frame, scale=range(1, 6)))
        assert model.predict([1, 9], [3, 9]).tolist() == [4.0, 4.0]


def test_times() -> None:
    dated, _ = parts(two_taste_ratings(10, dated=True))
    zero = dated._replaced(timestamps=np.zeros(dated.n_ratings))
    users, items = ids(dated)
    plain = ProcessPredictor(preset="fast").fit(dated.without_timestamps())
    zeros = ProcessPredictor(preset="fast").fit(zero)
    assert np.array_equal(plain.predict_proba(users, items), zeros.predict_proba(users, items))
    timed = ProcessPredictor(preset="fast").fit(dated)
    assert any(name.startswith("item.time") for name in timed.weights_)
    when = np.asarray(dated.timestamps)
    assert not np.allclose(
        timed.predict_proba(users, items, when), timed.predict_proba(users, items)
    )
    scores = [model.process_.scores(dated.users, dated.items) for model in (timed, plain)]
    assert np.allclose(*scores)  # who does not say when is answered as if there were no times
    some = np.where(np.arange(when.size) % 2, when, 0)
    mixed = timed.predict_proba(users, items, some)
    assert np.allclose(mixed[1::2], timed.predict_proba(users[1::2], items[1::2], when[1::2]))
    assert np.allclose(mixed[::2], timed.predict_proba(users[::2], items[::2]))
    with pytest.raises(ArgumentError, match="no times"):
        ProcessPredictor(use_time=True).fit(zero)
    with pytest.raises(ArgumentError, match="pair up"):
        timed.predict_proba(users, items, [1])


def test_memory_is_estimated_and_held_to_its_limit() -> None:
    train, _ = parts(two_taste_ratings(12))
    both = memory_needed(train, SideFeatures.of(train), Preparation())
    one = memory_needed(train, SideFeatures.of(train), Preparation(two_sided=False))
    assert 0 < one < both
    data = prepare(train, SideFeatures.of(train), Units(0.0, 1.0), Preparation(), 0)
    K = Covariance(data, Layout.choose(data, (), None, DEFAULTS).start(DEFAULTS))
    kept, solving = memory_parts(train, SideFeatures.of(train), Preparation())
    pairs = data.item_side.pairs.nbytes + data.user_side.pairs.nbytes
    blocks = K.item_blocks.numbers.nbytes + K.user_blocks.numbers.nbytes
    assert pairs < 1e9 * kept < 3 * pairs + 1000 * train.n_ratings
    assert blocks < 1e9 * solving < 2 * blocks + 600 * train.n_ratings
    assert both == kept + solving
    with pytest.warns(UserWarning, match='fitted as preset="fast"'):
        model = ProcessPredictor(max_memory=(one + both) / 2).fit(train)
    assert not model.process_.data.two_sided
    users, items = ids(train)
    fast = ProcessPredictor(preset="fast").fit(train)
    assert np.array_equal(model.predict_proba(users, items), fast.predict_proba(users, items))
    with pytest.raises(DataError, match="max_memory"):
        ProcessPredictor(max_memory=one / 2).fit(train)


def test_components_can_be_chosen() -> None:
    train, _ = parts(two_taste_ratings(11))
    model = ProcessPredictor(components=["item.constant", "user.constant"], learn="defaults")
    model.fit(train)
    assert set(model.weights_) == {"item.constant", "user.constant"}
    with pytest.raises(ArgumentError, match=r"item\.magic"):
        ProcessPredictor(components=["item.magic"]).fit(train)


def test_wrong_parameters_are_refused() -> None:
    train, _ = parts(two_taste_ratings(12))
    for params in ({"preset": "slow"}, {"learn": "no"}, {"use_time": "yes"}, {"max_iter": 0}):
        with pytest.raises(ArgumentError):
            ProcessPredictor(**params).fit(train)


def test_calibration_and_coverage() -> None:
    """Of what the model gives 80 % or more, at least about 80 % comes true; so for medians."""
    train, test = parts(two_taste_ratings(13, n_users=150, n_items=60, share=0.4))
    p = ProcessPredictor(preset="fast").fit(train).predict_proba(*ids(test))
    cumulative = np.cumsum(p, axis=1)
    rows = np.arange(test.n_ratings)
    upper, lower = (
        cumulative[rows, test.levels],
        cumulative[rows, test.levels] - p[rows, test.levels],
    )
    middle = lower + np.random.default_rng(0).random(rows.size) * (upper - lower)
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):  # randomised ranks of the truth are uniform
        assert abs((middle < share).mean() - share) < 0.05
