"""Tests that every rating model must pass.

A subclass lists functions that make unfitted models:

    class TestBaselines(RatingContract):
        models = {"bias": BiasModel}

Each is fitted once, and once more where a test needs that. Models that learn nothing of a pair
beyond its marginals are named in ``constant``.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support.two_taste_ratings import ids, parts, two_taste_ratings

from ordrec import load, save
from ordrec.data import Ratings, Scale
from ordrec.errors import ArgumentError
from ordrec.recommend import FoldInModel, RatingModel

TRAIN, TEST = parts(two_taste_ratings(n_users=36, n_items=24, share=0.6, dated=True))
WHEN = np.asarray(TEST.timestamps)
STRANGE = [[100, 9999, 100, 9999, 101], [500, 500, -7, -7, 501]]  # users and items, known or not
MISSING = "cannot be imported"


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each contract test once for each model of the class."""
    models = getattr(metafunc.cls, "models", None)
    if models is not None and "name" in metafunc.fixturenames:
        metafunc.parametrize("name", models)


def fitted(model: Any, ratings: Ratings = TRAIN) -> Any:
    try:
        return model.fit(ratings)
    except ArgumentError as error:
        if MISSING in str(error):
            pytest.skip(str(error))
        raise


def takes_times(model: Any) -> bool:
    return "timestamps" in inspect.signature(model.predict).parameters


