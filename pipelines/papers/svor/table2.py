"""Table 2 of Chu and Keerthi (2007): regression tables cut into 10 ranks of equal size.

Like table 1 (see ``table1.py``), with 10 ranks, and in addition with the machine of Shashua
and Levin (SLA), whose thresholds are not ordered.
"""

from __future__ import annotations

from pathlib import Path

from ordrec.experiments.runner import Reproduction, list_pipelines, main
from ordrec.ordinal import SVOREX, SVORIM, SVORSLA
from ordrec.ordinal.baselines import SVRanks

NAME = "svor-table2"
TITLE = "SVR, SLA, EXC and IMC on regression tables cut into 10 ranks"
SOURCE = "Chu and Keerthi 2007, section 4.3, table 2"
TIME = "about an hour and a half of one processor (the large sets: many days)"

METHODS = {"SVR": SVRanks(), "SLA": SVORSLA(), "EXC": SVOREX(), "IMC": SVORIM()}


def run(*, data, trials, jobs, quick, out: Path, sets=()) -> Reproduction:
    """Run twenty partitions; quick: five, of the smallest set."""
    table = list_pipelines()["svor-table1"].load().table
    return table(10, METHODS, NAME, data, trials, jobs, quick, out, sets)


if __name__ == "__main__":
    main(NAME)
