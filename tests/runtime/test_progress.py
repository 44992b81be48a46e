"""Progress: one line, the time left, compiling apart, and silence where nobody looks."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from support.two_taste_ratings import two_taste_ratings
from typer.testing import CliRunner

from ordrec.cli import app
from ordrec.evaluation import evaluate
from ordrec.ordinal import GPOR, NPSVOR, SVORIM, ORBoost, tune
from ordrec.recommend import OrdinalFactors, RatingPredictor, Recommender
from ordrec.runtime import progress as module
from ordrec.runtime.progress import (
    compiling_began,
    compiling_ended,
    current_line,
    progress,
    report,
    work_clock,
)


class Clock:
    """A clock that goes on when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """A fake clock, and no thread that draws beside the test."""
    fake = Clock()
    monkeypatch.setattr(module, "clock", fake)
    monkeypatch.setattr(module._Line, "_draw_from_now_on", lambda self: None)
    return fake


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    """A terminal on which nothing is drawn, since the test looks at the line itself."""
    stream = Terminal()
    given = SimpleNamespace(stderr=stream, modules=sys.modules)  # pytest sets sys.stderr
    monkeypatch.setattr(module, "sys", given)
    return stream


@pytest.fixture
def no_terminal(monkeypatch) -> io.StringIO:
    stream = io.StringIO()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream, modules=sys.modules))
    return stream


@pytest.fixture
def shown(monkeypatch) -> list[str]:
    """What a person would see whenever something is reported."""
    seen: list[str] = []

    def look(line: module._Line) -> None:
        text = current_line()
        if text and seen[-1:] != [text]:
            seen.append(text)

    monkeypatch.setattr(module._Line, "print_now_and_then", look)
    return seen


def lines(stream: io.StringIO) -> list[str]:
    """What was written, one after the other."""
    return stream.getvalue().splitlines()


def work(clock: Clock, n: int, seconds: float = 1.0) -> Iterator[int]:
    for k in range(n):
        report(k, n, f"step {k}")
        yield k
        clock.now += seconds


def test_a_terminal_shows_the_time_left(clock, terminal, shown) -> None:
    with progress("counting"):
        for _ in work(clock, 10):
            pass
    assert shown[0] == "counting: 20 %, 8 s left (step 2)"  # nothing in two seconds
    assert shown[-1] == "counting: 90 %, 1 s left (step 9)"
    assert current_line() == ""  # and is gone
    assert terminal.getvalue() == ""


def test_short_work_shows_nothing(clock, terminal, shown) -> None:
    with progress("counting"):
        for _ in work(clock, 10, seconds=0.19):
            pass
    assert shown == []
    assert terminal.getvalue() == ""


