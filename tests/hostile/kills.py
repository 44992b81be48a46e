"""Kill long commands at random moments, run them again, and compare with undisturbed runs.

    python tests/hostile/kills.py [--kills 20] [--seed 0] [--commands fit] [--engines serial]

Every command is run once alone. Then it is killed with all of its workers (SIGKILL) after a random
share of the processor time that it took, as often as asked for; each time what it left is looked
at, and the same command is run again to its end. What it writes must be equal to the last bit,
seconds of fits apart. Prints a table: kills that came in time, differences, hangs, and files
that were half written. A command that does not end within a quarter of an hour hangs.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))
LIMIT = 900.0  # seconds
FACTORS = ["--set", "n_factors=4", "--set", "pattern=4", "--set", "max_iter=12"]
SECONDS = ["fit_seconds", "predict_seconds"]
ENGINES = ("serial", "threads", "processes", "dask")


def inputs(folder: Path) -> None:
    """Write the data that the commands work on."""
    from ordrec import save
    from ordrec.datasets import load_ratings, synthetic_ratings
    from ordrec.recommend import OrdinalFactors

    synthetic_ratings(400, 120, n_ratings=12_000, seed=0).to_frame().to_csv(
        folder / "r.csv", index=False
    )
    ratings = load_ratings(folder / "r.csv")
    ratings.to_partitions(folder / "parts", rows_per_part=1500)
    save(OrdinalFactors(n_factors=4, pattern=4, max_iter=3).fit(ratings), folder / "model")


def commands(data: Path, out: Path, engine: str) -> dict[str, tuple[list[Any], Path]]:
    """The words of each command, and what it writes; those without engines are run in one way."""
    with_engine = ["--engine", engine, *([] if engine == "serial" else ["--jobs", "2"])]
    found: dict[str, tuple[list[Any], Path]] = {
        "recommend": (
            ["recommend", data / "model", "--for", "all", "-n", "5", "-o", out / "l.csv"],
            out / "l.csv",
        ),
        "predict-all": (
            ["predict-all", data / "model", data / "parts", "-o", out / "p"], out / "p"
        ),
        "fit-all": (
            ["fit-all", data / "parts", *FACTORS[:2], "--set", "max_iter=5", "-o", out / "m"],
            out / "m",
        ),
        "evaluate": (
            ["evaluate", data / "r.csv", "-m", "bias,histogram,popularity,item-knn", "--split",
             "kfold:3", "--metrics", "mae,ndcg@5", "--quiet", "-o", out / "e.csv"], out / "e.csv",
        ),
    }  # fmt: skip
    found = {name: ([*words, *with_engine], file) for name, (words, file) in found.items()}
    if engine == "serial":
        found |= {
            "fit": (["fit", data / "r.csv", "-m", "factors", *FACTORS, "-o", out / "m"], out / "m"),
            "tune": (
                ["tune", data / "r.csv", "-m", "bias", "--trials", "12", "--method", "random",
                 "--quiet", "-o", out / "t"], out / "t",
            ),
            "reproduce": (
                ["reproduce", "svor-grading", "--quick", "-o", out / "s"], out / "s",
            ),
        }  # fmt: skip
    return found


def start(words: list[Any], *, again: bool) -> int:
    """Run a command in a fork of this process; return the number of the process."""
    words = [str(word) for word in words]
    if again and words[0] == "evaluate":
        words.append("--resume")
    child = os.fork()
    if child:
        return child
    os.setsid()
    with open(os.devnull, "w") as nothing:
        for stream in (1, 2):
            os.dup2(nothing.fileno(), stream)
    code = 1
    try:
        import ordrec.lists.listing as listing
        from ordrec.cli import main

        listing.CELLS_AT_ONCE = 120 * 5 * 10  # blocks of ten users
        sys.argv = ["ordrec", *words]
        code = int(main() or 0)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def used(process: psutil.Process) -> float:
    """Seconds of processor time of a process and of those that it started."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            times = each.cpu_times()
            total += times.user + times.system
        except psutil.NoSuchProcess:
            pass
    return total


