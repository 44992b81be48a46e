"""What every metric by name says about itself."""

from __future__ import annotations

import numpy as np
import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import measure_from_name, metric_names
from ordrec.evaluation.metrics.measures import Outcome, higher_is_better

NAMES = [name.replace("@k", "@3") for name in metric_names()]


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
