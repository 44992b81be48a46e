"""Model files whose parts do not fit together: they are refused, or they predict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ordrec.datasets import synthetic_ratings
from ordrec.errors import ModelFileError
from ordrec.files import contents_of, model_of
from ordrec.ordinal import GPRanks, ORBoost, SVRanks
from ordrec.recommend import ChoiceMixture, OrdinalFactors, ProcessPredictor, Recommender

RATINGS = synthetic_ratings(30, 20, n_ratings=300, seed=0)
FACTORS = OrdinalFactors(n_factors=2, pattern=2, max_iter=2)
Forge = Callable[[dict[str, np.ndarray], Any], Any]


def forged(model: Any, forge: Forge) -> Any:
    arrays, metadata = contents_of(model)
    forge(arrays, metadata)
    return model_of(arrays, metadata)


def test_without_counts_and_without_a_constant_popularity_decides() -> None:
    def forge(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        metadata["state"]["cold"] = 0.0
        arrays["item_counts"] = np.zeros_like(arrays["item_counts"])

    model = ChoiceMixture(n_factors=2).fit(RATINGS)
    try:
        loaded = forged(model, forge)
    except ModelFileError:
        return
    for user in (0, 99):
        assert np.isfinite(loaded.scores([user] * 20, RATINGS.item_ids)).all()


def test_a_constant_of_zero_is_a_parameter_like_any_other() -> None:
    model = ChoiceMixture(n_factors=2, cold=0.0).fit(RATINGS)
    listed = model.recommend(99, 5)
    assert np.isfinite(listed[["score", "p_pick"]].to_numpy()).all()
    popular = np.argsort(-RATINGS.item_counts, kind="stable")[:5]
    assert listed["item"].tolist() == RATINGS.item_ids[popular].tolist()


def test_a_history_that_names_a_pair_twice_is_refused() -> None:
    def forge(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        arrays["history.items"][1] = arrays["history.items"][0]

    with pytest.raises(ModelFileError, match="two ratings of one item"):
        forged(FACTORS.fit(RATINGS), forge)


@pytest.mark.parametrize("name", ["user_prior.B", "item_prior.B", "cold_users.B", "users.spreads"])
def test_priors_and_rows_of_another_width_are_refused(name: str) -> None:
    for axis in (0, 1):

        def forge(arrays: dict[str, np.ndarray], metadata: Any, axis: int = axis) -> None:
            array = arrays[f"directions.0.{name}"]
            more = np.concatenate([array, array.take([0], axis=axis)], axis=axis)
            arrays[f"directions.0.{name}"] = more

        with pytest.raises(ModelFileError):
            forged(FACTORS.fit(RATINGS), forge)


def test_moments_that_are_not_those_of_the_factors_are_refused() -> None:
    def forge(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        for name, array in arrays.items():
            if name.startswith("directions.0.") and name.endswith(".moments"):
                arrays[name] = array[:, :-1]

    with pytest.raises(ModelFileError):
        forged(FACTORS.fit(RATINGS), forge)


def test_a_recommender_whose_parts_have_different_scales_is_refused() -> None:
    def forge(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        inside = metadata["state"]["rating"]["state"]
        inside["scale"] = model_scale(10)

    def model_scale(factor: int) -> Any:
        scale = contents_of(FACTORS.fit(RATINGS))[1]["state"]["scale"]
        if isinstance(scale, dict):
            return scale | {"values": [factor * value for value in scale["values"]]}
        return [factor * value for value in scale]

    model = Recommender(rating=FACTORS).fit(RATINGS)
    with pytest.raises(ModelFileError, match="different scales"):
        forged(model, forge)


def _set(*path: str, to: Any) -> Forge:
    def forge(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        place = metadata["state"]
        for name in path[:-1]:
            place = place[name]
        assert path[-1] in place
        place[path[-1]] = to

    return forge


@pytest.mark.parametrize("kind", [SVRanks, GPRanks])
def test_regressions_without_an_intercept_are_refused(kind: type) -> None:
    X = np.arange(12.0)[:, None]
    with pytest.raises(ModelFileError, match="intercept"):
        forged(kind().fit(X, np.repeat([1, 2, 3], 4)), _set("intercept", to=None))


def test_kernels_too_large_to_compute_with_are_refused() -> None:
    X = np.arange(12.0)[:, None]
    model = GPRanks().fit(X, np.repeat([1, 2, 3], 4))
    for variance in (1e308, 1e99):
        forge = _set("kernel", "values", "variance", to=variance)
        try:
            loaded = forged(model, forge)
        except ModelFileError:
            continue
        assert variance < 1e100
        assert np.isfinite(loaded.predict_latent(X)).all()


def test_a_process_with_ratings_of_nobody_is_refused() -> None:
    """The last user stands for strangers, and has no ratings."""

    def of_nobody(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        name = next(each for each in arrays if each.endswith("ratings.start"))
        arrays[name][-2] -= 1

    with pytest.raises(ModelFileError, match="ratings of the unknown user"):
        forged(ProcessPredictor("fast").fit(RATINGS), of_nobody)


def test_every_walk_through_a_tree_ends_at_a_leaf_of_it() -> None:
    """A child that is its own parent, or a node before it, would be walked to for ever."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(1, 4, 60)
    model = ORBoost(base="tree", max_depth=2, n_estimators=3, random_state=0).fit(X, y)
    arrays = contents_of(model)[0]
    left, right, sizes = (f"ensemble.trees.{name}" for name in ("left", "right", "size"))
    inner = np.flatnonzero(arrays[left] >= 0)
    leaves = np.flatnonzero(arrays[left] < 0)
    size = arrays[sizes][0]

    def refused(side: str, node: int, child: int) -> None:
        def forge(arrays: dict[str, np.ndarray], metadata: Any) -> None:
            arrays[side][node] = child

        with pytest.raises(ModelFileError, match="do not lead to its leaves"):
            forged(model, forge)

    for side in (left, right):
        for node in inner[inner < size]:
            refused(side, node, node)
            refused(side, node, size)  # the root of the next tree
            refused(side, node, 0)
        refused(side, leaves[0], leaves[0])

    def longer(arrays: dict[str, np.ndarray], metadata: Any) -> None:
        arrays[sizes][0] += 1

    with pytest.raises(ModelFileError, match="other nodes than their sizes say"):
        forged(model, longer)
