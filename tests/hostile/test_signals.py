"""Ctrl-C ends all processes and keeps finished work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import psutil
import pytest

HERE = Path(__file__).parent.parent
FINISHED = 130  # exit code after Ctrl-C: 128 + SIGINT

EXPERIMENT = """
import sys
from support.experiment_models import NoisyThreshold, striped_table
from ordrec.evaluation import Experiment, TableProblem

def main():
    models = {"a": NoisyThreshold(0.1, sleep=0.1), "b": NoisyThreshold(0.3, sleep=0.1)}
    problem = TableProblem(striped_table())
    experiment = Experiment(models, [problem], seeds=range(50), store=sys.argv[1])
    try:
        experiment.run(n_jobs=2, engine=sys.argv[2])
    except KeyboardInterrupt:
        sys.exit(130)

if __name__ == "__main__":
    main()
"""

FIT = """
import sys
import numpy as np
from ordrec.datasets import synthetic_ratings
from ordrec.recommend import make_model

def main():
    ratings = synthetic_ratings(400, 300, n_ratings=60_000, seed=0)
    model = make_model(sys.argv[1], **eval(sys.argv[2]))
    print("fitting", flush=True)
    try:
        for _ in range(1000):
            model.fit(ratings)
    except KeyboardInterrupt:
        sys.exit(130)

if __name__ == "__main__":
    main()
"""

EVALUATE = """
import time
from dataclasses import dataclass
from pathlib import Path

from ordrec.recommend import GlobalMean
from ordrec.recommend.registry import register_model

@dataclass
class Slow(GlobalMean):
    def fit(self, ratings):
        Path(SIGN).touch()
        time.sleep(300)
        return super().fit(ratings)

register_model("slow", "__main__:Slow")

if __name__ == "__main__":
    from ordrec.cli import main

    main()
"""


def started(script: Path, code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a script in its own process group, as a terminal does."""
    script.write_text(code)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    return subprocess.Popen(
        [sys.executable, str(script), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_hears_ctrl_c,
    )


def _hears_ctrl_c() -> None:
    """A shell lets what it starts in the background ignore Ctrl-C, and so would the script."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def wait_until(condition: Callable[[], bool], run: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < deadline, "nothing happened for two minutes"
        time.sleep(0.05)


def seconds_used(run: subprocess.Popen[str]) -> float:
    """Processor time of a process and of its children so far."""
    total = 0.0
    for process in [psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:2])
    return total


def n_finished(store: Path) -> int:
    """Number of finished cells, not counting one being written under a hidden name."""
    return sum(not path.name.startswith(".") for path in store.glob("*.part"))


def interrupted(
    run: subprocess.Popen[str], number: signal.Signals = signal.SIGINT
) -> tuple[int, str, list[psutil.Process]]:
    """Press Ctrl-C, or send a signal as a service manager does; return the exit code, the output,
    and the processes still running.
    """
    family = psutil.Process(run.pid).children(recursive=True)
    if number == signal.SIGINT:
        os.killpg(run.pid, number)
    else:
        os.kill(run.pid, number)
    try:
        _, printed = run.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        raise
    _, alive = psutil.wait_procs(family, timeout=20)
    return run.returncode, printed, alive


@pytest.mark.parametrize(
    "engine", ["serial", "threads", "processes", pytest.param("dask", marks=pytest.mark.slow)]
)
def test_an_experiment_keeps_its_cells_and_leaves_no_process(tmp_path: Path, engine: str) -> None:
    store = tmp_path / "cells"
    run = started(tmp_path / "experiment.py", EXPERIMENT, str(store), engine)
    wait_until(lambda: n_finished(store) >= 5, run)
    if engine in ("processes", "dask"):
        assert len(psutil.Process(run.pid).children(recursive=True)) >= 2
    code, printed, alive = interrupted(run)
    assert (code, alive) == (FINISHED, []), printed
    assert 5 <= n_finished(store) < 600
    assert not list(store.glob(".*"))


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("per-user-svor", {"n_jobs": 2}),
        ("per-user-svor", {"n_jobs": 2, "engine": "processes"}),
        ("factors", {"n_jobs": 2}),
        ("predictor-fast", {"n_jobs": 2}),
    ],
)
def test_a_fit_stops_and_leaves_no_process(tmp_path: Path, model: str, options: dict) -> None:
    run = started(tmp_path / "fit.py", FIT, model, repr(options))
    assert run.stdout is not None
    assert run.stdout.readline() == "fitting\n", run.communicate()
    before = seconds_used(run)
    wait_until(lambda: seconds_used(run) > before + 1.5, run)  # in the middle of the work
    code, printed, alive = interrupted(run)
    assert (code, alive) == (FINISHED, []), printed


@pytest.mark.parametrize("engine", ["serial", "processes"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_evaluate_prints_and_writes_what_was_finished(
    tmp_path: Path, engine: str, number: signal.Signals
) -> None:
    """One model takes minutes; the others finish at once, and are not fitted again."""
    results, sign = tmp_path / "results.csv", tmp_path / "fitting"
    code = EVALUATE.replace("SIGN", repr(str(sign)))
    options = ["--jobs", "2", "--engine", engine, "-m", "mean,bias,slow", "--metrics", "mae"]
    rows = [(u, i, 1 + (u + i) % 5) for u in range(12) for i in range(10)]
    table = pd.DataFrame(rows, columns=["user", "item", "rating"])
    table.to_csv(tmp_path / "ratings.csv", index=False)
    words = ["evaluate", str(tmp_path / "ratings.csv"), *options, "-o", str(results)]
    run = started(tmp_path / "command.py", code, *words)
    wait_until(sign.exists, run)
    wait_until(lambda: results.exists() and set(written(results)) == {"mean", "bias"}, run)
    exit_code, printed, alive = interrupted(run, number)
    assert (exit_code, alive) == (FINISHED, []), printed
    assert "this is what was finished" in printed
    assert set(written(results)) == {"mean", "bias"}
    seconds = written(results)["mean"]
    again = started(tmp_path / "quick.py", code.replace("300", "0"), *words)
    _, printed = again.communicate(timeout=90)
    assert again.returncode == 2
    assert "left 2 finished parts" in printed
    again = started(tmp_path / "quick.py", code.replace("300", "0"), *words, "--resume")
    assert again.wait(timeout=90) == 0, again.communicate()
    again.communicate()
    assert set(written(results)) == {"mean", "bias", "slow"}
    assert written(results)["mean"] == seconds  # to the last digit: it was not fitted again
    assert not list(tmp_path.glob("*.parts"))


def written(results: Path) -> dict[str, float]:
    """Seconds of the fit of each model in a file of results."""
    frame = pd.read_csv(results)
    return dict(zip(frame["model"], frame["fit_seconds"], strict=True))


def test_workers_do_not_outlive_a_run_that_is_killed(tmp_path: Path) -> None:
    store = tmp_path / "cells"
    run = started(tmp_path / "experiment.py", EXPERIMENT, str(store), "processes")
    wait_until(lambda: n_finished(store) >= 3, run)
    family = psutil.Process(run.pid).children(recursive=True)
    run.kill()
    run.wait()
    _, alive = psutil.wait_procs(family, timeout=30)
    assert len(family) >= 2
    assert alive == []
