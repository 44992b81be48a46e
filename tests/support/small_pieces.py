"""Let everything that is computed in pieces, to bound memory or for threads, meet many pieces.

The data of tests fits into one piece of nearly every loop, so that what happens at the second one
would not be seen.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ordrec.runtime.parallel import spans

# numbers in Python code only: compiled loops have theirs in the code that numba keeps
SIZES = {
    "AT_ONCE": 64,
    "BLOCK_BYTES": 256,
    "BLOCK_ENTRIES": 64,
    "CELLS_AT_ONCE": 50,
    "FEATURE_ROWS": 3,
    "ROWS_AT_ONCE": 3,
    "USERS_AT_ONCE": 2,
    "VALUES_AT_ONCE": 20,
    "WEIGHTS_AT_ONCE": 60,
    "WORDS_AT_ONCE": 8,
}
ELSEWHERE = {  # names that compiled loops of other modules have, too
    "ordrec.data.scale": {"BLOCK": 7},
    "ordrec.features.side.weights": {"ROWS": 5},
    "ordrec.linalg.lapack": {"PIECE": 4},
    "ordrec.ordinal.gpor.model": {"CHUNK": 4},
    "ordrec.ordinal.gram.posterior": {"BLOCK": 5},
    "ordrec.ordinal.logistic.covariance": {"BLOCK": 16},
    "ordrec.ordinal.logistic.objective": {"BLOCK": 16},
    "ordrec.rating.factors.fit": {"BLOCK": 5},
    "ordrec.rating.factors.row_priors": {"BLOCK": 5},
    "ordrec.rating.factors.rows": {"BLOCK": 5, "PIECES": 4},
}
SPANS = 5


def make_pieces_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pieces small, in all modules that are loaded, until the test ends."""
    for name, module in list(sys.modules.items()):
        if name.startswith("ordrec.") and name != "ordrec.rating.process.preparation":
            sizes = {key: size for key, size in SIZES.items() if key in vars(module)}
            for key, size in (sizes | ELSEWHERE.get(name, {})).items():
                monkeypatch.setattr(module, key, size)
    whole = spans.spans_of

    def more(costs: Any, n: int) -> Any:
        return whole(costs, max(n, SPANS))

    monkeypatch.setattr(spans, "spans_of", more)
