"""The page of departures is that of the docstrings, and every claim in words is judged."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "pipelines/page/departures.py"))
    text = script["page"]()
    assert text == (ROOT / "docs/papers/departures.md").read_text(encoding="utf-8")
    assert text.count("| `ordrec/ordinal/") >= 15


def test_claims_are_judged_in_three_ways() -> None:
    words = tomllib.loads((ROOT / "pipelines/published/in_words.toml").read_text(encoding="utf-8"))
    verdicts = {each[0] for found in words.values() for each in found.get("judged", ())}
    assert verdicts == {"confirmed", "not confirmed", "cannot be judged"}
