"""Results that are recorded: which runs, what of them, and how a page repeats them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from ordrec.errors import ArgumentError, DataError
from ordrec.experiments.recorded import n_trials, record, recorded_results

MANIFEST = {
    "versions": {"ordrec": "0.2"},
    "commit": "abc",
    "commits": ["abc"],
    "command": "ordrec reproduce toy --data /home/somebody/data",
    "started": "2026-01-02T03:04:05+00:00",
    "data": {"toy": "hash"},
    "seeds": [0],
    "experiment": {
        "name": "toy",
        "trials": None,
        "quick": False,
        "options": {"file": "/home/somebody/ratings.csv"},
    },
}
ROWS = pd.DataFrame(
    {
        "data": "toy",
        "model": ["a", "a", "b", "b"],
        "fold": ["1", "2", "1", "2"],
        "metric": "mae",
        "value": [1 / 3, 0.5, 0.25, 0.5],
        "warnings": "a long text",
    }
)


def written(folder: Path, frame: pd.DataFrame = ROWS, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    frame.to_csv(folder / "results.csv", index=False)
    (folder / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    return folder


def test_cells_and_circumstances_are_recorded(tmp_path: Path) -> None:
    target = record(written(tmp_path / "run"), folder=tmp_path / "recorded")
    assert target == tmp_path / "recorded" / "toy"
    recorded = recorded_results(tmp_path / "recorded")["toy"]
    assert recorded.frame["value"].tolist() == [1 / 3, 0.5, 0.25, 0.5]
    assert "warnings" not in recorded.frame
    assert recorded.frame["fold"].tolist() == ["1", "2", "1", "2"]
    assert recorded.manifest["data"] == {"toy": "hash"}
    assert recorded.manifest["seeds"] == [0]
    assert recorded.provenance == (
        "`ordrec reproduce toy --set file=ratings.csv`, 2 trials, commit abc, 2026-01-02"
    )
    assert "somebody" not in (target / "manifest.json").read_text()


def test_the_manifest_says_what_identifies_a_trial(tmp_path: Path) -> None:
    cells = ROWS.assign(split="holdout:0.1,10", seed=0)
    target = record(written(tmp_path / "run", cells), folder=tmp_path / "recorded")
    manifest = json.loads((target / "manifest.json").read_text())
    assert manifest["identified_by"] == ["split", "fold", "seed"]


def test_what_is_the_same_everywhere_is_recorded_once(tmp_path: Path) -> None:
    cells = ROWS.assign(fit_seconds=1 / 3, chosen=None, seed=0)
    cells.loc[0, "fit_seconds"] = 12.3456
    target = record(written(tmp_path / "run", cells), folder=tmp_path / "recorded")
    lines = (target / "cells.csv").read_text().splitlines()
    assert lines[:3] == [
        "model,fold,value,fit_seconds",
        "a,1,0.3333333333333333,12.3",
        "a,2,0.5,0.333",
    ]
    recorded = recorded_results(tmp_path / "recorded")["toy"]
    assert recorded.manifest["constants"] == {"data": "toy", "metric": "mae", "seed": 0}
    assert recorded.frame["metric"].tolist() == ["mae"] * 4


def test_a_column_for_each_metric_is_recorded_as_rows(tmp_path: Path) -> None:
    wide = pd.DataFrame({"model": ["a", "b"], "b1": [0.5, 1.5], "wrong": [3, 0]})
    record(written(tmp_path / "run", wide), folder=tmp_path / "recorded")
    recorded = recorded_results(tmp_path / "recorded")["toy"].frame
    assert recorded["metric"].tolist() == ["b1", "b1", "wrong", "wrong"]
    assert recorded["value"].tolist() == [0.5, 1.5, 3.0, 0.0]
    assert recorded["model"].tolist() == ["a", "b"] * 2


def test_an_experiment_may_say_what_is_recorded(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    ROWS[:2].to_csv(run / "cells.csv", index=False)
    record(run, "toy-other", tmp_path / "recorded")
    assert len(recorded_results(tmp_path / "recorded")["toy-other"].frame) == 2


def test_a_part_is_added_to_what_is_recorded(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    record(written(tmp_path / "run"), folder=recorded)
    asked = {"name": "toy", "trials": None, "quick": False, "options": {"sets": ["other"]}}
    more = pd.concat([ROWS.assign(data="other"), ROWS[:1].assign(value=0.125)])
    changes = {"experiment": asked, "commits": ["abd"], "data": {"other": "sum"}}
    record(written(tmp_path / "more", more, **changes), folder=recorded, add=True)
    kept = recorded_results(recorded)["toy"]
    values = kept.frame.set_index(["data", "model", "fold"])["value"]
    assert len(values) == 8
    assert values["toy", "a", "1"] == 0.125  # the later run of the same trial
    assert values["toy", "a", "2"] == values["other", "a", "2"] == 0.5
    assert kept.manifest["data"] == {"toy": "hash", "other": "sum"}
    assert kept.manifest["constants"] == {"metric": "mae"}
    assert kept.provenance == (
        "`ordrec reproduce toy --set file=ratings.csv` and `ordrec reproduce toy --set sets=other`,"
        " 2 trials, commit abc and abd, 2026-01-02"
    )
    record(tmp_path / "more", "first", folder=recorded, add=True)  # nothing to add to: as without
    assert len(recorded_results(recorded)["first"].frame) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experiment": MANIFEST["experiment"] | {"quick": True}}, "a quick run"),  # type: ignore[operator]
        ({"commits": ["abc", "abd+changes"]}, "no commit has the code"),
        ({"commits": [""]}, "no commit has the code"),
    ],
)
def test_runs_that_prove_nothing_are_refused(tmp_path: Path, changes, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        record(written(tmp_path / "run", **changes), folder=tmp_path / "recorded")
    assert not (tmp_path / "recorded").exists()


def test_runs_with_failures_and_other_folders_are_refused(tmp_path: Path) -> None:
    run = written(tmp_path / "run")
    (run / "failures.csv").write_text("data,model,error\ntoy,a,ValueError\n")
    with pytest.raises(ArgumentError, match="some cells failed"):
        record(run, folder=tmp_path / "recorded")
    (run / "failures.csv").write_text("data,model,error\n")
    record(run, folder=tmp_path / "recorded")
    with pytest.raises(DataError, match="not a manifest"):
        record(tmp_path, folder=tmp_path / "recorded")
    (run / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="not written by 'ordrec reproduce'"):
        record(run, folder=tmp_path / "recorded")


def test_numbers_of_trials() -> None:
    assert n_trials(pd.DataFrame({"value": [1.0]})) == "1"
    twice = pd.concat([ROWS, ROWS.assign(metric="mze")])
    assert n_trials(twice) == "2"
    one_more = ROWS[ROWS["fold"] == "1"].assign(split="user-time:0.2")
    assert n_trials(pd.concat([ROWS.assign(split="holdout:0.2,2"), one_more])) == "1 to 2"
