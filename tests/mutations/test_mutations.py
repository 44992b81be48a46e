"""Every mutation of the tables is noticed by its tests, and the tables fit the code."""

from __future__ import annotations

import ast
import faulthandler
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from mutations import table_data, table_evaluation, table_ordinal, table_recommend
from mutations.mutation import Mutation
from mutations.workshop import PASSED, ROOT, TESTS, Workshop, mutated

MUTATIONS = [
    *table_data.MUTATIONS,
    *table_ordinal.MUTATIONS,
    *table_recommend.MUTATIONS,
    *table_evaluation.MUTATIONS,
]
PACKAGES = [
    "ratings", "datasets", "features", "kernels", "linalg", "ordinal", "recommend", "evaluation",
    "persistence", "parallel", "cli", "report",
]  # fmt: skip


@cache
def names_in(file: Path) -> set[str]:
    """The tests of a file, as in nodes; those that classes inherit are those of the contracts."""
    inherited = {
        node.name
        for contract in sorted((TESTS / "contracts").glob("*.py"))
        for node in ast.walk(ast.parse(contract.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    names = set()
    for node in ast.parse(file.read_text()).body:
        names.add(getattr(node, "name", ""))
        if isinstance(node, ast.ClassDef):
            own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            names |= {f"{node.name}::{test}" for test in own | inherited}
    return names


# ---- the tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_rows_fit_the_code_and_the_tests(mutation: Mutation) -> None:
    source = (ROOT / "ordrec" / mutation.file).read_text()
    changed = mutated(source, mutation)
    assert changed != source
    ast.parse(changed)
    for test in mutation.tests.split():
        file, _, name = test.partition("::")
        assert name in names_in(TESTS / file), f"{mutation.name}: there is no test {test}"


def test_there_are_mutations_of_all_packages() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS) >= 60
    assert {mutation.file.split("/")[0] for mutation in MUTATIONS} == set(PACKAGES)


# ---- the long run --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("workshop"))


@pytest.fixture(scope="module")
def score(request: pytest.FixtureRequest) -> Iterator[list[bool]]:
    """Whether each mutation was noticed; printed at the end."""
    noticed: list[bool] = []
    yield noticed
    if noticed:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            share = sum(noticed) / len(noticed)
            print(f"\n{sum(noticed)} of {len(noticed)} mutations noticed ({share:.0%})")


@pytest.mark.mutations
@pytest.mark.parametrize("compiled", [True, False])
def test_the_copy_passes_without_mutations(workshop: Workshop, compiled: bool) -> None:
    faulthandler.cancel_dump_traceback_later()  # it is no sign of a fault that this takes long
    tests = {
        test
        for mutation in MUTATIONS
        if mutation.compiled == compiled
        for test in mutation.tests.split()
    }
    compiled_code = str(workshop.folder / "compiled")
    assert workshop.run(sorted(tests), compiled_code, compiled=compiled) == PASSED


@pytest.mark.mutations
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_it_is_noticed(mutation: Mutation, workshop: Workshop, score: list[bool]) -> None:
    score.append(workshop.noticed(mutation))
    assert score[-1], f"{mutation.tests} pass although {mutation.why}"
