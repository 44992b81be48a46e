"""Public names and modules of a package, without imports of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ordrec


def test_modules_are_attributes_once_the_package_is_imported() -> None:
    code = "import ordrec; print(ordrec.ordinal.scorers.__name__, ordrec.recommend.EASE.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ordrec.ordinal.scorers", "EASE"]


def test_modules_are_listed_but_not_imported_by_a_star() -> None:
    assert "ordinal" in dir(ordrec)
    assert "ordinal" not in ordrec.__all__


def test_other_names_are_refused_by_the_name_of_the_package() -> None:
    with pytest.raises(AttributeError, match="module 'ordrec' has no attribute 'ordinary'"):
        ordrec.ordinary  # noqa: B018
