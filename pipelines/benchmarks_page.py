"""Write the tables of BENCHMARKS.md from the kept results of experiments.

    python pipelines/benchmarks_page.py [--check]

The page is written by hand but for blocks between two lines,

    <!-- table: NAME -->
    <!-- end -->

which hold the table of the results kept in ``pipelines/results/NAME`` (see ``keep_results.py``) and
a line with the command, the number of trials and the commit. A block that begins with ``earlier:
NAME`` has a table from before results were kept; it becomes such a block as soon as there are
results of this name. Published numbers come from ``pipelines/published``. With ``--check`` nothing
is written, and the exit code is 1 if the page differs from what would be written.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.errors import ArgumentError
from ordrec.experiments.kept import Kept, kept_results
from ordrec.experiments.runner import published_csv

PAGE = Path(__file__).parent.parent / "BENCHMARKS.md"
BLOCK = re.compile(
    r"<!-- (?P<kind>table|earlier): (?P<name>\S+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL
)
Where = Mapping[str, object]  # the values of columns that pick the trials of a number


def main() -> None:
    """Write the page, or check it."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true")
    old = PAGE.read_text(encoding="utf-8")
    new = filled(old, kept_results())
    if options.parse_args().check:
        options.exit(int(new != old), "" if new == old else f"{PAGE.name} is not up to date\n")
    PAGE.write_text(new, encoding="utf-8")


def filled(page: str, results: Mapping[str, Kept]) -> str:
    """Return the page with every block as its kept results say."""

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in TABLES:
            raise ArgumentError(f"no table is called {name!r}: there are {', '.join(TABLES)}")
        if name in results:
            return f"<!-- table: {name} -->\n{shown(name, results[name])}\n<!-- end -->"
        if found["kind"] == "earlier":
            return found[0]
        return f"<!-- table: {name} -->\n(No results are kept yet.)\n<!-- end -->"

    return BLOCK.sub(block, page)


