"""Metrics of one's own, values of users, predictions, groups and fairness of lists, by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import (
    Candidates,
    ColdItems,
    LeaveLast,
    OwnMetric,
    UserTime,
    evaluate,
    predictions_from_frame,
    split_from_name,
)
from ordrec.evaluation.metrics.outcome import TopLists
from ordrec.evaluation.metrics.top_lists import diversity_sums, long_tail_sums, popularity_sums
from ordrec.features import SideEncoder


def made(seed: int = 0, n: int = 240) -> Ratings:
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(30 * 16)[:n]
    frame = pd.DataFrame({"user": pairs // 16, "item": pairs % 16})
    noise = rng.normal(size=n)
    frame["rating"] = np.clip(np.rint(3 + rng.normal(size=30)[frame["user"]] + noise), 1, 5)
    frame["timestamp"] = rng.integers(1, 40, n)
    users = pd.DataFrame({"user": range(30), "gender": ["f", "m", "m"] * 10, "age": range(30)})
    items = pd.DataFrame({"item": range(16), "genre": list("abcd") * 4, "price": range(16)})
    return Ratings.from_frame(frame, scale=range(1, 6), user_table=users, item_table=items)


def worst(true, predicted):
    return float(np.abs(true - predicted).max())


def entropy(levels, p):
    return float(-(p * np.log(p)).sum(axis=1).mean())


def first_hit(listed, picked):
    return float(listed[0] in picked) if picked else float("nan")


OWN = [
    OwnMetric(worst, "lower"),
    OwnMetric(entropy, "lower", "distributions"),
    OwnMetric(first_hit, "higher", "lists", k=5),
]


def test_own_metrics_are_their_functions_of_what_was_predicted():
    ratings = made()
    result = evaluate(
        ratings, ["bias", "histogram"], "holdout:0.3",
        metrics=["hit_rate@1", *OWN], keep_predictions=True,
    )  # fmt: skip
    kept = result.predictions()
    frame = result.frame.set_index(["model", "metric", "average"])["value"]
    for model, rows in kept.groupby("model"):
        apart = (rows["rating"] - rows["prediction"]).abs()
        assert frame[model, "worst", "micro"] == pytest.approx(apart.max())
        assert frame[model, "worst", "macro"] == pytest.approx(
            apart.groupby(rows["user"]).max().mean()
        )
        assert frame[model, "first_hit", "macro"] == pytest.approx(
            frame[model, "hit_rate@1", "macro"]
        )
    p = kept[kept["model"] == "histogram"][[f"p_{k}" for k in range(1, 6)]].to_numpy()
    assert frame["histogram", "entropy", "micro"] == pytest.approx(entropy(None, p))
    assert ("bias", "entropy", "micro") not in frame.index
    compared = result.comparison[result.comparison["metric"] == "first_hit"]
    assert len(compared) == 2
    best = compared.loc[compared["verdict"] == "best", "value"].item()
    assert best == compared["value"].max()  # higher is better


def test_own_metrics_reach_other_processes_and_choose_candidates():
    shift = 1.0

    def shifted(true, predicted):
        return float(np.abs(true - predicted - shift).mean())

    candidates = Candidates({"mean": "mean", "bias": "bias"}, "shifted", n_folds=2)
    options = {"metrics": [OwnMetric(shifted, "lower")], "n_resamples": 0}
    once = evaluate(made(), {"c": candidates, "bias": "bias"}, **options)
    again = evaluate(made(), {"c": candidates, "bias": "bias"}, n_jobs=2, **options)
    assert once.frame["value"].tolist() == again.frame["value"].tolist()
    [chosen] = set(once.frame.loc[once.frame["model"] == "c", "chosen"])
    upwards = evaluate(made(), {"c": candidates}, metrics=[OwnMetric(shifted, "higher")])
    assert {chosen, *upwards.frame["chosen"]} == {"mean", "bias"}  # the other one


def test_another_function_of_the_same_name_is_measured_anew(tmp_path):
    def twice(true, predicted):
        return 2.0 * worst(true, predicted)

    values = [
        evaluate(
            made(), ["mean"], metrics=[OwnMetric(function, "lower", name="named")],
            store=tmp_path / "parts",
        ).summary()["named"].item()
        for function in (worst, twice)
    ]  # fmt: skip
    assert values[1] == pytest.approx(2 * values[0])


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([worst], "say where its better values"),
        ([OwnMetric(worst, "lower", name="rmse")], "is a metric of ordrec"),
        ([OwnMetric(worst, "lower"), OwnMetric(worst, "higher")], "two metrics of your own"),
    ],
)
def test_wrong_metrics_are_refused(metrics, message):
    with pytest.raises(ArgumentError, match=message):
        evaluate(made(), ["mean"], metrics=metrics)


def test_what_is_no_number_or_no_direction_is_refused():
    with pytest.raises(ArgumentError, match="better must be one of higher, lower"):
        OwnMetric(worst, "up")
    with pytest.raises(DataError, match="metric 'no_number' returned list"):
        evaluate(
            made(), ["mean"], metrics=[OwnMetric(lambda t, p: [], "lower", name="no_number")],
            on_error="raise",
        )  # fmt: skip


def test_values_of_users_average_to_those_of_the_table():
    result = evaluate(made(), ["bias"], "kfold:2", metrics=["rmse", "mae", "ndcg@5"])
    users = result.per_user()
    frame = result.frame.set_index(["fold", "metric", "average", "users"])["value"]
    for key, rows in users.groupby(["fold", "metric", "average", "users"]):
        values = rows["value"] ** 2 if key[1:3] == ("rmse", "micro") else rows["value"]
        mean = np.average(values, weights=rows["n"])
        mean = np.sqrt(mean) if key[1:3] == ("rmse", "micro") else mean
        assert frame[key] == pytest.approx(mean)


def test_groups_of_users_are_measured_as_if_alone():
    ratings = made()
    result = evaluate(ratings, ["bias"], metrics=["mae", "hit_rate@5"], groups="gender")
    assert result.user_groups == ["all", "gender=f", "gender=m"]
    rows = result.per_user()
    for group, letter in (("gender=f", "f"), ("gender=m", "m")):
        mine = rows[
            (rows["users"] == "all") & (rows["metric"] == "mae") & (rows["average"] == "macro")
        ]
        mine = mine[mine["user"].map(ratings.user_table["gender"]) == letter]
        said = result.summary("macro", group).loc["bias", "mae"]
        assert said == pytest.approx(mine["value"].mean())
    assert "users with gender=f only" in result.caption(users="gender=f")
    with pytest.raises(ArgumentError, match="at most 20 values"):
        evaluate(ratings, ["bias"], groups="age")
    with pytest.raises(ArgumentError, match="it has gender, age"):
        evaluate(ratings, ["bias"], groups="country")
    with pytest.raises(ArgumentError, match="users must be one of all, gender=f, gender=m"):
        result.summary(users="gender=x")


# ---- fairness of lists -----------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
def test_metrics_of_lists_by_plain_python(seed, k):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, 12)
    features = rng.normal(size=(12, 3)) * (rng.random((12, 1)) < 0.8)
    items = np.array([rng.permutation(12)[:5] for _ in range(6)])
    items[0, 2:] = -1
    lists = TopLists(np.arange(6), items, counts, 20, item_features=features)
    head, taken = set(), 0
    for item in sorted(range(12), key=lambda i: -counts[i]):
        if taken < 0.2 * counts.sum() or counts[item] == min(counts[j] for j in head):
            head.add(item)
        taken += counts[item]
    for row in range(6):
        mine = [int(item) for item in items[row][:k] if item >= 0]
        assert popularity_sums(lists, k).sums[row] == sum(counts[item] for item in mine)
        if counts.any():
            assert long_tail_sums(lists, k).sums[row] == sum(item not in head for item in mine)
        cosines = [
            features[a] @ features[b] / (np.linalg.norm(features[a]) * np.linalg.norm(features[b]))
            if features[a].any() and features[b].any() else 0.0
            for a, b in itertools.combinations(mine, 2)
        ]  # fmt: skip
        found = diversity_sums(lists, k)
        assert found.counts[row] == (len(mine) > 1)
        if cosines:
            assert found.sums[row] == pytest.approx(1 - np.mean(cosines))


def test_fairness_has_intervals_and_overlap_is_counted():
    ratings = made()
    metrics = ["popularity@5", "long_tail@5", "diversity@5", "ndcg@5"]
    result = evaluate(
        ratings, ["popularity", "ease", "bias"], metrics=metrics, keep_predictions=True
    )
    assert set(metrics) <= set(result.comparison["metric"])
    summary = result.summary()
    assert summary["popularity@5"].idxmax() == "popularity"
    assert (summary["diversity@5"] > 0).all()
    table = result.overlap(5)
    lists = {
        model: dict(zip(m.predictions["list_users"], m.predictions["list_items"], strict=True))
        for model, _, m in result.measured
    }
    assert ("popularity", "ease") in set(zip(table["model"], table["other"], strict=True))
    for row in table.itertuples():
        shared = [
            len(set(lists[row.model][user][:5]) & set(lists[row.other][user][:5])) / 5
            for user in lists[row.model]
        ]
        assert row.overlap == pytest.approx(np.mean(shared))
        assert row.low <= row.overlap <= row.high
    with pytest.raises(ArgumentError, match="lists were not kept"):
        evaluate(ratings, ["bias"], metrics=["mae"]).overlap()


def test_without_a_table_of_items_there_is_no_diversity():
    plain = made().to_frame()
    result = evaluate(plain, ["bias"], metrics=["diversity@5", "mae"])
    assert set(result.frame["metric"]) == {"mae"}
    assert SideEncoder().fit(made().item_table).used_


# ---- splits ----------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6), n=st.integers(1, 3), ties=st.sampled_from(["random", "file"]))
def test_the_last_ratings_of_each_user_are_tested(seed, n, ties):
    frame = made(seed).to_frame()
    [fold] = LeaveLast(n, ties, seed).split(Ratings.from_frame(frame))
    tested = fold.test.to_frame()
    for user, rows in frame.groupby("user"):
        mine = tested[tested["user"] == user]
        if len(rows) <= n:
            assert mine.empty
            continue
        assert len(mine) == n
        others = rows[~rows["item"].isin(mine["item"])]
        assert others["timestamp"].max() <= mine["timestamp"].min()
        if ties == "file":
            last = rows.sort_values("timestamp", kind="stable").tail(n)
            assert set(mine["item"]) == set(last["item"])


def test_ties_are_said_and_have_a_name():
    assert split_from_name("last:2,file") == LeaveLast(2, "file")
    assert split_from_name("user-time:0.3,file") == UserTime(0.3, "file")
    assert LeaveLast(2, "file").name == "last:2,file"
    with pytest.raises(ArgumentError, match='ties must be "random" or "file"'):
        split_from_name("last:1,row")
    result = evaluate(made(), ["mean"], "last:1,file", metrics=["mae"])
    assert "ties='file'" in result.caption()
    assert "ties='random'" in evaluate(made(), ["mean"], "last:1", metrics=["mae"]).caption()


@given(seed=st.integers(0, 10**6))
def test_cold_items_are_whole_items(seed):
    ratings = made(seed)
    [fold] = ColdItems(0.25, seed).split(ratings)
    assert not set(fold.train.items) & set(fold.test.items)
    assert len(set(fold.test.items)) == 4


@given(seed=st.integers(0, 10**6), k=st.integers(1, 4))
def test_recall_among_cold_items_by_hand(seed, k):
    ratings = made(seed)
    [fold] = ColdItems(0.25, 0).split(ratings)
    rng = np.random.default_rng(seed)
    order = rng.permutation(16)
    lists = pd.DataFrame([(u, i, p) for u in range(30) for p, i in enumerate(order)],
                         columns=["user", "item", "rank"])  # fmt: skip
    result = evaluate(
        fold.train, {"m": predictions_from_frame(lists)}, test=fold.test,
        metrics=[f"cold_recall@{k}"], n_resamples=0, on_error="raise",
    )  # fmt: skip
    cold = [item for item in order if item in set(fold.test.items)]
    recalls = [
        len(set(cold[:k]) & set(mine)) / min(k, len(mine))
        for _, mine in fold.test.to_frame().groupby("user")["item"]
    ]
    assert result.summary("macro").iloc[0, 0] == pytest.approx(np.mean(recalls))
