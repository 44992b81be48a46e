"""Seconds of the first fit in a new process, with an empty and with a filled compile cache.

    python pipelines/speed/bench_cold.py [--only SVORIM predictor-fast] [--functions 3] [--rounds 1]

Each estimator is fitted to 120 rows of 4 features, each rating model to the ratings of 100 users,
in a process of its own: once with an empty NUMBA_CACHE_DIR (cold) and once with what that process
left there (warm, the fastest of ``--rounds``). Seconds run from the start of the process to the
end of the fit, imports included, on the clock and of CPU, which is more reliable on a shared
machine. Behind them stand the functions that took longest to compile (CPU seconds, each without
the functions it calls; "x2" after one that was compiled for two signatures).

Bars: 6 s cold, 1 s warm. A line ends with NO where one of them is missed on the clock. The first
line is scikit-learn's own SVC on the same rows: every estimator here takes what importing it takes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

COLD, WARM = 6.0, 1.0
PEER = "scikit-learn's SVC"
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "SVORIM": ("SVORIM", {}),
    "SVORIM linear": ("SVORIM", {"kernel": "linear"}),
    "SVOREX": ("SVOREX", {}),
    "SVORSLA": ("SVORSLA", {}),
    "NPSVOR": ("NPSVOR", {}),
    "GPOR": ("GPOR", {}),
    "ORBoost": ("ORBoost", {}),
    "RankBoostAE": ("RankBoostAE", {}),
    "OrdinalLogistic": ("OrdinalLogistic", {}),
    "OrdinalLogistic kernel": ("OrdinalLogistic", {"kernel": "rbf"}),
    "PRank": ("PRank", {}),
    "GPRanks": ("GPRanks", {}),
    "SVRanks": ("SVRanks", {}),
    "SVC1V1": ("SVC1V1", {}),
    "SVC1VA": ("SVC1VA", {}),
    "CSSVC": ("CSSVC", {}),
    "SVMOP": ("SVMOP", {}),
    "REDSVM": ("REDSVM", {}),
    "OPBE": ("OPBE", {}),
}
RATING_MODELS = (
    "mean",
    "histogram",
    "bias",
    "item-knn",
    "factors",
    "popularity",
    "recommender-fast",
    "recommender",
    "choice",
    "ease",
    "als",
    "implicit-als",
    "per-user-svor",
    "per-user-logistic",
    "predictor-fast",
    "predictor",
)
Compiled = dict[str, tuple[float, int]]  # CPU seconds, and for how many signatures
Seconds = tuple[float, float]  # on the clock, of CPU


def main() -> None:
    """Fit every model in a process of its own, cold and warm, and print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="+", default=[PEER, *ESTIMATORS, *RATING_MODELS])
    options.add_argument("--functions", type=int, default=3, help="slowest to compile, named")
    options.add_argument("--rounds", type=int, default=1, help="warm processes of each model")
    options.add_argument("--fit", help=argparse.SUPPRESS)  # what the processes are started with
    options.add_argument("--listen", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.fit:
        fit_once(chosen.fit, chosen.listen)
        return
    print(f"{'':<24} {'cold':^13} {'warm':^13} {'compiling':>9}")
    print(f"{'model':<24} {'s':>6} {'CPU s':>6} {'s':>6} {'CPU s':>6} {'CPU s':>9}  slowest")
    for name in chosen.only:
        with tempfile.TemporaryDirectory() as cache:
            cold, compiled = in_new_process(name, cache, listen=True)
            warm = min(in_new_process(name, cache)[0] for _ in range(chosen.rounds))
        print(line(name, cold, warm, compiled, chosen.functions), flush=True)


def line(name: str, cold: Seconds, warm: Seconds, compiled: Compiled, n_functions: int) -> str:
    """Return a line of the table."""
    times = f"{cold[0]:6.2f} {cold[1]:6.2f} {warm[0]:6.2f} {warm[1]:6.2f}"
    slowest = sorted(compiled, key=compiled.__getitem__, reverse=True)[:n_functions]
    named = ", ".join(
        f"{function} {seconds:.1f}" + (f" x{number}" if number > 1 else "")
        for function, (seconds, number) in ((each, compiled[each]) for each in slowest)
    )
    compiling = sum(seconds for seconds, _ in compiled.values())
    missed = "" if cold[0] <= COLD and warm[0] <= WARM else "  NO"
    return f"{name:<24} {times} {compiling:9.2f}  {named}{missed}"


def in_new_process(name: str, cache: str, listen: bool = False) -> tuple[Seconds, Compiled]:
    """Return the seconds until a new process has fitted the model, and what it compiled."""
    command = [sys.executable, __file__, "--fit", name, *(["--listen"] if listen else [])]
    started = time.time()
    run = subprocess.run(
        command,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"{name}: {run.stderr}")
    ended, cpu, compiled = json.loads(run.stdout.splitlines()[-1])
    return (ended - started, cpu), compiled


def fit_once(name: str, listen: bool) -> None:
    """Fit one model; print when it was done, CPU seconds, and those of compiling each function."""
    warnings.simplefilter("ignore")
    compiled = compile_times() if listen else lambda: {}
    if name in ESTIMATORS or name == PEER:
        fit_estimator(name)
    else:
        fit_rating_model(name)
    print(json.dumps([time.time(), time.process_time(), compiled()]))


def fit_estimator(name: str) -> None:
    """Fit one estimator to 120 rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=120), [-1.0, 0.0, 1.0])
    if name == PEER:
        from sklearn.svm import SVC

        SVC().fit(X, y)
        return
    from ordrec import ordinal

    class_name, params = ESTIMATORS[name]
    getattr(ordinal, class_name)(**params).fit(X, y)


def fit_rating_model(name: str) -> None:
    """Fit one rating model to the ratings of 100 users."""
    from ordrec.data.synthetic import synthetic_ratings
    from ordrec.recommend import make_model

    make_model(name).fit(synthetic_ratings(100, 60, n_ratings=3000))


def compile_times() -> Callable[[], Compiled]:
    """Listen to the compiler; the function returned gives seconds by function.

    Compiling a function includes compiling those it calls for the first time: what these take is
    subtracted.
    """
    from numba.core import event

    spent: dict[str, float] = defaultdict(float)
    signatures: dict[str, int] = defaultdict(int)
    within: list[list[float]] = []  # start, and seconds of the functions inside, innermost last

    class Times(event.Listener):
        def on_start(self, event: Any) -> None:
            within.append([time.process_time(), 0.0])

        def on_end(self, event: Any) -> None:
            started, inside = within.pop()
            took = time.process_time() - started
            name = event.data["dispatcher"].py_func.__qualname__
            spent[name] += took - inside
            signatures[name] += 1
            if within:
                within[-1][1] += took

    event.register("numba:compile", Times())
    return lambda: {name: (round(spent[name], 3), signatures[name]) for name in spent}


if __name__ == "__main__":
    main()
