"""The defaults of an evaluation, in one place for Python and the command line."""

from __future__ import annotations

from typing import Literal

__all__ = ["CANDIDATES", "COLD_USERS", "DECISION", "RANKING_USERS", "SPLIT", "TIMES"]

SPLIT = "holdout:0.2"
DECISION = "auto"
CANDIDATES: Literal["catalogue", "rated"] = "catalogue"
RANKING_USERS: Literal["auto", "all"] = "auto"
TIMES: Literal["unknown", "known"] = "unknown"
COLD_USERS = 0
