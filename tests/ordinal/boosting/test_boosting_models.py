"""ORBoost and RankBoostAE as scikit-learn estimators."""

from __future__ import annotations

from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import naive_boosting
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from ordrec.ordinal.boosting import ORBoost, PerceptronRCD, RankBoostAE, SigmoidRCD
from ordrec.ordinal.boosting.ensemble import EarlyStopping, hold_out
from ordrec.ordinal.boosting.stump import StumpSearch

QUICK = SigmoidRCD(n_iter=20)
MODELS = [
    ORBoost(base="stump", n_estimators=30),
    ORBoost("immediate", base="stump", n_estimators=30),
    RankBoostAE(base="stump", n_estimators=30),
    ORBoost(base=PerceptronRCD(20), n_estimators=15, random_state=0),
    ORBoost("immediate", base=QUICK, n_estimators=15, random_state=0),
    RankBoostAE(base=QUICK, n_estimators=15, random_state=0),
]
UNORDERED = "labels that are strings have no order unless classes= declares one"


@parametrize_with_checks(
    [MODELS[0], MODELS[4], MODELS[5]],
    expected_failed_checks=lambda model: {"check_classifiers_classes": UNORDERED},
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=300)
    return X, np.searchsorted(np.quantile(f, [0.2, 0.4, 0.6, 0.8]), f) + 1


@pytest.mark.parametrize("left_right", [True, False])
def test_rounds_against_loops_over_samples_and_thresholds(left_right, ratings):
    X, y = ratings[0][:40], ratings[1][:40] - 1
    y[:5] = np.arange(5)
    model = ORBoost("immediate" if left_right else "all", base="stump", n_estimators=6)
    ensemble = model.fit(X, y).ensemble_
    H, one = np.zeros(40), np.ones(40)
    for t, member in enumerate(ensemble.members):
        theta = ensemble.thresholds[t]
        before = naive_boosting.margin_loss(H, theta, y, one, left_right)
        assert np.exp(ensemble.log_losses[t]) == pytest.approx(before)
        g = np.array(
            [
                sum(
                    np.exp(H[i] - theta[k]) if y[i] <= k else -np.exp(theta[k] - H[i])
                    for k in range(4)
                    if not left_right or k in (y[i] - 1, y[i])
                )
                for i in range(40)
            ]
        )
        h = member(X)
        assert g @ h == pytest.approx(naive_boosting.best_stump(X, g))
        tries = ensemble.alpha[t] + np.array([-0.01, 0.0, 0.01])
        values = [naive_boosting.margin_loss(H + a * h, theta, y, one, left_right) for a in tries]
        assert values[1] == min(values)
        H = H + ensemble.alpha[t] * h
        above = np.exp(H)
        reach = (lambda j, k: j == k) if left_right else (lambda j, k: j <= k)
        B = np.array([above[[reach(j, k) for j in y]].sum() for k in range(4)])
        flip = (lambda j, k: j == k + 1) if left_right else (lambda j, k: j > k)
        A = np.array([(1 / above)[[flip(j, k) for j in y]].sum() for k in range(4)])
        np.testing.assert_allclose(
            ensemble.thresholds[t + 1], naive_boosting.ordered_thresholds(A, B), atol=1e-9
        )


def test_rankboost_loss_is_that_of_all_pairs(ratings):
    X, y = ratings[0][:40], ratings[1][:40]
    model = RankBoostAE(base=QUICK, n_estimators=8, random_state=0).fit(X, y)
    for H, log_loss in zip(
        model.ensemble_.staged_latent(X), model.ensemble_.log_losses[1:], strict=True
    ):
        assert np.exp(log_loss) == pytest.approx(naive_boosting.pair_loss(H, y, np.ones(40)))


