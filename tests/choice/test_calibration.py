"""Probabilities of picks, learnt from lists that were drawn from known ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from ordrec.choice.calibration import ListedScores, PickCalibration, hits_to_come

TRUE = PickCalibration(0.25, intercept=-1.5, slope=1.2, by_count=0.3)
SHARE = 0.3


def drawn(seed: int, g: float, h: float, n: int = 4000) -> ListedScores:
    """Lists whose picks were drawn where g of a history is known and h is set aside."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.normal(size=(n, 12)), axis=1)
    counts = rng.integers(5, 80, n)
    picked = rng.random(scores.shape) < TRUE._probabilities(scores, counts, g, h)
    return ListedScores(scores, counts, picked)


@pytest.fixture(scope="module")
def learnt() -> tuple[PickCalibration, PickCalibration]:
    """From the whole histories, and from these and what is left of them once more."""
    g, h = (1 - SHARE) / 1.25, SHARE / 1.25
    above, below = drawn(0, g, h), drawn(1, g * (1 - SHARE), g * SHARE)
    return (
        PickCalibration.fitted(above, SHARE, None), PickCalibration.fitted(above, SHARE, below)
    )  # fmt: skip


def test_the_parameters_are_found_again(learnt: tuple[PickCalibration, ...]) -> None:
    for found in learnt:
        assert found.intercept == pytest.approx(TRUE.intercept, abs=0.1)
        assert found.slope == pytest.approx(TRUE.slope, abs=0.1)
        assert found.by_count == pytest.approx(TRUE.by_count, abs=0.1)


def test_expected_picks_are_those_that_come(learnt: tuple[PickCalibration, ...]) -> None:
    """Lists of the whole histories: 1 of them is known, the horizon is to come."""
    new = drawn(2, 1 / 1.25, 0.25 / 1.25)
    for found in learnt:
        expected = found.p_pick(new.scores, new.counts)
        assert expected.sum() == pytest.approx(new.picked.sum(), rel=0.05)
        assert expected[:, 0].sum() == pytest.approx(new.picked[:, 0].sum(), rel=0.07)


def test_what_the_deeper_lists_say_is_compared_at_their_own_shares(
    learnt: tuple[PickCalibration, ...],
) -> None:
    """They follow the same law here, so that nothing is left to divide by."""
    assert learnt[0].bias == 1.0
    assert learnt[1].bias == pytest.approx(1.0, abs=0.05)


def test_deeper_lists_that_promise_too_much_are_divided_by_it() -> None:
    g, h = (1 - SHARE) / 1.25, SHARE / 1.25
    above, below = drawn(0, g, h), drawn(1, g * (1 - SHARE), g * SHARE)
    rng = np.random.default_rng(3)
    half = ListedScores(above.scores, above.counts, above.picked & (rng.random((4000, 12)) < 0.5))
    assert PickCalibration.fitted(half, SHARE, below).bias == pytest.approx(2.0, abs=0.15)


def test_the_latest_alone_are_calibrated_without_shares() -> None:
    found = PickCalibration.of_latest(drawn(4, 0.0, 1.0))
    new = drawn(5, 0.0, 1.0)
    assert found.p_pick(new.scores, new.counts).sum() == pytest.approx(new.picked.sum(), rel=0.05)
    assert found.slope == pytest.approx(TRUE.slope, abs=0.1)


def test_surer_lists_expect_as_many_hits_as_there_were() -> None:
    rng = np.random.default_rng(4)
    scores = -np.sort(-rng.standard_normal((300, 50)), axis=1)
    counts = rng.integers(5, 200, 300)
    picked = rng.random((300, 50)) < expit(scores - 3.0)
    lists = ListedScores(scores, counts, picked)
    calibration = PickCalibration.of_latest(lists)
    hits = picked[:, :10].sum()
    assert calibration.p_pick(scores[:, :10], counts).sum() == pytest.approx(hits)
    surer = 1.5 * scores[:, :10]
    assert calibration.p_pick(surer, counts).sum() > 1.2 * hits
    matched = calibration.matched(lists, surer, counts)
    assert matched.p_pick(surer, counts).sum() == pytest.approx(hits)
    none = ListedScores(scores, counts, np.zeros_like(picked))
    assert calibration.matched(none, surer, counts) == calibration


