"""Predictions made elsewhere: against plain Python, and against the models that made them."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordrec.data import Ratings
from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation import (
    Candidates,
    evaluate,
    evaluate_predictions,
    predictions_from_frame,
)
from ordrec.evaluation.metrics.measures import UserSums
from ordrec.evaluation.problems.base import Measurement
from ordrec.evaluation.significance.against_best import against_best
from ordrec.lists.frames import predict_pairs
from ordrec.recommend import make_model


def parts(seed: int = 0, n: int = 200) -> tuple[Ratings, Ratings]:
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(20 * 15)[:n]
    frame = pd.DataFrame({"user": pairs // 15, "item": pairs % 15 + 100})
    frame["rating"] = np.clip(np.rint(3 + rng.normal(size=20)[frame["user"]]), 1, 5)
    cut = 3 * n // 4
    scale = range(1, 6)
    return (
        Ratings.from_frame(frame[:cut], scale=scale),
        Ratings.from_frame(frame[cut:], scale=scale),
    )


def pairs_of(test: Ratings) -> pd.DataFrame:
    return test.to_frame()[["user", "item"]]


@pytest.mark.parametrize("name", ["bias", "histogram"])
def test_a_models_own_predictions_have_its_values(name):
    train, test = parts()
    table = predict_pairs(make_model(name).fit(train), pairs_of(test)).drop(columns=["known_user"])
    shuffled = table.sample(frac=1, random_state=0)
    result = evaluate(
        train,
        {"model": name, "file": predictions_from_frame(shuffled.drop(columns="known_item"))},
        test=test,
    )
    summary = result.summary().drop(columns=["fit_seconds", "predict_seconds", "ndcg@10"])
    summary = summary.dropna(axis=1, how="all")
    assert len(summary.columns) > 3
    np.testing.assert_allclose(summary.loc["file"], summary.loc["model"], rtol=1e-12)
    assert math.isnan(result.summary().loc["file", "ndcg@10"])  # it does not rank the catalogue


def test_a_models_own_lists_have_its_values():
    train, test = parts(1)
    model = make_model("ease").fit(train)
    rows = []
    for user in train.user_ids:
        scores = model.scores_block([user])[0]
        for item, score in zip(model.item_ids_, scores, strict=True):
            rows.append((user, item, score + 1e-9 * item))  # no ties
    lists = pd.DataFrame(rows, columns=["user", "item", "score"])
    known = train.to_frame()[["user", "item"]]
    unseen = lists.merge(known, how="left", indicator=True).query("_merge == 'left_only'")
    result = evaluate(
        train,
        {"model": "ease", "file": predictions_from_frame(unseen[["user", "item", "score"]])},
        test=test,
        metrics=["ndcg@5", "recall@5", "hit_rate@3", "map", "mrr", "coverage@5", "novelty@5"],
    )
    summary = result.summary()
    for metric in ("recall@5", "hit_rate@3", "coverage@5", "novelty@5"):
        assert summary.loc["file", metric] == pytest.approx(summary.loc["model", metric], abs=0.05)
    with pytest.warns(UserWarning, match="listed items were rated by the user in training"):
        seen = evaluate_predictions(lists, test, train=train, metrics=["ndcg@5", "map"])
    for metric in ("ndcg@5", "map"):  # what was rated in training is left out in any case
        value = result.summary().loc["file", metric]
        assert seen.summary().loc["predictions", metric] == pytest.approx(value, abs=1e-12)


@given(seed=st.integers(0, 10**6), k=st.integers(1, 8), by_rank=st.booleans())
def test_lists_by_plain_python(seed, k, by_rank):
    """Short lists with items nobody rated, users without lists, and no training part."""
    rng = np.random.default_rng(seed)
    test = parts(seed, 80)[1]
    lists = {
        int(user): rng.permutation(np.arange(95, 120))[: rng.integers(1, 7)].tolist()
        for user in rng.permutation(20)[:15]
    }
    rows = [(u, i, place) for u, found in lists.items() for place, i in enumerate(found, 1)]
    frame = pd.DataFrame(rows, columns=["user", "item", "rank"]).sample(frac=1, random_state=1)
    if not by_rank:
        frame = frame.assign(rank=-frame["rank"] / 3).rename(columns={"rank": "score"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = evaluate_predictions(
            frame, test, n_resamples=0, metrics=[f"hit_rate@{k}", f"recall@{k}", "mrr", f"ndcg@{k}"]
        )
    said = result.summary("macro").iloc[0]
    hits, recalls, firsts, gains = [], [], [], []
    for user, rated in test.to_frame().groupby("user"):
        listed = lists.get(user, [])
        stars = dict(zip(rated["item"], rated["rating"], strict=True))
        liked = {item for item, rating in stars.items() if rating >= 4}
        hits.append(any(item in stars for item in listed[:k]))
        dcg = sum(
            (2 ** (stars.get(i, 1) - 1) - 1) / math.log2(p + 2) for p, i in enumerate(listed[:k])
        )
        best = sorted((2 ** (rating - 1) - 1 for rating in stars.values()), reverse=True)[:k]
        ideal = sum(gain / math.log2(p + 2) for p, gain in enumerate(best))
        if ideal:
            gains.append(dcg / ideal)
        if liked:
            recalls.append(len(liked & set(listed[:k])) / len(liked))
            firsts.append(max([1 / p for p, i in enumerate(listed, 1) if i in liked], default=0))
    for metric, values in {
        f"hit_rate@{k}": hits, f"recall@{k}": recalls, "mrr": firsts, f"ndcg@{k}": gains
    }.items():  # fmt: skip
        if values:
            assert said[metric] == pytest.approx(np.mean(values), abs=1e-9), metric


def test_the_metrics_of_a_table_follow_from_its_kind():
    _, test = parts(2)
    pairs = pairs_of(test)
    ratings = pairs.assign(est=3.0)
    lists = pairs.assign(rank=range(1, len(pairs) + 1))
    only = evaluate_predictions(lists, test, n_resamples=0)
    assert set(only.frame["metric"]) == {"ndcg@10", "recall@10", "hit_rate@10", "coverage@10"}
    both = evaluate_predictions({"r": ratings, "l": lists}, test, n_resamples=0)
    of = both.frame.groupby("model")["metric"].unique()
    assert set(of["r"]) == {"rmse", "mae", "int_mae", "mze", "fcp"}
    assert set(of["l"]) == {"ndcg@10"}
    rated = evaluate_predictions(
        ratings, test, metrics=["ndcg@10"], candidates="rated", n_resamples=0
    )
    assert set(rated.frame["candidates"]) == {"rated"}
    with pytest.raises(ArgumentError, match="none of the metrics"):
        evaluate_predictions(ratings, test, metrics=["ndcg@10"])


def test_distributions_by_names_of_ratings():
    _, test = parts(3)
    p = np.random.default_rng(0).dirichlet(np.ones(5), test.n_ratings)
    for names in (["5", "1", "2", "3", "4"], ["p_5", "p_1", "p_2", "p_3", "p_4"], [5, 1, 2, 3, 4]):
        frame = pairs_of(test).join(pd.DataFrame(np.roll(p, 1, axis=1), columns=names))
        result = evaluate_predictions(frame, test, metrics=["log_loss", "rmse"])
        log_loss = -np.log(p[np.arange(len(p)), test.levels]).mean()
        assert result.summary().iloc[0]["log_loss"] == pytest.approx(log_loss)
        expected = p @ np.arange(1, 6)
        rmse = np.sqrt(((expected - test.values) ** 2).mean())
        assert result.summary().iloc[0]["rmse"] == pytest.approx(rmse)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t[1:], r"no prediction for user .* \(1 of 50 test ratings\)"),
        (lambda t: pd.concat([t, t[:2]]), "row 50: user .* occur twice .2 in all"),
        (lambda t: t.assign(est=np.where(t.index == 3, np.nan, 1)), "row 3: est is nan"),
        (lambda t: t.rename(columns={"est": "what"}), "call it prediction"),
        (lambda t: t[:0], "no predictions"),
        (lambda t: t.drop(columns="user"), "no column 'user'"),
        (lambda t: t.assign(p_1=0.5, p_2=0.4), "row 0: its probabilities sum to 0.9"),
        (lambda t: t.assign(p_1=0.5, p_2=0.5), "give one column for each of its ratings"),
    ],
)
def test_what_is_wrong_is_named(change, message):
    _, test = parts(4)
    frame = pairs_of(test).assign(est=3.0)
    with pytest.raises(DataError, match=message):
        evaluate_predictions(change(frame), test)


def test_ids_of_another_type_are_said():
    _, test = parts(5)
    frame = pairs_of(test).assign(est=3.0).astype({"user": str})
    with (
        pytest.raises(DataError, match="no prediction"),
        pytest.warns(UserWarning, match="convert them"),
    ):
        evaluate_predictions(frame, test)


def test_our_models_need_a_training_part():
    train, test = parts(6)
    theirs = pairs_of(test).assign(est=3.0)
    with pytest.raises(ArgumentError, match="train= is what bias"):
        evaluate_predictions({"theirs": theirs, "bias": "bias"}, test)
    both = evaluate_predictions({"theirs": theirs, "bias": "bias"}, test, train=train)
    assert list(both.summary().index) == ["theirs", "bias"]


# ---- against a reference ---------------------------------------------------------------------


def measured(values: np.ndarray) -> list[Measurement]:
    sums = UserSums(np.arange(values.size), values, np.ones(values.size))
    return [Measurement(sums={("all", "mae", "macro"): sums})]


def test_verdicts_against_a_reference_are_those_of_paired_draws():
    rng = np.random.default_rng(0)
    base = rng.uniform(0, 1, 300)
    shifts = {"reference": 0.0, "better": -0.1, "worse": 0.1, "same": 0.0}
    models = {
        name: measured(base + shift + 0.2 * rng.normal(size=300) * (name != "reference"))
        for name, shift in shifts.items()
    }
    table = against_best(models, against="reference", seed=3).set_index("model")
    assert table["verdict"].to_dict() == {
        "reference": "reference", "better": "better", "worse": "worse", "same": "tied"
    }  # fmt: skip
    assert set(table["against"]) == {"reference"}
    draws = np.random.default_rng(9)
    for name in ("better", "worse", "same"):
        apart = models[name][0].sums["all", "mae", "macro"].sums - base
        assert table.loc[name, "difference"] == pytest.approx(apart.mean())
        means = apart[draws.integers(0, 300, (4000, 300))].mean(axis=1)
        p = 2 * min((means <= 0).mean(), (means >= 0).mean())
        assert table.loc[name, "p"] == pytest.approx(p, abs=0.05)


def test_a_metric_without_the_reference_has_intervals_only():
    models = {"a": measured(np.arange(9.0)), "b": measured(np.arange(9.0) + 1)}
    table = against_best(models, against="c", seed=0)
    assert set(table["verdict"]) == {""}
    assert (table["low"] < table["high"]).all()


def test_the_reference_is_named_in_table_and_caption():
    train, test = parts(7, 280)
    result = evaluate(train, ["mean", "bias"], test=test, against="mean", metrics=["rmse"])
    assert result.reference == "mean"
    assert "better, worse than mean" in result.test_caption()
    assert result.standings()["rmse", "bias"].mark == "+"
    assert result.standings()["rmse", "mean"].mark == ""
    assert "$^{+}$" in result.to_latex()
    assert result.plot() is not None
    with pytest.raises(ArgumentError, match="against must be one of mean, bias"):
        evaluate(train, ["mean", "bias"], test=test, against="ease")


# ---- what newcomers met ----------------------------------------------------------------------


def test_a_printed_summary_has_intervals_and_tests():
    """`print(result.summary())` did not print intervals although the README said so."""
    train, test = parts(8, 280)
    result = evaluate(train, ["mean", "bias"], test=test, metrics=["rmse"])
    text = str(result.summary())
    standing = result.standings()["rmse", "bias"]
    value = result.summary().loc["bias", "rmse"]
    assert f"{value:.4f}* ±{standing.half_width:.4f}" in text
    assert "Best: *; ~: not significantly worse" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "±" not in str(evaluate(train, ["mean"], test=test, n_resamples=0).summary())
    assert type(result.summary()[["rmse"]]) is pd.DataFrame  # an ordinary frame


def test_a_plot_is_a_picture_in_a_notebook():
    train, test = parts(8, 280)
    figure = evaluate(train, ["mean", "bias"], test=test, metrics=["rmse"]).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_candidates_are_a_mapping_and_implicit_needs_its_adapter():
    with pytest.raises(ArgumentError, match=r"Candidates\.grid"):
        Candidates(make_model("bias"), "rmse")
    stranger = type("AlternatingLeastSquares", (), {"__module__": "implicit.als", "fit": None})()
    with pytest.raises(ArgumentError, match=r"ordrec\.peers\.ImplicitModel\(model\)"):
        evaluate(parts()[0], {"als": stranger})


def test_seconds_that_count_shared_work_twice_say_so():
    train, test = parts(8)
    assert "counts in both" in evaluate(train, ["mean", "bias"], test=test).caption()
    assert "counts in both" not in evaluate(train, ["mean"], test=test).caption()


def test_distributions_predict_their_mean_whatever_the_order_of_the_columns():
    _, test = parts(7)
    p = np.random.default_rng(1).dirichlet(np.ones(5), test.n_ratings)
    names = [f"p_{rating}" for rating in (3, 1, 5, 4, 2)]
    frame = pairs_of(test).join(pd.DataFrame(p[:, [2, 0, 4, 3, 1]], columns=names))
    model = predictions_from_frame(frame).fit(test)
    pairs = pairs_of(test)
    found = model.predict(pairs["user"], pairs["item"])
    np.testing.assert_allclose(found, p @ np.arange(1, 6), atol=1e-12)


def test_lists_for_nobody_who_is_tested_are_said():
    train, test = parts(8)
    lists = pd.DataFrame({"user": test.user_ids.astype(str), "item": test.item_ids[0], "rank": 1})
    with (
        pytest.warns(UserWarning, match="convert them"),
        pytest.warns(UserWarning, match="20 of 20 test users have no list"),
    ):
        result = evaluate_predictions(lists, test, train=train, metrics=["hit_rate@5"])
    assert result.summary().iloc[0]["hit_rate@5"] == 0.0
