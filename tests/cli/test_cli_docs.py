"""``ordrec docs`` opens what was built, or says how to build it."""

from __future__ import annotations

import pytest

from ordrec.cli import docs, main


def test_the_address_of_the_built_site_is_printed(tmp_path, monkeypatch, capsys) -> None:
    page = tmp_path / "index.html"
    page.write_text("<title>ordrec</title>")
    monkeypatch.setitem(docs.__globals__, "BUILT", page)
    with pytest.raises(SystemExit) as left:
        main(["docs"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"{page.as_uri()}\n"


def test_a_site_that_is_not_built_is_refused_with_the_command(
    tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.setitem(docs.__globals__, "BUILT", tmp_path / "index.html")
    with pytest.raises(SystemExit) as left:
        main(["docs"])
    assert left.value.code == 2
    assert "sphinx-build docs docs/_build/html" in capsys.readouterr().err
