"""Rankings of the whole catalogue: blocks and pairs agree, and metrics equal their slow twins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from naive import naive_lists as naive

from ordrec.choice.ease import EASE
from ordrec.choice.mixture import ChoiceMixture
from ordrec.data import Ratings
from ordrec.datasets import synthetic_ratings
from ordrec.documents.trec import measure_run
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import evaluate, measure_from_name, split_from_name
from ordrec.evaluation.problems.catalogue import (
    CatalogueScores,
    catalogue_ranking,
    ranked_users,
)
from ordrec.evaluation.splits.base import part_ratings
from ordrec.recommend import make_model
from ordrec.recommend.recommender import Recommender

SPLIT = "user-holdout:0.3"
OF_PLACES = [
    "graded_ndcg", "pick_ndcg", "liked_ndcg", "liked_recall", "hit_rate", "net_ndcg",
]  # fmt: skip


@pytest.fixture(scope="module")
def ratings():
    return synthetic_ratings(50, 40, n_ratings=900, seed=2)


class Pairs:
    """Scores pairs by a table of its own."""

    def __init__(self, table):
        self.table = table

    def fit(self, ratings):
        self.users, self.items = ratings.user_ids, ratings.item_ids
        return self

    def scores(self, users, items):
        return self.table[self.users.get_indexer(users), self.items.get_indexer(items)]


class Blocks(Pairs):
    """The same in blocks, its items in another order; the last few are unknown to it."""

    def __init__(self, table, order):
        super().__init__(table)
        self.order = order

    def fit(self, ratings):
        self.item_ids_ = ratings.item_ids.take(self.order)
        return super().fit(ratings)

    def scores_block(self, users):
        self.n_asked = len(users)
        return self.table[self.users.get_indexer(users)][:, self.order]


class RatesAndRanks(Blocks):
    """Its ratings say nothing, its scores do."""

    def predict_proba(self, users, items):
        return np.tile([0.1, 0.2, 0.4, 0.2, 0.1], (len(users), 1))


def found(result, metric, model=None):
    frame = result.frame
    chosen = frame[(frame["metric"] == metric) & (frame["users"] == "all")]
    return chosen if model is None else chosen[chosen["model"] == model]


def table_of(ratings, ties, seed=0):
    table = np.random.default_rng(seed).normal(size=(ratings.n_users, ratings.n_items))
    return np.round(2 * table) if ties else table


def naive_lists(ratings, table):
    """Each test user's whole list, ties in the fixed order, and the ranks of the test items."""
    [fold] = split_from_name(SPLIT).split(ratings)
    shuffled = np.random.default_rng(0).permutation(ratings.n_items).tolist()
    lists, ranks = {}, {}
    for user in np.unique(fold.test.users).tolist():
        known = set(fold.train.items[fold.train.users == user].tolist())
        mine = fold.test.users == user
        lists[user] = [
            i for i in sorted(shuffled, key=lambda i, u=user: -table[u, i]) if i not in known
        ]
        ranks[user] = dict(
            zip(fold.test.items[mine].tolist(), fold.test.ranks[mine].tolist(), strict=True)
        )
    return fold, lists, ranks


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 5, 30])
def test_metrics_equal_plain_loops(ratings, ties, k):
    table = table_of(ratings, ties)
    names = [*OF_PLACES, "disliked", "coverage", "gini", "novelty"]
    metrics = [f"{name}@{k}" for name in names]
    result = evaluate(ratings, {"pairs": Pairs(table)}, SPLIT, metrics=metrics)
    fold, lists, ranks = naive_lists(ratings, table)
    n_ranks, n_items = ratings.scale.n_ranks, ratings.n_items
    expected = {
        name: naive.over_users(getattr(naive, name), lists, ranks, n_ranks, k) for name in OF_PLACES
    } | {
        "disliked": naive.disliked(lists, ranks, n_ranks, k),
        "coverage": naive.coverage(lists, n_items, k),
        "gini": naive.gini(lists, n_items, k),
        "novelty": naive.novelty(
            lists, fold.train.item_counts, int((fold.train.user_counts > 0).sum()), k
        ),
    }
    for name in names:
        row = found(result, f"{name}@{k}").iloc[0]
        assert row["value"] == pytest.approx(expected[name], abs=1e-12), name
        assert row["candidates"] == "catalogue"


