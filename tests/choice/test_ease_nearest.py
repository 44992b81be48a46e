"""Regressions on the nearest items against the dense solution, and against a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from ordrec import load, save
from ordrec.choice.ease import EASE, NEAREST_START
from ordrec.choice.ease_nearest import NearestProblem
from ordrec.choice.ease_solver import EaseProblem
from ordrec.datasets import synthetic_ratings

RATINGS = synthetic_ratings(90, 40, n_ratings=1400, seed=4)
SMALL = 1e-5  # gigabytes: too few for all pairs of 40 items in double precision


def problem(n_nearest: int, max_memory: float = 1.0) -> NearestProblem:
    rng = np.random.default_rng(0)
    table = rng.random((50, 30)) * (rng.random((50, 30)) < 0.3)
    table[:, 7] = 0.0  # nobody has rated it
    return NearestProblem(sparse.csr_array(table), rng.random(50) + 0.5, n_nearest, max_memory)


RIDGES = np.linspace(0.5, 2.0, 30)


def test_with_all_items_it_is_ease() -> None:
    nearest = problem(30)
    dense = EaseProblem(nearest.history, nearest.factors).solve(RIDGES)
    np.testing.assert_allclose(
        nearest.solve(RIDGES).weights().toarray(), dense.weights(), atol=1e-5
    )
    rows = np.array([3, 40])
    np.testing.assert_allclose(nearest.solve(RIDGES).scores(rows), dense.scores(rows), atol=1e-5)


@pytest.mark.parametrize("max_memory", [1.0, 8 * 12**2 / 1e9])  # all items as inputs, and twelve
def test_each_item_is_regressed_on_the_best_single_ones(max_memory: float) -> None:
    nearest = problem(5, max_memory)
    Y = nearest.history.toarray()
    Z = nearest.factors[:, None] * Y
    if max_memory < 1.0:
        assert nearest.inputs.size == 12
        counts = (Y > 0).sum(axis=0)
        assert counts[nearest.inputs].min() >= np.delete(counts, nearest.inputs).max()
    expected = np.zeros((30, 30))
    for item in range(30):
        others = np.setdiff1d(nearest.inputs, item)
        cross = Z[:, others].T @ Y[:, item]
        gains = cross**2 / ((Z[:, others] ** 2).sum(axis=0) + RIDGES[others])
        own = others[np.argsort(-gains, kind="stable")[:5]]
        own = own[Z[:, own].T @ Y[:, item] > 0]
        A = Z[:, own].T @ Z[:, own] + np.diag(RIDGES[own])
        expected[own, item] = np.linalg.solve(A, Z[:, own].T @ Y[:, item])
    found = nearest.solve(RIDGES).weights()
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-5)


def test_the_number_of_threads_does_not_matter() -> None:
    model = EASE(max_memory=SMALL, n_nearest=6, n_jobs=1).fit(RATINGS)
    other = EASE(max_memory=SMALL, n_nearest=6, n_jobs=2).fit(RATINGS)
    assert (model.weights_ != other.weights_).nnz == 0


def test_the_ridge_is_chosen_by_lists_for_held_parts() -> None:
    model = EASE(max_memory=SMALL, n_nearest=6).fit(RATINGS)
    assert NEAREST_START in model.tried_
    assert model.regularization_ == max(model.tried_, key=model.tried_.get)


def test_files_and_contributions(tmp_path) -> None:
    model = EASE(50.0, max_memory=SMALL, n_nearest=6).fit(RATINGS)
    assert sparse.issparse(model.weights_)
    save(model, tmp_path / "model.ordrec")
    again = load(tmp_path / "model.ordrec")
    users = RATINGS.user_ids[:20]
    np.testing.assert_array_equal(again.scores_block(users), model.scores_block(users))
    item = int(model.weighted_items_[np.diff(model.weights_.tocsc().indptr).argmax()])
    row = model.history_rows(np.array([4]))
    assert model.contributions(4, item).sum() == pytest.approx(
        model.score_histories(row)[0, item], abs=1e-6
    )
