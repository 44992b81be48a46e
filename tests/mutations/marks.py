"""Marks in memory that show which blocks of statements of a copy of the package have run.

Every block of a function begins with a mark once Python has compiled it; source files stay as they
are. The memory is a file, shared with all processes that are started with the copy. Loops that
numba compiles have no marks.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import json
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

__all__ = [
    "BLOCKS", "MARKS", "MEMORY", "blocks_of", "loops_of", "mark_blocks", "prepare", "starting_with",
]  # fmt: skip

COMPILERS = ("compiled", "compiled_with", "inner", "inlined_with", "intrinsic")
MARKS = "__blocks_that_ran__"
BLOCKS = "blocks.json"  # the first number of each file
MEMORY = "ORDREC_MARKS"  # the environment names the file, in the folder of the copy
STARTING = "sitecustomize.py"  # which Python runs at its start


def loops_of(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of a file that numba compiles."""
    compilers, given = set(COMPILERS), set()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            found = compilers & _names_in(node.value)
            if found and isinstance(node, ast.Assign):  # one with options may have its own name
                compilers |= _names_in(*node.targets)
            if found and isinstance(node.value, ast.Call):  # or a function is handed to it
                given |= _names_in(*node.value.args)
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and (node.name in given or compilers & _names_in(*node.decorator_list))
    ]


def _names_in(*nodes: ast.AST) -> set[str]:
    found = (node for each in nodes for node in ast.walk(each))
    return {node.id for node in found if isinstance(node, ast.Name)}


def blocks_of(tree: ast.Module) -> list[list[ast.stmt]]:
    """The lists of statements below functions that are not compiled, in the order of the file."""
    return list(_blocks(tree, {id(loop) for loop in loops_of(tree)}, inside=False))


def _blocks(node: ast.AST, loops: set[int], *, inside: bool) -> Iterator[list[ast.stmt]]:
    inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for _, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        if inside and children and isinstance(children[0], ast.stmt):
            yield children
        for child in children:
            if isinstance(child, ast.AST) and id(child) not in loops:
                yield from _blocks(child, loops, inside=inside)


def prepare(folder: Path) -> None:
    """Number the blocks of a copy, and let every Python that is started with it mark them."""
    firsts, n_blocks = {}, 0
    for path in sorted((folder / "ordrec").rglob("*.py")):
        firsts[str(path)] = n_blocks
        n_blocks += len(blocks_of(ast.parse(path.read_text())))
    (folder / BLOCKS).write_text(json.dumps({"files": firsts, "blocks": n_blocks}))
    (folder / STARTING).write_text(
        f"import sys\nsys.path.append({str(Path(__file__).parent.parent)!r})\n"
        "from mutations.marks import mark_blocks\nmark_blocks()\n"
    )


def starting_with(memory: Path) -> None:
    """From now on, mark in a file what runs here and in processes that are started from here."""
    n_blocks = json.loads((memory.parent / BLOCKS).read_text())["blocks"]
    memory.write_bytes(bytes(max(n_blocks, 1)))
    os.environ[MEMORY] = str(memory)
    mark_blocks()


def mark_blocks() -> None:
    """Mark what runs from now on, if the environment names a file for the marks."""
    if MEMORY not in os.environ:
        return
    memory = Path(os.environ[MEMORY])
    with memory.open("r+b") as file:
        setattr(builtins, MARKS, mmap.mmap(file.fileno(), 0))
    firsts = json.loads((memory.parent / BLOCKS).read_text())["files"]
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(loader: Any, name: str) -> CodeType | None:
        path = loader.get_filename(name)
        return _marking(path, firsts[path]) if path in firsts else plain(loader, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


def _marking(path: str, first: int) -> CodeType:
    """The code of a file with a mark at the start of every block."""
    tree = ast.parse(Path(path).read_text())
    # all blocks are found before any of them is changed
    for number, block in enumerate(blocks_of(tree), first):
        mark = ast.parse(f"{MARKS}[{number}] = 1").body[0]
        start = next((place for place, each in enumerate(block) if not _is_text(each)), len(block))
        for node in ast.walk(mark):
            ast.copy_location(node, block[0])
        block.insert(start, mark)
    return compile(tree, path, "exec", dont_inherit=True)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
