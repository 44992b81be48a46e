"""How many malformed inputs each part of the campaign tries, and which outcomes are allowed.

Every part is one function that checks a case and one strategy that makes cases; `explore`
runs it in two sizes: a share of the default run, and the long run of ``pytest -m fuzz``. The
default run tries the same cases every time, the long one new ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ordrec.errors import OrdrecError

# Part of the campaign: cases in the default run, cases in the long run (all files together).
CASES = {
    "frames": (250, 20_000),
    "scales": (100, 3_000),
    "loaders": (370, 26_000),
    "archives": (100, 6_000),
    "damaged models": (400, 30_000),
    "forged models": (300, 20_000),
    "command line": (250, 8_000),
    "results": (300, 12_000),
}

both_runs = pytest.mark.parametrize(
    "run", ["default", pytest.param("long", marks=pytest.mark.fuzz)]
)


def explore(
    part: str,
    run: str,
    check: Callable[..., Any],
    *strategies: st.SearchStrategy[Any],
    pieces: int = 1,
) -> None:
    """Check as many cases as the part has in this run; one of ``pieces`` equal shares of it."""
    wanted = -(-CASES[part][run == "long"] // pieces)
    done = 0

    def counted(case: tuple[Any, ...]) -> None:
        nonlocal done
        done += 1
        check(*case)

    profile = settings(
        max_examples=wanted,
        derandomize=run == "default",
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    profile(given(st.tuples(*strategies))(counted))()
    assert done >= wanted, f"{part}: only {done} of {wanted} cases were made"


def answered(work: Callable[[], Any], *, says: str | tuple[str, ...] = ()) -> Any:
    """What the work returns, or None where it refused as promised.

    A refusal is an `OrdrecError` whose message is one line that names the place and tells
    enough to act on; anything else that is raised is a defect and passes through.
    """
    try:
        return work()
    except OrdrecError as error:
        message = str(error)
    says = (says,) if isinstance(says, str) else says
    assert len(message) > sum(map(len, says)) + 10, message
    assert "\n" not in message, message
    assert len(message) < 4000, f"{len(message)} characters: {message[:200]}"
    for part in says:
        assert part in message, f"{message!r} does not say {part!r}"
    return None
