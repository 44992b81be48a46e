"""Under which circumstances a result came about."""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from ordrec import __version__

__all__ = ["circumstances"]

PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn", "numba", "joblib", "implicit", "lightgbm")


def circumstances() -> dict[str, Any]:
    """Versions, machine, command and time of this process.

    Examples
    --------
    >>> sorted(circumstances())
    ['command', 'machine', 'started', 'versions']
    """
    versions = {"ordrec": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    program = os.path.basename(sys.argv[0]) or "python"
    return {
        "versions": versions,
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "command": " ".join([program, *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