def test_rankboost_thresholds_make_the_fewest_mistakes_if_asked_to(ratings):
    X, y = ratings[0][:60], ratings[1][:60]
    absolute, fewest = (
        RankBoostAE("stump", n_estimators=3, criterion=criterion).fit(X, y)
        for criterion in ("absolute", "mistakes")
    )
    H = fewest.predict_latent(X)
    np.testing.assert_allclose(H, absolute.predict_latent(X))  # the scores are the same
    candidates = np.concatenate([[-np.inf], (np.unique(H)[1:] + np.unique(H)[:-1]) / 2, [np.inf]])
    least = min(
        np.mean(fewest.classes_[np.searchsorted(np.array(cuts), H, side="right")] != y)
        for cuts in combinations_with_replacement(candidates, len(fewest.thresholds_))
    )
    assert np.mean(fewest.predict(X) != y) == pytest.approx(least)
    assert np.mean(absolute.predict(X) != y) >= least
    with pytest.raises(ValueError, match='criterion must be "absolute" or "mistakes"'):
        RankBoostAE(criterion="squares").fit(X, y)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from(range(4)))
def test_no_round_of_binary_members_raises_the_loss(seed, which):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 2)), rng.integers(0, 4, 30)
    y[:4] = np.arange(4)
    ensemble = clone(MODELS[which]).fit(X, y).ensemble_
    assert (np.diff(ensemble.log_losses) <= 1e-10).all()


@pytest.mark.parametrize("threshold", ["all", "immediate"])
def test_two_ranks_are_adaboost_with_a_constant_member(threshold, ratings):
    X, y = ratings
    labels = np.where(y > 3, 1.0, -1.0)

    def weak(X, g):
        return StumpSearch().prepare(X, np.ones(len(X)), np.random.default_rng(0)).train(g)(X)

    H, constant = naive_boosting.adaboost_with_constant(X, labels, 25, weak)
    model = ORBoost(threshold, base="stump", n_estimators=25).fit(X, labels)
    np.testing.assert_allclose(model.predict_latent(X), H, atol=1e-8)
    np.testing.assert_allclose(model.thresholds_, [constant], atol=1e-8)


@pytest.mark.parametrize("model", [ORBoost(), ORBoost("immediate"), RankBoostAE()], ids=str)
@pytest.mark.parametrize(
    "base", ["stump", PerceptronRCD(3), SigmoidRCD(4.0, 3)], ids=["stump", "perceptron", "sigmoid"]
)
def test_two_thousand_rounds_on_separable_data_stay_finite(model, base):
    X = np.linspace(-1, 1, 40)[:, None]
    y = np.repeat(np.arange(4), 10)
    with np.errstate(over="raise", invalid="raise"):
        model = clone(model).set_params(base=base, random_state=0).fit(X, y)
    assert model.n_estimators_ == 2000
    assert np.isfinite(model.ensemble_.alpha).all()
    assert np.isfinite(model.ensemble_.thresholds).all()
    assert np.isfinite(model.ensemble_.log_losses).all()
    assert (model.predict(X) == y).mean() > 0.9


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_thresholds_are_ordered_after_every_round(model, ratings):
    model = clone(model).fit(*ratings)
    assert (np.diff(model.ensemble_.thresholds, axis=1) >= 0).all()
    assert (np.diff(model.thresholds_) >= 0).all()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_staged_predict_ends_with_predict_and_prefixes_are_shorter_runs(model, ratings):
    X, y = ratings
    model = clone(model).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == model.n_estimators_
    assert (stages[-1] == model.predict(X)).all()
    short = clone(model).set_params(n_estimators=5).fit(X, y)
    assert (stages[4] == short.predict(X)).all()


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_learns_better_than_the_middle_rank(model, ratings):
    X, y = ratings
    error = np.abs(clone(model).fit(X[:200], y[:200]).predict(X[200:]) - y[200:]).mean()
    assert error < 0.8 * np.abs(3 - y[200:]).mean()


def test_permuted_labels_predict_nothing(ratings):
    X, y = ratings

    def correlation(y: np.ndarray) -> float:
        latent = clone(MODELS[4]).fit(X[:150], y[:150]).predict_latent(X[150:])
        return abs(float(np.corrcoef(latent, y[150:])[0, 1]))

    rng = np.random.default_rng(9)
    assert np.mean([correlation(rng.permutation(y)) for _ in range(4)]) < 0.12
    assert correlation(y) > 0.5


