"""A process forked from one that used threads, OpenMP or workers can do the same work again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

# A child that hangs is killed by the timeout of the whole run; the alarm names the model.
CODE = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")

from sklearn.ensemble import HistGradientBoostingRegressor

from ordrec.datasets import synthetic_ratings
from ordrec.runtime.parallel import run_all
from ordrec.recommend import ImplicitModel, SklearnModel, make_model

RATINGS = synthetic_ratings(60, 50, n_ratings=1500, seed=0)

def threaded(name):
    if name == "forest":
        return SklearnModel(HistGradientBoostingRegressor(max_iter=3), dense=True)
    if name == "implicit":
        from implicit.cpu.als import AlternatingLeastSquares
        model = AlternatingLeastSquares(4, iterations=2, num_threads=2, random_state=0)
        return ImplicitModel(model)
    model = make_model(name)
    return model.set_params(n_jobs=2) if "n_jobs" in model.get_params() else model

def work(name):
    if name == "processes":
        return run_all(abs, [-1, 2], engine="processes", n_jobs=2)
    model = threaded(name).fit(RATINGS)
    ask = model.predict if hasattr(model, "predict") else model.scores
    return ask([0, 1], [2, 3]).round(6).tolist()

def main():
    for name in sys.argv[1:]:
        before = work(name)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if work(name) == before else 1)
        print(name, os.waitpid(child, 0)[1], flush=True)

if __name__ == "__main__":
    main()
"""


def test_no_model_hangs_or_differs_in_a_forked_process(tmp_path: Path) -> None:
    names = ["implicit-als", "implicit", "forest", "als", "item-knn", "factors",
             "per-user-logistic", "predictor-fast", "processes"]  # fmt: skip
    (tmp_path / "forks.py").write_text(CODE)
    environment = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "forks.py"), *names],
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
    )
    assert done.stdout.split("\n")[:-1] == [f"{name} 0" for name in names], done.stderr
