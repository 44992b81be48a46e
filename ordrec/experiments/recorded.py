"""Keep the results of finished experiments: small csv files with their circumstances.

A run of ``ordrec reproduce`` writes a folder. `record` copies from it what a table needs to be
checked years later into ``pipelines/results/NAME``:

* ``cells.csv``: one row per model, data set, fold, seed and metric (or whatever the experiment
  has as trials), values with six digits; columns that have one value only are in the manifest
  (``constants``);
* ``manifest.json``: the commands that repeat it, the commits, versions, date, seeds, checksums of
  the data, descriptions of the models, the number of trials, and which columns of the cells
  identify a trial (``identified_by``): repeats of a random split have one seed and differ by their
  fold, which is the number of the draw.

An experiment of many hours is run in parts, such as one data set after the other: each part is
added to what is recorded already.

``pipelines/page/benchmarks_page.py`` writes the tables in ``docs/benchmarks`` from these files.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ordrec.errors import ArgumentError, DataError
from ordrec.evaluation.manifest import CHANGED
from ordrec.runtime.files import make_folder, write_text

__all__ = ["Recorded", "cells_of", "command_of", "n_trials", "record", "recorded_results"]

RESULTS = Path("pipelines/results")  # of the checkout: an installed package has none
NOT_RECORDED = ("warnings", "n", "predict_seconds")  # long, or as n_test says, or in no table
TRIAL = ("trial", "draw", "fold", "seed")  # columns that tell trials of one kind apart
IDENTIFIED_BY = ("split", *TRIAL)
MEASURED = ("value", "fit_seconds", "low", "high")  # may differ in two runs of a trial
RECORDED = ("versions", "machine", "seeds", "data", "splits", "models")


@dataclass(frozen=True)
class Recorded:
    """The recorded results of an experiment: a frame of cells and a manifest."""

    frame: pd.DataFrame
    manifest: dict[str, Any]

    @property
    def provenance(self) -> str:
        """One line of markdown: the commands, the commits, how many trials, when."""
        m = self.manifest
        trials = f"{m['trials']} trial{'' if m['trials'] == '1' else 's'}"
        commits = " and ".join(m["commits"])
        return f"`{'` and `'.join(m['commands'])}`, {trials}, commit {commits}, {m['date']}"


def record(
    run: str | Path, name: str | None = None, folder: str | Path = RESULTS, *, add: bool = False
) -> Path:
    """Keep the results of a finished run.

    Parameters
    ----------
    run : path
        The folder that ``ordrec reproduce`` wrote.
    name : str, optional
        By default the name of the experiment. Runs of one experiment with several options have
        names such as ``per-user-eachmovie``.
    folder : path, optional
        Where recorded results are: by default ``pipelines/results`` of the checkout.
    add : bool, optional
        Keep what is recorded under this name, but for trials that the run has, too. By default
        the run replaces it.

    Returns
    -------
    path
        The folder with ``cells.csv`` and ``manifest.json``.
    """
    run = Path(run)
    manifest, frame = _read_json(run / "manifest.json"), cells_of(run)
    asked, commits = manifest.get("experiment"), manifest.get("commits", [])
    if not isinstance(asked, Mapping):
        raise DataError(f"{run}: not written by 'ordrec reproduce': run it again")
    if asked["quick"]:
        raise ArgumentError(
            f"{run}: a quick run, which is not recorded: run the experiment in full"
        )
    if len(_failures_of(run)):
        raise ArgumentError(f"{run}: some cells failed, see failures.csv: run it again")
    if not all(commits) or any(commit.endswith(CHANGED) for commit in commits):
        raise ArgumentError(
            f"{run}: no commit has the code it ran with: commit it, and run again into an empty "
            "folder"
        )
    target = Path(folder) / (name or asked["name"])
    recorded = frame.drop(columns=[column for column in NOT_RECORDED if column in frame])
    recorded = recorded.dropna(axis=1, how="all")
    if "fit_seconds" in recorded:
        recorded["fit_seconds"] = recorded["fit_seconds"].map("{:.3g}".format)
    about = {
        "commands": [command_of(asked)],
        "commits": commits,
        "date": str(manifest["started"])[:10],
    } | {key: manifest[key] for key in RECORDED if key in manifest}
    if add:
        recorded, about = _added_to(recorded_results(folder).get(target.name), recorded, about)
    about["trials"] = n_trials(recorded)
    about["identified_by"] = [column for column in IDENTIFIED_BY if column in recorded]
    same = [c for c in recorded if c != "value" and recorded[c].nunique(dropna=False) == 1]
    about["constants"] = {column: recorded[column].tolist()[0] for column in same}
    make_folder(target)
    cells = recorded.drop(columns=same).to_csv(index=False)  # all digits: rounding breaks ties
    write_text(target / "cells.csv", cells)
    write_text(target / "manifest.json", json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return target


def _added_to(
    earlier: Recorded | None, cells: pd.DataFrame, about: dict[str, Any]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the cells and the circumstances of what is recorded and of a run together."""
    if earlier is None:
        return cells, about
    trials = [c for c in cells if c in earlier.frame and c not in MEASURED]
    both = pd.concat([earlier.frame, cells], ignore_index=True)
    both = both.drop_duplicates(trials, keep="last", ignore_index=True)
    merged = dict(about)
    for key, new in about.items():
        old = earlier.manifest.get(key)
        if isinstance(new, list) and isinstance(old, list):
            merged[key] = list(dict.fromkeys([*old, *new]))
        elif isinstance(new, Mapping) and isinstance(old, Mapping) and key != "versions":
            merged[key] = {**old, **new}
    return both, merged


