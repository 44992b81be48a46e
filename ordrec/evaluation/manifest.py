"""The circumstances of a result: versions, commit, machine, command, checksums."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from ordrec import __version__
from ordrec.data import Ratings

__all__ = ["CHANGED", "circumstances", "ratings_checksum"]

CHANGED = "+changes"  # after a commit whose files were altered before the run

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "numba", "joblib", "implicit", "lightgbm")


def circumstances() -> dict[str, Any]:
    """Return the versions, commit, machine, command and time of this process.

    The commit is that of the checkout ordrec was imported from, "" for an installed package;
    uncommitted changes of the code are marked.

    Examples
    --------
    >>> sorted(circumstances())
    ['command', 'commit', 'machine', 'started', 'versions']
    """
    versions = {"ordrec": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "commit": _commit(Path(__file__).resolve().parents[2]),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "command": shlex.join([*_program(), *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def ratings_checksum(ratings: Ratings) -> str:
    """Return a SHA-256 of users, items, ratings and times that is the same on every machine.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": [1, 2], "item": [1, 1], "rating": [3, 4]})
    >>> len(ratings_checksum(Ratings.from_frame(frame)))
    64
    """
    digest = hashlib.sha256()
    for ids in (ratings.user_ids, ratings.item_ids):
        digest.update("\0".join(map(str, ids)).encode("utf-8", "surrogatepass"))
    times = np.zeros(0) if ratings.timestamps is None else ratings.timestamps
    for codes in (ratings.users, ratings.items, ratings.levels):
        digest.update(np.ascontiguousarray(codes, dtype="<i8").tobytes())
    weights = np.zeros(0) if ratings.weights is None else ratings.weights
    for numbers in (ratings.scale.values, times, *_of_bins(ratings), weights):
        digest.update(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
    if ratings.events is not None:
        events = ratings.events
        digest.update("\0".join(events.names).encode("utf-8", "surrogatepass"))
        for numbers in (events.users, events.items, events.kinds, events.counts, events.times):
            digest.update(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
    return digest.hexdigest()


def _of_bins(ratings: Ratings) -> tuple[np.ndarray, ...]:
    """The edges of bins, and the ratings in them."""
    edges = ratings.scale.edges
    return () if edges is None else (edges, ratings.values)


def _commit(checkout: Path) -> str:
    """Return the commit of a checkout, marked if its code was changed since; "" if it is none."""
    if not (checkout / ".git").exists():
        return ""
    code = ["ordrec", "pipelines", ":!pipelines/results"]
    try:
        commit = _git(checkout, "rev-parse", "--short=10", "HEAD").strip()
        changed = _git(checkout, "status", "--porcelain", "--", *code)
    except (OSError, subprocess.SubprocessError):  # no git, or not our repository
        return ""
    return commit + (CHANGED if changed else "")


def _git(checkout: Path, *words: str) -> str:
    command = ["git", "-C", str(checkout), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


def _program() -> list[str]:
    """Return how this process was started: as a module, a command or a script."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return ["python", "-m", spec.name.removesuffix(".__main__")]
    name = os.path.basename(sys.argv[0])
    return ["python", name] if name.endswith(".py") else [name or "python"]
