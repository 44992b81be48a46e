"""Tables on a terminal: what they must show."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from ordrec.evaluation.tuning.model import TunedModel
from ordrec.report.tables import dataset_table, tuning_table


def lines_of(table: object) -> list[str]:
    console = Console(file=io.StringIO(), width=120)
    console.print(table)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("metric", "best"), [("rmse", 0), ("ndcg@10", 4)])
def test_a_search_shows_its_best_settings_and_the_defaults(metric: str, best: int) -> None:
    """The defaults, tried first, are marked, and shown wherever they come."""
    scores = np.array([0.53, 0.51, 0.52, np.nan, 0.54, 0.55])
    scores = scores if metric == "rmse" else 1 - scores
    table = pd.DataFrame({"damping": [10.0, 1.0, 2.0, 3.0, 4.0, np.nan], "fold 1": scores,
                          "score": scores, "seconds": 0.1,
                          "error": ["", "", "", "ValueError", "", ""]})  # fmt: skip
    found = TunedModel(None, {}, scores[1], scores[0], metric, "grid", table)
    for n_rows in (1, 2, 3, 9):
        rows = [line.split("│") for line in lines_of(tuning_table(found, n_rows)) if "0." in line]
        shown = [(row[1].strip(), row[2].strip()) for row in rows]
        own = [f"{score:.4f}" for score in scores]
        order = [(own[1], "1"), (own[2], "2"), (f"{own[0]}*", "10"), (own[4], "4")]
        order += [(own[5], "none")]
        kept = [row for place, row in enumerate(order) if place < n_rows or row[1] == "10"]
        assert shown == kept
        assert all("fold" not in line for line in lines_of(tuning_table(found, n_rows)))


def test_data_sets_are_rows() -> None:
    text = "\n".join(lines_of(dataset_table([("ml-100k", "MovieLens 100K", "943 x 1682", "here")])))
    assert all(word in text for word in ("ml-100k", "MovieLens 100K", "943 x 1682", "here"))
