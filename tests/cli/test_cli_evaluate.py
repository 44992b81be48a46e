"""``ordrec evaluate`` beyond the plain table: failures, groups of users, reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ordrec.cli import app
from ordrec.errors import ArgumentError
from ordrec.evaluation.table import best_value
from ordrec.recommend import registry
from ordrec.recommend.registry import default_model_names, model_names, register_model


class Refuses:
    """A model that cannot be fitted."""

    def fit(self, ratings):
        raise RuntimeError("no,\nthank you")

    def predict(self, users, items):
        return np.zeros(len(users))


@pytest.fixture(autouse=True)
def refusing_model(monkeypatch) -> None:
    """Known by its name here only: other tests ask for all models by name."""
    monkeypatch.setattr(registry, "MODELS", list(registry.MODELS))
    register_model("refuses", f"{__name__}:Refuses")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    pairs = [(u, i) for u in range(15) for i in range(12) if (u * i) % 3]
    rows = [(u, i, int(rng.integers(1, 6)), 100 * u + i) for u, i in pairs]
    path = tmp_path / "ratings.csv"
    columns = ["user", "item", "rating", "timestamp"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    return path


def run(*words: str):
    return CliRunner().invoke(app, ["evaluate", *words])


def test_the_default_models_are_known_and_have_what_was_promised() -> None:
    names = default_model_names()
    assert set(names) <= set(model_names())
    assert "predictor-fast" not in names  # whose ratings are those of recommender-fast
    assert set(names) == {
        "mean", "bias", "item-knn", "factors", "popularity", "ease", "recommender-fast"
    }  # fmt: skip


def test_models_and_metrics_may_be_repeated_or_separated_by_commas(
    table: Path, tmp_path: Path
) -> None:
    """A repeated option must not silently forget what came before."""
    found = []
    for k, words in enumerate((["-m", "mean", "-m", "bias", "--metrics", "rmse", "--metrics",
                                "mae"], ["-m", "mean,bias", "--metrics", "rmse,mae"])):  # fmt: skip
        out = tmp_path / f"{k}.csv"
        assert run(str(table), *words, "-o", str(out)).exit_code == 0
        frame = pd.read_csv(out)
        found.append((list(frame["model"].unique()), list(frame["metric"].unique())))
    assert found[0] == found[1] == (["mean", "bias"], ["rmse", "mae"])


def test_a_failing_model_is_named_the_others_go_on_and_the_exit_code_is_1(
    table: Path, tmp_path: Path
) -> None:
    done = run(
        str(table), "-m", "refuses,bias", "-o", str(tmp_path / "r.json"), "--split", "kfold:2"
    )
    assert done.exit_code == 1
    assert "refuses (failed)" in done.stdout
    assert "bias" in done.stdout
    said = done.stderr.strip().splitlines()
    assert said[0] == "ordrec: refuses failed on fold 1: RuntimeError: no, thank you"
    assert len(said) == 2
    content = json.loads((tmp_path / "r.json").read_text())
    assert [row["model"] for row in content["failures"]] == ["refuses", "refuses"]
    assert {row["model"] for row in content["results"]} == {"bias"}


def test_intervals_and_the_test_are_shown(table: Path) -> None:
    done = run(str(table), "-m", "mean,bias", "--metrics", "mae,ndcg@5", "-q")
    assert (done.exit_code, done.stdout) == (0, "")
    done = run(str(table), "-m", "mean,bias", "--metrics", "mae,ndcg@5")
    words = " ".join(done.stdout.split())
    assert "±0." in words
    assert "draws of whole users" in words
    assert "over the whole catalogue except what the user rated in training" in words


def test_warm_and_cold_users_and_both_averages(table: Path) -> None:
    done = run(
        str(table), "-m", "bias", "--split", "time:0.3", "--cold", "0", "--metrics", "mae",
        "--average", "both",
    )  # fmt: skip
    assert done.exit_code == 0
    titles = [
        f"{users} users, {a}" for users in ("all", "warm", "cold") for a in ("micro", "macro")
    ]
    shown = [title for title in titles if title in done.stdout]
    assert shown == [title for title in titles if not title.startswith("warm")] or shown == titles
    assert "cold: at most 0 training ratings" in " ".join(done.stdout.split())


def test_the_report_has_tables_figures_and_circumstances(table: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = run(
        str(table), "-m", "bias,histogram,refuses", "--metrics", "mae,log_loss,ndcg@5",
        "--report", str(page), "--quiet", "--jobs", "1",
    )  # fmt: skip
    assert done.exit_code == 1
    text = page.read_text(encoding="utf-8")
    for part in (
        "All users, micro average", "All users, macro average", "Time against accuracy",
        "Reliability of histogram", "RuntimeError: no,", "data checksums", "numpy", "seed",
    ):  # fmt: skip
        assert part in text, part
    assert "Reliability of bias" not in text
    assert 'class="best"' in text
    assert "<script" not in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--average", "mean"], "micro, macro, both, ips or snips"),
        (["--candidates", "some"], "candidates"),
        (["--ranking-users", "few"], "ranking_users"),
        (["--cold", "-1"], "cold_users"),
        (["--like", "9"], "like must not be above the highest rating"),
        (["--jobs", "0"], "n_jobs"),
        (["--report", "r.pdf"], ".html"),
        (["--report", "no/such/r.html"], "no/such"),
    ],
)
def test_mistakes_are_named(table: Path, words: list[str], says: str) -> None:
    done = run(str(table), "-m", "mean", *words)
    assert isinstance(done.exception, ArgumentError)
    assert says in str(done.exception)


def test_the_highest_is_best_where_higher_is_better() -> None:
    assert best_value(pd.Series([0.2, 0.7, 0.5], name="ndcg@10")) == 0.7
    assert best_value(pd.Series([0.2, 0.7, 0.5], name="mae")) == 0.2
    assert best_value(pd.Series([2.0, 0.3, 0.9], name="pick_calibration@10")) == 0.9  # nearest to 1
    assert np.isnan(best_value(pd.Series([0.2, 0.7], name="fit_seconds")))
    assert np.isnan(best_value(pd.Series([0.2, np.nan], name="mae")))  # nothing to compare with
