"""Draw the picture of the README from what `ordrec evaluate` found on the bundled ratings.

    ordrec evaluate -o found.json
    python pipelines/page/first_page.py found.json

Writes ``pipelines/page/figures/first_page.png``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd

from ordrec.evaluation import EvaluationResult

PICTURE = Path(__file__).parent / "figures" / "first_page.png"


def main() -> None:
    """Draw the picture."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("found", type=Path, help="what 'ordrec evaluate -o' wrote")
    stored = json.loads(options.parse_args().found.read_text())
    found = EvaluationResult(
        pd.DataFrame(stored["results"]),
        pd.DataFrame(stored["failures"]),
        stored["circumstances"],
        pd.DataFrame(stored["comparison"]),
    )
    figure = found.plot(metrics=["rmse", "log_loss", "ndcg@10"])
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=130, bbox_inches="tight")
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
