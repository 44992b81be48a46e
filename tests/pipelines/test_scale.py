"""The scaling run on little data: complete, and between the truth and the items' means."""

from __future__ import annotations

import argparse
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pandas as pd
import pytest

PATH = Path(__file__).parents[2] / "pipelines" / "speed" / "scale.py"


@pytest.fixture(scope="module")
def scale():
    spec = spec_from_file_location("scale_pipeline", PATH)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read on Linux")
@pytest.mark.parametrize("sample", [100, None])
def test_a_line_of_the_table(scale, tmp_path, sample):
    chosen = argparse.Namespace(
        items=400, sample=sample, factors=4, jobs=1, folder=tmp_path, one_way=sample is None,
        skip_statistics=sample is None,
    )  # fmt: skip
    line = scale.measure(20_000, chosen)
    assert line["users"] == 200
    assert 3 <= line["sweeps"] <= 30
    assert line["of truth"] < line["RMSE"] < line["of item means"]
    assert line["log-loss of truth"] < line["log-loss"]
    assert line["MAE of truth"] < line["MAE"]
    assert 0 < line["peak GB"] < 3
    assert list(tmp_path.iterdir()) == []


def test_exponents(scale):
    sizes = [1e6, 1e7]
    names = [*scale.TIMES, "total", "total CPU"]
    table = pd.DataFrame({"ratings": sizes} | {name: [2.0, 20.0] for name in names})
    table["fit"] = [3.0, 300.0]
    said = scale.exponents(table)
    assert "write 1.00" in said
    assert "fit 2.00" in said
