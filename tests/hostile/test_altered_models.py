"""Model files with extreme numbers in them, right checksums and all: refused, or they predict."""

from __future__ import annotations

import copy
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ordrec import load, save
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.files import model_of
from ordrec.recommend import BiasModel, PersonalThresholds, ProcessPredictor, make_model
from ordrec.recommend.registry import storable_model_names
from ordrec.storage.archive import load_arrays, save_arrays
from ordrec.storage.limits import TooLarge, claim_memory, memory_limit

SMALL: dict[str, dict[str, Any]] = {
    "factors": {"n_factors": 2, "pattern": 2, "max_iter": 2},
    "choice": {"n_factors": 2},
    "ordered": {"n_factors": 2},
    "als": {"n_factors": 2, "n_iter": 2},
    "predictor": {"learn": "defaults"},
    "recommender": {"rating": "factors"},
    "per-user-svor": {"min_ratings": 6},
}
NAMES = [*storable_model_names(), "thresholds"]
NAMES.remove("recommender-fast")  # the other recommender and the fast predictor have its parts


def ratings() -> Ratings:
    made = synthetic_ratings(12, 10, n_ratings=80, seed=0)
    times = 1_000_000_000 + 1000 * np.arange(made.n_ratings)
    return Ratings(
        made.users, made.items, made.levels,
        scale=made.scale, user_ids=made.user_ids, item_ids=made.item_ids, timestamps=times,
    )  # fmt: skip


RATINGS = ratings()
USERS = [user for user in [*range(12), 77, 99] for _ in range(11)]
ITEMS = [*range(10), 99] * 14


def fitted(name: str) -> Any:
    if name == "thresholds":
        return PersonalThresholds(BiasModel(), n_splits=2).fit(RATINGS)
    if name.startswith("process"):
        model = ProcessPredictor(preset="fast" if name == "process-fast" else "full").fit(RATINGS)
    else:
        model = make_model(name, **SMALL.get(name, {})).fit(RATINGS)
    if hasattr(model, "update"):
        model = model.update(77, 3, 5.0)
    return model


def extremes(dtype: np.dtype) -> tuple[float, ...]:
    """The second and the third are about as large as the largest that load."""
    return (3e38, -9e14, 9e5) if dtype.itemsize == 4 else (1e99, -9e8, 9e5)


def altered_arrays(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Each array of floats with nothing but an extreme number, and with one of them."""
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not array.size:
            continue
        for value in extremes(array.dtype):
            yield f"{name} is {value}", arrays | {name: np.full_like(array, value)}
        one = array.copy()
        one.flat[array.size // 2] = extremes(array.dtype)[0]
        yield f"{name} has {extremes(array.dtype)[0]}", arrays | {name: one}


def altered_numbers(node: Any, at: str = "") -> Iterator[tuple[str, Any, Any, float]]:
    """Each float in metadata: its name, where it is, and an extreme number for it."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(pairs):
        if isinstance(value, (dict, list)):
            yield from altered_numbers(value, f"{at}.{key}")
        elif isinstance(value, float):
            for extreme in (1e99, -1e99, 1e-300):
                yield f"{at}.{key} is {extreme}", node, key, extreme


def answers(model: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(model, "predict"):
        yield "predict", model.predict(USERS, ITEMS)
    if hasattr(model, "predict_proba"):
        yield "predict_proba", model.predict_proba(USERS, ITEMS)
    if hasattr(model, "scores"):
        yield "scores", model.scores(USERS, ITEMS)
    if hasattr(model, "process_"):
        times = np.full(len(USERS), 1_000_050_000)
        yield "dated", model.predict_proba(USERS, ITEMS, times)
    if hasattr(model, "recommend"):
        table = model.recommend(3, 4)
        yield "recommend", table[[c for c in table if c not in ("item", "title")]].to_numpy(float)


def wrong(arrays: Any, metadata: Any) -> str:
    """What is wrong with the answers of a file's contents; empty if they are refused or all are
    numbers.
    """
    try:
        model = model_of(arrays, metadata)
    except ModelFileError:
        return ""
    for method, values in answers(model):
        if not np.isfinite(values).all():
            return method
        if "proba" in method and not np.allclose(values.sum(axis=1), 1.0):
            return f"sums of {method}"
    return ""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_what_loads_predicts(name: str, tmp_path) -> None:
    path = tmp_path / "model"
    original = fitted(name)
    save(original, path)
    arrays, metadata = load_arrays(path)
    assert not wrong(arrays, metadata)
    found = []
    for what, changed in altered_arrays(arrays):
        if answer := wrong(changed, metadata):
            found.append(f"{what}: {answer}")
    changed = copy.deepcopy(metadata)
    for what, node, key, value in altered_numbers(changed):
        before, node[key] = node[key], value
        if answer := wrong(arrays, changed):
            found.append(f"{what}: {answer}")
        node[key] = before
    assert found == []


# ---- memory ------------------------------------------------------------------------------------

N_ITEMS, MANY = 37, 60_000


def padded(array: np.ndarray) -> np.ndarray:
    """The array with MANY items more, where an axis counts the items."""
    more = [(0, MANY if side in (N_ITEMS, N_ITEMS + 1) else 0) for side in array.shape]
    return np.pad(array, more)


def test_items_without_ratings_take_no_memory_beyond_the_file(tmp_path) -> None:
    path = tmp_path / "padded"
    model = ProcessPredictor(preset="fast").fit(synthetic_ratings(12, N_ITEMS, n_ratings=150))
    save(model, path)
    arrays, metadata = load_arrays(path)
    arrays = {name: padded(array) for name, array in arrays.items()}
    arrays["item_ids"] = np.arange(N_ITEMS + MANY)
    save_arrays(path, arrays, metadata)
    size = path.stat().st_size
    tracemalloc.start()
    try:
        again = load(path)  # a square of these 60,000 items would take 36 GB
        assert tracemalloc.get_traced_memory()[1] < 6 * size + 1e7
    finally:
        tracemalloc.stop()
    assert again.predict([1], [30]) == pytest.approx(model.predict([1], [30]))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("bias", "its arrays"),
        ("process-fast", "pairs of 11 items"),
        ("process", "pairs of 13 users"),
        ("folded", "folded-in users"),
        ("per-user-svor", "counts of 5 ratings of 12 users"),
    ],
)
def test_what_is_recomputed_counts(name: str, what: str, tmp_path) -> None:
    """The limit is raised until the next thing is refused, and in the end the model loads."""
    path = tmp_path / "model"
    save(fitted("process" if name == "folded" else name), path)
    said, limit = [], path.stat().st_size / 2e9
    for _ in range(300):
        try:
            load(path, max_memory=limit)
            break
        except ModelFileError as error:
            said.append(str(error))
        limit *= 1.005
    else:
        pytest.fail("the model never loads")
    assert all(str(path) in message and "max_memory" in message for message in said), said
    assert any(what in message for message in said), said
    with pytest.raises(ArgumentError, match="max_memory must be above 0"):
        load(path, max_memory=0)


def test_claims_add_up() -> None:
    with memory_limit(1.0):
        claim_memory(0.6e9, "the first part")
        claim_memory(0.4e9, "exactly the rest")
        with pytest.raises(TooLarge, match=r"1\.6 GB or more \(a third part\)"):
            claim_memory(0.6e9, "a third part")
    claim_memory(1e12, "no limit outside the block")
