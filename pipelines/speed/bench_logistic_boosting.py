"""Speed of ordinal logistic regression and of boosting, as ratios measured in one run.

    python pipelines/speed/bench_logistic_boosting.py [--sections mord,user] [--data FOLDER]
                                                [--rounds 2000] [--repeats 3]

mord         20,000 rows, 10 ranks: OrdinalLogistic takes at most a third of mord.LogisticAT's
             time, at an objective no higher than 1e-6 relative (needs mord)
million      1,000,000 x 50 rows: less than 20 times (one pass X @ w) times (iterations)
stumps       200 stump rounds on 2000 rows, 10 ranks: at most half of skordinal.ORBoost's time,
             at an error no worse (needs skordinal)
user         200 stump rounds on one user's problem, 500 items x 943 features, 5 ranks: below
             1 s (compared with skordinal where it is installed)
perceptrons  2000 rounds of perceptrons on 6000 census rows: minutes (needs the data folder)
pairs        RankBoost-AE is linear in the number of rows

The best of the repeats counts; the first run of compiled functions is on a line of its own.
Ratios are of wall-clock times; the two absolute goals (user, perceptrons) are in CPU time, which
depends less on other work on the machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.data.formats.tables import load_table
from ordrec.experiments.timing import first_run
from ordrec.ordinal.boosting import ORBoost, RankBoostAE
from ordrec.ordinal.logistic import OrdinalLogistic
from ordrec.ordinal.losses import Loss, objective


def main() -> None:
    """Run the chosen sections."""
    sections: dict[str, Callable[[argparse.Namespace], None]] = {
        "mord": against_mord,
        "million": million_rows,
        "stumps": stumps_against_skordinal,
        "user": one_users_problem,
        "perceptrons": perceptrons_on_census,
        "pairs": rankboost_is_linear,
    }
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sections", default=",".join(sections))
    options.add_argument("--data", default=os.environ.get("ORDREC_DATA"), help="data folder")
    options.add_argument("--rounds", type=int, default=2000, help="of perceptrons")
    options.add_argument("--repeats", type=int, default=3)
    chosen = options.parse_args()
    for name in chosen.sections.split(","):
        print(f"\n{name}", flush=True)
        sections[name](chosen)


def against_mord(chosen: argparse.Namespace) -> None:
    """Compare time and objective with mord.LogisticAT."""
    if not installed("mord"):
        return
    import mord

    X, y = linear_ranks(20_000, 20, 10)
    first_run(OrdinalLogistic().fit, X[:500], y[:500])
    ours, theirs = OrdinalLogistic(alpha=1.0), mord.LogisticAT(alpha=1.0)
    seconds = fit_seconds(ours, X, y, chosen.repeats)
    mord_seconds = fit_seconds(theirs, X, y, 1)

    def value(w: np.ndarray, b: np.ndarray) -> float:
        return objective(X @ w, b, y, Loss("logistic"), "all", 1.0, 0.5 * float(w @ w))

    reached = value(ours.coef_, ours.thresholds_)
    mord_reached = value(theirs.coef_, theirs.theta_)
    print(f"  ordrec {seconds:.3f} s, mord {mord_seconds:.3f} s")
    excess = reached / mord_reached - 1
    print(f"  objectives {reached:.6f} and {mord_reached:.6f}, relative difference {excess:.1e}")
    verdict("time relative to mord", seconds / mord_seconds, 1 / 3)
    verdict("objective above that of mord, relative", excess, 1e-6)


def million_rows(chosen: argparse.Namespace) -> None:
    """Time the whole fit in units of one pass over X."""
    X, y = linear_ranks(1_000_000, 50, 10)
    first_run(OrdinalLogistic().fit, X[:500], y[:500])
    w = np.ones(50)
    one_pass = timed(lambda: X @ w, 5 * chosen.repeats)
    model = OrdinalLogistic()
    seconds = fit_seconds(model, X, y, chosen.repeats)
    print(f"  one pass {1e3 * one_pass:.0f} ms, fit {seconds:.2f} s, {model.n_iter_} iterations")
    verdict("passes per iteration", seconds / one_pass / model.n_iter_, 20)


def stumps_against_skordinal(chosen: argparse.Namespace) -> None:
    """Time two hundred stumps on 2000 rows, both losses."""
    if not installed("skordinal"):
        return
    from skordinal.classifiers import ORBoost as Peer

    X, y = smooth_ranks(6000, 10, 10)
    train, test = slice(0, 2000), slice(2000, None)
    first_run(ORBoost(base="stump", n_estimators=2).fit, X[:100], y[:100])
    for threshold, form in (("immediate", "lr"), ("all", "full")):
        ours, theirs = ORBoost(threshold, "stump", 200), Peer(n_estimators=200, loss_form=form)
        seconds = fit_seconds(ours, X[train], y[train], chosen.repeats)
        peer_seconds = fit_seconds(theirs, X[train], y[train], chosen.repeats)
        mze, mae = mean_errors(ours, X[test], y[test])
        peer_mze, peer_mae = mean_errors(theirs, X[test], y[test])
        print(f"  {threshold}: ordrec {seconds:.3f} s, skordinal {peer_seconds:.3f} s")
        print(f"  MZE {mze:.4f} and {peer_mze:.4f}, MAE {mae:.4f} and {peer_mae:.4f}")
        verdict("time relative to skordinal", seconds / peer_seconds, 1 / 2)


def one_users_problem(chosen: argparse.Namespace) -> None:
    """Time a problem with the items of an active user and one feature per user."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((500, 943)) < 0.2, rng.integers(1, 6, (500, 943)), 0).astype(float)
    f = X @ rng.normal(size=943) * (rng.random(943) < 0.1).mean() + rng.normal(size=500)
    y = np.searchsorted(np.quantile(f, [0.1, 0.25, 0.5, 0.8]), f)
    first_run(ORBoost(base="stump", n_estimators=2).fit, X[:50], y[:50])
    boosted = ORBoost(base="stump", n_estimators=200)
    seconds = fit_seconds(boosted, X, y, chosen.repeats)
    print(f"  elapsed {seconds:.2f} s")
    verdict("CPU seconds", fit_seconds(boosted, X, y, 1, time.process_time), 1.0)
    if installed("skordinal"):
        from skordinal.classifiers import ORBoost as Peer

        peer_seconds = fit_seconds(Peer(n_estimators=200, loss_form="full"), X, y, 1)
        print(f"  skordinal takes {peer_seconds:.1f} s, {peer_seconds / seconds:.0f} times as long")


