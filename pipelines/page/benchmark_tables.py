"""The tables in docs/benchmarks, each made from the recorded cells of an experiment.

Most of them are a `grid`: a row and a column for each combination of values that occurs in the
cells, means over the trials with standard errors, and published numbers in brackets. Tables of
another form have a function of their own. ``TABLES`` names them all.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from benchmark_grid import (
    Table,
    Where,
    combinations,
    crossed,
    grid,
    names,
    number,
    pick,
    published_of,
    published_rows,
    sizes,
    split,
    with_seconds,
)

from ordrec.evaluation.significance import friedman
from ordrec.experiments.runner import list_pipelines

ERRORS = {"mze": "MZE", "mae": "MAE"}
ABSOLUTE_FIRST = {"mae": "MAE", "mze": "MZE"}
RATING_METRICS = {
    "RMSE": {"metric": "rmse"},
    "MAE": {"metric": "mae"},
    "int MAE": {"metric": "int_mae"},
    "MZE": {"metric": "mze"},
    "log-loss": {"metric": "log_loss"},
}


# ---- tables of rating models -----------------------------------------------------------------


def rating_models(frame: pd.DataFrame) -> dict[str, Where]:
    """Return the models of `ordrec.experiments.rating_benchmarks` under names that say it all."""
    kinds = {"bias": "damped biases", "factors": "`OrdinalFactors()`"}
    knows = {"ids": "ids", "side": "side data", "time": "side data, time of the rating known"}
    rows: dict[str, Where] = {}
    for model in frame["model"].unique():
        name, _, inputs = model.partition(", ")
        words = kinds.get(name, f'`RatingPredictor("{name}")`' if inputs else name)
        rows[f"{words}, {knows[inputs]}" if inputs else words] = {"model": model}
    return rows


def ml_100k_folds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return fold u1 beside the means over all folds."""
    rows = rating_models(frame)
    of_first: dict[str, Where] = {
        f"u1: {head}": {**where, "fold": "1"} for head, where in RATING_METRICS.items()
    }
    of_all = {f"all: {head}": RATING_METRICS[head] for head in ("RMSE", "MAE", "log-loss")}
    made = crossed(frame, rows, of_first | of_all, digits=4, errors=False)
    theirs = published_rows("ml-100k-folds", of_first)
    return pd.concat([made, theirs]).fillna("-").rename_axis("model")


def ml_1m(frame: pd.DataFrame) -> pd.DataFrame:
    """Return means and standard errors over random splits."""
    rows = rating_models(frame)
    made = crossed(frame, rows, RATING_METRICS, digits=4)
    theirs = published_rows("ml-1m", RATING_METRICS)
    return pd.concat([made, theirs]).fillna("-").rename_axis("model")


def monti(frame: pd.DataFrame) -> pd.DataFrame:
    """Return RMSE and MAE on three sets, beside published ones."""
    columns: dict[str, Where] = {
        f"{data.replace('-', ' ').title()} {head}": {"data": data, "metric": metric}
        for data in frame["data"].unique()
        for head, metric in {"RMSE": "rmse", "MAE": "mae"}.items()
    }
    made = crossed(frame, rating_models(frame), columns, digits=4)
    return pd.concat([made, published_rows("monti", columns)]).rename_axis("model")


