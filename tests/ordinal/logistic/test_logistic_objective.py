"""Value, gradient and Hessian: against loops, finite differences and one another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from naive import naive_logistic
from scipy import sparse

from ordrec.ordinal.logistic import objective as module
from ordrec.ordinal.logistic.objective import Objective
from ordrec.ordinal.losses import Loss, gradient, objective

LOSSES = [Loss("logistic"), Loss("shifted", margin=2.0), Loss("generalised", sharpness=3.0)]
REACHES = ["immediate", "all"]


def problem(loss, reach, *, n=30, d=3, n_ranks=4, tie=None, seed=0):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(0, n_ranks, n)
    tie = np.eye(n_ranks - 1) if tie is None else tie
    J = Objective(
        rng.normal(size=(n, d)), ranks, rng.uniform(0.2, 2, n), loss, reach, alpha=0.7, tie=tie
    )
    return J, rng.normal(size=d + tie.shape[1])


@pytest.fixture(params=["explicit", "products", "sparse", "sparse products"])
def form(request, monkeypatch):
    """The four ways to compute the Hessian, with small blocks, so that there are several."""
    monkeypatch.setattr(module, "EXPLICIT", 0 if "products" in request.param else 200)
    monkeypatch.setattr(module.Objective, "_blocks", blocks_of_seven)
    if "sparse" in request.param:
        return lambda J: replace(J, X=sparse.csr_matrix(J.X))
    return lambda J: J


def blocks_of_seven(self):
    n = self.X.shape[0]
    return [slice(s, min(s + 7, n)) for s in range(0, n, 7)]


def dense_hessian(H, size):
    return np.column_stack([H @ column for column in np.eye(size)])


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_value_and_gradient_against_loops_and_the_shared_table(loss, reach, form):
    J, x = problem(loss, reach)
    J = form(J)
    X = J.X.toarray() if sparse.issparse(J.X) else J.X
    w, b = x[:3], x[3:]
    value, slope, _ = J.at(x)
    naive = naive_logistic.objective(
        w, b, X, J.ranks, lambda m: float(loss.value(m)), reach == "immediate", 0.7, J.weight
    )
    assert value == pytest.approx(naive, rel=1e-12)
    table = objective(X @ w, b, J.ranks, loss, reach, J.weight, 0.35 * w @ w)
    assert value == pytest.approx(table, rel=1e-12)
    by_score, by_threshold = gradient(X @ w, b, J.ranks, loss, reach, J.weight)
    np.testing.assert_allclose(slope[:3], X.T @ by_score + 0.7 * w, atol=1e-11)
    np.testing.assert_allclose(slope[3:], by_threshold, atol=1e-11)
    alone = J.at(x, hessian=False)
    assert alone[0] == value
    assert (alone[1] == slope).all()
    assert alone[2] is None


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_derivatives_by_central_differences(loss, reach, form):
    tie = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # the first two thresholds are one
    J, x = problem(loss, reach, tie=tie, seed=3)
    J = form(J)
    _, slope, H = J.at(x)
    H = dense_hessian(H, x.size)
    for j in range(x.size):
        step = 1e-5 * (np.arange(x.size) == j)
        ahead, behind = J.at(x + step), J.at(x - step)
        assert slope[j] == pytest.approx((ahead[0] - behind[0]) / 2e-5, rel=1e-6, abs=1e-7)
        np.testing.assert_allclose(H[:, j], (ahead[1] - behind[1]) / 2e-5, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("reach", REACHES)
def test_hessian_is_symmetric_positive_and_its_diagonal_is_its_diagonal(reach, tied, form):
    tie = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]) if tied else None
    J, x = problem(Loss("logistic"), reach, tie=tie)
    H = form(J).at(x)[2]
    full = dense_hessian(H, x.size)
    np.testing.assert_allclose(full, full.T, atol=1e-12)
    np.testing.assert_allclose(H.diagonal(), full.diagonal(), atol=1e-12)
    assert np.linalg.eigvalsh(full)[0] > 0


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("scale", [1e2, 1e4, 1e8])
def test_far_scores_neither_overflow_nor_lose_the_value(loss, scale):
    J, x = problem(loss, "all")
    value, slope, H = J.at(scale * x)
    w, b = scale * x[:3], scale * x[3:]
    table = objective(J.X @ w, b, J.ranks, loss, "all", J.weight, 0.35 * w @ w)
    assert value == pytest.approx(table, rel=1e-12)
    assert np.isfinite(slope).all()
    assert np.isfinite(H).all()


def test_many_thresholds_do_not_overflow_the_product():
    rng = np.random.default_rng(0)
    ranks = np.arange(60) % 40
    J = Objective(
        rng.normal(size=(60, 1)), ranks, np.ones(60), Loss("logistic"), "all", 1.0, np.eye(39)
    )
    x = np.concatenate([[30.0], np.linspace(-60, 60, 39)])
    table = objective(J.X @ x[:1], x[1:], ranks, Loss("logistic"), "all", 1.0, 450.0)
    assert J.at(x)[0] == pytest.approx(table, rel=1e-12)


def test_gradient_of_thresholds_looks_behind_the_ties():
    tie = np.array([[1.0], [1.0], [1.0]])
    J, x = problem(Loss("logistic"), "immediate", tie=tie)
    per_threshold = J.gradient_of_thresholds(x)
    assert per_threshold.shape == (3,)
    assert per_threshold.sum() == pytest.approx(J.at(x)[1][3])


@pytest.mark.parametrize("explicit", [200, 0])
def test_groups_of_blocks_summed_by_threads_give_the_same(monkeypatch, explicit):
    """Many small blocks in threads equal one block without threads."""
    J, x = problem(LOSSES[0], "all", n=9000, d=4)
    monkeypatch.setattr(module, "EXPLICIT", explicit)
    assert len(J._groups()) == 1
    value, slope, hessian = J.at(x)
    monkeypatch.setattr(module, "BLOCK", 1 << 8)
    assert len(J._groups()) == module.GROUPS
    again, slope_again, hessian_again = J.at(x)
    assert again == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slope_again, slope, rtol=1e-10)
    np.testing.assert_allclose(hessian_again @ x, hessian @ x, rtol=1e-10)
    once_more = J.at(x)
    assert once_more[0] == again
    np.testing.assert_array_equal(once_more[1], slope_again)
