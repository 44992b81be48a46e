"""Ctrl-C arrives as a KeyboardInterrupt, also where compiled code calls back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from ordrec.models.base import fits
from ordrec.recommend import GlobalMean
from ordrec.runtime.parallel.interrupts import interruptible

FRAME = pd.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [5, 3, 4]})


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1000):  # the handler runs between two steps of Python
        pass


@dataclass
class Swallowing(GlobalMean):
    """Loses the interrupt, as a callback from compiled code does, and then may fail."""

    fails: bool = False

    @fits
    def fit(self, ratings):
        try:
            press()
        except KeyboardInterrupt as pressed:
            if self.fails:
                raise SystemError("returned a result with an exception set") from pressed
        return super().fit(ratings)


@pytest.mark.parametrize("fails", [False, True], ids=["lost", "SystemError"])
def test_an_interrupt_that_compiled_code_swallows(fails: bool) -> None:
    """Once a SystemError and exit code 1, in three of seven tries."""
    with pytest.raises(KeyboardInterrupt):
        Swallowing(fails).fit(FRAME)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_errors_are_left_alone() -> None:
    with pytest.raises(SystemError), interruptible():
        raise SystemError
    with interruptible(), interruptible():
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_exit_code_of_the_command_line_is_the_chosen_one(tmp_path: Path) -> None:
    """Where the interrupt leaves text that is executed, ``python -m`` would die by a signal."""
    (tmp_path / "pressed.py").write_text(
        "import os, signal, sys\n"
        "from ordrec import cli\n"
        "from ordrec.runtime.parallel.interrupts import interruptible\n"
        "def press(*words, **options):\n"
        "    with interruptible():\n"
        "        exec('os.kill(os.getpid(), signal.SIGINT)\\nfor _ in range(1000): pass')\n"
        "cli.app = press\n"
        "cli.main()\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "pressed"]
    assert subprocess.run(command, cwd=tmp_path, env=environment).returncode == 130
