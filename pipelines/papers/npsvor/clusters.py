"""Figure 2 of Wang et al. (2017): planes that are not parallel, on three clusters in a triangle.

One hundred points of each rank, normal with means (10, 10), (15, 15) and (20, 10) and variances of
5; 25 of each rank are for training. SVR, SVORIM and NPSVOR with a linear kernel on standardised
features, C by five-fold cross-validation on the paper's grid. The paper shows one draw; here the
first of many is drawn, and the errors are over all of them, beside those of the best possible rule,
the nearest mean.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.experiments.runner import Reproduction, main
from ordrec.ordinal import NPSVOR, SVORIM
from ordrec.ordinal.baselines import SVRanks
from ordrec.ordinal.tuning import tune
from ordrec.report.figures import INK, MARKERS, PALETTE, blank
from ordrec.report.html import FigureSection, TableSection
from ordrec.runtime.parallel import run_all

NAME = "npsvor-clusters"
TITLE = "Planes of NPSVOR beside the parallel boundaries of SVR and SVORIM"
SOURCE = "Wang, Shi, Niu and Tian 2017, section III-A and figure 2"
TIME = "about a minute and a half"

MEANS = np.array([[10.0, 10.0], [15.0, 15.0], [20.0, 10.0]])
VARIANCE, TRAINING, POINTS = 5.0, 25, 100
TRIALS, QUICK_TRIALS = 100, 10
LINEAR = {"kernel": "linear", "scaling": "standard"}
METHODS = {
    "SVR": SVRanks(published=True, **LINEAR),  # targets from 0 to 1, as in the paper's program
    "SVORIM": SVORIM(**LINEAR),
    "NPSVOR": NPSVOR(epsilon=0.2, **LINEAR),
}
BEST = "nearest mean"


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Run a hundred draws; quick: ten."""
    draws = range(trials or (QUICK_TRIALS if quick else TRIALS))
    frame = pd.concat(run_all(errors_of_draw, list(draws), n_jobs=jobs), ignore_index=True)
    grouped = frame.groupby(["model", "metric"], sort=False)["value"]
    table = grouped.agg(["mean", "sem"]).unstack("metric")
    mze = table["mean"]["mze"]
    findings = [
        f"{name}: test MZE {mze[name]:.4f}, MAE {table['mean']['mae'][name]:.4f}"
        for name in mze.index
    ]
    lower = {name: paired_wins(frame, name) for name in METHODS if name != "NPSVOR"}
    findings += [
        f"NPSVOR has a lower test MZE than {name} in {wins} of {len(draws)} draws, a higher one in "
        f"{losses} (published: NPSVOR works better)"
        for name, (wins, losses) in lower.items()
    ]
    models = fitted(*draw(0)[:2])
    angles = directions(models["NPSVOR"], draw(0)[0])
    findings.append(
        "first draw: the planes of NPSVOR have directions of "
        + ", ".join(f"{angle:.0f}" for angle in angles)
        + " degrees (published: not parallel), the boundaries of SVR and SVORIM one each"
    )
    return Reproduction(
        frame,
        findings,
        sections=[
            FigureSection(
                "Boundaries",
                picture(models),
                "boundaries",
                "The first draw: training points filled, test points hollow; regions of the ranks; "
                "the planes of NPSVOR are dashed, in the colour of their rank.",
            ),
            TableSection("Test errors over the draws", table),
        ],
    )