def answers(model: Any, users: Any, items: Any, *when: Any) -> np.ndarray:
    """Everything a model says of pairs, one row each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="none of the")  # ids of another type
        said = [np.asarray(model.predict(users, items, *when), dtype=np.float64)[:, None]]
        if hasattr(model, "predict_proba"):
            said.append(model.predict_proba(users, items, *when))
    return np.hstack(said)


def texts_of(keys: Any) -> pd.Index:
    """Ids as texts, in the same order."""
    return pd.Index([f"{key:05d}" for key in keys])


def expected(model: Any) -> np.ndarray:
    """Expected ratings of the test pairs."""
    said = answers(model, *ids(TEST))
    return said[:, 0] if said.shape[1] == 1 else said[:, 1:] @ TEST.scale.values


class RatingContract:
    """Tests for the ``models`` of a subclass."""

    models: ClassVar[dict[str, Callable[[], Any]]]
    constant: ClassVar[set[str]] = set()
    least: ClassVar[dict[str, float]] = {}  # what weak models explain of the variance
    # of models that iterate until little changes, or that draw rows to learn from
    rounding: ClassVar[dict[str, float]] = {}
    exempt: ClassVar[dict[str, str]] = {}  # from the relations between two fits, and why
    by_code: ClassVar[set[str]] = set()  # models that draw numbers for each code
    one_sided: ClassVar[set[str]] = set()  # models to which the ends of a scale are not alike
    kept: ClassVar[dict[str, Any]]  # fitted models by name

    def __init_subclass__(cls) -> None:
        cls.kept = {}

    @pytest.fixture
    def model(self, name: str) -> Any:
        if name not in self.kept:
            self.kept[name] = fitted(self.models[name]())
        return self.kept[name]

    def test_answers_are_ratings_and_distributions(self, model: Any) -> None:
        assert isinstance(model, RatingModel)
        said = answers(model, *ids(TEST))
        assert said.shape[0] == TEST.n_ratings
        assert np.isfinite(said).all()
        assert TEST.scale.low <= said[:, 0].min() <= said[:, 0].max() <= TEST.scale.high
        if said.shape[1] > 1:
            assert said.shape[1] == 1 + TEST.scale.n_ranks
            np.testing.assert_allclose(said[:, 1:].sum(axis=1), 1.0)
            assert (said[:, 1:] >= 0).all()

    def test_predict_is_the_expected_rating_unless_asked_otherwise(self, model: Any) -> None:
        if "decision" in model.get_params(deep=False):
            said = answers(model, *ids(TEST))
            np.testing.assert_allclose(said[:, 0], said[:, 1:] @ TEST.scale.values)

    def test_a_batch_equals_one_by_one_in_any_order(self, model: Any) -> None:
        users, items = (
            list(column[:12]) + more for column, more in zip(ids(TEST), STRANGE, strict=True)
        )
        whole = answers(model, users, items)
        single = [answers(model, [u], [i])[0] for u, i in zip(users, items, strict=True)]
        np.testing.assert_allclose(whole, single, rtol=1e-6, atol=1e-7)
        back = answers(model, users[::-1], items[::-1])[::-1]
        np.testing.assert_allclose(whole, back, rtol=1e-6, atol=1e-7)

    def test_unknown_ids_get_the_same_answer(self, model: Any) -> None:
        known = answers(model, *STRANGE)
        assert np.isfinite(known).all()
        others = answers(model, [100, -5, 100, -5, 101], [500, 500, 12345, 12345, 501])
        np.testing.assert_allclose(known, others, rtol=1e-9)  # whoever the stranger is
        assert answers(model, ["text"], [None]).shape == known[:1].shape
        assert answers(model, [], []).shape == (0, known.shape[1])
        with pytest.raises(ArgumentError, match="got 2 users and 1 items"):
            model.predict([100, 101], [500])

    def test_fold_in_adds_a_user_and_changes_nobody_else(self, model: Any) -> None:
        if not isinstance(model, FoldInModel):
            pytest.skip("has no fold_in")
        before = answers(model, *ids(TEST))
        given = TRAIN.select(TRAIN.users == 3).to_frame().assign(user=9999)
        folded = model.fold_in(Ratings.from_frame(given, scale=TRAIN.scale))
        np.testing.assert_array_equal(answers(folded, *ids(TEST)), before)
        np.testing.assert_array_equal(answers(model, *ids(TEST)), before)  # a new model
        pairs = [9999] * TRAIN.n_items, TRAIN.item_ids
        assert not np.array_equal(answers(folded, *pairs), answers(model, *pairs))
        again = model.fold_in(Ratings.from_frame(given[::-1], scale=TRAIN.scale))
        np.testing.assert_allclose(answers(again, *pairs), answers(folded, *pairs), atol=1e-4)

    def test_files_pickles_and_copies_answer_the_same(self, model: Any, tmp_path: Any) -> None:
        users, items = (
            list(column[:20]) + more for column, more in zip(ids(TEST), STRANGE, strict=True)
        )
        said = answers(model, users, items)
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        if hasattr(model, "stored"):
            save(model, tmp_path / "model.ordrec")
            copies.append(load(tmp_path / "model.ordrec"))
        else:
            with pytest.raises(ArgumentError, match="cannot be saved"):
                save(model, tmp_path / "model.ordrec")
        for other in copies:
            np.testing.assert_array_equal(answers(other, users, items), said)

    def test_a_clone_learns_the_same_with_any_number_of_threads(self, model: Any) -> None:
        before = answers(model, *ids(TEST))
        again = clone(model)
        assert not hasattr(again, "scale_")
        if "n_jobs" in again.get_params(deep=False):
            again.set_params(n_jobs=1 if model.get_params()["n_jobs"] != 1 else 3)
        np.testing.assert_array_equal(answers(again.fit(TRAIN), *ids(TEST)), before)
        np.testing.assert_array_equal(answers(model, *ids(TEST)), before)  # predicting is no fit

    def test_a_second_fit_forgets_the_first(self, model: Any) -> None:
        before = answers(model, *ids(TEST))
        other = clone(model).fit(two_taste_ratings(5, n_users=14, n_items=12, scale=Scale([0, 1])))
        said = answers(other, *ids(TEST))
        assert 0 <= said[:, 0].min() <= said[:, 0].max() <= 1  # another scale
        np.testing.assert_array_equal(answers(other.fit(TRAIN), *ids(TEST)), before)

    def test_neither_the_order_of_rows_nor_names_nor_units_nor_the_calendar_matter(
        self, model: Any, name: str
    ) -> None:
        """Rows are shuffled, ids become texts in the opposite order, as are the codes that stand
        for them, the scale has other values, all times are later, and a column tells nothing."""
        if name in self.exempt:
            pytest.skip(self.exempt[name])
        order = np.random.default_rng(0).permutation(TRAIN.n_ratings)
        later, days = TRAIN.select(order), 86_400 * 1000
        changed: dict[str, Any] = {
            "user_ids": texts_of(TRAIN.user_ids), "item_ids": texts_of(TRAIN.item_ids)
        }  # fmt: skip
        if name not in self.by_code:
            changed = {key: names[::-1] for key, names in changed.items()}
            changed["users"] = TRAIN.n_users - 1 - later.users
            changed["items"] = TRAIN.n_items - 1 - later.items
        later = later._replaced(
            **changed,
            scale=Scale(10 * TRAIN.scale.values + 3),
            timestamps=np.asarray(later.timestamps) + days,
        )
        telling_nothing = pd.DataFrame({"same": "x"}, index=later.item_ids)
        later = later.with_side_tables(item_table=telling_nothing)
        users, items = map(texts_of, ids(TEST))
        other = fitted(clone(model), later)
        when: Any = [(WHEN,), (WHEN + days,)] if takes_times(model) else [(), ()]
        said = answers(other, users, items, *when[1])
        said[:, 0] = (said[:, 0] - 3) / 10
        np.testing.assert_allclose(
            said, answers(model, *ids(TEST), *when[0]), atol=self.rounding.get(name, 1e-4)
        )

    def test_a_copy_of_a_user_is_thought_of_like_the_user(self, model: Any, name: str) -> None:
        """Beside somebody, and something, of which there are no ratings at all."""
        if name in self.exempt:
            pytest.skip(self.exempt[name])
        own = TRAIN.users == 3
        wider = TRAIN._replaced(
            users=np.append(TRAIN.users, np.full(own.sum(), TRAIN.n_users)),
            items=np.append(TRAIN.items, TRAIN.items[own]),
            levels=np.append(TRAIN.levels, TRAIN.levels[own]),
            timestamps=np.append(TRAIN.timestamps, np.asarray(TRAIN.timestamps)[own]),
            user_ids=pd.Index([*TRAIN.user_ids, 7777, 8888]),
            item_ids=pd.Index([*TRAIN.item_ids, 9999]),
            item_table=None,
            user_table=None,
        )
        other = fitted(clone(model), wider)
        said = [
            answers(other, [who] * TRAIN.n_items, TRAIN.item_ids)
            for who in (TRAIN.user_ids[3], 7777)
        ]
        np.testing.assert_allclose(*said, atol=self.rounding.get(name, 1e-4))
        strangers = [answers(other, [who] * 2, [500, 9999]) for who in (8888, -5)]
        np.testing.assert_allclose(*strangers, atol=self.rounding.get(name, 1e-4))

    def test_what_is_said_of_reversed_ratings_is_reversed(self, model: Any, name: str) -> None:
        if name in self.exempt:
            pytest.skip(self.exempt[name])
        scale = TRAIN.scale
        worst = scale.n_ranks - 1 - TRAIN.levels
        other = fitted(clone(model), TRAIN._replaced(levels=worst))
        said, mirrored = expected(model), scale.low + scale.high - expected(other)
        if name in self.one_sided:
            assert np.corrcoef(said, mirrored)[0, 1] > 0.9
        else:
            np.testing.assert_allclose(mirrored, said, atol=self.rounding.get(name, 1e-4))

    def test_it_learns_and_from_permuted_ratings_it_learns_nothing(
        self, model: Any, name: str
    ) -> None:
        truth = TEST.values - TEST.values.mean()

        def explained(of: Any) -> float:
            """The share of the variance that the best multiple of the predictions explains."""
            said = expected(of) - expected(of).mean()
            return float((said @ truth) ** 2 / max((said @ said) * (truth @ truth), 1e-12))

        if name in self.constant:
            assert explained(model) < 1e-9
            return
        assert explained(model) > self.least.get(name, 0.15)
        shares = []
        for seed in range(2):
            levels = np.random.default_rng(seed).permutation(TRAIN.levels)
            shares.append(explained(clone(model).fit(TRAIN._replaced(levels=levels))))
        assert np.mean(shares) < 0.03  # chance alone explains one over their number

    def test_times_are_used_or_ignored_as_the_signature_says(self, model: Any) -> None:
        users, items = ids(TEST)
        if takes_times(model):
            plain = answers(model, users, items)
            np.testing.assert_array_equal(answers(model, users, items, 0 * WHEN), plain)
            assert not np.allclose(answers(model, users, items, WHEN), plain)
            with pytest.raises(ArgumentError, match=r"[Tt]ime|pair up"):
                model.predict(users, items, WHEN[:3])
        else:
            undated = clone(model).fit(TRAIN.without_timestamps())
            np.testing.assert_array_equal(
                answers(undated, users, items), answers(model, users, items)
            )