def test_early_stopping_keeps_the_best_round(ratings):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    y = rng.integers(0, 3, 200) + (X[:, 0] > 0)
    for model in (ORBoost(base="stump"), ORBoost("immediate", "stump"), RankBoostAE("stump")):
        model.set_params(n_estimators=500, n_iter_no_change=10, random_state=1)
        stopped = model.fit(X, y)
        assert 1 <= stopped.n_estimators_ < 490
        assert len(stopped.ensemble_.members) == len(stopped.ensemble_.alpha)
        assert len(list(stopped.staged_predict(X))) == stopped.n_estimators_


def test_every_rank_keeps_a_training_row():
    rows, ranks = np.arange(7), np.array([0, 1, 1, 2, 2, 2, 2])
    train, held = hold_out(rows, ranks, 0.99, np.random.default_rng(0))
    assert np.bincount(ranks[train]).tolist() == [1, 1, 1]
    assert sorted([*train, *held]) == rows.tolist()
    _, few = hold_out(rows, ranks, 0.01, np.random.default_rng(0))
    assert np.bincount(ranks[few]).tolist() == [0, 1, 1]  # of each rank one, if it has two


def test_patience_counts_rounds_without_a_lower_error():
    X, ranks = np.array([[-1.0], [1.0]]), np.array([0, 1])
    scale = SimpleNamespace(scale=np.array([0, 1]))
    stopping = EarlyStopping(X, ranks, np.ones(2), scale, "all", patience=3)

    def member(sign: float) -> bool:
        return stopping(lambda X: X[:, 0], sign, np.zeros(1))

    assert member(-1.0)  # both wrong
    assert member(2.0)  # both right
    assert [member(0.0), member(0.0), member(0.0)] == [True, True, False]  # no better than that
    assert (stopping.best_round, stopping.best_error) == (2, 0.0)


def test_early_stopping_needs_something_to_hold_out():
    with pytest.raises(ValueError, match="at least two samples of some class"):
        ORBoost(base="stump", n_iter_no_change=2).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("model", [MODELS[0], MODELS[2], MODELS[4]], ids=str)
