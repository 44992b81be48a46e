"""The parts and the choice of the experiment on uncertainty."""

from __future__ import annotations

import numpy as np

from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.experiments.runner import list_pipelines

MODULE = list_pipelines()["uncertainty-ml-1m"].load()


def dated() -> Ratings:
    made = synthetic_ratings(40, 60, n_ratings=900, seed=0)
    times = 1_000_000_000 + np.random.default_rng(1).permutation(made.n_ratings)
    return Ratings(
        made.users, made.items, made.levels,
        scale=made.scale, user_ids=made.user_ids, item_ids=made.item_ids, timestamps=times,
    )  # fmt: skip


def test_every_part_comes_after_the_one_before() -> None:
    ratings = dated()
    train, validation, test = MODULE.parts(ratings, 0)
    assert train.n_ratings + validation.n_ratings + test.n_ratings == ratings.n_ratings
    counts = np.bincount(ratings.users, minlength=40)
    for user in range(40):
        times = [part.timestamps[part.users == user] for part in (train, validation, test)]
        n_test = times[2].size
        assert n_test in (0, int(0.2 * counts[user]))
        assert times[1].size == int(0.1 * (counts[user] - n_test))
        for earlier, later in ((times[0], times[1]), (times[1], times[2]), (times[0], times[2])):
            if earlier.size and later.size:
                assert earlier.max() < later.min()
    assert 10 <= np.unique(test.users).size <= 20  # half of the users; some have too few ratings
    other = MODULE.parts(ratings, 1)[2]
    assert not np.array_equal(np.unique(other.users), np.unique(test.users))


def test_rare_items_are_removed() -> None:
    ratings = dated()
    kept = MODULE.frequent_items(ratings)
    counts = np.bincount(ratings.items, minlength=60)
    assert kept.n_ratings == counts[counts >= 5].sum()


def test_the_measure_is_chosen_by_all_metrics() -> None:
    names = list(MODULE.METRICS)
    one = dict.fromkeys(names, 0.5)
    measured = {"deviation": one | {names[0]: 1.0}, "entropy": one | {names[1]: 0.9}}
    assert MODULE.best_of(measured) == "deviation"
