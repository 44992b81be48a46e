"""The command line in the process of the test: a process of its own imports for two seconds."""

from __future__ import annotations

import io
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pandas as pd
import pytest

from ordrec import files
from ordrec.cli import main


class Said(NamedTuple):
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def table(self) -> pd.DataFrame:
        """The csv on standard output."""
        return pd.read_csv(io.StringIO(self.out))


def exit_code(*words: object) -> int:
    """Run a command for its exit code; what it prints is for `capsys`."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def commands(capsys: Any, monkeypatch: Any) -> Iterator[Callable[..., Said]]:
    """A function that runs a command as `main` does, and returns all that it says."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # which `main` replaces
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(files, "_registered", {})  # as in a process that has just started

    def run(*words: object) -> Said:
        capsys.readouterr()
        warnings.simplefilter("default")
        code = exit_code(*words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        files._registered.clear()
        return Said(code, out, err)

    with warnings.catch_warnings():
        yield run
    signal.signal(signal.SIGTERM, before)