@pytest.fixture
def drawn(monkeypatch, terminal) -> Terminal:
    """A terminal on which lines are drawn at once."""
    monkeypatch.setattr(module, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return terminal


def wait_until(happened) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def plain(text: str) -> list[str]:
    """The lines of a text without the codes that move the cursor."""
    return [line for line in re.split(r"(?:\x1b\[[?\d;]*[A-Za-z]|\r|\n)+", text) if line]


def test_a_step_that_takes_long_is_drawn_and_taken_away(drawn) -> None:
    with progress("one step"):
        wait_until(lambda: plain(drawn.getvalue()))
        report(1, 2, "half")
        wait_until(lambda: "half" in drawn.getvalue())
    seen = plain(drawn.getvalue())
    assert seen[0] == "one step: 1 s so far"
    assert "one step: 50 %, 1 s left (half)" in seen
    assert drawn.getvalue().endswith("\x1b[2K")  # the last line is erased
    n_written = len(drawn.getvalue())
    time.sleep(2 / module.DRAWN_PER_SECOND)
    assert len(drawn.getvalue()) == n_written


def test_long_lines_are_cut(drawn) -> None:
    with progress("counting " * 9):
        wait_until(lambda: plain(drawn.getvalue()))
    assert {len(line) for line in plain(drawn.getvalue())} == {40}


def test_messages_stay_above_the_line(drawn) -> None:
    with progress("one step"):
        wait_until(lambda: plain(drawn.getvalue()))
        print("a warning", file=sys.stderr)
    assert "a warning" in plain(drawn.getvalue())


def test_without_a_terminal_nothing_is_printed_unless_asked_for(clock, no_terminal) -> None:
    for verbose in (None, False):
        with progress("counting", verbose):
            for _ in work(clock, 100):
                pass
    assert no_terminal.getvalue() == ""
    with progress("counting", verbose=True):
        for _ in work(clock, 100):
            pass
    assert lines(no_terminal)[0] == "counting: 2 %, 2 min left (step 2)"
    assert 9 <= len(lines(no_terminal)) <= 12  # one in ten seconds
    assert lines(no_terminal)[-1] == "counting: 2 min"
    assert "\x1b" not in no_terminal.getvalue()


def test_a_notebook_draws_if_it_can(monkeypatch, no_terminal) -> None:
    module.sys.modules = {"ipykernel": None}
    for widgets in (None, "there"):
        monkeypatch.setattr(module, "find_spec", lambda name, found=widgets: found)
        assert module._can_draw(no_terminal) == (widgets is not None)


def test_on_a_terminal_too_false_is_silent_and_true_says_how_long_it_took(
    clock, terminal, shown
) -> None:
    with progress("counting", verbose=False):
        for _ in work(clock, 10):
            pass
    assert shown == []
    assert terminal.getvalue() == ""
    with progress("counting", verbose=True):
        for _ in work(clock, 10):
            pass
    assert shown
    assert lines(terminal)[-1] == "counting: 10 s"


def test_stages_share_the_line_and_the_estimate(clock, terminal, shown) -> None:
    with progress("outer"):
        report(0.0, 4.0, "first", span=1.0)
        with progress("inner"):
            for _ in work(clock, 4):
                pass
        report(1.0, 4.0, "second", span=3.0)
        with progress("inner"):
            for _ in work(clock, 4, seconds=3.0):
                pass
    assert shown[0] == "outer: 12 %, 14 s left (first: inner: step 2)"
    assert "outer: 62 %, 6 s left (second: inner: step 2)" in shown


def test_without_a_total_the_time_so_far_is_shown(clock, terminal, shown) -> None:
    with progress("searching"):
        clock.now += 5.0
        report(3, None, "try 3")
        with progress("fitting"):
            clock.now += 5.0
            report(1, 2)
    assert shown == [
        "searching: 5 s so far (try 3)",
        "searching: 10 s so far (try 3: fitting)",
    ]


def test_a_stage_that_asks_is_shown_within_one_that_does_not(clock, no_terminal) -> None:
    with progress("outer"), progress("inner", verbose=True):
        clock.now += 3.0
        report(1, 2)
    assert lines(no_terminal) == ["inner: 50 %, 3 s left", "inner: 3 s"]
    with progress("outer", verbose=False), progress("inner", verbose=True):
        clock.now += 3.0
        report(1, 2)
    assert len(lines(no_terminal)) == 2


def test_compiling_is_named_and_is_no_work(clock, terminal) -> None:
    start, seen = work_clock(), []
    with progress("fitting", verbose=True):
        report(0, 4)
        clock.now += 1.0
        compiling_began("update_rows")
        compiling_began("a part of it")
        clock.now += 20.0
        seen.append(current_line())
        assert work_clock() - start == pytest.approx(1.0)
        compiling_ended()
        clock.now += 9.0
        compiling_ended()
        clock.now += 1.0
        report(1, 4, "step")
        seen.append(current_line())
        clock.now += 6.0
    assert work_clock() - start == pytest.approx(8.0)
    assert [*seen, *lines(terminal)] == [
        "fitting: compiling, once: update_rows",
        "fitting: 25 %, 6 s left (step)",
        "fitting: 8 s, and 29 s of compiling, once",
    ]


def test_numba_tells_when_it_compiles() -> None:
    from ordrec.runtime.compiling import inner

    @inner
    def twice(x):  # type: ignore[no-untyped-def]
        return 2 * x

    before = module._Compiling.seconds
    twice.compile("float64(float64)")
    assert module._Compiling.seconds > before
    assert module._Compiling.depth == 0
    assert module._Compiling.name == "twice"


def test_workers_are_silent(clock, terminal) -> None:
    def fit() -> None:
        with progress("in a thread", verbose=True):
            clock.now += 5.0
            report(1, 2)

    thread = threading.Thread(target=fit)
    thread.start()
    thread.join()
    assert terminal.getvalue() == ""


def test_an_error_takes_the_line_away(clock, terminal) -> None:
    def interrupted() -> None:
        with progress("counting"):
            for k in work(clock, 10):
                if k == 5:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert current_line() == ""
    assert module._Line.current is None


@pytest.mark.parametrize("state", ["closed", "none"])
@pytest.mark.parametrize("verbose", [None, True])
def test_a_stream_that_is_gone_is_no_error(clock, monkeypatch, state: str, verbose) -> None:
    stream = Terminal()
    given = SimpleNamespace(stderr=stream if state == "closed" else None, modules=sys.modules)
    monkeypatch.setattr(module, "sys", given)
    with progress("counting", verbose):
        for k in work(clock, 10):
            if k == 4:
                stream.close()


# ---- what reports --------------------------------------------------------------------------

RATINGS = two_taste_ratings(n_users=25, n_items=15, dated=True)
GRID = {"C": [0.1, 1.0], "gamma": [0.1, 1.0]}
X = np.random.default_rng(0).normal(size=(30, 2))
Y = np.digitize(X[:, 0], [-0.5, 0.5])
FACTORS = OrdinalFactors(n_factors=2, pattern=2, max_iter=4)
WORK = {
    "OrdinalFactors": lambda: FACTORS.fit(RATINGS),
    "RatingPredictor": lambda: RatingPredictor("full", max_iter=1).fit(RATINGS),
    "Recommender": lambda: Recommender(rating=FACTORS).fit(RATINGS),
    "evaluate": lambda: evaluate(RATINGS, ["mean", "bias", "factors"], metrics=["rmse"]),
    "tune": lambda: tune(SVORIM(), X, Y, GRID, cv=2, n_jobs=1, engine="serial"),
}


ESTIMATORS = {
    "GPOR": (GPOR(max_iter=5), r"evaluation \d"),
    "SVORIM": (SVORIM(), r"iteration \d"),
    "NPSVOR": (NPSVOR(), ""),
    "ORBoost": (ORBoost(n_estimators=5, random_state=0), r"\d %, .* left \(round \d\)"),
}


class Hasty(Clock):
    """A clock that goes on by three seconds whenever it is read."""

    def __call__(self) -> float:
        self.now += 3.0
        return self.now


@pytest.mark.parametrize("name", WORK)
def test_long_work_tells_how_far_it_is(name: str, clock, terminal, shown, monkeypatch) -> None:
    monkeypatch.setattr(module, "clock", Hasty())
    WORK[name]()
    assert all(line.startswith(name) for line in shown)
    shares = [int(found[1]) for line in shown if (found := re.search(r" (\d+) %, .* left", line))]
    assert len(shares) >= 3
    assert shares == sorted(shares)  # it never goes back
    assert shares[-1] >= 50
    if name == "RatingPredictor":  # and what was chosen
        assert re.search(r'\(preset "full".*OrdinalFactors', "\n".join(shown))


@pytest.mark.parametrize("name", WORK)
def test_libraries_are_silent_without_a_terminal(
    name: str, clock, no_terminal, monkeypatch
) -> None:
    monkeypatch.setattr(module, "clock", Hasty())
    WORK[name]()
    assert no_terminal.getvalue() == ""


@pytest.mark.filterwarnings("ignore")  # five iterations of an optimiser are not enough
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_show_it_where_asked_to(name: str, clock, no_terminal, monkeypatch) -> None:
    estimator, words = ESTIMATORS[name]
    monkeypatch.setattr(module, "clock", Hasty())
    clone(estimator).fit(X, Y)
    assert no_terminal.getvalue() == ""
    clone(estimator).set_params(verbose=True).fit(X, Y)
    assert all(line.startswith(f"{name}: ") for line in lines(no_terminal))
    assert re.search(words, no_terminal.getvalue())
    assert re.fullmatch(rf"{name}: \d+ (s|min)", lines(no_terminal)[-1])


@pytest.mark.parametrize(
    "estimator",
    [
        SVORIM(max_iter=1),
        GPOR(max_iter=1),
        NPSVOR(C1=1e4, max_iter=1),
        SVORIM(C=1e-9, kernel="linear"),
    ],
    ids=["SVORIM", "GPOR", "NPSVOR", "constant"],
)
def test_warnings_of_a_fit_point_to_who_called_it(estimator) -> None:
    with pytest.warns(UserWarning, match="stopped|one label") as caught:
        clone(estimator).fit(X, Y)
    assert {Path(each.filename).name for each in caught} == {"test_progress.py"}


def test_verbose_is_a_parameter_that_files_do_not_keep(clock, no_terminal, tmp_path) -> None:
    from ordrec import load, save

    for kind, parameters in (
        (OrdinalFactors, {"n_factors": 2, "pattern": 2}),
        (RatingPredictor, {}),
    ):
        model = kind(verbose=True, **parameters).fit(RATINGS)
        assert lines(no_terminal)[-1].startswith(f"{kind.__name__}: ")
        save(model, tmp_path / "model")
        assert load(tmp_path / "model").verbose is None
        assert model.get_params()["verbose"] is True
    save(SVORIM(verbose=True).fit(X, Y), tmp_path / "estimator")
    assert load(tmp_path / "estimator").verbose is None


def test_results_hold_the_seconds_of_work_alone(monkeypatch) -> None:
    """A model whose fit is only compiling takes no time."""

    class Compiled:
        def fit(self, ratings):
            compiling_began("all of it")
            fake.now += 50.0
            compiling_ended()
            fake.now += 2.0
            return self

        def predict(self, users, items):
            return np.full(len(users), 3.0)

    fake = Clock()
    monkeypatch.setattr(module, "clock", fake)
    monkeypatch.setattr(Compiled, "__deepcopy__", lambda self, memo: self, raising=False)
    result = evaluate(RATINGS, {"compiled": Compiled()}, metrics=["rmse"], verbose=False)
    assert result.frame["fit_seconds"].tolist() == pytest.approx([2.0] * len(result.frame))


def test_the_command_line_shows_it_and_quiet_does_not(clock, shown, monkeypatch, tmp_path) -> None:
    RATINGS.to_frame().to_csv(tmp_path / "r.csv", index=False)
    monkeypatch.setattr(module, "clock", Hasty())
    monkeypatch.setattr(module, "_can_draw", lambda stream: True)
    words = ["fit", str(tmp_path / "r.csv"), "-m", "factors", "--set", "n_factors=2"]
    for more, is_shown in (([], True), (["--quiet"], False)):
        shown.clear()
        path = str(tmp_path / f"m{is_shown}")
        done = CliRunner().invoke(app, [*words, "-o", path, *more], catch_exceptions=False)
        assert done.exit_code == 0
        assert bool(shown) == is_shown
        assert all(line.startswith("fitting factors to ") for line in shown)
        if is_shown:
            expected_line = re.compile(
                r"ratings: \d+ %, .* left \(OrdinalFactors: (up|down) the scale: sweep \d+\)"
            )
            assert any(expected_line.search(line) for line in shown)


def test_the_caller_may_draw_the_line(clock, terminal) -> None:
    with progress("evaluating", drawn=True):
        clock.now += 3.0
        report(1, 2)
        assert current_line() == "evaluating: 50 %, 3 s left"
    assert terminal.getvalue() == ""
