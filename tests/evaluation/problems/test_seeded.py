"""Copies of models with a seed of their own."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import TruncatedSVD as SVD
from sklearn.pipeline import make_pipeline

from ordrec.evaluation.problems.base import seeded
from ordrec.ordinal import ORBoost, OrdinalLogistic
from ordrec.recommend import BiasModel


class Foreign:
    """A model of another library: no parameters to set, a seed as an attribute."""

    def __init__(self, random_state: int | None = None):
        self.random_state = random_state
        self.tables = [1, 2]


def test_models_without_parameters_are_copied_and_seeded() -> None:
    model = Foreign()
    copy = seeded(model, 7)
    assert (copy.random_state, model.random_state) == (7, None)
    assert copy.tables is not model.tables
    plain = object()
    assert type(seeded(plain, 7)) is object
    assert seeded("bias", 7) == "bias"


def test_seeds_and_classes_reach_nested_models_and_what_is_set_stays() -> None:
    classes = np.array([1, 2, 3])
    model = make_pipeline(SVD(random_state=5), ORBoost(random_state=3))
    copy = seeded(model, 7, classes)
    assert copy.get_params()["truncatedsvd__random_state"] == 7
    assert copy.get_params()["orboost__random_state"] == 7
    assert copy.get_params()["orboost__classes"] is classes
    assert model.get_params()["orboost__classes"] is None
    assert model.get_params()["orboost__random_state"] == 3
    own = seeded(OrdinalLogistic(classes=[5, 6]), 7, classes)
    assert own.classes == [5, 6]
    assert seeded(BiasModel(user_damping=2.0), 7).user_damping == 2.0
