"""Events beside ratings on the command line, and that it does what Python does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.commands import exit_code as ordrec
from support.tasteful_events import rated_and_viewed

from ordrec import load
from ordrec.recommend import EASE

RATINGS, VIEWS = rated_and_viewed()
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("events")
    RATINGS.to_frame().to_csv(folder / "r.csv", index=False)
    VIEWS.rename(columns={"kind": "what"}).to_csv(folder / "views.csv", index=False)
    return folder


def test_a_model_fitted_with_events_is_that_of_python(
    files: Path, tmp_path: Path, capsys: Captured
) -> None:
    model = tmp_path / "m.ordrec"
    words = "fit", files / "r.csv", "-m", "ease", "-o", model, "-q"
    assert ordrec(*words, "--events", files / "views.csv", "--kind-col", "what") == 0
    said = capsys.readouterr().err
    assert f"views.csv: {len(VIEWS):,} rows; beside ratings: {len(VIEWS):,} view" in said
    ours, theirs = EASE().fit(RATINGS.with_events(VIEWS)), load(model)
    assert theirs.event_weights_ == ours.event_weights_
    assert theirs.event_weights_["view"] > 0
    assert np.allclose(theirs.scores_block([3]), ours.scores_block([3]))
    assert ordrec("recommend", model, "--user", "3", "-n", "5") == 0
    listed = capsys.readouterr().out
    assert str(ours.recommend(3, n=1)["item"][0]) in listed


def test_evaluation_with_events_and_their_kind_left_out(files: Path, capsys: Captured) -> None:
    words = "evaluate", files / "r.csv", "-m", "ease,popularity", "--metrics", "ndcg@10", "-q"
    assert ordrec(*words, "--events", files / "views.csv", "--kind-col", "none") == 0
    assert f"{len(VIEWS):,} event" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        ("user,item,kind\n", (), "the events have no rows"),
        (
            "user,item\n1,2\n",
            ("--kind-col", "knd"),
            "name it with --kind-col, or pass --kind-col none",
        ),
        ("user,item\n,2\n", (), "line 2: row 0: no user id"),
        ("user,item\nann,2\n", (), "user is not a whole number"),
        ("user,item\n90000,2\n", (), "none of the 1 users of the events"),
        ("who,item\n1,2\n", (), "no column 'user'"),
        ("user,item,kind\n1,2,view\n1,3,View\n", (), "differs from 'view' in capitals"),
    ],
)
def test_odd_events_are_one_line(
    content: str, options: tuple[str, ...], says: str, files: Path, tmp_path: Path,
    capsys: Captured,
) -> None:  # fmt: skip
    (tmp_path / "e.csv").write_text(content)
    words = "evaluate", files / "r.csv", "-m", "popularity", "--events", tmp_path / "e.csv"
    assert ordrec(*words, *options, "-q") == 2
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


def test_zeros_can_be_read_as_events(tmp_path: Path, capsys: Captured) -> None:
    frame = pd.concat([RATINGS.to_frame(), VIEWS[["user", "item"]].assign(rating=0)])
    frame.to_csv(tmp_path / "z.csv", index=False)
    words = "data", "describe", tmp_path / "z.csv"
    assert ordrec(*words) == 0
    assert "--no-rating" in capsys.readouterr().err
    assert ordrec(*words, "--no-rating", "0") == 0
    told = capsys.readouterr()
    assert f"{RATINGS.n_ratings} ratings" in told.out
    assert f"{len(VIEWS):,} no rating" in told.out
    assert not told.err


def test_where_events_cannot_be_is_said(files: Path, tmp_path: Path, capsys: Captured) -> None:
    events = "--events", files / "views.csv", "--kind-col", "what"
    assert ordrec("data", "partition", files / "r.csv", tmp_path / "p", *events) == 2
    assert "partitions hold ratings and no events" in capsys.readouterr().err
    assert ordrec("evaluate", files / "r.csv", "--kind-col", "what", "-q") == 2
    assert "name the table of events with --events" in capsys.readouterr().err
    assert ordrec("data", "partition", files / "r.csv", tmp_path / "q") == 0
    words = "fit", tmp_path / "q", "-m", "ease", "-o", tmp_path / "m", "--sample-users", "50"
    assert ordrec(*words, *events) == 2
    assert "ratings on disk are read without events" in capsys.readouterr().err
