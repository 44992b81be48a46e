"""Figure 3 of Lin and Li (2006): errors on abalone against the number of rounds.

RankBoost-AE, ORBoost-LR and ORBoost-All with perceptrons, searched for as in the authors' program,
and with sigmoids; ten ranks, training and test errors after each of up to 2000 rounds, over twenty
partitions. The curves of the paper are in the figure only; what it says of them is compared.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.experiments.benchmarks import SMALL, benchmark_problem
from ordrec.experiments.runner import Reproduction, among, data_folder, main
from ordrec.ordinal.boosting import ORBoost, PerceptronRCD, RankBoostAE, SigmoidRCD
from ordrec.report.figures import curves
from ordrec.report.html import FigureSection
from ordrec.runtime.parallel import run_all

NAME = "orboost-rounds"
TITLE = "Errors of boosted ensembles against the number of rounds"
SOURCE = "Lin and Li 2006, section 5.2 and figure 3"
TIME = "about half an hour of one processor"

ROUNDS, QUICK_ROUNDS = 2000, 60
POINTS, EVERY = 61, 10  # of the curves; every tenth, from 1 to the last round, is kept
BASES = {"perceptron": PerceptronRCD(published=True), "sigmoid": SigmoidRCD(published=True)}
KINDS = ("RankBoost-AE", "ORBoost-LR", "ORBoost-All")


def run(*, data, trials, jobs, quick, out: Path, sets=("abalone",)) -> Reproduction:
    """Run twenty partitions, 2000 rounds; quick: one partition of the smallest set, 60 rounds."""
    folder = data_folder(data, "ordinal-regression-frequency")
    rounds = QUICK_ROUNDS if quick else ROUNDS
    frames, checksums = [], {}
    for name in among(("pyrim",) if quick else sets, SMALL):
        problem = benchmark_problem(folder, name, 10)
        table, checksums[name] = problem.table, problem.checksum()
        rows = table.partitions[: trials or (1 if quick else None)]
        tasks = [
            (kind, base, trial) for trial in range(len(rows)) for kind in KINDS for base in BASES
        ]
        shared = (table.X, table.y, rows, rounds)
        parts = run_all(staged_errors, tasks, shared=shared, n_jobs=jobs)
        frames += [part.assign(data=name) for part in parts]
    frame = pd.concat(frames, ignore_index=True)
    sections = [
        FigureSection(
            f"{part} {metric}, {name}",
            curves(group, "round", "value", by="model", logarithmic="x", labels=("rounds", metric)),
            f"{part}-{metric}-{name}",
        )
        for (name, part, metric), group in frame.groupby(["data", "part", "metric"], sort=False)
    ]
    last = frame[frame["round"] == rounds]
    return Reproduction(
        frame,
        claims(last),
        sections=sections,
        checksums=checksums,
        cells=frame[frame["round"].isin(measured_rounds(rounds)[::EVERY])],
    )


def measured_rounds(rounds: int) -> list[int]:
    """Return the rounds after which errors are measured, the later ones further apart."""
    return np.geomspace(1, rounds, POINTS).round().astype(int).tolist()


def staged_errors(task, X: np.ndarray, y: np.ndarray, rows: list, rounds: int) -> pd.DataFrame:
    """Return training and test errors after some rounds, for a kind, a base and a partition."""
    kind, base, trial = task
    train = rows[trial]
    test = np.setdiff1d(np.arange(y.size), train)
    model = RankBoostAE(BASES[base], n_estimators=rounds, random_state=trial)
    if kind != "RankBoost-AE":
        threshold = "all" if kind == "ORBoost-All" else "immediate"
        model = ORBoost(threshold, BASES[base], n_estimators=rounds, random_state=trial)
    model.fit(X[train], y[train])
    measured, found = set(measured_rounds(rounds)), []
    for part, chosen in (("training", train), ("test", test)):
        for number, predicted in enumerate(model.staged_predict(X[chosen]), start=1):
            if number in measured:
                distance = np.abs(predicted - y[chosen])
                common = (f"{kind}, {base}", trial + 1, part, number)
                found += [
                    (*common, "mze", np.mean(distance > 0)),
                    (*common, "mae", distance.mean()),
                ]
    return pd.DataFrame(found, columns=["model", "trial", "part", "round", "metric", "value"])


def claims(last: pd.DataFrame) -> list[str]:
    """Return the paper's remarks on its figure, at the last round."""
    means = last.groupby(["data", "part", "metric", "model"], sort=False)["value"].mean()
    found = []
    for name in last["data"].unique():
        training, test = means[name]["training"], means[name]["test"]
        mze, mae = test["mze"], test["mae"]
        for base in BASES:
            lr, full, rank = (f"{kind}, {base}" for kind in ("ORBoost-LR", "ORBoost-All", KINDS[0]))
            found += [
                f"{name}, {base}s: test MZE of LR {mze[lr]:.4f}, of All {mze[full]:.4f} "
                f"(published: LR better), RankBoost-AE {mze[rank]:.4f} (published: worst)",
                f"{name}, {base}s: test MAE of LR {mae[lr]:.4f}, of All {mae[full]:.4f} "
                f"(published: All better), RankBoost-AE {mae[rank]:.4f} (published: worst)",
            ]
        higher = [
            training["mze"][f"{kind}, sigmoid"] >= training["mze"][f"{kind}, perceptron"]
            for kind in KINDS
        ]
        found.append(
            f"{name}: training MZE of sigmoids at least that of perceptrons for {sum(higher)} of "
            f"{len(KINDS)} kinds (published: consistently)"
        )
    return found


if __name__ == "__main__":
    main(NAME)