def shown(name: str, kept: Kept) -> str:
    """Return the table of an experiment and the line under it."""
    table = TABLES[name](kept.frame)
    lines = [[table.index.name or "", *map(str, table)], ["---"] * (table.shape[1] + 1)]
    lines += [[str(row), *values] for row, values in zip(table.index, table.values, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n({kept.provenance})"


# ---- numbers ---------------------------------------------------------------------------------


def crossed(
    frame: pd.DataFrame,
    rows: Mapping[str, Where],
    columns: Mapping[str, Where],
    *,
    digits: int = 3,
    errors: bool = True,
    published: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return a table of means and, with several trials and ``errors``, standard errors.

    A published number for the same data set, model and metric stands in brackets.
    """
    table = {}
    for head, of_column in columns.items():
        cells = []
        for of_row in rows.values():
            where = {**of_row, **of_column}
            found = pick(frame, where)
            if "average" in found and found["average"].nunique() > 1:
                raise ArgumentError(f"{where}: several averages: keep one of them")
            text = mean(found["value"], digits, errors)
            if published is not None:
                known = [key for key in ("data", "model", "metric") if key in where]
                theirs = pick(published, {key: where[key] for key in known})["mean"]
                text += f" ({number(theirs.iloc[0], digits)})" if len(theirs) == 1 else ""
            cells.append(text)
        table[head] = cells
    return pd.DataFrame(table, index=list(rows))


def pick(frame: pd.DataFrame, where: Where) -> pd.DataFrame:
    """Return the rows that have these values."""
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame


def mean(values: pd.Series, digits: int, errors: bool = True) -> str:
    """Return a mean, with its standard error if wanted; a dash if there is no value."""
    if values.empty:
        return "-"
    text = number(values.mean(), digits)
    return f"{text} ± {number(values.sem(), digits)}" if errors and len(values) > 1 else text


def number(value: float, digits: int) -> str:
    """Return a number without the zero before the point.

    Examples
    --------
    >>> number(0.25, 3), number(-0.25, 2), number(1.5, 1)
    ('.250', '-.25', '1.5')
    """
    if np.isnan(value):
        return "-"
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.{digits}f}")


def names(frame: pd.DataFrame, column: str) -> dict[str, Where]:
    """Return the distinct values of a column, as rows of a table."""
    return {str(value): {column: value} for value in frame[column].unique()}


def published_of(name: str) -> pd.DataFrame:
    """Return the published numbers of an experiment."""
    return pd.read_csv(published_csv(name))


def published_rows(name: str, columns: Mapping[str, Where]) -> pd.DataFrame:
    """Return the numbers of other methods as they were published, each row with its source."""
    rows = {}
    as_printed = pd.read_csv(published_csv(name), dtype={"mean": str})
    for (model, source), part in as_printed.groupby(["model", "table"], sort=False):
        values = []
        for where in columns.values():
            of_column = {key: where[key] for key in ("data", "metric") if key in where}
            found = pick(part, of_column)["mean"]
            values.append("-" if found.empty else found.iloc[0].removeprefix("0"))
        rows[f"{model}, published: {source}"] = values
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(columns))


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


# ---- tables ----------------------------------------------------------------------------------


def errors_of(name: str, models: Mapping[str, str]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a table of zero-one and absolute errors: a row per data set."""

    def table(frame: pd.DataFrame) -> pd.DataFrame:
        columns = {
            f"{metric.upper()}, {shown_as}": {"metric": metric, "model": model}
            for metric in ("mze", "mae")
            for model, shown_as in models.items()
        }
        made = crossed(frame, names(frame, "data"), columns, published=published_of(name))
        return made.rename_axis("table")

    return table


def gpor_tables(frame: pd.DataFrame) -> pd.DataFrame:
    """Return zero-one errors of the tables cut into intervals of equal length."""
    sets = frame["data"].str.extract(r"^(\w+), 5 intervals$")[0].dropna().unique()
    frame = frame[frame["metric"] == "mze"]
    columns = {
        f"{bins} intervals, {model}": {"bins": bins, "model": model}
        for bins in (5, 10)
        for model in ("SVM", "Laplace", "EP")
    }
    parts = frame["data"].str.extract(r"^(?P<table>\w+), (?P<bins>\d+) intervals$")
    frame = frame.assign(table=parts["table"], bins=parts["bins"].astype(float))
    return crossed(frame, {each: {"table": each} for each in sets}, columns).rename_axis("table")


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


def elliot(frame: pd.DataFrame) -> pd.DataFrame:
    """Return NDCG and hits expected per hit observed, by model."""
    columns = {"nDCG@10": {"metric": "pick_ndcg@10"}, "coverage": {"metric": "coverage@10"}}
    return crossed(frame, names(frame, "model"), columns).rename_axis("model")


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


def uncertainty(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the metrics of the chosen measure beside the best published ones."""
    chosen, theirs = frame[frame["chosen"]], published_of("uncertainty-ml-1m")
    heads = {"unc_auc": "AUC", "unc_rpi": "RPI", "rmse": "RMSE"}
    columns = {
        heads.get(metric, metric.removeprefix("unc_").replace("_", " ")): {"metric": metric}
        for metric in chosen["metric"].unique()
    }
    made = crossed(chosen, {"`OrdinalFactors`, without the time of the rating": {}}, columns)
    made.loc["best published of each column"] = [
        number(pick(theirs, where)["mean"].iloc[0], 3) for where in columns.values()
    ]
    return made


RATING_METRICS = {
    "RMSE": {"metric": "rmse"},
    "MAE": {"metric": "mae"},
    "int MAE": {"metric": "int_mae"},
    "MZE": {"metric": "mze"},
    "log-loss": {"metric": "log_loss"},
}


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


TABLES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "elliot-ml-1m": elliot,
    "gpor-tables": gpor_tables,
    "letor-ohsumed": letor_ohsumed,
    "ml-100k-folds": ml_100k_folds,
    "ml-1m": ml_1m,
    "monti": monti,
    "orboost-tables": errors_of(
        "orboost-tables",
        {
            "ORBoost-LR, sigmoid": "`ORBoost` left-right",
            "ORBoost-All, sigmoid": "`ORBoost` all",
            "RankBoost-AE, sigmoid": "`RankBoostAE`",
        },
    ),
    "per-user-eachmovie": per_user,
    "per-user-ml-100k": per_user,
    "svor-table1": errors_of(
        "svor-table1", {"SVR": "`SVRanks`", "EXC": "`SVOREX`", "IMC": "`SVORIM`"}
    ),
    "svor-table2": errors_of(
        "svor-table2",
        {"SVR": "`SVRanks`", "SLA": "`SVORSLA`", "EXC": "`SVOREX`", "IMC": "`SVORIM`"},
    ),
    "uncertainty-ml-1m": uncertainty,
    "user-time": user_time,
}


if __name__ == "__main__":
    main()
