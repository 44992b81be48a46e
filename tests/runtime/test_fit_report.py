"""What a fit took, by stage."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from ordrec import load, save
from ordrec.datasets import synthetic_ratings
from ordrec.recommend import EASE, OrdinalFactors, RatingPredictor, Recommender
from ordrec.runtime import fit_report
from ordrec.runtime.fit_report import measured
from ordrec.runtime.progress import progress

RATINGS = synthetic_ratings(40, 30, n_ratings=500, seed=0)


def test_a_stage_knows_the_memory_that_it_took(monkeypatch) -> None:
    """Read from a memory that the test makes up, at the beginning and the end of each stage."""
    held = iter([1.0, 1.0, 2.0, 2.0, 7.0, 7.0, 3.0, 3.0, 3.0, 3.0])
    monkeypatch.setattr(fit_report, "resident_memory", lambda: next(held, 3.0))
    monkeypatch.setattr(fit_report, "peak_memory", lambda: 1.0)
    monkeypatch.setattr(fit_report, "EVERY", 1e6)
    with measured("all") as found:
        with measured("first"):
            pass
        with measured("second"):
            pass
    (report,) = found
    assert [stage.name for stage in report.stages] == ["first", "second"]
    assert report.stages[0].peak_gb == 7.0
    assert report.stages[1].peak_gb == 3.0
    assert report.peak_gb == 7.0


def test_a_peak_between_two_looks_is_not_missed(monkeypatch) -> None:
    highs = iter([1.0, 1.0, 5.0])
    monkeypatch.setattr(fit_report, "resident_memory", lambda: 0.5)
    monkeypatch.setattr(fit_report, "peak_memory", lambda: next(highs, 5.0))
    with measured("all") as found:
        pass
    assert found[0].peak_gb == 5.0


def test_the_watcher_sees_what_comes_and_goes(monkeypatch) -> None:
    seen = threading.Event()

    def memory() -> float:
        if threading.current_thread() is threading.main_thread():
            return 1.0
        seen.set()
        return 9.0

    monkeypatch.setattr(fit_report, "resident_memory", memory)
    monkeypatch.setattr(fit_report, "peak_memory", lambda: 1.0)
    monkeypatch.setattr(fit_report, "EVERY", 1e-4)
    with measured("all") as found:
        assert seen.wait(30)
        time.sleep(0.01)  # until it has been noted
    assert found[0].peak_gb == 9.0


def test_stages_of_the_same_name_that_follow_each_other_are_one() -> None:
    with measured("all") as found:
        for _ in range(3):
            with measured("again"):
                pass
        with measured("other"), measured(""):
            pass
    assert [stage.name for stage in found[0].stages] == ["again", "other"]
    assert not found[0].stages[1].stages


def test_an_error_leaves_nothing_open() -> None:
    with pytest.raises(KeyError), measured("all"), measured("part"):
        raise KeyError
    with measured("next") as found:
        pass
    assert found[0].stages == ()
    assert not fit_report._Watcher.marks


def test_threads_have_reports_of_their_own() -> None:
    reports = {}

    def work(name: str) -> None:
        with progress(name) as stage, progress("part"):
            time.sleep(0.001)
        reports[name] = stage.found[0]

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: report.name for name, report in reports.items()} == {n: n for n in "abc"}
    assert all([each.name for each in report.stages] == ["part"] for report in reports.values())


@pytest.mark.parametrize(
    ("model", "stages"),
    [
        (EASE(regularization=10.0), []),
        (OrdinalFactors(n_factors=2, pattern=2), ["up the scale", "down the scale"]),
        (RatingPredictor(preset="large"), ["OrdinalFactors"]),
        (
            RatingPredictor(preset="fast"),
            ["OrdinalFactors", "weights of the process", "weights of the pool", "process"],
        ),
        (Recommender(rating="bias"), ["OrderedChoice", "calibration", "BiasModel"]),
    ],
)
def test_every_model_reports_its_fit(model, stages: list[str]) -> None:
    report = model.fit(RATINGS).fit_report_
    assert report.name == type(model).__name__
    assert [stage.name for stage in report.stages] == stages
    for _, each in report.walk():
        assert each.seconds >= 0.0
        assert each.cpu_seconds >= 0.0
        assert each.peak_gb > 0.01
        assert all(stage.peak_gb <= each.peak_gb for stage in each.stages)
        assert sum(stage.seconds for stage in each.stages) <= each.seconds + 1e-6
    frame = report.to_frame()
    assert list(frame["stage"][1:2]) == [f"{report.name} > {name}" for name in stages[:1]]
    assert np.isfinite(frame.drop(columns="stage").to_numpy()).all()
    assert report.name in str(report)
    assert report.name in report._repr_html_()


def test_a_model_from_a_file_was_not_fitted_here(tmp_path) -> None:
    model = EASE(regularization=10.0).fit(RATINGS)
    save(model, tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "fit_report_")