@pytest.mark.parametrize("ties", [False, True])
def test_metrics_equal_those_of_ir_measures(ratings, ties):
    """Gains are handed over as grades, since ir-measures takes grades as gains."""
    table = table_of(ratings, ties, seed=5)
    _, lists, ranks = naive_lists(ratings, table)
    grades = {
        "ndcg@5": ("nDCG@5", lambda rank: 2 ** (rank - 1) - 1),
        "graded_ndcg@5": ("nDCG@5", lambda rank: 2**rank - 1),
        "pick_ndcg@5": ("nDCG@5", lambda rank: 1),
        "liked_ndcg@5": ("nDCG@5", lambda rank: rank >= 4),
        "precision@5": ("P@5", lambda rank: rank >= 4),
        "recall@5": ("R@5", lambda rank: rank >= 4),
        "map": ("AP", lambda rank: rank >= 4),
        "mrr": ("RR", lambda rank: rank >= 4),
        "hit_rate@5": ("Success@5", lambda rank: 1),
    }
    result = evaluate(ratings, {"pairs": Pairs(table)}, SPLIT, metrics=list(grades))
    listed = [(u, i, n) for u, items in lists.items() for n, i in enumerate(items, start=1)]
    run = pd.DataFrame(listed, columns=["query", "document", "rank"])
    for name, (theirs, grade) in grades.items():
        rows = [(u, i, int(grade(rank))) for u, mine in ranks.items() for i, rank in mine.items()]
        qrels = pd.DataFrame(rows, columns=["query", "document", "grade"])
        relevant = qrels.groupby("query")["grade"].transform("max") > 0
        values = measure_run(run, qrels[relevant], [theirs])
        row = found(result, name).iloc[0]
        assert row["n"] == len(values)
        assert row["value"] == pytest.approx(values[theirs].mean(), abs=1e-9), name


@pytest.mark.parametrize("ties", [False, True])
def test_blocks_give_what_pairs_give(ratings, ties):
    table = table_of(ratings, ties)
    order = np.random.default_rng(1).permutation(ratings.n_items)
    metrics = ["ndcg@5", "map", "graded_ndcg@5", "coverage@5", "disliked@5"]
    models = {"pairs": Pairs(table), "blocks": Blocks(table, order)}
    result = evaluate(ratings, models, SPLIT, metrics=metrics)
    for metric in metrics:
        pairs, blocks = found(result, metric)["value"]
        assert pairs == blocks, metric


def test_items_the_model_does_not_know_come_last(ratings):
    table = table_of(ratings, ties=False)
    order = np.arange(ratings.n_items - 6)
    lowered = table.copy()
    lowered[:, order.size :] = table.min() - 1.0
    models = {"pairs": Pairs(lowered), "blocks": Blocks(table, order)}
    metrics = ["pick_ndcg@40", "map", "coverage@40"]
    result = evaluate(ratings, models, SPLIT, metrics=metrics)
    for metric in metrics:
        pairs, blocks = found(result, metric)["value"]
        assert pairs == blocks, metric


def test_all_models_are_ranked_for_the_same_users(ratings, monkeypatch):
    monkeypatch.setattr("ordrec.evaluation.problems.catalogue.AUTO_USERS", 7)
    table = table_of(ratings, ties=False)
    models = {"pairs": Pairs(table), "blocks": Blocks(table, np.arange(ratings.n_items))}

    def n_users(models=models, **options):
        result = evaluate(ratings, models, SPLIT, metrics=["pick_ndcg@5"], **options)
        rows = found(result, "pick_ndcg@5")
        assert f"the same {rows['n'].max()} users for all models" in result.caption()
        if len(rows) == 2:
            assert rows["value"].nunique() == 1
        return rows["n"].tolist()

    assert n_users() == [50, 50]  # few enough pairs
    monkeypatch.setattr("ordrec.evaluation.problems.catalogue.AUTO_PAIRS", 1)
    assert n_users() == [7, 7]
    assert n_users({"blocks": models["blocks"]}) == [50]  # nobody is asked for pairs
    assert n_users(ranking_users=9) == [9, 9]
    assert n_users(ranking_users="all") == [50, 50]
    [fold] = split_from_name(SPLIT).split(ratings)
    assert set(ranked_users(fold, 9, 0)) <= set(ranked_users(fold, "all", 0))


