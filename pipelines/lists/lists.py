"""Published splits of picks without times: Amazon Electronics and Gowalla.

Every item that a user has not picked in training is ranked; Recall@20 is the share of the user's
test items among the first twenty, NDCG@20 has gain 1 for each. The order-free models of ordrec
beside published figures of others; there are no times, so that nothing is said of the order. The
mixture is told how many picks are to come, relative to those there are, for its `p_pick`.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.evaluation import EvaluationResult
from ordrec.experiments.list_benchmarks import ListTask, list_models, read_sequences, run_task
from ordrec.experiments.published import published_numbers
from ordrec.experiments.runner import Reproduction, among, data_folder, main, published_csv

NAME = "lists"
TITLE = "Lists of twenty on published splits"
SOURCE = "SimpleX, UltraGCN and BARS"
TIME = "a minute for Amazon Electronics, an hour for Gowalla"

SETS = {"amazon-electronics": "Amazon Electronics", "gowalla": "Gowalla"}
METRICS = ("recall@20", "pick_ndcg@20", "pick_calibration@10")
MODELS = ("popularity", "EASE, left out", "ChoiceMixture")


def run(*, data, trials, jobs, quick, out: Path, sets=()) -> Reproduction:
    """Run the named sets, or both; quick: Amazon Electronics."""
    chosen = among(sets, SETS) if sets else list(SETS)
    results, lines = [], []
    for name in chosen[:1] if quick else chosen:
        folder = data_folder(data, name)
        ratings = read_sequences(
            folder / "train.txt.gz", folder / "test.txt.gz", SETS[name], dated=False
        )
        task = ListTask(ratings, "fold:test", METRICS, seeds=(21,))
        models = list_models(MODELS)
        held = float(ratings.folds["test"].mean())
        models["ChoiceMixture"].set_params(horizon=held / (1.0 - held))
        result, said = run_task(task, models, out / "cells", jobs)
        results.append(result)
        lines += said
    return Reproduction(
        EvaluationResult.joined(results), lines, sections=[published_numbers(published_csv(NAME))]
    )


if __name__ == "__main__":
    main(NAME)
