"""The benchmark of memory: a promise and something measured, and six shapes that keep it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from ordrec.rating.presets import gigabytes

PATH = Path(__file__).parents[2] / "pipelines" / "speed" / "bench_memory.py"


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="memory is read on Linux"
)


@pytest.fixture
def bench(monkeypatch) -> ModuleType:
    spec = spec_from_file_location("bench_memory", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where its dataclass looks for types
    spec.loader.exec_module(module)
    return module


def test_a_line_of_the_table(bench) -> None:
    line = bench.measured("large", "60x50x900", jobs=1)
    assert line["promised"] == gigabytes("large", bench.ratings_of("60x50x900"))
    assert line["measured"] >= 0.0  # how much depends on what this process held before
    assert bench.resident() > 0.01
    assert set(bench.SIZES) == {"full", "fast", "large"}


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["full", "large"])
@pytest.mark.parametrize("shape", ["square", "long", "wide", "thin", "one user", "one item"])
def test_a_fit_takes_what_was_promised(shape: str, preset: str, bench) -> None:
    """In a process of its own, as the memory of this one has been used."""
    own = [sys.executable, str(PATH), "--alone", "--presets", preset, "--jobs", "1"]
    own += ["--sizes", bench.SHAPES[shape]]
    row = json.loads(subprocess.run(own, stdout=subprocess.PIPE, text=True, check=True).stdout)
    assert row["measured"] <= 1.15 * row["promised"]
