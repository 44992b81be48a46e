"""Draw random mutants of the package, run the nearest tests on each, and print the score.

    python tests/mutations/run.py [--sample 300] [--seed 0] [--packages data lists] [--out FILE]
                                  [--folder FOLDER] [--seconds N] [--share 1/2] [--untested]
                                  [--further SECONDS]

First all tests are run once, which notes through which lines each of them runs, and how long that
takes (`mutations.traces`); a folder that is kept is brought up to date. A mutant is noticed if a
test that runs through its line fails and passes without it. Of these tests ten seconds are run: the
cheapest of the module's folder, then the cheapest of the others; where they notice nothing, others
for ``--further`` seconds. The table has a row per
package; below it stand the mutants that nothing noticed. ``equivalent.toml`` lists mutants that
change nothing anybody could observe, with the reason; they do not count. With ``--out`` every
mutant is written to a csv as soon as it is decided, and a stopped run goes on from there;
``--seconds`` stops it, and ``--folder`` keeps the code that was compiled and what was recorded:
in parts, by file of tests. Processes side by side have folders of their own and take a
``--share`` each. ``--untested`` also prints where no test has come by.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from mutations.operators import Mutant, mutants_of
from mutations.workshop import ROOT, Workshop

EQUIVALENT = Path(__file__).parent / "equivalent.toml"
COLUMNS = ("package", "file", "mutant", "noticed")


def main() -> None:
    """Draw, run, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sample", type=int, default=300, help="how many mutants (300)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--packages", nargs="*", default=[], help="of these only")
    options.add_argument("--out", type=Path, help="a csv of what was decided")
    options.add_argument("--folder", type=Path, help="of the mutated copy (a new one)")
    options.add_argument("--record", nargs="*", default=[], help="these folders of tests, no more")
    options.add_argument("--untested", action="store_true", help="also blocks without a test")
    options.add_argument("--share", default="1/1", help="decide the k-th of n shares, k/n")
    options.add_argument(
        "--further", type=float, default=0.0, help="seconds of tests for survivors"
    )
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no more then")
    chosen = options.parse_args()
    first, step = map(int, chosen.share.split("/"))
    drawn = sample(chosen.sample, chosen.seed, chosen.packages)[first - 1 :: step]
    decided = already(chosen.out)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        workshop = Workshop(folder)
        workshop.record(chosen.record)
        if chosen.record:
            return
        workshop.ready()
        begun = time.monotonic()
        for number, (file, mutant) in enumerate(drawn, 1):
            key = (file, str(mutant))
            if key not in decided and time.monotonic() - begun > chosen.seconds:
                continue
            if key not in decided:
                noticed = workshop.noticed(file, mutant, chosen.further)
                if noticed is None:
                    print(f"{number}/{len(drawn)} not decided: {file} {mutant}", flush=True)
                    continue
                decided[key] = noticed
                write(chosen.out, file, mutant, noticed)
            word = "noticed" if decided[key] else "SURVIVED"
            print(f"{number}/{len(drawn)} {word}: {file} {mutant}", flush=True)
    keys = [(file, str(mutant)) for file, mutant in drawn]
    print_score({key: decided[key] for key in keys if key in decided})
    if chosen.untested:
        blocks, n_blocks = workshop.traces.untested()
        for file, line in blocks:
            print(f"untested: {file}:{line}")
        print(f"{len(blocks)} of {n_blocks} blocks of statements have no test")


def sample(size: int, seed: int, packages: list[str]) -> list[tuple[str, Mutant]]:
    """Draw mutants, each with the same chance; the equivalent ones among them are left out."""
    everything = [
        (file, mutant)
        for path in sorted((ROOT / "ordrec").rglob("*.py"))
        if not packages or path.relative_to(ROOT / "ordrec").parts[0] in packages
        for file in [str(path.relative_to(ROOT / "ordrec"))]
        for mutant in mutants_of(path.read_text())
    ]
    drawn = random.Random(seed).sample(everything, min(size, len(everything)))
    equivalent = tomllib.loads(EQUIVALENT.read_text())["equivalent"]
    return [
        (file, mutant)
        for file, mutant in drawn
        if not any(is_argued(entry, file, mutant) for entry in equivalent)
    ]


def is_argued(entry: dict[str, Any], file: str, mutant: Mutant) -> bool:
    """Whether an entry of ``equivalent.toml`` means a mutant; numbers of lines change."""
    words = f"{mutant.function}: {' '.join(mutant.old.split())} -> {' '.join(mutant.new.split())}"
    if (entry["file"], entry["mutant"]) != (file, words):
        return False
    if entry.get("column", mutant.column) != mutant.column:
        return False
    lines = (ROOT / "ordrec" / file).read_text().splitlines()
    line = lines[mutant.line - 1].strip()
    return bool(entry.get("line", line) == line)


def already(out: Path | None) -> dict[tuple[str, str], bool]:
    """Read what an earlier run decided."""
    if out is None or not out.exists():
        return {}
    with out.open(newline="") as file:
        return {(row["file"], row["mutant"]): row["noticed"] == "1" for row in csv.DictReader(file)}


def write(out: Path | None, file: str, mutant: Mutant, noticed: bool) -> None:
    """Add a line to the csv."""
    if out is None:
        return
    new = not out.exists()
    with out.open("a", newline="") as target:
        writer = csv.writer(target)
        if new:
            writer.writerow(COLUMNS)
        writer.writerow([file.split("/")[0], file, str(mutant), int(noticed)])


def print_score(decided: dict[tuple[str, str], bool]) -> None:
    """Print the share of noticed mutants by package, and the others."""
    packages: dict[str, list[bool]] = {}
    for (file, _), noticed in decided.items():
        packages.setdefault(file.split("/")[0].removesuffix(".py"), []).append(noticed)
    packages["all"] = list(decided.values())
    print(f"\n{'package':12} {'mutants':>8} {'noticed':>8} {'share':>6}")
    for package, noticed in sorted(packages.items()):
        share = sum(noticed) / max(len(noticed), 1)
        print(f"{package:12} {len(noticed):8} {sum(noticed):8} {share:6.0%}")
    for (file, mutant), noticed in sorted(decided.items()):
        if not noticed:
            print(f"survived: {file} {mutant}")


if __name__ == "__main__":
    main()
