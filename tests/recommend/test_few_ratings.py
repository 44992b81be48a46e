"""Tables with hardly any ratings: popularity is an answer, and nothing ends in an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec import load, save
from ordrec.cli import app
from ordrec.data import Ratings
from ordrec.recommend import EASE, ChoiceMixture, OrdinalFactors, Recommender

# no item has three ratings, and a and b have two
FRAME = pd.DataFrame(
    {
        "user": [1, 1, 2, 2, 3, 3, 4, 5],
        "item": list("abcdabef"),
        "rating": [5, 3, 4, 2, 1, 5, 4, 3],
    }
)


def test_the_command_line_fits_a_table_in_which_no_item_has_three_ratings(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "few.csv", index=False)
    model, lists = str(tmp_path / "model.ordrec"), str(tmp_path / "lists.csv")
    with pytest.warns(UserWarning, match="no item has 3 ratings.*popularity takes its place"):
        done = CliRunner().invoke(app, ["fit", str(tmp_path / "few.csv"), "-o", model, "--quiet"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["recommend", model, "-u", "4", "-n", "3", "-o", lists])
    assert done.exit_code == 0, done.output
    assert pd.read_csv(lists)["item"].tolist()[:2] == ["b", "a"]


@pytest.mark.filterwarnings("ignore:no item has 3 ratings")
@pytest.mark.parametrize(
    "model",
    [EASE(), ChoiceMixture(), Recommender(), Recommender(rating=None), OrdinalFactors(rank=2)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("times", [1, 2], ids=["no item", "items that a part does not have"])
def test_models_that_list_always_do(model: Any, times: int, tmp_path: Path) -> None:
    again = FRAME.assign(user=FRAME["user"] + 10)[: 6 * (times - 1)]
    fitted = model.fit(Ratings.from_frame(pd.concat([FRAME, again])))
    listed = fitted.recommend(4, 3)
    assert len(listed) == 3
    assert listed["score"].notna().all()
    save(fitted, tmp_path / "model.ordrec")
    pd.testing.assert_frame_equal(load(tmp_path / "model.ordrec").recommend(4, 3), listed)


@pytest.mark.filterwarnings("ignore:no item has 3 ratings")
def test_without_weights_ease_lists_what_is_popular() -> None:
    listed = EASE().fit(Ratings.from_frame(FRAME)).recommend(4, 5)
    assert listed["item"].tolist() == ["a", "b", "c", "d", "f"]
    assert listed["score"].tolist() == [1.0, 1.0, 0.5, 0.5, 0.5]
