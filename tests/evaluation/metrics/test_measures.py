"""What every metric by name says about itself."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import measure_from_name, metric_names
from ordrec.evaluation.metrics.measures import (
    ListMeasure,
    Outcome,
    UncertaintyMeasure,
    as_losses,
    higher_is_better,
)
from ordrec.evaluation.metrics.outcome import TopLists

EVERY = [name.replace("@k", "@3") for name in metric_names()]
LISTS = [name for name in EVERY if isinstance(measure_from_name(name), ListMeasure)]
PICKS = ["hit_rate@3", "pick_ndcg@3", "cold_recall@3"]  # every test item is as good as any other
# of how errors and spread go together, see test_uncertainty.py
UNCERTAINTY = [name for name in EVERY if isinstance(measure_from_name(name), UncertaintyMeasure)]
NAMES = [name for name in EVERY if name not in [*LISTS, *PICKS, *UNCERTAINTY]]


@pytest.mark.parametrize("name", NAMES)
def test_the_better_end_is_where_perfect_predictions_are(name: str) -> None:
    test = synthetic_ratings(20, 30, n_ratings=300, seed=3)
    n_ranks = test.scale.n_ranks
    reversed_levels = n_ranks - 1 - test.levels
    perfect, wrong = (
        Outcome(test, probabilities=0.9 * np.eye(n_ranks)[levels] + 0.1 / n_ranks)
        for levels in (test.levels, reversed_levels)
    )
    measure = measure_from_name(name)
    values = [
        measure.value(outcome, measure.averages[0], measure.decision)[0]
        for outcome in (perfect, wrong)
    ]
    assert (values[0] > values[1]) == measure.higher_is_better
    assert (values[0] < values[1]) != measure.higher_is_better
    assert higher_is_better(name) == measure.higher_is_better


@pytest.mark.parametrize("name", PICKS)
def test_the_better_end_is_where_test_items_come_first(name: str) -> None:
    test = synthetic_ratings(20, 30, n_ratings=300, seed=3)
    order = np.argsort(test.users, kind="stable")
    first = np.empty(test.n_ratings, dtype=np.int64)
    first[order] = np.arange(test.n_ratings)
    first -= np.concatenate([[0], np.cumsum(test.user_counts)])[test.users] - 1
    measure = measure_from_name(name)
    good, bad = (
        measure.value(
            Outcome(test, scores=-places * 1.0, places=places, cold_places=places), "macro", "mean"
        )[0]
        for places in (first, first + 5)
    )
    assert (good, bad) == (1.0, 0.0)
    assert higher_is_better(name)


def test_the_better_end_of_the_metrics_of_lists() -> None:
    test = synthetic_ratings(20, 30, n_ratings=300, seed=3)
    users = np.arange(20)
    varied = (users[:, None] * 3 + np.arange(3)) % 30
    p_pick = np.full((20, 3), 0.5)
    counts = np.sort(test.item_counts)[::-1].copy()
    same = np.tile([0, 1, 2], (20, 1))
    features = np.eye(30)
    features[1:3] = features[0]  # the first three items are alike
    good = Outcome(test, lists=TopLists(users, varied, counts, 20, varied, p_pick, features))
    bad = Outcome(test, lists=TopLists(users, same, counts, 20, same, 3 * p_pick, features))
    for name in LISTS:
        measure = measure_from_name(name)
        values = [measure.value(outcome, "micro", "mean")[0] for outcome in (good, bad)]
        assert as_losses(name, values[0]) < as_losses(name, values[1]), name
        if measure.ideal is None:
            assert (values[0] > values[1]) == higher_is_better(name), name
