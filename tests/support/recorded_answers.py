"""Compare what models answer with what they answered when that was last recorded.

Independent oracles see whether an answer is right; a record sees that it has changed. Constants of
priors, starts and searches, which no oracle knows, can thus only change on purpose:

    ORDREC_RECORD=1 pytest -p no:xdist -k recorded_answers tests

writes the records anew, and the difference to the committed ones is read before it is committed.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["compare_with_record", "kept", "recorded_names"]

DIGITS = 8


def kept(answer: Any) -> Any:
    """An answer as JSON holds it, numbers with eight digits.

    Examples
    --------
    >>> kept({"a": np.array([1.0, np.nan]), "b": (np.int64(2), "two")})
    {'a': [1.0, 'nan'], 'b': [2, 'two']}
    """
    if isinstance(answer, pd.DataFrame):
        return {str(name): kept(answer[name].to_numpy()) for name in answer.columns}
    if isinstance(answer, Mapping):
        return {str(name): kept(value) for name, value in answer.items()}
    if isinstance(answer, np.ndarray | pd.Index | pd.Series):
        return kept(answer.tolist())
    if isinstance(answer, list | tuple):
        return [kept(each) for each in answer]
    if isinstance(answer, float | np.floating):
        return float(f"{answer:.{DIGITS}g}") if math.isfinite(answer) else str(float(answer))
    return answer.item() if isinstance(answer, np.generic) else answer


def compare_with_record(
    file: Path, name: str, answer: Any, *, rtol: float = 1e-5, atol: float = 1e-7
) -> None:
    """Compare an answer with the one recorded under a name, numbers to within the tolerance."""
    records = json.loads(file.read_text()) if file.exists() else {}
    if os.environ.get("ORDREC_RECORD"):
        records[name] = kept(answer)
        lines = [f"{json.dumps(key)}: {json.dumps(records[key])}" for key in sorted(records)]
        file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return
    assert name in records, f"{name} is not recorded: see {__name__}"
    _compare(kept(answer), records[name], name, rtol, atol)


def _compare(found: Any, expected: Any, place: str, rtol: float, atol: float) -> None:
    if isinstance(expected, dict):
        assert list(found) == list(expected), place
        for key in expected:
            _compare(found[key], expected[key], f"{place}: {key}", rtol, atol)
    elif isinstance(expected, list):
        assert len(found) == len(expected), place
        for number, pair in enumerate(zip(found, expected, strict=True)):
            _compare(*pair, f"{place}[{number}]", rtol, atol)
    elif isinstance(expected, float) and isinstance(found, int | float):
        assert abs(found - expected) <= atol + rtol * abs(expected), (place, found, expected)
    else:
        assert found == expected, place


def recorded_names(file: Path) -> set[str]:
    """The names under which answers are recorded."""
    return set(json.loads(file.read_text()))