def perceptrons_on_census(chosen: argparse.Namespace) -> None:
    """Time the paper's largest problem, which took about an hour there."""
    if not chosen.data:
        print("  skipped: name the data folder with --data or ORDREC_DATA")
        return
    folder = Path(chosen.data) / "ordinal-regression-frequency"
    table = load_table(folder / "census2.csv.gz", label="y10", partitions=False)
    rows = np.random.default_rng(0).permutation(table.y.size)
    train, test = rows[:6000], rows[6000:]
    first_run(ORBoost(base="perceptron", n_estimators=2).fit, table.X[train], table.y[train])
    model = ORBoost(base="perceptron", n_estimators=chosen.rounds, random_state=0)
    seconds = fit_seconds(model, table.X[train], table.y[train], 1, time.process_time)
    mze, mae = mean_errors(model, table.X[test], table.y[test])
    print(f"  {chosen.rounds} rounds: {seconds:.0f} CPU seconds; MZE {mze:.3f}, MAE {mae:.3f}")
    verdict("minutes for 2000 rounds", seconds / 60 * 2000 / chosen.rounds, 60)


def rankboost_is_linear(chosen: argparse.Namespace) -> None:
    """Time increasing numbers of rows; the number of pairs grows 256-fold."""
    first_run(RankBoostAE("stump", n_estimators=2).fit, *smooth_ranks(100, 5, 5))
    sizes, seconds = [5_000, 20_000, 80_000], []
    for n in sizes:
        X, y = smooth_ranks(n, 5, 5)
        seconds.append(fit_seconds(RankBoostAE("stump", n_estimators=50), X, y, chosen.repeats))
        print(f"  {n} rows: {seconds[-1]:.2f} s")
    verdict("exponent", float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]), 1.25)


def linear_ranks(n: int, d: int, n_ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks of equal frequency of a noisy linear score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d) + 2.0 * rng.logistic(size=n)
    return X, np.searchsorted(np.quantile(f, np.arange(1, n_ranks) / n_ranks), f)


def smooth_ranks(n: int, d: int, n_ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks of equal frequency of a noisy additive score."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    f = np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(f, np.arange(1, n_ranks) / n_ranks), f)


def mean_errors(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return MZE and MAE."""
    off = np.abs(np.asarray(model.predict(X), dtype=float) - y)
    return float((off > 0).mean()), float(off.mean())


def fit_seconds(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the shortest time to fit."""
    return timed(lambda: model.fit(X, y), repeats, clock)


def timed(
    run: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the shortest time of several runs."""
    best = np.inf
    for _ in range(repeats):
        started = clock()
        run()
        best = min(best, clock() - started)
    return best


def installed(package: str) -> bool:
    """Return whether a package to compare with is installed."""
    found = importlib.util.find_spec(package) is not None
    if not found:
        print(f"  {package} is not installed: no comparison (pip install 'ordrec[peers]')")
    return found


def verdict(what: str, value: float, limit: float) -> None:
    """Print a number, its limit, and whether it is met."""
    print(f"  {what}: {value:.3g} (at most {limit:.3g}): {'met' if value <= limit else 'MISSED'}")


if __name__ == "__main__":
    main()