def ended(child: int, until: Callable[[], bool] = lambda: False) -> tuple[int | None, float]:
    """Wait for a command, or kill it and its workers; the exit code, and the seconds it used."""
    process, begun, spent = psutil.Process(child), time.monotonic(), 0.0
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), spent
        spent = max(spent, used(process))
        late = time.monotonic() - begun > LIMIT
        if late or until():
            family = process.children(recursive=True)
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            for each in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            return None, -1.0 if late else spent
        time.sleep(0.005)


def digest(output: Path) -> str:
    """What a command wrote, without seconds, commits and times of day."""
    from ordrec import load
    from ordrec.storage.parts import model_checksum

    if output.suffix == ".csv":
        frame = pd.read_csv(output)
        text = frame.drop(columns=SECONDS, errors="ignore").to_csv()
        return hashlib.sha256(text.encode()).hexdigest()
    if output.is_dir():
        files = sorted([*output.glob("part-*.parquet"), *output.glob("results.csv")])
        frames = [pd.read_parquet(f) if f.suffix == ".parquet" else pd.read_csv(f) for f in files]
        text = "".join(f.drop(columns=SECONDS, errors="ignore").to_csv() for f in frames)
        return hashlib.sha256(text.encode()).hexdigest()
    return model_checksum(load(output))


def readable(output: Path) -> bool:
    """Whether what is there after a kill is nothing, or whole."""
    if not output.exists():
        return True
    try:
        digest(output)
    except Exception:
        return False
    return True


def campaign(name: str, data: Path, engine: str, kills: int, chance: random.Random) -> list[Any]:
    """Kill one command as often as asked for; a row of the table."""
    with tempfile.TemporaryDirectory() as place:
        words, output = commands(data, Path(place), engine)[name]
        code, seconds = ended(start(words, again=False))
        assert code == 0, (name, engine, code)
        expected = digest(output)
    counts = dict.fromkeys(("in time", "different", "hung", "half written", "failed"), 0)
    for _ in range(kills):
        with tempfile.TemporaryDirectory() as place:
            words, output = commands(data, Path(place), engine)[name]
            share = chance.random() * seconds
            child = start(words, again=False)
            process = psutil.Process(child)
            code, spent = ended(child, lambda process=process, s=share: used(process) >= s)
            counts["in time"] += code is None
            counts["hung"] += spent < 0
            counts["half written"] += not readable(output)
            code, spent = ended(start(words, again=True))
            counts["hung"] += spent < 0
            if code != 0:
                counts["failed"] += 1
                print(f"  {name} {engine}: exit code {code} after a kill at {share:.2f} s")
            elif digest(output) != expected:
                counts["different"] += 1
                print(f"  {name} {engine}: other numbers after a kill at {share:.2f} s")
    return [name, engine, f"{seconds:.1f}", kills, *counts.values()]


def main() -> None:
    """Run, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--kills", type=int, default=20, help="of each command (20)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--commands", nargs="*")
    options.add_argument("--engines", nargs="*", default=list(ENGINES))
    options.add_argument("--seconds", type=float, default=np.inf, help="begin no more then")
    chosen = options.parse_args()
    chance, begun = random.Random(chosen.seed), time.monotonic()
    titles = ["command", "engine", "s", "kills", "in time", "different", "hung",
              "half written", "failed"]  # fmt: skip
    print(" | ".join(titles))
    data = Path(tempfile.mkdtemp())
    try:
        inputs(data)
        for engine in chosen.engines:
            for name in commands(data, data, engine):
                if chosen.commands and name not in chosen.commands:
                    continue
                if time.monotonic() - begun < chosen.seconds:
                    row = campaign(name, data, engine, chosen.kills, chance)
                    print(" | ".join(map(str, row)), flush=True)
    finally:
        shutil.rmtree(data)


if __name__ == "__main__":
    main()
