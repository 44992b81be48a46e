"""The five folds of OHSUMED in LETOR 3.0: documents ranked by graded relevance.

106 medical queries, 16,140 judged documents, 45 features normalised within each query
(QueryLevelNorm). The rule is the one required by the authors of LETOR ("How to compare with
the baselines?" on their page of LETOR 3.0's baselines): each method has a grid declared below;
in each fold every setting is fitted on the training queries, the one with the highest MAP on the
validation queries is selected (the first of equal ones), and only this one ranks the test
queries, once. Validation queries are not used for training. Only the methods themselves are
compared on test queries. The grids are powers of ten and choose by validation queries alone; but
these folds are public and old, and earlier versions of this experiment, with narrower grids and the
same methods, were measured on the same test queries.

NDCG is that of LETOR's own tool (gain 2^grade - 1, discount 1 for the first two ranks); MAP
and precision are ir-measures'. Intervals are those of the mean over all test queries. Each method's
rankings of all test queries are written as TREC run files, with the judgements beside them. The
published baselines are other methods, so the numbers are compared but not reproduced; they were
taken from secondary sources, and some are not verified at all (``published/letor-ohsumed.csv``).
"""

from __future__ import annotations

from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVR

from ordrec.datasets import load_letor
from ordrec.documents import RelevanceRanker
from ordrec.documents.trec import measure_run, write_qrels, write_run
from ordrec.evaluation import Candidates, Experiment, QueryProblem, ndcg
from ordrec.evaluation.metrics.ranking import mean_average_precision
from ordrec.evaluation.significance import bootstrap_interval, holm_against
from ordrec.experiments.runner import Reproduction, data_folder, main, published_csv
from ordrec.ordinal import OrdinalLogistic
from ordrec.report.html import TableSection

NAME = "letor-ohsumed"
TITLE = "Relevance ranking on the five OHSUMED folds of LETOR"
SOURCE = "LETOR 3.0 (Qin, Liu, Xu and Li 2010), baselines on OHSUMED"
TIME = "about four minutes"

OURS = "ordinal logistic"
METRICS = [
    *(f"ndcg@{k}" for k in range(1, 11)),
    "map",
    *(f"precision@{k}" for k in (1, 3, 5, 10)),
]
MEASURED = [*METRICS[:10], "map"]  # what the baselines have, and what has intervals
PENALTIES = [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0]
SCALINGS = ["none", "centre"]
SVR_LOSSES = {"absolute": "epsilon_insensitive", "squared": "squared_epsilon_insensitive"}


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run five folds; quick: fewer settings, no LambdaMART."""
    letor = load_letor(data_folder(data, "ohsumed-letor", "OHSUMED"), name="ohsumed-letor")
    problem = QueryProblem.from_letor(letor)
    methods = declared_methods(PENALTIES[1::2] if quick else PENALTIES, boosted=not quick)
    experiment = Experiment(
        methods, [problem], metrics=METRICS, store=out / "cells", max_folds=trials
    )
    result = experiment.run(n_jobs=jobs)
    rankings = {
        name: pd.concat(
            problem.ranking(methods[name].models[chosen], fold)
            for fold, chosen in part.drop_duplicates("fold")[["fold", "chosen"]].to_numpy()
        )
        for name, part in result.frame.groupby("model", sort=False)
    }
    write_runs(rankings, out / "runs")
    table = result.frame.groupby(["model", "metric"], sort=False)["value"].mean().unstack()[METRICS]
    published = pd.read_csv(published_csv(NAME)).pivot(
        index=["model", "table"], columns="metric", values="mean"
    )[MEASURED]
    by_query = {name: query_values(found) for name, found in rankings.items()}
    ends = intervals(by_query)
    ndcg_of_queries = pd.DataFrame({name: each["ndcg@10"] for name, each in by_query.items()})
    against = holm_against(ndcg_of_queries, OURS)
    return Reproduction(
        result,
        findings(table, ends, against, published),
        sections=[
            TableSection(
                "All measures",
                _shown(pd.concat([table, published.droplevel("table")])),
                "Mean over the folds of the means over their test queries. The last rows are "
                f"published: {'; '.join(published.index.unique('table'))}.",
            ),
            TableSection(
                "Intervals",
                interval_texts(ends),
                f"95 % intervals of means over the {len(ndcg_of_queries)} test queries, by "
                "bootstrap.",
            ),
            TableSection(
                f"NDCG@10 against {OURS}",
                _shown(against),
                f"Signed-rank tests over the {len(ndcg_of_queries)} test queries, adjusted by "
                "Holm; effect: mean difference over its standard deviation.",
            ),
            TableSection("Chosen on the validation queries", chosen_settings(result.frame)),
            TableSection(
                "By ir-measures, from the run files",
                _shown(by_ir_measures(rankings)),
                "Mean over all test queries; its NDCG has linear gain and discounts every rank.",
            ),
        ],
        usual=False,
        cells=result.frame.merge(ends.reset_index(), how="left", on=["model", "metric"]),
    )


def declared_methods(penalties, *, boosted: bool) -> dict[str, Candidates]:
    """Return the grid of each method: ordinal models, regression and, if installed, LambdaMART."""
    solvers: dict[str, dict] = {
        OURS: {
            f"{threshold}, alpha={a:g}": OrdinalLogistic(threshold=threshold, alpha=a)
            for threshold, a in product(("all", "immediate"), penalties)
        },
        "ridge": {f"alpha={a:g}": Ridge(a) for a in penalties},
        "linear SVR": {
            f"{name}, C={1 / a:g}": LinearSVR(
                C=1 / a, epsilon=0.1, loss=loss, dual="auto", max_iter=10_000
            )
            for (name, loss), a in product(SVR_LOSSES.items(), penalties)
        },
    }
    if boosted and find_spec("lightgbm") is not None:
        from lightgbm import LGBMRanker

        solvers["LambdaMART"] = {
            f"{trees} trees, {leaves} leaves": LGBMRanker(
                n_estimators=trees, num_leaves=leaves, learning_rate=0.05, verbose=-1, n_jobs=1
            )
            for trees, leaves in product((100, 300), (4, 8, 16))
        }
    return {
        name: Candidates(
            {
                f"{setting}, {scaling}": RelevanceRanker(solver, scaling=scaling)
                for (setting, solver), scaling in product(grid.items(), SCALINGS)
            },
            "map",
        )
        for name, grid in solvers.items()
    }


def write_runs(rankings: dict[str, pd.DataFrame], folder: Path) -> None:
    """Write one run file per method, and the judgements of the same queries."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, ranking in rankings.items():
        tag = name.replace(" ", "-")
        write_run(ranking, folder / f"{tag}.run", tag=tag)
    write_qrels(next(iter(rankings.values())), folder / "qrels.txt")


