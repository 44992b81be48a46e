"""Train a rating predictor for each user from the ratings of other users.

    python pipelines/per_user.py [DATA] [--solvers svorim,logistic] [--features mean,low-rank]
                                 [--sizes 20,40,80] [--users 40] [--trials 3] [--output FOLDER]

1. Load the ratings (a name of 'ordrec data list', or a folder or file).
2. Fill the user-rating matrix: with item means, or by a weighted low-rank estimate (EM).
3. Build the Pearson kernel between items, for every user without their own column.
4. Train an ordinal model for each of the most active users, on a given number of their ratings.
5. Predict the rest of their ratings; report MAE and MZE of each user and of all together.

Writes per_user.csv (one row per user, size, trial and model) and per_user.svg / .png, box plots
over users and trials for every training size.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ordrec.datasets import load_dataset, load_ratings
from ordrec.features.low_rank import LowRankEM
from ordrec.ordinal import GPOR, SVOREX, SVORIM, ORBoost, OrdinalLogistic
from ordrec.ordinal.npsvor.model import NPSVOR
from ordrec.ratings import Ratings
from ordrec.recommend import PerUserPredictor

SOLVERS = {
    "svorex": SVOREX(C=1.0),
    "svorim": SVORIM(C=1.0),
    "npsvor": NPSVOR(),
    "gpor": GPOR(),
    "orboost": ORBoost(base="stump", n_estimators=100, random_state=0),  # on features, no kernel
    "logistic": OrdinalLogistic("all", alpha=1.0, kernel="precomputed"),
}
FEATURES = {
    "mean": "mean",
    "low-rank": LowRankEM(rank=20, tol=1e-3, random_state=0),
}
COLOURS = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"]


def main() -> None:
    """Run the experiment and write the table and the figure."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("data", nargs="?", default="ml-latest-small-2016")
    options.add_argument("--solvers", default="svorim,logistic", help=", ".join(SOLVERS))
    options.add_argument("--features", default="mean", help=", ".join(FEATURES))
    options.add_argument("--sizes", default="20,40,80", help="numbers of training ratings per user")
    options.add_argument(
        "--users", type=int, default=40, help="number of users, the most active ones"
    )
    options.add_argument("--trials", type=int, default=3)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--output", type=Path, default=Path("results"))
    chosen = options.parse_args()

    by_path = Path(chosen.data).exists()
    ratings = load_ratings(chosen.data) if by_path else load_dataset(chosen.data)
    print(ratings)
    sizes = [int(size) for size in chosen.sizes.split(",")]
    models = {
        f"{solver}, {features}": PerUserPredictor(
            SOLVERS[solver], FEATURES[features], min_ratings=2, n_jobs=chosen.jobs
        )
        for features in chosen.features.split(",")
        for solver in chosen.solvers.split(",")
    }
    rows = []
    runs = [(size, trial) for size in sizes for trial in range(chosen.trials)]
    for size, trial in track(runs, "training sizes and trials"):
        train, test = draw(ratings, size, chosen.users, seed=chosen.seed + trial)
        for name, model in models.items():
            model.fit(train, users=test.user_ids.take(np.unique(test.users)))
            errors = user_errors(model, test)
            rows.append(errors.assign(model=name, size=size, trial=trial))
    results = pd.concat(rows, ignore_index=True)
    chosen.output.mkdir(parents=True, exist_ok=True)
    results.to_csv(chosen.output / "per_user.csv", index=False)
    Console().print(summary(results))
    box_plots(results, chosen.output / "per_user")
    print(f"wrote per_user.csv, per_user.svg and per_user.png in {chosen.output}")


def draw(ratings: Ratings, size: int, n_users: int, seed: int) -> tuple[Ratings, Ratings]:
    """Return training ratings (``size`` of each target user, all of the others) and the rest."""
    random = np.random.default_rng(seed)
    targets = np.argsort(-ratings.user_counts, kind="stable")[:n_users]
    if ratings.user_counts[targets].min() <= size:
        raise SystemExit(
            f"some of the {n_users} users have {size} ratings or fewer: use fewer users or sizes"
        )
    held_out = np.isin(ratings.users, targets)
    for user in targets:
        held_out[random.choice(ratings.rows_of_user(user), size, replace=False)] = False
    return ratings.select(~held_out), ratings.select(held_out)


def user_errors(model: PerUserPredictor, test: Ratings) -> pd.DataFrame:
    """Return the mean absolute error (in ranks) and the zero-one error of each user."""
    frame = test.to_frame()
    predicted = model.predict(frame["user"], frame["item"])
    distance = np.abs(test.scale.ranks_of(predicted) - test.ranks)
    return (
        pd.DataFrame({"user": frame["user"], "mae": distance, "mze": distance > 0})
        .groupby("user", as_index=False)
        .agg(n_test=("mae", "size"), mae=("mae", "mean"), mze=("mze", "mean"))
    )


def summary(results: pd.DataFrame) -> Table:
    """Return errors pooled over all test ratings, and averaged over users with deviation."""
    table = Table(
        title="errors in ranks, n training ratings per user; pooled, then mean ± deviation of users"
    )
    for heading in ("n", "model", "MAE", "MZE", "MAE of users", "MZE of users"):
        table.add_column(heading, justify="left" if heading == "model" else "right", no_wrap=True)
    for (size, model), part in results.groupby(["size", "model"], sort=True):
        pooled = [np.average(part[metric], weights=part["n_test"]) for metric in ("mae", "mze")]
        users = [
            f"{part[metric].mean():.3f} ± {part[metric].std():.3f}" for metric in ("mae", "mze")
        ]
        table.add_row(str(size), model, *(f"{value:.3f}" for value in pooled), *users)
    return table


def box_plots(results: pd.DataFrame, path: Path) -> None:
    """Draw boxes of MZE and MAE over users and trials, grouped by training size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sizes, models = sorted(results["size"].unique()), list(dict.fromkeys(results["model"]))
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    width = 0.8 / len(models)
    for panel, metric, label in zip(
        panels, ("mze", "mae"), ("mean zero-one error", "mean absolute error (ranks)"), strict=True
    ):
        for m, model in enumerate(models):
            of_model = results[results["model"] == model]
            boxes = panel.boxplot(
                [of_model.loc[of_model["size"] == size, metric] for size in sizes],
                positions=np.arange(len(sizes)) + width * (m - (len(models) - 1) / 2),
                widths=0.85 * width,
                patch_artist=True,
                medianprops={"color": "black"},
                flierprops={"marker": ".", "markersize": 3},
                manage_ticks=False,
            )
            for box in boxes["boxes"]:
                box.set_facecolor(COLOURS[m % len(COLOURS)])
            boxes["boxes"][0].set_label(model)
        panel.set_xticks(np.arange(len(sizes)), sizes)
        panel.set_xlabel("training ratings of the user")
        panel.set_ylabel(label)
        panel.grid(axis="y", alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(models), frameon=False)
    for suffix in (".svg", ".png"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