def user_time(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a random fifth beside the latest fifth of each user."""
    rows: dict[str, Where] = {
        f"{data}: {head}": {"data": data, **where}
        for data in frame["data"].unique()
        for head, where in rating_models(frame).items()
    }
    frame = frame.assign(latest=frame["split"].str.startswith("user-time"))
    columns: dict[str, Where] = {
        f"{part} fifth: {head}": {"latest": latest, **RATING_METRICS[head]}
        for part, latest in {"random": False, "latest": True}.items()
        for head in ("RMSE", "int MAE", "log-loss")
    }
    return crossed(frame, rows, columns, digits=4).rename_axis("data and model")


def uncertainty(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of the chosen measure beside the best published ones."""
    chosen, theirs = frame[frame["chosen"]], published_of("uncertainty-ml-1m")
    heads = {
        "RMSE": "rmse", "Pearson": "unc_pearson", "Spearman": "unc_spearman", "RPI": "unc_rpi",
        "AUC": "unc_auc", "RMSE spread": "unc_rmse_spread",
    }  # fmt: skip
    columns = {head: {"metric": metric} for head, metric in heads.items()}
    made = crossed(chosen, {"`OrdinalFactors`, without the time of the rating": {}}, columns)
    made.loc["best published of each column"] = [
        number(pick(theirs, where)["mean"].iloc[0], 3) for where in columns.values()
    ]
    return made.rename_axis("model")


def per_user(frame: pd.DataFrame) -> pd.DataFrame:
    """Return absolute and zero-one errors by model and number of ratings."""
    rows = frame["model"].str.split(", ").str[0].unique()
    table = {}
    for size in sorted(frame["n_train"].unique()):
        of_size = frame[frame["n_train"] == size]
        table[f"{size} ratings"] = [
            ", ".join(
                " / ".join(
                    number(pick(of_size, {"model": model, "metric": metric})["value"].mean(), 3)
                    for metric in ("mae", "mze")
                )
                for model in of_size["model"].unique()
                if model.split(", ")[0] == row
            )
            for row in rows
        ]
    heads = ["biases, rounded" if row == "biases" else row for row in rows]
    return pd.DataFrame(table, index=heads).rename_axis("model")


# ---- tables of documents and of time ---------------------------------------------------------


def letor_ohsumed(frame: pd.DataFrame) -> pd.DataFrame:
    """Return NDCG at ten cut-offs and MAP beside published ones, with intervals over queries."""
    metrics = [*(f"ndcg@{k}" for k in range(1, 11)), "map"]
    columns: dict[str, Where] = {
        "MAP" if metric == "map" else metric.removeprefix("ndcg"): {"metric": metric}
        for metric in metrics
    }
    made = crossed(frame, names(frame, "model"), columns, digits=4, errors=False)
    ends = frame.drop_duplicates(["model", "metric"]).set_index(["model", "metric"])
    for model in frame["model"].unique():
        made.loc[f"{model}, 95 % over queries"] = [
            f"{number(ends.loc[(model, metric), 'low'], 3)} to "
            f"{number(ends.loc[(model, metric), 'high'], 3)}"
            for metric in metrics
        ]
    return pd.concat([made, published_rows("letor-ohsumed", columns)]).rename_axis("NDCG")


def document_tags(frame: pd.DataFrame) -> pd.DataFrame:
    """Return each ranker's means over the queries, with 95 % intervals."""
    values = frame.set_index(["model", "metric"])[["value", "low", "high"]]
    texts = values.apply(
        lambda row: (
            f"{number(row['value'], 4)} ({number(row['low'], 3)} to {number(row['high'], 3)})"
        ),
        axis=1,
    )
    return texts.unstack(sort=False).rename_axis(index="ranker", columns=None)


def svor_scaling(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds of fits to some numbers of rows, and the exponent over all of them."""
    frame = frame[frame["metric"] == "mze"].assign(value=lambda f: f["fit_seconds"])
    rows = combinations(frame, ("data", "model"), {})
    ladder = np.sort(frame["n_train"].unique())
    step = max(1, len(ladder) // 6)
    some = {f"{n} rows, s": {"n_train": n} for n in ladder[::-step][::-1]}
    made = crossed(frame, rows, some)
    made["exponent"] = [
        number(np.polyfit(np.log(timed["n_train"]), np.log(timed["value"]), 1)[0], 2)
        for timed in (pick(frame, where) for where in rows.values())
    ]
    return made.rename_axis("ranks and model")


def equal_tolerances(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows where both tolerances are the same, the largest first."""
    equal = frame[frame["absolute"] == frame["relative"]]
    equal = equal.sort_values("absolute", ascending=False, kind="stable")
    return equal.assign(tolerances=equal["absolute"].map("{:g}".format))


def with_average_ranks(
    frame: pd.DataFrame, errors: dict[str, str], compared: list[str]
) -> pd.DataFrame:
    """Return the errors on each set, and the average ranks of the methods that are compared."""
    made = grid(("metric", "data"), ("model",), shown={"metric": errors})(frame)
    for metric, head in errors.items():
        of_metric = frame[frame["metric"] == metric]
        means = of_metric.pivot_table("value", "data", "model", sort=False)[compared]
        test = friedman(means)
        p = "< .001" if test.p < 0.001 else number(test.p, 3)
        row = f"{head}, average rank (Friedman's p {p})"
        made.loc[row] = [
            number(test.ranks[model], 2) if model in compared else "-" for model in made
        ]
    return made


def ten_methods(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of all rows, and the average ranks of the paper's ten methods."""
    compared = list(list_pipelines()["npsvor-tables"].load().PAPER)
    return with_average_ranks(frame, ERRORS, compared)


def trees(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of ensembles of trees and of all others, and their average ranks."""
    return with_average_ranks(frame, ABSOLUTE_FIRST, frame["model"].unique().tolist())


# ---- all tables ------------------------------------------------------------------------------

SUPPORT_VECTORS = {"SVR": "`SVRanks`", "SLA": "`SVORSLA`", "EXC": "`SVOREX`", "IMC": "`SVORIM`"}


def lists_and_pooled_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows without errors that are means over users."""
    return frame[(frame["metric"] != "rmse") | (frame["average"] == "micro")]


LISTS = {
    "graded_ndcg@10": "graded NDCG@10",
    "pick_ndcg@10": "NDCG@10",
    "hit_rate@10": "HR@10",
    "recall@20": "Recall@20",
    "pick_ndcg@20": "NDCG@20",
    "pick_calibration@10": "expected over observed hits",
}
future_lists = grid(("data", "model"), ("metric",), shown={"metric": LISTS})

TABLES: dict[str, Table] = {
    "amazon-beauty": future_lists,
    "anime-events": grid(
        ("model",),
        ("metric",),
        prepare=lists_and_pooled_errors,
        shown={"metric": {"graded_ndcg@10": "graded NDCG@10", "rmse": "RMSE"}},
    ),
    "elliot-ml-1m": grid(
        ("model",),
        ("metric",),
        shown={"metric": {"pick_ndcg@10": "nDCG@10", "coverage@10": "coverage"}},
    ),
    "gpor-eachmovie": grid(
        ("data", "model"),
        ("metric", "n_train"),
        shown={
            "data": {"eachmovie, mean": "means", "eachmovie, low-rank": "low-rank"},
            "metric": ABSOLUTE_FIRST,
            "n_train": sizes([50, 100, 200, 300], "movies"),
        },
    ),
    "gpor-genes": grid(
        ("genes",),
        ("inference",),
        prepare=split("model", "inference", "genes"),
        shown={
            "metric": {"mae": "MAE"},
            "inference": {
                "laplace": "`GPOR`, Laplace",
                "ep": "`GPOR`, EP",
                "svm": "`SVORIM`, genes by Laplace",
            },
        },
    ),
    "gpor-synthetic": grid(
        ("data", "model"), ("metric",), shown={"metric": ERRORS | {"log_loss": "log-loss"}}
    ),
    "gpor-tables": grid(
        ("data",),
        ("metric", "model"),
        shown={"metric": ERRORS, "model": {each: each for each in ("SVM", "GPR", "Laplace", "EP")}},
    ),
    "gpor-tables-bound": grid(
        ("data",),
        ("metric", "model"),
        shown={
            "metric": ERRORS | {"log_loss": "log-loss"},
            "model": {each: each for each in ("Laplace", "EP", "EP bound")},
        },
    ),
    "document-tags": document_tags,
    "letor-ohsumed": letor_ohsumed,
    "lists": future_lists,
    "logistic-limits": grid(("data",), ("metric", "model"), shown={"metric": ERRORS}),
    "ml-100k-folds": ml_100k_folds,
    "ml-1m": ml_1m,
    "monti": monti,
    "next-ml-1m": future_lists,
    "next-picks": future_lists,
    "npsvor-clusters": grid(("model",), ("metric",), shown={"metric": ERRORS}),
    "npsvor-epsilon": grid(("model",), ("data", "metric"), shown={"metric": ERRORS}),
    "npsvor-movielens": grid(
        ("metric", "model"),
        ("n_train",),
        shown={"metric": ABSOLUTE_FIRST, "n_train": sizes(range(100, 401, 50), "movies")},
    ),
    "npsvor-scaling": grid(
        ("model",),
        ("metric", "n_train"),
        prepare=with_seconds,
        shown={
            "metric": ERRORS | {"seconds": "seconds"},
            "n_train": sizes([100, 1000, 10_000]),
        },
    ),
    "npsvor-tables": grid(
        ("metric", "data"), ("model",), shown={"metric": ERRORS}, published="npsvor-tables"
    ),
    "npsvor-tables-stock": grid(
        ("metric", "data"),
        ("model",),
        shown={"metric": ERRORS},
        published="npsvor-tables",
        digits=4,
    ),
    "npsvor-tables-ten": ten_methods,
    "npsvor-times": grid(("n_train", "data"), ("model",), digits=2),
    "npsvor-tolerances": grid(
        ("tolerances",),
        ("data", "metric"),
        prepare=equal_tolerances,
        shown={"metric": ERRORS},
    ),
    "orboost-artificial": grid(("model",), ("metric",), counts=("rounds",)),
    "orboost-rounds": grid(("metric", "part", "model"), ("round",), shown={"metric": ERRORS}),
    "orboost-tables": grid(
        ("data", "base"),
        ("metric", "kind"),
        prepare=split("model", "kind", "base"),
        shown={
            "metric": ERRORS,
            "kind": {
                "ORBoost-LR": "`ORBoost` left-right",
                "ORBoost-All": "`ORBoost` all",
                "RankBoost-AE": "`RankBoostAE`",
            },
        },
        published="orboost-tables",
    ),
    "orboost-trees": trees,
    "per-user-eachmovie": per_user,
    "per-user-ml-100k": per_user,
    "svor-grading": grid(
        ("model",),
        ("metric",),
        shown={
            "model": SUPPORT_VECTORS,
            "metric": {
                "b1": "b1",
                "b2": "b2",
                "wrong": "students misplaced",
                "objective": "objective",
            },
        },
        counts=("wrong",),
    ),
    "svor-ohsumed": grid(
        ("metric", "model"),
        ("n_train",),
        shown={
            "metric": ERRORS,
            "model": SUPPORT_VECTORS,
            "n_train": sizes(range(20, 61, 10), "documents"),
        },
    ),
    "svor-scaling": svor_scaling,
    "svor-table1": grid(
        ("data",),
        ("metric", "model"),
        shown={"metric": ERRORS, "model": SUPPORT_VECTORS},
        published="svor-table1",
    ),
    "svor-table2": grid(
        ("data",),
        ("metric", "model"),
        shown={"metric": ERRORS, "model": SUPPORT_VECTORS},
        published="svor-table2",
    ),
    "uncertainty-ml-1m": uncertainty,
    "user-time": user_time,
}
