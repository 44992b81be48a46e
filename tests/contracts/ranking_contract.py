"""Tests that every model which only ranks items must pass, used as those for rating models."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from contracts.rating_contract import fitted, pytest_generate_tests
from sklearn.base import clone

from ordrec import load, save
from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError
from ordrec.recommend import RankingModel

__all__ = ["RankingContract", "pytest_generate_tests"]

RATINGS = synthetic_ratings(40, 25, n_ratings=450, seed=3)
USERS = [*RATINGS.user_ids[:12], -1]
BLOCK = np.repeat(USERS, RATINGS.n_items), np.tile(RATINGS.item_ids, len(USERS))
CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # of scores in single precision


def table(model: Any) -> np.ndarray:
    """Scores of all items for the users, one of whom is unknown."""
    return np.asarray(model.scores(*BLOCK)).reshape(len(USERS), -1)


class RankingContract:
    """Tests for the ``models`` of a subclass."""

    models: ClassVar[dict[str, Callable[[], Any]]]
    drawn: ClassVar[set[str]] = set()  # models to which two users with one history are two
    by_code: ClassVar[set[str]] = set()  # models that draw numbers for each code, or split rows
    kept: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        cls.kept = {}

    @pytest.fixture
    def model(self, name: str) -> Any:
        if name not in self.kept:
            self.kept[name] = fitted(self.models[name](), RATINGS)
        return self.kept[name]

    def test_pairs_equal_blocks_and_single_ones(self, model: Any) -> None:
        assert isinstance(model, RankingModel)
        whole = table(model)
        assert np.isfinite(whole).all()
        assert whole.shape == (len(USERS), RATINGS.n_items)
        np.testing.assert_allclose(model.scores_block(USERS), whole, **CLOSE)
        for row, column in ((0, 3), (5, 0), (len(USERS) - 1, 7)):
            one = model.scores([USERS[row]], [RATINGS.item_ids[column]])
            np.testing.assert_allclose(one, whole[row, column], **CLOSE)
        back = model.scores(BLOCK[0][::-1], BLOCK[1][::-1])[::-1]
        np.testing.assert_allclose(back.reshape(whole.shape), whole, **CLOSE)

    def test_unknown_items_come_last_and_all_unknown_users_are_treated_the_same(
        self, model: Any
    ) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="none of the")
            user, items = RATINGS.user_ids[0], [*RATINGS.item_ids, -1]
            scores = model.scores([user] * len(items), items)
            assert np.isfinite(scores).all()
            assert scores[-1] <= scores[:-1].min()
            one, other = (model.scores([who] * 3, RATINGS.item_ids[:3]) for who in (-1, "nobody"))
            np.testing.assert_array_equal(one, other)
        assert len(model.scores([], [])) == 0
        with pytest.raises(ArgumentError, match="got 2 users and 1 items"):
            model.scores([user, user], items[:1])

    def test_files_pickles_and_copies_score_the_same(self, model: Any, tmp_path: Any) -> None:
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        if hasattr(model, "stored"):
            save(model, tmp_path / "model.ordrec")
            copies.append(load(tmp_path / "model.ordrec"))
        else:
            with pytest.raises(ArgumentError, match="cannot be saved"):
                save(model, tmp_path / "model.ordrec")
        for other in copies:
            np.testing.assert_array_equal(table(other), table(model))

    def test_a_clone_learns_the_same_with_any_number_of_threads(self, model: Any) -> None:
        again = clone(model)
        assert not hasattr(again, "scale_")
        if "n_jobs" in again.get_params(deep=False):
            again.set_params(n_jobs=1 if model.get_params()["n_jobs"] != 1 else 3)
        np.testing.assert_array_equal(table(again.fit(RATINGS)), table(model))

    def test_a_second_fit_forgets_the_first(self, model: Any) -> None:
        other = clone(model).fit(RATINGS.select(RATINGS.users >= 20).compact())
        assert not np.array_equal(table(other), table(model))
        np.testing.assert_array_equal(table(other.fit(RATINGS)), table(model))

    def test_neither_the_order_of_rows_nor_names_nor_units_matter(
        self, model: Any, name: str
    ) -> None:
        """Rows are shuffled, ids become texts, the codes that stand for them are in the opposite
        order, the scale has other values, and a column tells nothing."""
        order = np.random.default_rng(0).permutation(RATINGS.n_ratings)
        other = RATINGS.select(order)
        texts = [[f"{key:05d}" for key in keys] for keys in (RATINGS.user_ids, RATINGS.item_ids)]
        changed: dict[str, Any] = {
            "user_ids": pd.Index(texts[0]), "item_ids": pd.Index(texts[1])
        }  # fmt: skip
        if name not in self.by_code:
            changed = {key: names[::-1] for key, names in changed.items()}
            changed["users"] = RATINGS.n_users - 1 - other.users
            changed["items"] = RATINGS.n_items - 1 - other.items
        other = other._replaced(**changed, scale=Scale(10 * RATINGS.scale.values + 3))
        telling_nothing = pd.DataFrame({"same": "x"}, index=other.item_ids)
        refitted = fitted(clone(model), other.with_side_tables(item_table=telling_nothing))
        known = [f"{user:05d}" for user in USERS[:-1]]
        found = refitted.scores(np.repeat(known, len(texts[1])), texts[1] * len(known))
        np.testing.assert_allclose(found, table(model)[:-1].ravel(), rtol=1e-4, atol=1e-5)

    def test_a_copy_of_a_user_has_the_users_list(self, model: Any, name: str) -> None:
        """Beside somebody who has picked nothing, and an item that nobody has."""
        if name in self.drawn:
            pytest.skip("draws a start for each user, and stops before it is forgotten")
        own = RATINGS.users == 3
        wider = RATINGS._replaced(
            users=np.append(RATINGS.users, np.full(own.sum(), RATINGS.n_users)),
            items=np.append(RATINGS.items, RATINGS.items[own]),
            levels=np.append(RATINGS.levels, RATINGS.levels[own]),
            user_ids=pd.Index([*RATINGS.user_ids, 7777, 8888]),
            item_ids=pd.Index([*RATINGS.item_ids, 9999]),
        )
        other = fitted(clone(model), wider)
        mine, copy_, nobody, stranger = other.scores_block([RATINGS.user_ids[3], 7777, 8888, -1])
        np.testing.assert_allclose(copy_, mine, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(nobody, stranger, rtol=1e-3, atol=1e-4)
        assert mine[-1] <= mine.max()

    def test_fold_in_adds_a_user_and_changes_nobody_else(self, model: Any) -> None:
        if not hasattr(model, "fold_in"):
            pytest.skip("has no fold_in")
        before = table(model)
        frame = RATINGS.select(RATINGS.users == 3).to_frame().assign(user=9999)
        folded = model.fold_in(Ratings.from_frame(frame, scale=RATINGS.scale))
        np.testing.assert_array_equal(table(folded), before)
        np.testing.assert_array_equal(table(model), before)
        listed = folded.recommend(9999, RATINGS.n_items)["item"]
        assert not set(listed) & set(frame["item"])
        assert set(listed) | set(frame["item"]) == set(RATINGS.item_ids)
