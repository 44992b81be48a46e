"""Ordinal factors of version 0.1 say, fold in and save what version 0.1 did."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ordrec.errors import ModelFileError
from ordrec.models.base import codes_of
from ordrec.rating.factors import version_0_1
from ordrec.rating.factors.version_0_1 import AllThresholdRows, Pattern
from ordrec.storage import ids_from_arrays, load_arrays

FOLDER = Path(__file__).parents[2] / "stored_models" / "0.1"
SIZES = {"n_users": 14, "n_items": 18, "n_ranks": 5, "rank": 32, "n_iter": 20}


@pytest.fixture(scope="module")
def arrays() -> dict[str, np.ndarray]:
    return load_arrays(FOLDER / "factors.ordrec")[0]


@pytest.fixture(scope="module")
def rows(arrays) -> AllThresholdRows:
    return AllThresholdRows.from_arrays(arrays, **SIZES)


@pytest.fixture(scope="module")
def folded() -> dict[str, np.ndarray]:
    """Ratings and the posteriors that version 0.1 gave their users."""
    entries = json.loads((FOLDER / "factors-fold-in.json").read_text())
    return {name: np.array(entry) for name, entry in entries.items()}


def ratings_of(folded):
    return folded["users"], folded["items"], folded["levels"]


def test_probabilities_are_those_of_version_0_1(arrays, rows, monkeypatch):
    expected = json.loads((FOLDER / "expected.json").read_text())
    users = codes_of(ids_from_arrays("user_ids", arrays), expected["users"])
    items = codes_of(ids_from_arrays("item_ids", arrays), expected["items"])
    assert min(users) == min(items) == -1  # the last pair is unknown
    wanted = expected["models"]["factors"]["predict_proba"]
    np.testing.assert_allclose(rows.probabilities(users, items), wanted, rtol=0, atol=1e-12)
    monkeypatch.setattr(version_0_1, "BLOCK", 5)
    np.testing.assert_allclose(rows.probabilities(users, items), wanted, rtol=0, atol=1e-12)
    assert rows.probabilities(users[:0], items[:0]).shape == (0, 5)


def test_thresholds_that_cross_give_no_negative_probabilities(rows):
    z = rows.z.copy()
    z[:, rows.rank :] = z[:, : rows.rank - 1 : -1]
    crossed = AllThresholdRows(**{**vars(rows), "z": z})
    p = crossed.probabilities(np.arange(14), np.arange(14))
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_fold_in_gives_the_posteriors_of_version_0_1(rows, folded):
    n_users = int(folded["n_users"])
    after = rows.fold_in(*ratings_of(folded), n_users)
    assert after.z.shape == after.vz.shape == (n_users + 1, rows.z.shape[1])
    np.testing.assert_allclose(after.z[folded["rows"]], folded["z"], rtol=0, atol=1e-10)
    np.testing.assert_allclose(after.vz[folded["rows"]], folded["vz"], rtol=0, atol=1e-10)
    others = np.setdiff1d(np.arange(14), folded["rows"])
    np.testing.assert_array_equal(after.z[others], rows.z[others])
    np.testing.assert_array_equal(after.vz[-1], rows.vz[-1])
    np.testing.assert_array_equal(after.e, rows.e)


def test_users_of_unknown_items_alone_are_like_unknown_users(rows):
    after = rows.fold_in(np.array([14, 15]), np.array([-1, -1]), np.array([0, 4]), 16)
    np.testing.assert_array_equal(after.z[14:], rows.z[[-1, -1, -1]])
    np.testing.assert_array_equal(after.z[:14], rows.z[:14])


def test_folded_in_without_the_others_a_user_is_the_same(rows, folded):
    users, items, levels = ratings_of(folded)
    alone = rows.without_users()
    assert alone.z.shape == (1, rows.z.shape[1])
    own = users == 14
    after = alone.fold_in(np.zeros(own.sum(), dtype=np.int64), items[own], levels[own], 1)
    place = folded["rows"].tolist().index(14)
    np.testing.assert_allclose(after.z[0], folded["z"][place], rtol=0, atol=1e-10)


def test_a_pattern_without_coordinates_is_a_constant():
    pattern = Pattern(np.zeros((3, 0)), 1.0, 1.0)
    assert pattern.n_features == 1
    np.testing.assert_array_equal(pattern.features(np.array([0]), np.array([2]), 2), [[1], [1]])


def test_users_of_a_fit_with_equal_counts_have_no_feature_of_the_count():
    pattern = Pattern(np.eye(2), 1.0, 0.0)
    found = pattern.features(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    np.testing.assert_allclose(
        found, [[1, 0, 1 / np.sqrt(12), 1 / np.sqrt(12)], [1, 0, 0, 1 / np.sqrt(11)]]
    )


def test_the_arrays_of_the_file_come_back(arrays, rows):
    again = rows.to_arrays()
    ids = {name for name in arrays if name.startswith(("user_ids", "item_ids"))}
    assert set(again) == set(arrays) - ids
    for name, array in again.items():
        np.testing.assert_array_equal(array, arrays[name])


@pytest.mark.parametrize("size", SIZES)
def test_arrays_of_other_sizes_are_refused(arrays, size):
    with pytest.raises(ModelFileError, match="has type float64 and shape"):
        AllThresholdRows.from_arrays(arrays, **{**SIZES, size: SIZES[size] + 1})


def test_missing_and_impossible_arrays_are_refused(arrays, rows):
    for name in rows.to_arrays():
        rest = {key: array for key, array in arrays.items() if key != name}
        with pytest.raises(ModelFileError, match=f"array '{name}' is missing"):
            AllThresholdRows.from_arrays(rest, **SIZES)
    for name in ("users.variance", "items.variance", "prior.S"):
        with pytest.raises(ModelFileError, match=name):
            AllThresholdRows.from_arrays({**arrays, name: -arrays[name]}, **SIZES)