def test_hits_grow_from_level_to_level_as_they_did_before() -> None:
    rng = np.random.default_rng(6)

    def lists(n: int, rate: float) -> ListedScores:
        return ListedScores(np.zeros((n, 50)), np.full(n, 9), rng.random((n, 50)) < rate)

    many = lists(6000, 0.15), lists(2000, 0.1)
    hits = [found.picked[:, :10].sum(axis=1).mean() for found in many]
    assert hits_to_come(*many) == pytest.approx(hits[0] ** 2 / hits[1], rel=0.01)
    few = lists(40, 0.02), lists(40, 0.0)
    assert few[0].picked[:, :10].any()
    assert 1.4 < hits_to_come(*few) / few[0].picked[:, :10].sum(axis=1).mean() < 2.5


@pytest.mark.parametrize("horizon", [0.0, 0.25])
def test_scores_are_those_that_have_the_probabilities(horizon: float) -> None:
    rng = np.random.default_rng(6)
    scores, counts = rng.normal(size=(5, 7)), np.array([0, 1, 8, 60, 900])
    found = PickCalibration(horizon, intercept=-2.0, slope=0.7, by_count=0.4, bias=1.1)
    again = found.scores_of(found.p_pick(scores, counts), counts)
    np.testing.assert_allclose(again, scores, atol=1e-8)


def test_scores_that_say_nothing_have_no_inverse() -> None:
    """New items that are compared by such scores come last, and no number is undefined."""
    flat = PickCalibration(0.25, intercept=-2.0, slope=0.0)
    assert (flat.scores_of(np.array([[0.1, 0.9]]), np.array([3])) == -np.inf).all()


def test_what_was_wrong_one_part_before_is_divided_out() -> None:
    """As far as it is more than chance."""
    earlier = drawn(7, 0.0, 1.0)
    lower = PickCalibration.of_latest(earlier)
    rng = np.random.default_rng(8)
    thin = rng.random(earlier.picked.shape) < 0.8
    later = ListedScores(earlier.scores, earlier.counts, drawn(9, 0.0, 1.0).picked & thin)
    found = PickCalibration.of_latest(later)
    assert found.drifted(earlier, later, lower).bias / found.bias == pytest.approx(1.25, abs=0.08)
    few = np.arange(25)
    part = earlier.of_rows(few), later.of_rows(few)
    corrected = found.drifted(*part, lower).bias / found.bias
    wrong = lower.p_pick(part[1].scores[:, :10], part[1].counts).sum() / part[1].hits.sum()
    assert abs(np.log(corrected)) < 0.5 * abs(np.log(wrong))
    none = ListedScores(later.scores, later.counts, np.zeros_like(later.picked))
    assert found.drifted(earlier, none, lower) == found
    assert found.drifted(none, later, lower) == found


def test_models_that_learn_from_more_hit_more_often() -> None:
    """As often more as for the last such step, if that was of the same size."""
    lists = drawn(11, 0.0, 1.0)
    rng = np.random.default_rng(12)
    thin = lists.picked & (rng.random(lists.picked.shape) < 0.9)
    less = ListedScores(lists.scores, lists.counts, thin)
    found = PickCalibration.of_latest(lists)
    grown = found.with_more(less, lists, 1.0).bias / found.bias
    assert grown == pytest.approx(0.9, abs=0.03)
    assert found.with_more(less, lists, 0.5).bias / found.bias == pytest.approx(grown**0.5)
    none = ListedScores(lists.scores, lists.counts, np.zeros_like(thin))
    assert found.with_more(none, lists, 1.0) == found
    assert found.with_more(less, none, 1.0) == found
