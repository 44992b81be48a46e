"""Each baseline against a plain implementation of its method."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from contracts.ordinal_contract import ordered_sample
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import _sigmoid_calibration as sigmoid_of_scikit_learn
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.svm import SVC, SVR

from ordrec.kernels import Gaussian
from ordrec.ordinal.baselines import (
    CSSVC,
    OPBE,
    REDSVM,
    SVC1V1,
    SVC1VA,
    SVMOP,
    GPRanks,
    PRank,
    SVRanks,
)
from ordrec.ordinal.baselines.svmop import platt_sigmoid
from ordrec.ordinal.gram.matrix import DenseGram
from ordrec.ordinal.svor.model import SVORIM

train_X, train_y = ordered_sample(70, n_ranks=4)
NEW, TRUTH = ordered_sample(150, n_ranks=4, seed=1)


def implicit_with_penalty(
    K: np.ndarray, ranks: np.ndarray, n_ranks: int, C: float, penalty: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """SVORIM plus ``penalty`` / 2 times the squared deviations of the thresholds, by a QP."""
    values, vectors = np.linalg.eigh(K)
    A = vectors * np.sqrt(np.maximum(values, 0.0))
    w, b = cp.Variable(K.shape[0]), cp.Variable(n_ranks - 1)
    side = np.where(ranks[:, None] > np.arange(n_ranks - 1), 1.0, -1.0)
    margins = cp.multiply(side, (A @ w)[:, None] @ np.ones((1, n_ranks - 1)) - b[None, :])
    centred = b - cp.sum(b) / (n_ranks - 1)
    objective = (
        0.5 * cp.sum_squares(w)
        + 0.5 * penalty * cp.sum_squares(centred)
        + C * cp.sum(cp.pos(1 - margins))
    )
    problem = cp.Problem(cp.Minimize(objective))
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value), A @ w.value, b.value


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(3, 5), st.sampled_from([0.1, 1.0, 20.0]))
def test_redsvm_is_svorim_plus_half_the_squared_deviations_of_the_thresholds(seed, n_ranks, C):
    points, ranks = ordered_sample(24, n_ranks, seed)
    K = Gaussian(0.5)(points)
    model = REDSVM(C=C, kernel="precomputed", tol=1e-8).fit(K, ranks)
    f, b = model.predict_latent(K), model.thresholds_
    side = np.where(ranks[:, None] > np.arange(n_ranks - 1), 1.0, -1.0)
    loss = np.maximum(0.0, 1 - side * (f[:, None] - b)).sum()
    spread = ((b - b.mean()) ** 2).sum()
    mine = 0.5 * model.dual_coef_ @ K @ model.dual_coef_ + 0.5 * spread + C * loss
    best, scores, _ = implicit_with_penalty(K, ranks, n_ranks, C, 1.0)
    assert mine == pytest.approx(best, rel=1e-5)
    np.testing.assert_allclose(f, scores, atol=1e-3 * (1 + np.abs(scores).max()))
    assert (np.diff(b) >= -1e-6).all()


def test_redsvm_is_not_svorim():
    points, ranks = ordered_sample(24, 4)
    K = Gaussian(0.5)(points)
    thresholds = REDSVM(C=20, kernel="precomputed", tol=1e-8).fit(K, ranks).thresholds_
    _, _, free = implicit_with_penalty(K, ranks, 4, 20.0, 0.0)
    assert np.ptp(thresholds) < np.ptp(free) - 0.01


def test_redsvm_is_one_machine_on_extended_samples():
    points, ranks = ordered_sample(30, 4)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, ranks.size)
    K = Gaussian(0.5)(points)
    extended = np.kron(np.ones((3, 3)), K) + np.kron(np.eye(3), np.ones(K.shape))
    above = (ranks > np.arange(3)[:, None]).ravel()
    machine = SVC(C=5, kernel="precomputed", tol=1e-8)
    machine.fit(extended, above, sample_weight=np.tile(weight, 3))
    signed = np.zeros((3, ranks.size))
    signed.ravel()[machine.support_] = machine.dual_coef_[0]
    mine = REDSVM(C=5, kernel="precomputed", tol=1e-8).fit(K, ranks, weight)
    np.testing.assert_allclose(K @ mine.dual_coef_, K @ signed.sum(axis=0), atol=1e-4)
    thresholds = -(signed.sum(axis=1) + machine.intercept_)
    np.testing.assert_allclose(mine.thresholds_, thresholds, atol=1e-4)


def test_redsvm_says_when_it_stopped_early():
    with pytest.warns(ConvergenceWarning, match="REDSVM stopped after 1 iterations"):
        REDSVM(max_iter=1).fit(train_X, train_y)


def test_one_against_one_is_scikit_learns():
    mine = SVC1V1(C=3, gamma=0.4).fit(train_X, train_y)
    assert np.array_equal(mine.predict(NEW), SVC(C=3, gamma=0.4).fit(train_X, train_y).predict(NEW))


@pytest.mark.parametrize(
    ("model", "far"),
    [
        (SVC1VA(), lambda away: np.ones(away.size)),
        (CSSVC(), lambda away: away),
        (CSSVC(published=True), lambda away: away + 1.0),
    ],
)
def test_one_against_all_asks_each_rank(model, far):
    values = []
    for k in range(4):
        away = np.abs(train_y - k).astype(float)
        weight = np.where(away > 0, far(away) / far(away)[away > 0].mean(), 1.0)
        machine = SVC(C=3, gamma=0.4).fit(train_X, train_y == k, sample_weight=weight)
        values.append(machine.decision_function(NEW))
    expected = np.argmax(values, axis=0)
    predicted = model.set_params(C=3, gamma=0.4).fit(train_X, train_y).predict(NEW)
    assert np.mean(predicted != expected) < 0.01


def test_ordered_partitions_combine_weighted_machines():
    above = []
    for j in range(3):
        distance = np.where(train_y > j, train_y - j, j + 1 - train_y).astype(float)
        for side in (train_y > j, train_y <= j):
            distance[side] /= distance[side].mean()
        machine = SVC(C=3, gamma=0.4).fit(train_X, train_y > j, sample_weight=distance)
        above.append(1 / (1 + np.exp(-machine.decision_function(NEW))))
    p = np.stack([1 - above[0], above[0] - above[1], above[1] - above[2], above[2]], axis=1)
    assert (
        np.mean(SVMOP(C=3, gamma=0.4).fit(train_X, train_y).predict(NEW) != p.argmax(axis=1)) < 0.01
    )


def test_published_ordered_partitions_combine_calibrated_probabilities():
    model = SVMOP(C=3, gamma=0.4, published=True).fit(train_X, train_y)
    above = []
    for j in range(3):
        distance = np.where(train_y > j, train_y - j, j + 1 - train_y).astype(float)
        for side in (train_y > j, train_y <= j):
            distance[side] /= distance[side].mean()
        machine = SVC(C=3, gamma=0.4).fit(train_X, train_y > j, sample_weight=distance)
        slope, offset = model.calibration_[j]
        above.append(1 / (1 + np.exp(-slope * machine.decision_function(NEW) - offset)))
    up, down = np.array([np.ones(150), *above]), np.array([*above, np.zeros(150)])
    assert np.mean(model.predict(NEW) != (up - down).argmax(axis=0)) < 0.01


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_the_sigmoid_is_platts(seed):
    rng = np.random.default_rng(seed)
    values, above = rng.normal(size=80), rng.random(80) < 0.4
    values = values + above
    # scikit-learn's, with Platt's targets; its slope and offset have the other sign
    reference = sigmoid_of_scikit_learn(values, above)
    mine = platt_sigmoid(values, above, np.ones(80))
    np.testing.assert_allclose(mine, [-reference[0], -reference[1]], atol=2e-3)


@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_published_regression_has_targets_from_0_to_1(epsilon):
    model = SVRanks(C=3, gamma=0.4, epsilon=epsilon, published=True, tol=1e-6)
    model.fit(train_X, train_y)
    regression = SVR(C=3, gamma=0.4, epsilon=epsilon, tol=1e-6).fit(train_X, train_y / 3)
    np.testing.assert_allclose(model.predict_latent(NEW), 3 * regression.predict(NEW), atol=1e-3)


def test_published_projections_share_out_and_stretch():
    model = OPBE(C=3, gamma=0.4, published=True).fit(train_X, train_y)
    product, weights = np.ones((150, 4)), np.zeros(4)
    scores = model.kernel_(NEW, train_X) @ model.dual_coef_
    for k in range(4):
        f, b = scores[:, k], model.thresholds_[k]
        b = b[~np.isnan(b)]
        if b.size == 2 and b[1] - b[0] < 4:
            f, b = f * 4 / (b[1] - b[0]), b * 4 / (b[1] - b[0])
        below = [1 / (1 + np.exp(f - each)) for each in b]
        p = np.diff(np.array([np.zeros(150), *below, np.ones(150)]), axis=0)
        if k == 0:
            p = np.array([np.zeros(150), p[0], p[1]])
        for j in range(4):
            share = 1 / k if j < k else 1 / (3 - k) if j > k else 1.0
            product[:, j] *= p[1 + np.sign(j - k)] * share
            weights[j] += share
    assert np.mean(model.predict(NEW) != (product / weights).argmax(axis=1)) < 0.01


def test_published_projections_whose_thresholds_coincide_have_a_say_like_others():
    model = OPBE(C=3, gamma=0.4, published=True).fit(train_X, train_y)
    others = np.arange(4) != 1
    model.thresholds_[1], model.dual_coef_[:, 1] = 0.0, 0.0  # every score is on both thresholds
    predicted = model.predict(NEW)  # a RuntimeWarning would be an error
    assert set(np.unique(predicted)) <= {0, 1, 2, 3}
    assert np.mean(np.abs(predicted - TRUTH)[others[TRUTH]]) < 0.6


@pytest.mark.parametrize("epsilon", [0.1, 0.4])
def test_regression_on_ranks_is_rounded_and_clipped(epsilon):
    model = SVRanks(C=3, gamma=0.4, epsilon=epsilon).fit(train_X, train_y + 1)
    regression = SVR(C=3, gamma=0.4, epsilon=epsilon).fit(train_X, train_y + 1).predict(NEW)
    np.testing.assert_allclose(model.predict_latent(NEW) + 1, regression, atol=5e-3)
    assert np.mean(model.predict(NEW) != np.clip(np.floor(regression + 0.5), 1, 4)) < 0.02
    assert not hasattr(model, "decision_function")


def test_gaussian_process_regression_finds_scikit_learns_evidence():
    kernel = ConstantKernel() * RBF() + WhiteKernel(0.1)
    reference = GaussianProcessRegressor(kernel, normalize_y=True).fit(train_X, train_y)
    model = GPRanks(gamma=0.5).fit(train_X, train_y)
    assert model.log_marginal_likelihood_ == pytest.approx(
        reference.log_marginal_likelihood_value_, abs=0.01
    )
    np.testing.assert_allclose(model.predict_latent(NEW), reference.predict(NEW), atol=0.02)
    assert np.array_equal(
        model.predict(NEW), np.clip(np.floor(model.predict_latent(NEW) + 0.5), 0, 3)
    )


def test_the_projections_outvote_chance_and_agree_with_one_projection_at_two_ranks():
    model = OPBE(C=3, gamma=0.4).fit(train_X, train_y)
    assert model.present_.tolist() == [0, 1, 2, 3]
    for k in range(4):
        groups = np.sign(train_y - k)
        machine = SVORIM(C=3, gamma=0.4).fit(train_X, groups)
        thresholds = model.thresholds_[k]
        # nothing is below the lowest rank, and nothing above the highest one
        assert np.isnan(thresholds).tolist() == [k == 0, k == 3]
        np.testing.assert_allclose(
            thresholds[~np.isnan(thresholds)], machine.thresholds_, atol=2e-3
        )
        scores = model.kernel_(NEW, train_X) @ model.dual_coef_[:, k]
        np.testing.assert_allclose(scores, machine.predict_latent(NEW), atol=5e-3)
    assert np.abs(model.predict(NEW) - TRUTH).mean() < 0.4
    two = OPBE(C=3, gamma=0.4).fit(train_X, train_y > 1)
    plain = SVC(C=3, gamma=0.4, tol=1e-5).fit(train_X, train_y > 1)
    assert np.mean(two.predict(NEW) != plain.predict(NEW)) < 0.02


def prank_by_the_book(points, ranks, order, n_ranks):
    """The algorithm box of the paper, in the primal."""
    w, b = np.zeros(points.shape[1]), np.zeros(n_ranks - 1)
    for i in order:
        sides = np.where(ranks[i] > np.arange(n_ranks - 1), 1, -1)
        tau = np.where((w @ points[i] - b) * sides <= 0, sides, 0)
        w = w + tau.sum() * points[i]
        b = b - tau
    return w, b


@given(st.integers(0, 100), st.integers(1, 4))
@settings(max_examples=15)
def test_prank_follows_the_papers_box_and_keeps_the_order(seed, n_iter):
    points, ranks = ordered_sample(30, 4, seed)
    model = PRank(n_iter=n_iter, random_state=seed).fit(points, ranks)
    random = np.random.RandomState(seed)
    order = np.concatenate([random.permutation(30) for _ in range(n_iter)])
    w, b = prank_by_the_book(points, ranks, order, 4)
    np.testing.assert_allclose(model.thresholds_, b)
    np.testing.assert_allclose(model.predict_latent(points), points @ w, atol=1e-9)
    assert (np.diff(model.thresholds_) >= 0).all()


@pytest.mark.parametrize("model", [PRank(n_iter=0), GPRanks(noise=0.0), SVC1V1(C=-1.0)])
def test_bad_parameters_are_refused(model):
    with pytest.raises(ValueError, match="must be"):
        model.fit(train_X, train_y)


def test_a_question_with_one_row_on_a_side_is_answered_for_it_by_the_other_side():
    """Without that row there is only one side to learn from, and its answer is certain."""
    X, ranks = np.array([[0.0], [0.1], [0.2], [5.0], [0.3]]), np.array([0, 0, 0, 1, 0])
    model = SVMOP(C=1.0, gamma=1.0, published=True).fit(X, ranks)
    held = model._held_out_decisions(DenseGram(Gaussian(1.0)(X)), ranks > 0, np.ones(5))
    assert held[3] == -1.0
    assert (held[[0, 1, 2, 4]] < 0).all()
    above = model._held_out_decisions(DenseGram(Gaussian(1.0)(X)), ranks < 1, np.ones(5))
    assert above[3] == 1.0