def query_values(ranking: pd.DataFrame) -> pd.DataFrame:
    """Return LETOR's NDCG and the average precision of each query; 0 if nothing is relevant."""
    grades, scores, queries = ranking["grade"], -ranking["rank"], ranking["query"]
    values = {
        f"ndcg@{k}": ndcg.per_group(grades, scores, queries, k=k, discount="letor")
        for k in range(1, 11)
    }
    values["map"] = mean_average_precision.per_group(grades, scores, queries)
    return pd.DataFrame(values, index=np.unique(queries)).fillna(0.0)


def intervals(by_query: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the ends of intervals over queries, indexed by model and metric."""
    rows = {}
    for name, values in by_query.items():
        for metric in MEASURED:
            interval = bootstrap_interval(values[metric])
            rows[name, metric] = {"low": interval.low, "high": interval.high}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "metric"])


def interval_texts(ends: pd.DataFrame) -> pd.DataFrame:
    """Return the intervals as texts, a row per method and a column per metric."""
    texts = ends.apply(lambda row: f"{row['low']:.3f} to {row['high']:.3f}", axis=1)
    return texts.unstack()[MEASURED]


def findings(table, ends, against, published) -> list[str]:
    """Return sentences that compare the methods, with intervals and p-values."""
    lines = []
    for metric in ("ndcg@1", "ndcg@10", "map"):
        low, high = ends.loc[(OURS, metric)]
        ours = table.loc[OURS, metric]
        lines.append(
            f"{metric} of {OURS}, every setting chosen on validation queries: {ours:.4f}; 95 % "
            f"interval over the test queries {low:.4f} to {high:.4f}"
        )
        for (name, source), value in published[metric].dropna().items():
            reached = "reached" if ours >= value else "not reached"
            inside = "inside" if low <= value <= high else "outside"
            lines.append(f"{name} {value:.4f}: {reached}, {inside} the interval ({source})")
    for name, row in against.iterrows():
        lines.append(
            f"{name}, ndcg@10 {table.loc[name, 'ndcg@10']:.4f}: difference "
            f"{row['difference']:+.4f}, adjusted p {row['adjusted_p']:.3f}"
        )
    return lines


def chosen_settings(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the chosen settings, one row per method and one column per fold."""
    once = frame.drop_duplicates(["model", "fold"])
    return once.pivot(index="model", columns="fold", values="chosen").rename_axis(columns=None)


def by_ir_measures(rankings: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the means over the queries of ir-measures' measures of each run."""
    return pd.DataFrame({n: measure_run(r, r).mean() for n, r in rankings.items()}).T


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    return table.map(lambda value: "" if np.isnan(value) else f"{value:.4f}").rename_axis("model")


if __name__ == "__main__":
    main(NAME)
