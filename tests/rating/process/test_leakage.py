"""What a rating is predicted from in training must not contain that rating."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.two_taste_ratings import two_taste_ratings

from ordrec.rating.inner_parts import HELD_OUT
from ordrec.rating.process.fit import Plan, learnt_plan, weighted_data
from ordrec.rating.process.kernel.loadings import cross_fitted_loadings
from ordrec.rating.process.kernel.weights import DEFAULTS, FAST_DEFAULTS
from ordrec.rating.process.preparation import Preparation, SideFeatures
from ordrec.rating.process.solve.covariance import Covariance
from ordrec.rating.process.solve.fitting import Likelihood, cross_fitted_likelihood, fit_process
from ordrec.rating.thresholds.ordered_probit import curvature
from ordrec.rating.units import Units

RATINGS = two_taste_ratings(n_users=25, n_items=20)
UNITS = Units.of(RATINGS.values, 1.0)
QUICK = {"seed": 0, "n_jobs": 1}


def fitted(ratings=RATINGS, two_sided: bool = True):
    config = Preparation(two_sided=two_sided, use_time=False)
    defaults = DEFAULTS if two_sided else FAST_DEFAULTS
    data, weights = weighted_data(ratings, SideFeatures(), UNITS, config, defaults, **QUICK)
    return fit_process(data, weights, 0, 1)


@pytest.mark.parametrize("two_sided", [True, False])
def test_the_hold_out_error_is_that_of_a_hold_out_made_by_hand(two_sided: bool) -> None:
    config = Preparation(two_sided=two_sided, use_time=False)
    defaults = DEFAULTS if two_sided else FAST_DEFAULTS
    plan = Plan(config, SideFeatures(), defaults, [])
    errors = learnt_plan(RATINGS, UNITS, plan, max_iter=1, **QUICK).errors
    held = np.random.default_rng(0).random(RATINGS.n_ratings) < HELD_OUT
    process = fitted(RATINGS.select(~held), two_sided)
    scores = process.scores(RATINGS.users[held], RATINGS.items[held])
    by_hand = np.sqrt(np.mean((UNITS.outward(scores) - RATINGS.values[held]) ** 2))
    assert errors[0] == pytest.approx(by_hand, rel=5e-3)  # of the solver's tolerance


def test_a_ratings_own_thresholds_are_fitted_without_it() -> None:
    process = fitted()
    before = cross_fitted_likelihood(process, 5, seed=3)
    for row in (0, 50, 200):
        levels = process.data.levels.copy()
        levels[row] = 4 - levels[row] if levels[row] != 2 else 0
        flipped = Covariance(replace(process.data, levels=levels), process.K.weights)
        after = cross_fitted_likelihood(replace(process, K=flipped), 5, seed=3)
        assert np.array_equal(after.thresholds[row], before.thresholds[row])
        assert after.scale[row] == before.scale[row]
        assert not np.array_equal(after.thresholds, before.thresholds)  # those of others do move


def test_an_owners_loadings_are_fitted_without_the_owner() -> None:
    data = fitted(two_sided=False).data
    side, owner = data.item_side, 7
    own = slice(side.start[owner], side.start[owner + 1])

    def loadings(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return cross_fitted_loadings(
            side.start, side.entry, x, side.n_entries, n_factors=2, n_folds=3, n_rounds=3,
            ridge=1.0, rng=np.random.default_rng(0),
        )  # fmt: skip

    moved = side.x.copy()
    moved[own] += np.linspace(-2, 2, own.stop - own.start)
    (fold, before), (_, after) = loadings(side.x), loadings(moved)
    assert np.array_equal(before[fold[owner]], after[fold[owner]])
    assert not np.allclose(before[fold[owner] - 1], after[fold[owner] - 1])


def test_left_out_scores_do_not_see_their_own_rating() -> None:
    """With the kernel held, a leave-one-out score is what it was before its rating changed."""
    process = fitted(two_sided=False)
    for row in (0, 99, 200):
        y = process.data.y.copy()
        y[row] += 3.0
        other = replace(process.data, y=y)
        again = fit_process(other, process.K.weights, 0, 1)
        assert again.left_out[row] == pytest.approx(process.left_out[row], abs=2e-4)
        same_user = process.data.users == process.data.users[row]
        assert np.abs(again.left_out - process.left_out)[same_user].max() > 0.01


def test_newton_targets_by_hand() -> None:
    """Target f + l' / W and noise 1 / (W s^2), with the curvature W at least 0.05."""
    thresholds = np.array([[-1.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    f, levels, scale = np.array([0.3, -2.0, 9.0]), np.array([1, 2, 2]), np.array([0.5, 2.0, 1.0])
    slope, W = curvature(f, thresholds, scale, levels)
    W = np.array([W[0], W[1], 0.05])  # far on the right side, next to nothing is left of it
    target, noise = Likelihood(thresholds, scale, typical=1.7).newton_target(f, levels)
    np.testing.assert_allclose(target, f + slope / W)
    np.testing.assert_allclose(noise, 1.0 / (W * 1.7 * 1.7))
