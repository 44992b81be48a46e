"""``ordrec docs``: the documentation in a browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

from ordrec.errors import DataError

BUILT = Path(__file__).parents[2] / "docs" / "_build" / "html" / "index.html"


def docs() -> None:
    """Open the documentation of this checkout in a browser.

    It is read from files and needs no network; its address is printed, too.
    """
    if not BUILT.exists():
        raise DataError(
            "the documentation is not built here: in a checkout of the repository, run "
            "\"pip install -e '.[docs]' && sphinx-build docs docs/_build/html\""
        )
    address = BUILT.as_uri()
    print(address)
    if sys.stdout.isatty():
        webbrowser.open(address)