def test_calibrated_probabilities(model, ratings):
    X, y = ratings
    model = clone(model).set_params(probability=True).fit(X[:200], y[:200])
    p = model.predict_proba(X[200:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    truth = -np.log(p[np.arange(100), y[200:] - 1]).mean()
    assert truth < np.log(5) - 0.1
    plain = clone(model).set_params(probability=False).fit(X, y)
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError) as raised:
        plain.predict_proba(X)
    assert "needs probability=True" in str(raised.value)


def test_normalised_margins_and_errors(ratings):
    X, y = ratings
    for model in (MODELS[0], MODELS[1], MODELS[5]):
        model = clone(model).fit(X, y)
        margins = model.normalised_margins(X, y)
        predicted = model.predict(X)
        assert margins.values.shape == (300, 4)
        assert np.abs(margins.values).max() <= 1
        assert margins.absolute_error() == pytest.approx(np.abs(predicted - y).mean())
        assert margins.classification_error() == pytest.approx((predicted != y).mean())
        for delta in (0.0, 0.05, 0.3):  # (1)
            half = 0.5 * margins.classification_error(delta)
            assert half <= margins.boundary_error(delta) <= margins.classification_error(delta)
        terms = margins.bound(0.1, vc_dimension=4)
        assert terms["absolute_complexity"] == pytest.approx(5 * terms["boundary_complexity"])
        assert terms["absolute_error"] == margins.absolute_error(0.1)
        more = margins.bound(0.2, vc_dimension=4)
        assert more["boundary_error"] >= terms["boundary_error"]
        assert more["boundary_complexity"] < terms["boundary_complexity"]


def test_bound_terms_by_hand(ratings):
    X, y = ratings
    terms = clone(MODELS[0]).fit(X, y).normalised_margins(X, y).bound(0.5, 4, confidence=0.9)
    d = 4 + 5 - 1
    expected = np.sqrt(d * np.log(300 / d) ** 2 / 0.25 + np.log(1 / 0.1)) / np.sqrt(300)
    assert terms["boundary_complexity"] == pytest.approx(expected)


def test_margins_explain_bad_arguments(ratings):
    X, y = ratings
    model = clone(MODELS[0]).fit(X, y)
    with pytest.raises(ValueError, match="which did not occur in training"):
        model.normalised_margins(X, y + 7)
    for delta, confidence in ((0.0, 0.9), (0.1, 1.0)):
        with pytest.raises(ValueError, match="the bound needs"):
            model.normalised_margins(X, y).bound(delta, 4, confidence)


@pytest.mark.parametrize("model", MODELS[:3], ids=str)
def test_a_weight_is_a_number_of_copies(model, ratings):
    X, y = ratings[0][:60], ratings[1][:60]
    copies = np.arange(60) % 3
    weighted = clone(model).fit(X, y, sample_weight=copies)
    repeated = clone(model).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
    np.testing.assert_allclose(weighted.predict_latent(X), repeated.predict_latent(X), atol=1e-7)
    np.testing.assert_allclose(weighted.thresholds_, repeated.thresholds_, atol=1e-7)


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("absent", [1, 3, 5, (1, 2), (4, 5)])
def test_declared_classes_without_samples_keep_their_rank(model, absent, ratings):
    X, y = ratings
    keep = ~np.isin(y, absent)
    model = clone(model).set_params(classes=[1, 2, 3, 4, 5]).fit(X[keep], y[keep])
    assert np.isfinite(model.thresholds_).all()
    assert (np.diff(model.thresholds_) >= 0).all()
    assert model.thresholds_.size == 4
    assert np.isin(model.predict(X[keep]), absent).mean() < 0.05
    assert (list(model.staged_predict(X))[-1] == model.predict(X)).all()


def test_any_classifier_with_weights_is_a_base(ratings):
    X, y = ratings
    for base in (DecisionTreeClassifier(max_depth=2), LogisticRegression()):
        model = ORBoost(base=base, n_estimators=10, random_state=0).fit(X, y)
        assert (np.diff(model.ensemble_.log_losses) <= 1e-10).all()
        assert np.abs(model.predict(X) - y).mean() < 0.9
    with pytest.raises(ValueError, match="takes no sample_weight"):
        ORBoost(base=KNeighborsClassifier()).fit(X, y)


def test_depth_one_trees_are_the_stumps(ratings):
    X, y = ratings
    ours = ORBoost(base="stump", n_estimators=10).fit(X, y)
    theirs = ORBoost(base=DecisionTreeClassifier(max_depth=1), n_estimators=10, random_state=0)
    theirs.fit(X, y)
    # trees split by impurity, stumps by error: close, not equal
    assert abs(ours.ensemble_.log_losses[-1] - theirs.ensemble_.log_losses[-1]) < 0.1


def test_same_seed_same_ensemble_and_sparse_input_is_dense_input(ratings):
    X, y = ratings
    for model in (MODELS[3], MODELS[4]):
        first = clone(model).fit(X, y).predict_latent(X)
        assert (clone(model).fit(X, y).predict_latent(X) == first).all()
        thin = clone(model).fit(sparse.csr_matrix(X), y)
        np.testing.assert_allclose(thin.predict_latent(sparse.csr_matrix(X)), first)
        other = clone(model).set_params(random_state=1).fit(X, y).predict_latent(X)
        assert (other != first).any()


def test_bad_parameters_are_explained(ratings):
    X, y = ratings
    for options, message in [
        ({"threshold": "both"}, 'threshold must be "all" or "immediate"'),
        ({"base": "forest"}, 'base must be "sigmoid"'),
        ({"base": 3}, 'base must be "sigmoid"'),
        ({"n_estimators": 0}, "n_estimators must be at least 1"),
        ({"gamma": -1.0}, "gamma must be a positive number"),
        ({"n_iter_no_change": 0}, "n_iter_no_change"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
    ]:
        with pytest.raises(ValueError, match=message):
            ORBoost(**options).fit(X, y)