def test_blocks_are_small(ratings, monkeypatch):
    monkeypatch.setattr("ordrec.evaluation.problems.catalogue.CELLS_AT_ONCE", 3 * ratings.n_items)
    table = table_of(ratings, ties=False)
    order = np.arange(ratings.n_items)
    small = evaluate(ratings, {"b": Blocks(table, order)}, SPLIT, metrics=["map"])
    monkeypatch.undo()
    large = evaluate(ratings, {"b": Blocks(table, order)}, SPLIT, metrics=["map"])
    assert found(small, "map")["value"].tolist() == found(large, "map")["value"].tolist()


def test_a_model_that_rates_and_ranks_is_measured_on_both(ratings):
    table = table_of(ratings, ties=False)
    order = np.arange(ratings.n_items)
    models = {"both": RatesAndRanks(table, order), "ranks": Blocks(table, order)}
    result = evaluate(ratings, models, SPLIT, metrics=["log_loss", "ndcg@5"])
    assert len(found(result, "log_loss", "both")) == 2
    assert found(result, "log_loss", "ranks").empty
    both, ranks = found(result, "ndcg@5")["value"]
    assert both == ranks
    assert found(result, "ndcg@5")["decision"].tolist() == ["point", "point"]


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (lambda n: np.zeros((n, 3)), "returned shape"),
        (lambda n: np.full((n, 40), np.nan), "not finite numbers"),
    ],
)
def test_bad_blocks_are_refused(ratings, block, says):
    class Bad(Pairs):
        def scores_block(self, users):
            return block(len(users))

    with pytest.raises(DataError, match=says):
        evaluate(
            ratings, {"bad": Bad(table_of(ratings, False))}, SPLIT, metrics=["map"],
            on_error="raise",
        )  # fmt: skip


# ---- what is liked -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["precision@4", "recall@4", "map", "mrr", "hit_rate@4"])
def test_like_says_what_is_relevant(ratings, name):
    table = table_of(ratings, ties=False)
    names = [name, "liked_ndcg@4"]
    plain = evaluate(ratings, {"p": Pairs(table)}, SPLIT, metrics=names)
    four = evaluate(ratings, {"p": Pairs(table)}, SPLIT, metrics=names, like=4)
    five = evaluate(ratings, {"p": Pairs(table)}, SPLIT, metrics=names, like=5)
    if name != "hit_rate@4":  # without like, every test item is a hit
        assert found(four, name)["value"].tolist() == found(plain, name)["value"].tolist()
    assert found(five, name)["value"].tolist() != found(plain, name)["value"].tolist()
    assert (
        found(four, "liked_ndcg@4")["value"].tolist()
        == found(plain, "liked_ndcg@4")["value"].tolist()
    )
    with pytest.raises(ArgumentError, match="highest rating, 5, got 6"):
        evaluate(ratings, {"p": Pairs(table)}, SPLIT, metrics=names, like=6)


def test_rated_items_alone_can_be_ranked_by_the_new_metrics(ratings):
    names = ["graded_ndcg@3", "net_ndcg@3", "disliked@3"]
    result = evaluate(ratings, ["bias"], SPLIT, metrics=[*names, "gini@3"], candidates="rated")
    assert set(result.frame["metric"]) == set(names)  # there are no lists
    assert set(result.frame["candidates"]) == {"rated"}


def test_net_gain_charges_disliked_items(ratings):
    [fold] = split_from_name(SPLIT).split(ratings)
    table = np.zeros((ratings.n_users, ratings.n_items))
    table[fold.test.users, fold.test.items] = 3.5 - fold.test.ranks  # the worst come first
    worst = evaluate(ratings, {"p": Pairs(table)}, SPLIT, metrics=["net_ndcg@3", "disliked@3"])
    table = -table + (table != 0) * 10
    best = evaluate(ratings, {"p": Pairs(table)}, SPLIT, metrics=["net_ndcg@3", "disliked@3"])
    assert found(best, "net_ndcg@3")["value"].item() > found(worst, "net_ndcg@3")["value"].item()
    assert found(best, "disliked@3")["value"].item() < found(worst, "disliked@3")["value"].item()


# ---- calibration of p_pick ---------------------------------------------------------------


