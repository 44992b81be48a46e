"""Section 5.1 of Lin and Li (2006): boundaries of thresholded ensembles in the plane.

An artificial set with curved boundaries between four ranks (the paper shows its own only as a
picture; this one cuts a product of the two coordinates), ORBoost-All, ORBoost-LR and RankBoost-AE
with 200 perceptrons, searched for as in the authors' program, and with 200 sigmoids. All should
follow the curved boundaries, the sigmoids more smoothly; in the paper RankBoost-AE with perceptrons
stops after five rounds for numerical reasons.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ordrec.experiments.runner import Reproduction, main
from ordrec.ordinal.boosting import ORBoost, PerceptronRCD, RankBoostAE, SigmoidRCD
from ordrec.report.figures import INK, PALETTE, blank
from ordrec.report.html import FigureSection, TableSection

NAME = "orboost-artificial"
TITLE = "Boundaries of 200 perceptrons and of 200 sigmoids, boosted in three ways"
SOURCE = "Lin and Li 2006, section 5.1 and figure 2"
TIME = "under a minute"

ROUNDS = 200
CUTS = [-1.0, -0.1, 0.8]


def run(*, data, trials, jobs, quick, out: Path) -> Reproduction:
    """Fit one ensemble of each kind; there are no trials to repeat."""
    X, y = artificial(400, 0)
    X_new, y_new = artificial(4000, 1)
    side = np.linspace(0, 1, 81)
    grid = np.array([(a, b) for b in side for a in side])
    rows, panels = [], {"the data": y}
    for name, model in ensembles().items():
        model.fit(X, y)
        ranks = model.predict(grid).reshape(side.size, side.size)
        if name.startswith("ORBoost-All"):
            panels[name] = ranks
        rows.append(
            {
                "model": name,
                "rounds": model.n_estimators_,
                "training MZE": float(np.mean(model.predict(X) != y)),
                "test MZE": float(np.mean(model.predict(X_new) != y_new)),
                "test MAE": float(np.mean(np.abs(model.predict(X_new) - y_new))),
                "length of the boundaries": boundary(ranks) / side.size,
            }
        )
    found = pd.DataFrame(rows).set_index("model")
    length = found["length of the boundaries"]
    findings = [
        f"{name}: {row['training MZE']:.3f} of the training points misplaced, "
        f"{row['test MZE']:.3f} of new ones, after {row['rounds']:.0f} rounds"
        for name, row in found.iterrows()
    ]
    soft, hard = length["ORBoost-All, sigmoid"], length["ORBoost-All, perceptron"]
    findings.append(
        f"the boundaries of sigmoids are smoother: {'yes' if soft <= hard else 'NO'} (length "
        f"{soft:.2f} against {hard:.2f}, true {true_length(side):.2f})"
    )
    return Reproduction(
        found.reset_index(),
        findings,
        sections=[
            FigureSection("Boundaries", picture(panels, X, y, side), "boundaries"),
            TableSection("Errors", found),
        ],
    )


def ensembles() -> dict:
    """Return the unfitted models by name."""
    bases = {"perceptron": PerceptronRCD(published=True), "sigmoid": SigmoidRCD(published=True)}
    common = {"n_estimators": ROUNDS, "random_state": 0}
    return {
        f"{kind}, {name}": model
        for name, base in bases.items()
        for kind, model in {
            "ORBoost-All": ORBoost("all", base, **common),
            "ORBoost-LR": ORBoost("immediate", base, **common),
            "RankBoost-AE": RankBoostAE(base, **common),
        }.items()
    }


def artificial(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points of the unit square and their ranks."""
    X = np.random.default_rng(seed).random((n, 2))
    return X, rank_of(X)


def rank_of(X: np.ndarray) -> np.ndarray:
    """Return ranks 1 to 4 by the product of the distances from the middle."""
    return np.digitize(10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5), CUTS) + 1


def boundary(ranks: np.ndarray) -> float:
    """Return the number of neighbouring points of a grid with different ranks."""
    return float(np.sum(ranks[1:] != ranks[:-1]) + np.sum(ranks[:, 1:] != ranks[:, :-1]))


def true_length(side: np.ndarray) -> float:
    """Return the length of the boundaries of the true ranks."""
    grid = np.array([(a, b) for b in side for a in side])
    return boundary(rank_of(grid).reshape(side.size, side.size)) / side.size


def picture(panels, X: np.ndarray, y: np.ndarray, side: np.ndarray):
    """Draw the data and the regions of each ensemble."""
    figure, axes = blank(1, len(panels), width=9.0, height=3.2)
    for axis, (title, ranks) in zip(axes[0], panels.items(), strict=True):
        if title == "the data":
            for rank in np.unique(y):
                axis.scatter(*X[y == rank].T, s=8, color=PALETTE[rank - 1], label=str(rank))
        else:
            axis.contourf(side, side, ranks, levels=np.arange(0.5, 5), colors=PALETTE, alpha=0.5)
            axis.contour(side, side, ranks, levels=[1.5, 2.5, 3.5], colors=INK, linewidths=0.8)
        axis.set_title(title)
        axis.set_aspect("equal")
    return figure


if __name__ == "__main__":
    main(NAME)
