"""Writes the page of equations: where each numbered equation of the papers stands in the code."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

PAPERS = {
    "svor": "Chu and Keerthi (2007), support vector ordinal regression",
    "npsvor": "Wang, Shi, Niu and Tian (2017), nonparallel support vector ordinal regression",
    "gpor": "Chu and Ghahramani (2005), Gaussian processes for ordinal regression",
    "boosting": "Lin and Li (2006), large-margin thresholded ensembles",
    "logistic": "Rennie (2005), ordinal logistic regression",
}
NUMBER = re.compile(r"(?<![\w`])\((\d{1,2}[a-z]?)\)")


def write_equations(root: Path) -> None:
    """Write ``docs/papers/equations.md`` from the comments and docstrings of the solvers."""
    lines = [
        "# Equations and their homes",
        "",
        "The number of an equation of a paper stands in a comment at its line, or in the docstring",
        "of its module. This table is made from them when the site is built.",
    ]
    for family, paper in PAPERS.items():
        homes = equations_of(root / "ordrec" / "ordinal" / family)
        if not homes:
            continue
        lines += ["", f"## {paper}", "", "| equation | file in `ordrec/ordinal` |", "|---|---|"]
        for number in sorted(homes, key=lambda text: (int(re.sub(r"\D", "", text)), text)):
            files = ", ".join(f"`{family}/{name}`" for name in homes[number])
            lines.append(f"| ({number}) | {files} |")
    text = "\n".join(lines) + "\n"
    page = root / "docs" / "papers" / "equations.md"
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def equations_of(folder: Path) -> dict[str, list[str]]:
    """Return the files that name each equation."""
    homes: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*.py")):
        tokens = tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline)
        said = [
            token.string
            for token in tokens
            if token.type == tokenize.COMMENT or token.string.startswith('"""')
        ]
        for number in sorted(set(NUMBER.findall("\n".join(said)))):
            homes.setdefault(number, []).append(file.name)
    return homes