def draw(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training points and ranks, test points and ranks."""
    rng = np.random.default_rng(seed)
    X = MEANS[:, None] + np.sqrt(VARIANCE) * rng.normal(size=(3, POINTS, 2))
    y = np.repeat([1, 2, 3], POINTS).reshape(3, POINTS)
    return (
        X[:, :TRAINING].reshape(-1, 2),
        y[:, :TRAINING].ravel(),
        X[:, TRAINING:].reshape(-1, 2),
        y[:, TRAINING:].ravel(),
    )


def fitted(X: np.ndarray, y: np.ndarray) -> dict:
    """Return the three models, each with its C from cross-validation."""
    return {
        name: tune(model, X, y, "npsvor-paper", metric="mze").estimator
        for name, model in METHODS.items()
    }


def errors_of_draw(seed: int) -> pd.DataFrame:
    """Return the test errors of the models, and of the nearest mean, on one draw."""
    X, y, X_new, y_new = draw(seed)
    nearest = np.argmin(((X_new[:, None] - MEANS) ** 2).sum(axis=2), axis=1) + 1
    predicted = {name: model.predict(X_new) for name, model in fitted(X, y).items()}
    return pd.DataFrame(
        [
            (name, seed + 1, metric, value)
            for name, ranks in (predicted | {BEST: nearest}).items()
            for metric, value in (
                ("mze", float(np.mean(ranks != y_new))),
                ("mae", float(np.mean(np.abs(ranks - y_new)))),
            )
        ],
        columns=["model", "trial", "metric", "value"],
    )


def paired_wins(frame: pd.DataFrame, name: str) -> tuple[int, int]:
    """Return in how many draws NPSVOR has a lower, and a higher, MZE than another model."""
    mze = frame[frame["metric"] == "mze"].pivot(index="trial", columns="model", values="value")
    return int((mze["NPSVOR"] < mze[name]).sum()), int((mze["NPSVOR"] > mze[name]).sum())


def planes(model: NPSVOR, X: np.ndarray) -> np.ndarray:
    """Return w_1, w_2 and b of the plane of each rank, in the units of the points; shape (3, 3)."""
    scaling = model.scaling_
    w = (scaling(X)[model.support_].T @ model.dual_coef_).T / scaling.deviation
    return np.column_stack([w, model.intercept_ - w @ scaling.mean])


def directions(model: NPSVOR, X: np.ndarray) -> np.ndarray:
    """Return the angle of each plane with the horizontal axis, 0 to 180 degrees."""
    w = planes(model, X)[:, :2]
    return np.degrees(np.arctan2(-w[:, 0], w[:, 1])) % 180


def picture(models: dict):
    """Draw points, regions and planes of the first draw."""
    X, y, X_new, y_new = draw(0)
    every = np.vstack([X, X_new])
    low, high = every.min(axis=0) - 1, every.max(axis=0) + 1
    across, up = np.linspace(low[0], high[0], 301), np.linspace(low[1], high[1], 301)
    grid = np.array([(a, b) for b in up for a in across])
    figure, axes = blank(1, len(models), width=9.6, height=3.4)
    for axis, (name, model) in zip(axes[0], models.items(), strict=True):
        ranks = model.predict(grid).reshape(up.size, across.size)
        axis.contourf(across, up, ranks, levels=[0.5, 1.5, 2.5, 3.5], colors=PALETTE[:3], alpha=0.2)
        axis.contour(across, up, ranks, levels=[1.5, 2.5], colors=INK, linewidths=0.8)
        for rank, marker, colour in zip((1, 2, 3), MARKERS, PALETTE, strict=False):
            mark = {"marker": marker, "s": 12, "edgecolors": colour, "linewidths": 0.6}
            axis.scatter(*X_new[y_new == rank].T, facecolors="none", alpha=0.6, **mark)
            axis.scatter(*X[y == rank].T, facecolors=colour, label=f"rank {rank}", **mark)
        if name == "NPSVOR":
            for (w1, w2, b), colour in zip(planes(model, X), PALETTE, strict=False):
                values = w1 * grid[:, 0] + w2 * grid[:, 1] + b
                axis.contour(
                    across, up, values.reshape(ranks.shape), levels=[0.0], colors=colour,
                    linewidths=1.8, linestyles="dashed",
                )  # fmt: skip
        axis.set_title(f"{name}: test MZE {np.mean(model.predict(X_new) != y_new):.3f}")
        axis.set_aspect("equal")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    main(NAME)
