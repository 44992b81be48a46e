"""Ensembles of trees among all ordinal estimators, on the survey sets: a question of our own.

The newest benchmarks of ordinal regression are led by ensembles of trees. Here `ORBoost` with
trees, which is not in the paper, stands beside the other estimators of ordrec and beside regression
on the ranks by LightGBM, rounded, on the seventeen survey sets with their published stratified
partitions.

Every method makes its choices on the training part alone, by absolute error: machines with a
Gaussian kernel C and gamma from nine settings, logistic and cumulative-link models their penalty
from three, LightGBM leaves and rounds from six, all by five folds; `ORBoost` with trees its depth
and rounds on a fifth of the rows; Gaussian processes maximise the evidence; other ensembles have
their defaults but for the rounds. What is reported is the average rank of the mean absolute error
over the sets, with Friedman's test.

``--sets`` and ``--methods`` run some of them only, such as ``--sets tae,toy``.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec.datasets import load_table
from ordrec.evaluation import EvaluationResult, Experiment, TableProblem
from ordrec.evaluation.significance import friedman
from ordrec.experiments.cross_validated import CrossValidated
from ordrec.experiments.runner import Reproduction, among, data_folder, list_pipelines, main
from ordrec.ordinal import GPOR, NPSVOR, SVOREX, SVORIM, CumulativeLink, ORBoost, OrdinalLogistic
from ordrec.ordinal.baselines import OPBE, REDSVM, PRank, SVRanks

NAME = "orboost-trees"
TITLE = "Boosted trees among all ordinal estimators, on 17 survey sets"
SOURCE = "not published: after the benchmarks of TOC-UCO"
TIME = "about two hours of one processor for ten partitions"

TRIALS = 10
ROUNDS = 500
QUICK_SETS = ("contact-lenses", "pasture")
COSTS, WIDTHS = [1.0, 10.0, 100.0], [0.01, 0.1, 1.0]
PENALTIES = [0.1, 1.0, 10.0]
TREES = ("trees, all", "trees, left-right")
LIGHTGBM = "LightGBM, rounded"


class RoundedLightGBM(ClassifierMixin, BaseEstimator):
    """Least squares on the ranks by LightGBM, rounded to the nearest rank."""

    def fit(self, X: Any, y: Any) -> RoundedLightGBM:
        """Choose leaves and rounds by five folds, and fit."""
        from lightgbm import LGBMRegressor

        self.classes_ = np.unique(y)
        alone = LGBMRegressor(learning_rate=0.1, min_child_samples=5, n_jobs=1, verbose=-1)
        choices = {"num_leaves": [2, 4, 15], "n_estimators": [50, 200]}
        self.search_ = GridSearchCV(alone, choices, scoring="neg_mean_absolute_error", cv=folds())
        self.search_.fit(np.asarray(X), np.asarray(y, dtype=np.float64))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the nearest ranks."""
        found = np.rint(self.search_.predict(np.asarray(X)))
        return np.clip(found, self.classes_[0], self.classes_[-1]).astype(self.classes_.dtype)


def folds() -> KFold:
    """Return the folds of searches, which may lack rare ranks."""
    return KFold(5, shuffle=True, random_state=0)


def machine(estimator: Any, cost: str = "C") -> CrossValidated:
    """Return a machine that chooses its cost and width."""
    return CrossValidated(estimator, {cost: COSTS, "gamma": WIDTHS}, "mae")


def penalised(estimator: Any) -> GridSearchCV:
    """Return a linear model that chooses its penalty."""
    return GridSearchCV(
        estimator, {"alpha": PENALTIES}, scoring="neg_mean_absolute_error", cv=folds()
    )


def declared_methods() -> dict[str, Any]:
    """Return what is compared, by name."""

    def ensemble(threshold: str, base: str) -> Any:
        boosted = ORBoost(threshold, base, n_estimators=ROUNDS, random_state=0)
        return make_pipeline(StandardScaler(), boosted)

    methods = {
        "trees, all": ensemble("all", "tree"),
        "trees, left-right": ensemble("immediate", "tree"),
        "sigmoids, all": ensemble("all", "sigmoid"),
        "stumps, all": ensemble("all", "stump"),
        "SVORIM": machine(SVORIM()),
        "SVOREX": machine(SVOREX()),
        "NPSVOR": machine(NPSVOR(), "C1"),
        "REDSVM": machine(REDSVM()),
        "OPBE": machine(OPBE()),
        "SVR": machine(SVRanks()),
        "GPOR": make_pipeline(StandardScaler(), GPOR(inference="ep", decision="median")),
        "logistic": penalised(OrdinalLogistic()),
        "cumulative link": penalised(CumulativeLink()),
        "PRank": make_pipeline(StandardScaler(), PRank()),
    }
    if find_spec("lightgbm") is not None:
        methods[LIGHTGBM] = RoundedLightGBM()
    return methods


def run(*, data, trials, jobs, quick, out: Path, sets=(), methods=()) -> Reproduction:
    """Run ten partitions of each set; quick: two, of two sets."""
    survey = list_pipelines()["npsvor-tables"].load().SURVEY
    names = among(sets or (QUICK_SETS if quick else survey), survey)
    declared = declared_methods()
    chosen = among(methods or list(declared), list(declared), "method")
    folder = data_folder(data, "ordinal-survey")
    result = Experiment(
        {name: declared[name] for name in chosen},
        [TableProblem(load_table(folder / f"{name}.csv")) for name in names],
        metrics=["mze", "mae"],
        store=out / "cells",
        max_folds=trials or (2 if quick else TRIALS),
    ).run(n_jobs=jobs)
    return Reproduction(result, over_sets(result))


def over_sets(result: EvaluationResult) -> list[str]:
    """Return the places of the methods, and where trees stand."""
    sentences = []
    for metric in ("mae", "mze"):
        means = result.means(metric).dropna(axis=1)
        if means.shape[0] < 2 or means.shape[1] < 3:
            continue
        test = friedman(means)
        ranks = test.ranks.sort_values()
        listed = ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
        sentences.append(
            f"{metric}: average ranks over {len(means)} sets: {listed}; Friedman p = {test.p:.2g}"
        )
        places = test.ranks.rank(method="min").astype(int)
        trees = [f"{name}: place {places[name]}" for name in TREES if name in places]
        if trees:
            sentences.append(f"{metric}: {', '.join(trees)} of {len(places)}")
    return sentences


if __name__ == "__main__":
    main(NAME)
