"""What the page says of an item, as node computes it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ordrec.serve

PAGE = Path(ordrec.serve.__file__).with_name("page.js").read_text(encoding="utf-8")
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")


def said(expression: str) -> Any:
    """The value of an expression, with what the page uses to put reasons into words."""
    percent = re.search(r"^const percent = .*?;$", PAGE, re.M | re.S)
    just = re.search(r"^const JUST = .*?;", PAGE, re.M)
    reason = re.search(r"^function shortReason.*?^}$", PAGE, re.M | re.S)
    assert percent is not None
    assert just is not None
    assert reason is not None
    program = f"const about = {{ like: 4 }};\n{just[0]}\n{percent[0]}\n{reason[0]}\n"
    program += f"console.log(JSON.stringify({expression}))"
    done = subprocess.run([str(NODE), "-e", program], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def reasons(*terms: tuple[str, str, float, str]) -> str:
    return json.dumps(
        [
            {"why": why, "source": source, "contribution": value, "title": title, "rating": 5}
            for why, source, value, title in terms
        ]
    )


def test_nothing_is_certain() -> None:
    found = said("[1, 0.9999, 0.6, 0.004, 0].map(percent)")
    assert found == ["over 99 %", "over 99 %", "60 %", "under 1 %", "0 %"]


def test_a_liked_title_is_named_only_where_it_speaks_for_the_item() -> None:
    general = ("like", "all ratings", 3.5, "")
    pick = ("pick", "own rating", 0.3, "Alien")
    for taste in (("own rating", "Alien"), ("taste", "")):
        for value, words in ((0.2, "because you liked Alien"), (-0.2, "why"), (0.0, "why")):
            told = reasons(pick, general, ("like", taste[0], value, taste[1]))
            assert said(f"shortReason({told})") == words
    assert said(f"shortReason({reasons(pick)})") == "because you liked Alien"
    assert said("shortReason(null)") == ""


def test_what_was_rated_just_now_is_said() -> None:
    def told(*places: float | None) -> str:
        return said(
            "shortReason("
            + json.dumps(
                [
                    {"why": "pick", "source": "own rating", "contribution": 0.3, "rating": 5,
                     "title": title, "place": place}
                    for title, place in zip(("Alien", "Heat"), places, strict=False)
                ]
            )
            + ")"
        )  # fmt: skip

    assert told(1, 2.5) == "because you just rated Alien and Heat"
    assert told(3) == "because you just rated Alien"
    assert told(1, 30) == "because you liked Alien and Heat"
    assert told(None) == "because you liked Alien"
