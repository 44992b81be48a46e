"""Keep the results of a finished experiment, for the tables in docs/benchmarks.

    ordrec reproduce svor-table1
    python pipelines/page/record_results.py svor-table1 [FOLDER] [--add]
    python pipelines/page/benchmarks_page.py

FOLDER is what the experiment wrote, by default ``reproduced/NAME``. NAME is that of an experiment,
or begins with it where it was run with several options: ``per-user-eachmovie``. What is recorded is
described in ``ordrec/experiments/recorded.py``. With ``--add`` the run is a further part of what
is recorded under this name, such as some more data sets. A quick run, one with failures, and one
whose code is in no commit are refused.
"""

from __future__ import annotations

import argparse

from ordrec.errors import OrdrecError
from ordrec.experiments.recorded import record


def main() -> None:
    """Keep one run and say where."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("name", metavar="NAME")
    options.add_argument("folder", metavar="FOLDER", nargs="?")
    options.add_argument("--add", action="store_true", help="add to what is recorded")
    chosen = options.parse_args()
    run = chosen.folder or f"reproduced/{chosen.name}"
    try:
        print(f"recorded: {record(run, chosen.name, add=chosen.add)}")
    except OrdrecError as error:
        options.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
