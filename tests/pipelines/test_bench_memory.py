"""The benchmark of memory on little data: a promise, and something measured."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from ordrec.rating.presets import gigabytes

PATH = Path(__file__).parents[2] / "pipelines" / "speed" / "bench_memory.py"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read on Linux")
def test_a_line_of_the_table(monkeypatch) -> None:
    spec = spec_from_file_location("bench_memory", PATH)
    assert spec is not None
    assert spec.loader is not None
    bench = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, bench)  # where its dataclass looks for types
    spec.loader.exec_module(bench)
    line = bench.measured("large", "60x50x900", jobs=1)
    assert line["promised"] == gigabytes("large", bench.ratings_of("60x50x900"))
    assert line["measured"] >= 0.0  # how much depends on what this process held before
    assert bench.resident() > 0.01
    assert set(bench.SIZES) == {"full", "fast", "large"}
