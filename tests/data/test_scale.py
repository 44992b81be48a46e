"""The Scale: declared values, ranks, inference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ordrec import load, save
from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.recommend import make_model

grids = st.builds(
    lambda low, step, n: Scale.regular(low / 4, low / 4 + step / 4 * n, step / 4),
    st.integers(-40, 40),
    st.integers(1, 8),
    st.integers(1, 40),
)
scales = st.one_of(
    grids, st.lists(st.integers(-50, 50), min_size=2, max_size=12, unique=True).map(Scale)
)


@given(scales)
def test_ranks_and_values_are_inverse(scale):
    ranks = np.arange(1, scale.n_ranks + 1)
    assert scale.ranks_of(scale.values).tolist() == ranks.tolist()
    assert scale.values_of(ranks).tolist() == scale.values.tolist()
    assert len(scale) == scale.n_ranks
    assert Scale(scale.values[::-1]) == scale
    assert hash(Scale(scale.values)) == hash(scale)


@given(scales, st.lists(st.floats(-100, 100), min_size=1, max_size=30))
def test_nearest_is_nearest(scale, numbers):
    found = scale.nearest(numbers)
    gaps = np.abs(np.array(numbers)[:, None] - scale.values)
    np.testing.assert_allclose(np.abs(found - numbers), gaps.min(axis=1), atol=1e-9)


def test_ties_go_down():
    assert Scale.regular(1, 5).nearest([1.5, 2.5]).tolist() == [1, 2]


def test_no_ranks_have_no_values():
    for empty in ([], np.empty((0, 3), dtype=np.int64)):
        assert Scale([1, 2, 3]).values_of(empty).shape == np.shape(empty)


@given(scales, st.floats(-100, 100))
def test_values_off_the_scale_are_refused(scale, number):
    gap = np.diff(scale.values).min()
    assume(np.abs(scale.values - number).min() > 1e-3 * gap)
    with pytest.raises(DataError, match="is not on the scale"):
        scale.ranks_of([number])


def test_shape_is_kept_and_blocks_join():
    scale = Scale.regular(0.5, 5, 0.5)
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 11, (300, 400))
    assert (scale.ranks_of(scale.values_of(ranks)) == ranks).all()


@given(grids, st.data())
def test_inference_fills_the_gaps(scale, data):
    kept = data.draw(st.lists(st.sampled_from(scale.values.tolist()), min_size=2, unique=True))
    inferred = Scale.infer(np.array(kept * 2))
    assert set(kept) <= set(inferred.values.tolist())
    assert inferred.values[0] == min(kept)
    assert inferred.values[-1] == max(kept)
    if len(kept) == scale.n_ranks:
        assert inferred == scale


def test_inference_of_the_usual_scales():
    assert Scale.infer(np.array([1, 3, 4, 5])) == Scale.regular(1, 5)
    assert Scale.infer(np.array([0.5, 1, 5])) == Scale.regular(0.5, 5, 0.5)
    assert Scale.infer(np.array([1, 2, 3.7])).values.tolist() == [1, 2, 3.7]


def test_inference_refuses():
    with pytest.raises(DataError, match=r"single rating value \[3.0\]: pass scale"):
        Scale.infer(np.array([3.0, 3.0]))


def test_inference_of_many_values_makes_bins():
    scale = Scale.infer(np.random.default_rng(0).random(200))
    assert scale.edges is not None
    assert scale.n_ranks == 10


@pytest.mark.parametrize("values", [[], [1], [1, 1], [1, np.nan], [1, np.inf]])
def test_senseless_scales(values):
    with pytest.raises(ArgumentError, match="at least two distinct finite values"):
        Scale(values)


@pytest.mark.parametrize("ends", [(5, 1, 1), (1, 5, 0), (1, 1, 1), (1, 5, -1)])
def test_senseless_grids(ends):
    with pytest.raises(ArgumentError, match="need low < high"):
        Scale.regular(*ends)


def test_ranks_out_of_range():
    with pytest.raises(ArgumentError, match=r"ranks must be whole numbers in 1\.\.5"):
        Scale.regular(1, 5).values_of([0])


def test_immutable_and_printed():
    scale = Scale.regular(1, 5)
    with pytest.raises(ValueError, match="read-only"):
        scale.values[0] = 7
    assert repr(scale) == "Scale(1..5 by 1)"
    assert repr(Scale([1, 2, 4, 8])) == "Scale(1, 2, 4, 8)"
    assert scale != "Scale(1..5 by 1)"


@pytest.mark.parametrize(
    ("unit", "says"),
    [(1e299, "too large .* divide"), (1e60, "too large .* divide"), (1e-60, "small .* multiply")],
)
def test_ratings_that_nobody_can_calculate_with_are_refused(unit: float, says: str) -> None:
    """Their squares and fourth powers overflow or vanish, in one model or another."""
    stars = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 4)
    frame = pd.DataFrame(
        {"user": np.repeat(range(4), 5), "item": np.tile(range(5), 4), "rating": unit * stars}
    )
    for refused in (
        lambda: Ratings.from_frame(frame),
        lambda: Ratings.from_frame(frame, scale=Scale(unit * stars[:5])),
        lambda: Scale.binned(unit * stars, bins=2),
    ):
        with pytest.raises(DataError, match=says):
            refused()


@pytest.mark.parametrize("unit", [1e49, 1e-49])
@pytest.mark.parametrize("name", ["bias", "item-knn", "histogram", "per-user-logistic"])
def test_others_are_fitted_stored_and_predicted_in_their_units(
    name: str, unit: float, tmp_path: Path
) -> None:
    usual = synthetic_ratings(12, 9, n_ratings=80, seed=0)
    frame = usual.to_frame()[["user", "item", "rating"]]
    ratings = Ratings.from_frame(frame.assign(rating=frame["rating"] * unit))
    save(make_model(name).fit(ratings), tmp_path / "model.ordrec")
    found = load(tmp_path / "model.ordrec").predict([0, 1, 2], [3, 4, 5])
    expected = make_model(name).fit(usual).predict([0, 1, 2], [3, 4, 5])
    np.testing.assert_allclose(found / unit, expected, rtol=1e-6)


def test_values_without_a_number_between_them_are_no_scale() -> None:
    with pytest.raises(ArgumentError, match="no number lies between them"):
        Scale([0.0, 1.0, -5e-324])
    near = Scale([1.0, np.nextafter(1.0, 2.0), 2.0])
    assert near.ranks_of(near.values).tolist() == [1, 2, 3]