def test_calibration_is_expected_over_observed_hits(ratings):
    [fold] = split_from_name(SPLIT).split(ratings)
    for model in (ChoiceMixture(n_factors=2), Recommender(rating="factors")):
        result = evaluate(ratings, {"m": model}, SPLIT, metrics=["pick_calibration@5"])
        fitted = model.fit(fold.train)
        expected, hits = 0.0, 0
        for user in np.unique(fold.test.users):
            listed = fitted.recommend(ratings.user_ids[user], 5)
            expected += listed["p_pick"].sum()
            tested = ratings.item_ids.take(fold.test.items[fold.test.users == user])
            hits += listed["item"].isin(tested).sum()
        row = found(result, "pick_calibration@5").iloc[0]
        assert row["value"] == pytest.approx(expected / hits, rel=1e-6)
        assert len(result.comparison) == 1


def test_models_without_p_pick_have_no_calibration(ratings):
    metrics = ["pick_calibration@5", "pick_ndcg@5"]
    result = evaluate(ratings, {"ease": EASE(), "bias": make_model("bias")}, SPLIT, metrics=metrics)
    assert set(result.frame["metric"]) == {"pick_ndcg@5"}
    with pytest.raises(ArgumentError, match="p_pick"):
        evaluate(ratings, {"ease": EASE()}, SPLIT, metrics=["pick_calibration@5"])


def test_the_best_calibration_is_the_one_nearest_to_one(ratings):
    models = {"plain": ChoiceMixture(n_factors=2), "far": ChoiceMixture(n_factors=2, horizon=8.0)}
    result = evaluate(ratings, models, SPLIT, metrics=["pick_calibration@5"])
    values = result.summary()["pick_calibration@5"]
    assert values["far"] > values["plain"]
    nearest = np.abs(np.log(values)).idxmin()
    assert set(result.comparison["against"]) == {nearest}


# ---- recommenders ------------------------------------------------------------------------


def test_a_recommender_is_measured_on_ratings_and_lists(ratings):
    models = {
        "whole": Recommender(rating="factors"),
        "points": Recommender(rating="bias"),
        "ranks": Recommender(rating=None),
    }
    metrics = ["rmse", "log_loss", "ndcg@5", "novelty@5"]
    result = evaluate(ratings, models, SPLIT, metrics=metrics)
    assert result.complete
    measured = result.frame.groupby("model")["metric"].unique().map(set)
    assert measured["whole"] == set(metrics)
    assert measured["points"] == set(metrics) - {"log_loss"}
    assert measured["ranks"] == {"ndcg@5", "novelty@5"}


@pytest.mark.parametrize("split", ["strong:0.2", "time:0.3"])
def test_folded_in_and_cold_users_have_lists(split):
    frame = synthetic_ratings(60, 40, n_ratings=900, seed=3).to_frame()
    frame["timestamp"] = np.random.default_rng(0).permutation(len(frame)) + 1
    dated = Ratings.from_frame(pd.DataFrame(frame))
    metrics = ["pick_ndcg@5", "coverage@5", "pick_calibration@5"]
    result = evaluate(
        dated, {"choice": ChoiceMixture(n_factors=2)}, split, metrics=metrics, cold_users=12
    )
    assert result.complete
    assert set(result.frame["metric"]) == set(metrics)
    everybody = found(result, "coverage@5")["value"].item()
    for group in set(result.user_groups) - {"all"}:
        part = result.frame[(result.frame["users"] == group)].set_index("metric")["value"]
        assert 0 < part["coverage@5"] <= everybody


def test_measures_carry_what_they_need():
    assert measure_from_name("coverage@7").options == {"k": 7}
    with pytest.raises(ArgumentError, match="graded_ndcg@10"):
        measure_from_name("graded_ndgc@10")


def test_places_by_hand_without_what_was_given():
    """Given items are not in the list: an item behind two of them moves up two places."""
    frame = pd.DataFrame({"user": [0, 0, 0, 0, 1, 1], "item": [0, 1, 2, 3, 0, 4]})
    ratings = Ratings.from_frame(frame.assign(rating=4), scale=range(1, 6))
    rows = np.arange(6)
    split = part_ratings(ratings, rows == 3, "by hand", given=rows < 2)
    table = np.array([[9.0, 8.0, 7.0, 6.0, 5.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    scores = CatalogueScores(lambda codes: table[codes].copy(), 2)
    found = catalogue_ranking(scores, split, np.array([0]), list_length=5)
    assert found.places.tolist() == [1]  # 0 and 1 were given, 2 was in training
    assert found.items.tolist() == [[3, 4, -1, -1, -1]]
