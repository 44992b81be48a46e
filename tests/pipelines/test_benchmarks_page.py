"""The pages of benchmarks have what is recorded, and its command writes what is recorded."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ordrec.errors import ArgumentError
from ordrec.experiments.recorded import Recorded, recorded_results
from ordrec.experiments.runner import list_pipelines, published_csv

ROOT = Path(__file__).parents[2]
MANIFEST = {"commands": ["ordrec reproduce x"], "trials": "2", "commits": ["abc"], "date": "today"}


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "pipelines" / "page"))
    import benchmarks_page

    return benchmarks_page


@pytest.fixture
def tables(page):
    import benchmark_tables

    return benchmark_tables


def tables_of(page) -> dict[str, str]:
    found = page.BLOCK.finditer(text_of(page))
    return {block["name"]: block["kind"] for block in found if block["kind"] != "words"}


def text_of(page) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in page.PAGES)


def svor_results() -> Recorded:
    rows = [
        {"data": "pyrim", "model": model, "metric": metric, "fold": fold, "value": value}
        for model, values in {"SVR": (0.5, 0.7), "EXC": (0.25, 0.25), "IMC": (1.0, 2.0)}.items()
        for metric in ("mze", "mae")
        for fold, value in enumerate(values)
    ]
    return Recorded(pd.DataFrame(rows), MANIFEST)


def test_the_page_is_what_the_command_would_write(page) -> None:
    text = text_of(page)
    assert page.filled(text, recorded_results(ROOT / "pipelines" / "results")) == text, (
        "run python pipelines/page/benchmarks_page.py"
    )


def test_every_kept_result_has_its_table_in_the_page(page) -> None:
    blocks = tables_of(page)
    for name in recorded_results(ROOT / "pipelines" / "results"):
        assert blocks.get(name) == "table", name
    assert set(blocks) == set(page.TABLES)


def test_every_experiment_has_a_table_and_its_explanation_in_the_page(page) -> None:
    tables, text = tables_of(page), text_of(page)
    for name in list_pipelines():
        assert any(table.startswith(name) for table in tables), name
    for name in tomllib.loads(published_csv("in_words").with_suffix(".toml").read_text()):
        assert f"<!-- words: {name} -->" in text, name


def test_a_block_has_means_errors_published_numbers_and_their_origin(page) -> None:
    text = "before\n<!-- table: svor-table1 -->\nold\n<!-- end -->\nafter\n"
    new = page.filled(text, {"svor-table1": svor_results()})
    assert "old" not in new
    assert new.startswith("before\n<!-- table: svor-table1 -->\n| table | MZE, `SVRanks` |")
    assert "| pyrim | .600 ± .100 (.552) | .250 ± .000 (.525) | 1.500 ± .500 (.517) |" in new
    assert "\n\n(`ordrec reproduce x`, 2 trials, commit abc, today)\n<!-- end -->\nafter\n" in new
    assert page.filled(new, {"svor-table1": svor_results()}) == new


def test_earlier_tables_stand_until_there_are_results(page) -> None:
    text = "<!-- earlier: svor-table1 -->\n| a |\n<!-- end -->\n"
    assert page.filled(text, {}) == text
    new = page.filled(text, {"svor-table1": svor_results()})
    assert new.startswith("<!-- table: svor-table1 -->\n| table |")
    assert "No results are recorded yet" in page.filled(new, {})
    with pytest.raises(ArgumentError, match="no table is called 'other'"):
        page.filled(text.replace("svor-table1", "other"), {})


def test_averages_of_two_kinds_are_not_mixed(page) -> None:
    recorded = svor_results()
    mixed = pd.concat([recorded.frame.assign(average=kind) for kind in ("micro", "macro")])
    with pytest.raises(ArgumentError, match="several averages"):
        page.filled(
            "<!-- table: svor-table1 -->\n<!-- end -->", {"svor-table1": Recorded(mixed, {})}
        )


def test_a_grid_has_the_combinations_that_occur_in_order(tables) -> None:
    rows = [
        {"model": model, "n_train": size, "metric": metric, "value": value, "fit_seconds": 2.0}
        for model, size, value in (("b, x", 100, 0.5), ("a, x, y", 20, 0.25), ("b, x", 20, 0.75))
        for metric in ("mae", "mze")
    ]
    make = tables.grid(
        ("n_train", "kind"),
        ("metric", "base"),
        prepare=lambda frame: tables.with_seconds(tables.split("model", "kind", "base")(frame)),
        shown={"metric": {"mze": "MZE", "seconds": "s"}},
        digits=2,
    )
    table = make(pd.DataFrame(rows))
    assert table.index.name == "training rows, kind"
    assert table.index.tolist() == ["20, b", "20, a", "100, b"]
    assert table.columns.tolist() == ["MZE, x", "MZE, x, y", "s, x", "s, x, y"]
    assert table.loc["20, a"].tolist() == ["-", ".25", "-", "2.00"]
    counted = tables.grid(("model",), ("metric",), counts=("mae",))(pd.DataFrame(rows[:2]))
    assert counted.loc["b, x"].tolist() == ["0", ".500"]


def test_time_against_rows_has_its_exponent(tables) -> None:
    rows = [
        {"data": "5 ranks", "model": "EXC", "n_train": n, "metric": metric, "value": 0.0,
         "fit_seconds": 1e-6 * n**2}
        for n in (100, 1000, 10_000) for metric in ("mze", "mae")
    ]  # fmt: skip
    table = tables.svor_scaling(pd.DataFrame(rows))
    assert table.loc["5 ranks, EXC"].tolist() == [".010", "1.000", "100.000", "2.00"]


def test_a_block_without_results_says_how_to_make_them(page) -> None:
    new = page.filled("<!-- table: npsvor-scaling -->\n<!-- end -->", {})
    assert "`ordrec reproduce npsvor-scaling` takes about twenty minutes" in new
    with pytest.raises(ArgumentError, match="nothing about 'toy'"):
        page.filled("<!-- words: toy -->\n<!-- end -->", {})


def test_one_model_per_user(tables) -> None:
    rows = [
        {"data": "d", "n_train": 20, "trial": 1, "model": model, "metric": metric, "value": value}
        for model, value in {
            "biases, rounded": 0.7,
            "svorim, mean": 0.5,
            "svorim, low-rank": 0.25,
        }.items()
        for metric in ("mae", "mze")
    ]
    table = tables.per_user(pd.DataFrame(rows))
    assert table["20 ratings"].tolist() == [".700 / .700", ".500 / .500, .250 / .250"]
    assert table.index.tolist() == ["biases, rounded", "svorim"]


def test_rating_models_beside_published_ones_say_who_knew_the_time(tables) -> None:
    rows = [
        {"data": "ml-100k", "split": "s", "model": model, "fold": fold, "metric": "rmse",
         "value": value}
        for model in ("bias", "full, ids", "full, time")
        for fold, value in (("1", 0.9), ("2", 0.8))
    ]  # fmt: skip
    table = tables.ml_100k_folds(pd.DataFrame(rows))
    assert table.index.tolist()[:3] == [
        "damped biases",
        '`RatingPredictor("full")`, ids',
        '`RatingPredictor("full")`, side data, time of the rating known',
    ]
    assert table.iloc[1][["u1: RMSE", "all: RMSE", "u1: MZE"]].tolist() == [".9000", ".8500", "-"]
    theirs = table[table.index.str.startswith("IGMC, published: README")]
    assert theirs["u1: RMSE"].tolist() == [".905"]


def test_kept_files_are_small_and_tell_nothing_of_the_machine() -> None:
    for path in (ROOT / "pipelines" / "results").rglob("*.*"):
        assert path.stat().st_size < 300_000, path
        assert not re.search(r"/(home|tmp|work|Users)/", path.read_text(encoding="utf-8")), path
    for name, recorded in recorded_results(ROOT / "pipelines" / "results").items():
        assert recorded.manifest["commits"], name
        assert np.isfinite(recorded.frame["value"]).all(), name