def cells_of(run: str | Path) -> pd.DataFrame:
    """Return the cells of a run, one row per metric; some runs have a column for each instead."""
    own = Path(run) / "cells.csv"
    frame = _read_csv(own if own.exists() else Path(run) / "results.csv")
    if "value" in frame:
        return frame
    return frame.melt(list(frame.select_dtypes(exclude="number")), None, "metric")


def recorded_results(folder: str | Path = RESULTS) -> dict[str, Recorded]:
    """Return all recorded results by name."""
    if not Path(folder).is_dir():
        raise ArgumentError(f"no folder {folder}: run this where the repository is checked out")
    places = sorted(Path(folder).glob("*/cells.csv"))
    found = {}
    for path in places:
        manifest = _read_json(path.with_name("manifest.json"))
        frame = _read_csv(path).assign(**manifest.get("constants", {}))
        found[path.parent.name] = Recorded(frame, manifest)
    return found


def command_of(asked: Mapping[str, Any]) -> str:
    """Return the command that repeats a run, without folders of this machine.

    Examples
    --------
    >>> command_of({"name": "svor-table1", "trials": 5, "options": {"sets": ["pyrim", "housing"]}})
    'ordrec reproduce svor-table1 --trials 5 --set sets=pyrim,housing'
    """
    words = ["ordrec", "reproduce", asked["name"]]
    if asked["trials"] is not None:
        words += ["--trials", str(asked["trials"])]
    for option, value in asked["options"].items():
        values = value if isinstance(value, list | tuple) else [value]
        words += ["--set", f"{option}={','.join(Path(str(each)).name for each in values)}"]
    return shlex.join(words)


def n_trials(frame: pd.DataFrame) -> str:
    """Return how many values there are of each kind: a number, or the fewest and the most.

    Examples
    --------
    >>> frame = pd.DataFrame({"model": list("aabb"), "fold": [1, 2, 1, 2], "value": range(4)})
    >>> n_trials(frame), n_trials(frame[:3])
    ('2', '1 to 2')
    """
    names = ("data", "split", "n_train", "size", "model", "measure", "metric")
    kinds = [c for c in names if c in frame]
    trials = [c for c in TRIAL if c in frame]
    if not kinds or not trials:
        return "1"
    once = frame[[*kinds, *trials]].drop_duplicates()
    sizes = once.groupby(kinds, sort=False, dropna=False).size()
    low, high = int(sizes.min()), int(sizes.max())
    return str(low) if low == high else f"{low} to {high}"


def _failures_of(run: Path) -> pd.DataFrame:
    path = run / "failures.csv"
    return _read_csv(path) if path.exists() else pd.DataFrame()


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype={"fold": str})
    except (OSError, ValueError) as error:  # ValueError includes those of pandas
        raise DataError(
            f"{path}: not a table of results ({' '.join(str(error).split())})"
        ) from None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not a manifest ({error}): run the experiment again") from None
    if not isinstance(content, dict):
        raise DataError(f"{path}: not a manifest: run the experiment again")
    return content
