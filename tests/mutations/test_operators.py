"""The mutants of a file: every kind is made, all of them are Python, and texts stay alone."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from mutations.operators import mutants_of
from mutations.run import EQUIVALENT, is_argued, sample
from mutations.workshop import ROOT, TESTS, nearest_tests

KINDS = {
    "a < b": {"a <= b"},
    "a not in b": {"a in b"},
    "a + b": {"a - b"},
    "not a": {"a"},
    "-a": {"a"},
    "a and b": {"((a) or (b))"},
    "True": {"False"},
    "3": {"4"},
    "0.5": {"1.0"},
    "min(a, b)": {"max"},
    "f(a, k=b)": {"f(a)"},
    "zip(a, b, strict=c)": set(),
    "b if a else c": {"(not (a))"},
    "'left'": {"'right'"},
    "'some text'": set(),
    "f'{a + 1}'": set(),
}


@pytest.mark.parametrize(("expression", "wanted"), KINDS.items())
def test_every_kind_of_expression(expression: str, wanted: set[str]) -> None:
    found = {mutant.new for mutant in mutants_of(f"def f(a, b, c):\n    x = {expression}\n")}
    assert wanted <= found
    assert bool(found) == bool(wanted)


def test_statements() -> None:
    source = "def f(a):\n    g(a)\n    a += 1\n    if a:\n        return a\n    raise V(a + 1)\n"
    changed = {mutant.applied(source) for mutant in mutants_of(source)}
    assert source.replace("g(a)", "pass") in changed
    assert source.replace("a += 1", "a -= 1") in changed
    assert source.replace("if a", "if (not (a))") in changed
    assert source.replace("return a", "return None") in changed
    assert not any("V(a - 1)" in text for text in changed)


def test_arguments_that_only_check_are_left_alone() -> None:
    assert (
        mutants_of("def f(a):\n    x = zip(a, strict=True)\n    y = g(check_finite=False)\n") == []
    )
    assert len(mutants_of("def f(a):\n    x = g(a, exact=True)\n")) == 2


def test_a_long_mutant_is_shown_where_it_differs() -> None:
    long = ", ".join(f"argument_{k}=0" for k in range(30))
    shown = {str(mutant) for mutant in mutants_of(f"def f():\n    x = g({long})\n")}
    assert len(shown) == 60
    assert all(len(text) < 200 for text in shown)


def test_places_are_found_behind_letters_of_several_bytes() -> None:
    source = 'class A:\n    def f(self, a):\n        return g("ä") + a\n'
    found = [mutant for mutant in mutants_of(source) if mutant.new.endswith("- a")]
    assert [mutant.function for mutant in found] == ["A.f"]
    assert found[0].applied(source) == source.replace("+", "-")


def test_docstrings_and_module_level_have_no_mutants() -> None:
    assert mutants_of('"""Text."""\nLIMIT = 3\n\ndef f():\n    """More than 1 text."""\n') == []


def test_a_sample_of_the_package_is_python_and_differs_from_it() -> None:
    drawn = sample(200, 1, [])
    assert drawn == sample(200, 1, [])
    for file, mutant in drawn:
        source = (ROOT / "ordrec" / file).read_text()
        assert source[mutant.start : mutant.stop] == mutant.old
        assert ast.dump(ast.parse(mutant.applied(source))) != ast.dump(ast.parse(source)), mutant


def test_every_module_has_tests_nearby() -> None:
    for path in sorted((ROOT / "ordrec").rglob("*.py")):
        if path.name not in ("__init__.py", "__main__.py"):
            tests = nearest_tests(str(path.relative_to(ROOT / "ordrec")))
            assert all((TESTS / Path(each)).exists() for each in tests), path
            assert tests, path


def test_every_mutant_that_is_argued_equivalent_is_still_one() -> None:
    for entry in tomllib.loads(EQUIVALENT.read_text())["equivalent"]:
        file = entry["file"]
        mutants = mutants_of((ROOT / "ordrec" / file).read_text())
        assert any(is_argued(entry, file, mutant) for mutant in mutants), entry
