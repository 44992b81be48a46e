"""Write the tables of the pages in docs/benchmarks from the recorded results of experiments.

    python pipelines/page/benchmarks_page.py [--check]

The pages, one for each family, are written by hand but for blocks between two lines,

    <!-- table: NAME -->
    <!-- end -->

which hold the table of the results recorded in ``pipelines/results/NAME`` (see
``record_results.py`` and ``benchmark_tables.py``) and a line with the command, the number of trials
and the commit. A block that begins with ``earlier: NAME`` has a table from before results were
recorded; it becomes such a block as soon as there are results of this name. A block ``words: NAME``
has what the paper says in words, and notes on numbers that differ, from ``pipelines/published``.
With ``--check`` nothing is written, and the exit code is 1 if a page differs from what would be
written. ``BENCHMARKS.md`` has the headlines and is written by hand.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

from benchmark_tables import TABLES

from ordrec.errors import ArgumentError
from ordrec.experiments.published import in_words
from ordrec.experiments.recorded import Recorded, recorded_results
from ordrec.experiments.runner import list_pipelines, published_csv

ROOT = Path(__file__).parents[2]
PAGES = tuple(sorted((ROOT / "docs" / "benchmarks").glob("*.md")))
BLOCK = re.compile(
    r"<!-- (?P<kind>table|earlier|words): (?P<name>\S+) -->\n(?P<body>.*?)<!-- end -->", re.DOTALL
)


def main() -> None:
    """Write the pages, or check them."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--check", action="store_true")
    results = recorded_results(ROOT / "pipelines" / "results")
    old = {page: page.read_text(encoding="utf-8") for page in PAGES}
    new = {page: filled(text, results) for page, text in old.items()}
    stale = [page for page in PAGES if new[page] != old[page]]
    if options.parse_args().check:
        options.exit(bool(stale), "".join(f"{page.name} is not up to date\n" for page in stale))
    for page in stale:
        page.write_text(new[page], encoding="utf-8")


def filled(page: str, results: Mapping[str, Recorded]) -> str:
    """Return the page with every block as its recorded results say."""

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        if found["kind"] == "words":
            return f"<!-- words: {name} -->\n{said(name)}\n<!-- end -->"
        if name not in TABLES:
            raise ArgumentError(f"no table is called {name!r}: there are {', '.join(TABLES)}")
        if name in results:
            return f"<!-- table: {name} -->\n{shown(name, results[name])}\n<!-- end -->"
        if found["kind"] == "earlier":
            return found[0]
        return f"<!-- table: {name} -->\n{missing(name)}\n<!-- end -->"

    return BLOCK.sub(block, page)


def shown(name: str, recorded: Recorded) -> str:
    """Return the table of an experiment and the line under it."""
    table = TABLES[name](recorded.frame)
    lines = [[table.index.name or "", *map(str, table)], ["---"] * (table.shape[1] + 1)]
    lines += [[str(row), *values] for row, values in zip(table.index, table.values, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n({recorded.provenance})"


def missing(name: str) -> str:
    """Return what stands in place of a table: how to make it, and how long that takes."""
    pipeline = next(p for p in list_pipelines().values() if name.startswith(p.name))
    return (
        f"(No results are recorded yet. `ordrec reproduce {pipeline.name}` takes {pipeline.time}.)"
    )


def said(name: str) -> str:
    """Return what the paper says in words and what is known of numbers that differ, as a list."""
    sentences = in_words(published_csv("in_words").with_suffix(".toml"), name)
    if not sentences:
        raise ArgumentError(f"in_words.toml has nothing about {name!r}: add it, or drop the block")
    return "\n".join(f"- {sentence}" for sentence in sentences)


if __name__ == "__main__":
    main()
