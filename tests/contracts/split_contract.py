"""Tests that every split of ratings must pass.

A subclass lists the splits, and makes ratings from a seed on which all of them are possible:

    class TestSplits(SplitContract):
        splits = [HoldOut(0.3)]
        ratings_of = staticmethod(invented)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings, Scale
from ordrec.evaluation import split_from_name

__all__ = ["SplitContract", "pytest_generate_tests", "rows"]

SEEDS = st.integers(0, 10**6)


def pytest_generate_tests(metafunc: Any) -> None:
    """Run each contract test once for each split of the class."""
    splits = getattr(metafunc.cls, "splits", None)
    if splits is not None and "splitter" in metafunc.fixturenames:
        metafunc.parametrize("splitter", splits, ids=lambda split: split.kind)


def rows(ratings: Ratings) -> set[tuple[int, ...]]:
    columns = (ratings.users, ratings.items, ratings.levels, ratings.timestamps)
    return set(zip(*(c.tolist() for c in columns), strict=True))


def cells(ratings: Ratings) -> list[tuple[int, int]]:
    return list(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))


class SplitContract:
    """Tests for the ``splits`` of a subclass."""

    splits: ClassVar[list[Any]]
    ratings_of: Callable[..., Ratings]

    def test_parts_are_disjoint_and_complete(self, splitter: Any) -> None:
        @given(seed=SEEDS)
        def check(seed: int) -> None:
            ratings = self.ratings_of(seed)
            folds = list(splitter.split(ratings))
            assert len(folds) == splitter.n_splits
            for fold in folds:
                parts = [fold.train, fold.test] + ([] if fold.given is None else [fold.given])
                assert sum(part.n_ratings for part in parts) == ratings.n_ratings
                assert set().union(*map(rows, parts)) == rows(ratings)
                assert fold.train.n_ratings > 0
                assert fold.test.n_ratings > 0
                for part in parts:
                    assert part.user_ids is ratings.user_ids
                    assert part.scale == ratings.scale

        check()

    def test_what_was_rated_does_not_decide_who_is_tested(self, splitter: Any) -> None:
        """Other values of the same pairs at the same times are divided in the same way."""

        @given(seed=SEEDS)
        def check(seed: int) -> None:
            ratings = self.ratings_of(seed)
            other = ratings._replaced(levels=ratings.levels[::-1])
            for one, two in zip(splitter.split(ratings), splitter.split(other), strict=True):
                assert cells(one.train) == cells(two.train)
                assert cells(one.test) == cells(two.test)

        check()

    def test_training_does_not_see_the_values_of_the_test(self, splitter: Any) -> None:
        """Not even in the values of bins, which are means of training ratings."""

        @given(seed=SEEDS)
        def check(seed: int) -> None:
            ratings = self.ratings_of(seed)
            bins = Scale([0.5, 2.0, 4.0], edges=[0.0, 1.0, 3.0, 9.0])
            fine = np.random.default_rng(seed).uniform(0, 9, ratings.n_ratings)
            for number, fold in enumerate(splitter.split(ratings)):
                tested = np.isin(
                    ratings.users.astype(np.int64) * ratings.n_items + ratings.items,
                    fold.test.users.astype(np.int64) * ratings.n_items + fold.test.items,
                )
                scales = []
                for shift in (0.0, 0.9):  # within their bins, test ratings are others
                    moved = np.where(tested, np.minimum(np.ceil(fine), fine + shift), fine)
                    binned = self._binned(ratings, bins, moved)
                    again = list(splitter.split(binned))[number]
                    scales.append(again.train.scale.values)
                    assert (
                        np.array_equal(again.train.values, moved[~tested])
                        or again.given is not None
                    )
                np.testing.assert_array_equal(*scales)

        check()

    @staticmethod
    def _binned(ratings: Ratings, bins: Scale, values: np.ndarray) -> Ratings:
        levels = bins.ranks_of(values) - 1
        return ratings._replaced(scale=bins, levels=levels, binned_values=values)

    def test_unseen_users_items_and_ratings_are_counted(self, splitter: Any) -> None:
        @given(seed=SEEDS)
        def check(seed: int) -> None:
            for fold in splitter.split(self.ratings_of(seed)):
                users, items = set(fold.train.users.tolist()), set(fold.train.items.tolist())
                pairs = cells(fold.test)
                assert fold.n_cold_users == len({u for u, _ in pairs} - users)
                assert fold.n_cold_items == len({i for _, i in pairs} - items)
                assert fold.n_cold_ratings == sum(
                    u not in users or i not in items for u, i in pairs
                )
                assert f"{fold.n_cold_users} users, {fold.n_cold_items} items" in repr(fold)

        check()

    def test_the_same_seed_gives_the_same_split(self, splitter: Any) -> None:
        ratings = self.ratings_of(7)
        once, again = ([rows(fold.test) for fold in splitter.split(ratings)] for _ in range(2))
        assert once == again

    def test_another_seed_gives_another_split(self, splitter: Any) -> None:
        ratings = self.ratings_of(7, n_users=20, n_items=20, n=300)
        [one, *_] = splitter.split(ratings)
        if not hasattr(splitter, "random_state"):
            pytest.skip("draws nothing")
        [other, *_] = replace(splitter, random_state=2).split(ratings)
        assert rows(one.test) != rows(other.test)

    def test_names_make_the_same_split_again(self, splitter: Any) -> None:
        assert split_from_name(splitter.name, random_state=1) == splitter
        [fold, *_] = splitter.split(self.ratings_of(0))
        assert fold.name == splitter.name
