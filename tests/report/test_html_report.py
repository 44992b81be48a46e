"""The page: self-contained, complete, escaped, and rendered by a browser without complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from support.experiment_models import Fails, NoisyThreshold, striped_table

from ordrec.evaluation import EvaluationResult, Experiment, TableProblem
from ordrec.report.figures import reliability_diagram
from ordrec.report.html import (
    FigureSection,
    Report,
    TableSection,
    experiment_report,
    means_table,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    models = {
        "steady <1>": NoisyThreshold(0.02),
        "wild": NoisyThreshold(0.5),
        "ridge": Ridge(),
        "bad": Fails(),
    }
    problems = [TableProblem(striped_table(name, 50, 3)) for name in "abcd"]
    return Experiment(models, problems).run()


@pytest.fixture(scope="module")
def page(result: EvaluationResult) -> str:
    return experiment_report(result, "Stripes", lead=["A first line."]).html()


class Outline(HTMLParser):
    """Headings, tags and identifiers of a page; fails where a tag is not closed."""

    VOID = ("meta", "link", "br", "path", "use", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_needs_nothing_from_elsewhere(page: str) -> None:
    assert "<script" not in page
    assert not re.findall(r'(?:src|href)="(?!#|data:)', page)
    assert not re.findall(r"url\((?!#)", page)
    assert "@import" not in page


def test_the_page_is_well_formed_and_identifiers_are_unique(page: str) -> None:
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert outline.tags.count("svg") == 2 * 2 + 1
    assert len(set(outline.ids)) == len(outline.ids)


def test_references_within_figures_are_resolved(page: str) -> None:
    wanted = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", page))
    assert wanted <= set(re.findall(r'id="([^"]+)"', page))


def test_what_went_wrong_and_how_it_came_about_is_said(result: EvaluationResult, page: str) -> None:
    assert "12 cells failed" in page
    assert page.count("RuntimeError: no, thank you") == 4  # one line a data set
    assert "steady &lt;1&gt;" in page
    assert "steady <1>" not in page
    for fact in ("A first line.", "data checksums", "versions", "command", "seeds"):
        assert fact in page
    assert result.manifest["data"]["a"] in page


def test_the_best_of_a_row_is_marked(result: EvaluationResult) -> None:
    section = means_table(result, "mae")
    assert section.mark is not None
    means = result.means("mae")
    for name in means.index:
        marked = [m for m in means if section.mark(name, m, None) == "best"]
        assert marked == [m for m in means if means.loc[name, m] == means.loc[name].min()]
    assert section.frame.loc["a", "wild"].startswith(f"{means.loc['a', 'wild']:.4f} ±")


def test_models_with_long_names_become_rows() -> None:
    models = {f"{'long name ' * 4}{scale}": NoisyThreshold(scale) for scale in (0.02, 0.1, 0.5)}
    result = Experiment(models, [TableProblem(striped_table(name, 50, 3)) for name in "ab"]).run()
    section = means_table(result, "mae")
    assert list(section.frame.index) == list(models)
    assert section.mark is not None
    means = result.means("mae")
    assert section.mark(means.loc["b"].idxmin(), "b", None) == "best"
    assert section.mark(means.loc["b"].idxmax(), "b", None) == ""


def test_figures_take_the_colour_of_the_text(page: str) -> None:
    assert "currentColor" in page
    assert "#1f2328" not in page.split("</style>", 1)[1]


def test_a_report_writes_page_and_figures(result: EvaluationResult, tmp_path: Path) -> None:
    path = experiment_report(result, "Stripes").write(tmp_path / "new")
    assert path.read_text().startswith("<!doctype html>")
    assert {f.suffix for f in (tmp_path / "new" / "figures").iterdir()} == {".svg", ".pdf"}


def test_tables_of_any_kind_are_shown() -> None:
    frame = pd.DataFrame(
        {"x": [1.23456, np.nan], "note": ["short", "long " * 20]},
        index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["data", "k"]),
    )
    page = Report("T", [], [TableSection("Numbers", frame, mark=lambda r, c, v: "far")]).html()
    assert '<td class="far" data-name="x">1.235</td>' in page
    assert '<td class="name">b</td><td class="name">2</td>' in page
    assert '<th scope="col" class="name">data</th><th scope="col" class="name">k</th>' in page


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("width", "dark"), [(1100, False), (420, True)])
def test_a_browser_renders_it_without_complaint(
    result: EvaluationResult, tmp_path: Path, width: int, dark: bool
) -> None:
    report = experiment_report(result, "Stripes")
    levels, p = np.array([0, 1, 2, 1]), np.full((4, 3), 1 / 3)
    report.sections.append(FigureSection("Calibration", reliability_diagram(levels, p), "cal"))
    page, picture = report.write(tmp_path), tmp_path / "page.png"
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1600",
        f"--screenshot={picture}", page.as_uri(),
    ]  # fmt: skip
    if dark:
        command.insert(1, "--blink-settings=preferredColorScheme=0")
    ran = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "CONSOLE" not in ran.stderr
    from matplotlib.image import imread

    pixels = imread(picture)[..., :3]
    assert (pixels[:60, :10].mean() < 0.3) == dark  # paper at the edge
    assert pixels.std() > 0.05  # and something on it


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_wide_tables_fit_a_printed_page(tmp_path: Path) -> None:
    names = [f"METHOD{number}" for number in range(10)]
    frame = pd.DataFrame(
        "0.1234 ±\N{NO-BREAK SPACE}0.0123", index=["winequality-red"], columns=names
    )
    page = Report("Wide", [], [TableSection("Table", frame)]).html()
    # On screen, but as on paper: A4 less its margins, and the width that is needed in the title.
    asks = "<script>document.title = document.documentElement.scrollWidth</script></body>"
    copy = tmp_path / "print.html"
    copy.write_text(page.replace("@media print", "@media all").replace("</body>", asks))
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=688,900", "--dump-dom",
        copy.as_uri(),
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True, timeout=180)
    title = re.search(r"<title>(\d+)</title>", ran.stdout)
    assert title is not None, ran.stderr[-2000:]
    assert int(title[1]) <= 688
