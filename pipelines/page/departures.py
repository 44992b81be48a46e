"""Write the page "Where ordrec departs from each paper" from docstrings and judged claims.

    python pipelines/page/departures.py [--check]

Departures are sections of this name in the docstrings of the modules below: a line with the item,
then indented its reason and, after "Effect", what was measured. Claims of the papers in words, with
what became of them and why, are those of ``pipelines/published/in_words.toml``. The page is
``docs/papers/departures.md``. With ``--check`` nothing is written, and the exit code is 1 if the
page differs from what would be written.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "papers" / "departures.md"
WORDS = ROOT / "pipelines" / "published" / "in_words.toml"
PAPERS = {
    "svor": "Support vector ordinal regression (Chu and Keerthi 2007)",
    "gpor": "Gaussian processes for ordinal regression (Chu and Ghahramani 2005)",
    "npsvor": "Nonparallel support vector ordinal regression (Wang, Shi, Niu and Tian 2017)",
    "orboost": "Large-margin thresholded ensembles (Lin and Li 2006)",
    "logistic": "Ordinal logistic regression (Rennie 2005)",
}
ROOMS = {"npsvor": ("npsvor", "baselines"), "orboost": ("boosting",)}
SECTION = re.compile(r"^Departures\n-+\n(.*?)(?=\n\S[^\n]*\n[-=]+\n|\Z)", re.DOTALL | re.MULTILINE)


class Departure(NamedTuple):
    """What differs, why, with what effect, and which module says so."""

    item: str
    reason: str
    effect: str
    module: str


def main() -> None:
    """Write the page, or check it."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true")
    text = page()
    if options.parse_args().check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        options.exit(int(not same), "" if same else f"{PAGE.name} is not up to date\n")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")


def page() -> str:
    """Return the page in Markdown."""
    with WORDS.open("rb") as stream:
        words = tomllib.load(stream)
    lines = [
        "# Where ordrec departs from each paper",
        "",
        "Written by `python pipelines/page/departures.py` from the docstrings of the solvers and",
        "from `pipelines/published/in_words.toml`. The digits are in",
        "[the benchmarks](../benchmarks/index.md).",
    ]
    for paper, title in PAPERS.items():
        lines += ["", f"## {title}", "", "| item | reason | effect | where |", "|---|---|---|---|"]
        for room in ROOMS.get(paper, (paper,)):
            for each in departures(ROOT / "ordrec" / "ordinal" / room):
                cells = (each.item, each.reason, each.effect or "-", f"`{each.module}`")
                lines.append(
                    f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
                )
        lines += ["", "| claim | experiment | verdict | cause |", "|---|---|---|---|"]
        for name, found in words.items():
            if name.startswith(f"{paper}-"):
                lines += [f"| {c} | `{name}` | {v} | {why} |" for c, v, why in claims(name, found)]
    return "\n".join(lines) + "\n"


def departures(folder: Path) -> Iterator[Departure]:
    """Yield the departures that the modules of a folder name."""
    for path in sorted(folder.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        module = path.relative_to(ROOT).as_posix()
        for section in SECTION.findall(inspect.cleandoc(text)):
            for entry in re.split(r"\n(?=\S)", section.split("\n\n")[0].strip()):
                item, _, rest = entry.partition("\n")
                told = " ".join(rest.split())
                reason, effect, measured = told.partition("Effect")
                yield Departure(
                    item, reason.strip(), measured.lstrip(":, ") if effect else "", module
                )


def claims(name: str, found: dict) -> list[tuple[str, str, str]]:
    """Return the claims of an experiment, each with its verdict and the cause."""
    said = [sentence for sentence in found.get("says", ()) if sentence.startswith("section")]
    judged = found.get("judged", ())
    if len(said) != len(judged):
        raise SystemExit(f"in_words.toml, {name}: {len(said)} claims, but {len(judged)} judged")
    return [(claim, *verdict) for claim, verdict in zip(said, judged, strict=True)]


if __name__ == "__main__":
    main()
