"""Small mistakes of many kinds, found in the syntax tree of any file.

A mutant replaces one node: a comparison, an operator, a number, a condition, a call, an argument.
The place is given by the function that contains it and by the text of the node, so that a list of
mutants survives as long as the line does. Texts, docstrings, annotations, what is raised or
warned of, and public names are left alone; so are arguments that only check or permit to overwrite,
since the same is computed whatever they are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "mutants_of"]

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Pow: ("**", "*"), ast.Mod: ("%", "*"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
OPPOSITES = {
    "min": "max", "any": "all", "argmin": "argmax", "minimum": "maximum", "floor": "ceil",
    "zeros": "ones", "zeros_like": "ones_like", "cumsum": "cumprod", "mean": "sum",
}  # fmt: skip
OPPOSITES |= {there: here for here, there in OPPOSITES.items()}
SIDES = {"left": "right", "right": "left", "last": "first", "first": "last"}
# arguments that only check, or permit to overwrite: whatever they are, the same is computed
UNWATCHED_ARGUMENTS = {None, "strict", "check_finite", "overwrite_a", "overwrite_b"}
SHOWN = 80  # characters
UNWATCHED_CALLS = {"warn", "report", "progress", "say", "echo", "warning", "TypeVar"}


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it replaces, where, and with what."""

    function: str
    line: int
    column: int
    start: int  # offsets in the source
    stop: int
    old: str
    new: str

    def applied(self, source: str) -> str:
        """The text of the file with the mistake in it."""
        return source[: self.start] + self.new + source[self.stop :]

    def __str__(self) -> str:
        shown = [" ".join(text.split()) for text in (self.old, self.new)]
        if max(map(len, shown)) > SHOWN:  # from shortly before the first difference
            first = next((n for n, (a, b) in enumerate(zip(*shown, strict=False)) if a != b), 0)
            start = max(first - SHOWN // 2, 0)
            shown = [text[start : start + SHOWN] for text in shown]
        return f"{self.function}:{self.line}:{self.column} {shown[0]} -> {shown[1]}"


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a file, in the order of the file."""
    return sorted(
        _Finder(source).found(), key=lambda mutant: (mutant.start, mutant.stop, mutant.new)
    )


class _Finder:
    """Walks through the functions of a file."""

    def __init__(self, source: str):
        self.source = source
        self.lines = [0]  # where each line starts
        for line in source.encode().splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))
        self.bytes = source.encode()

    def found(self) -> Iterator[Mutant]:
        yield from self._functions(ast.parse(self.source), "")

    def _functions(self, node: ast.AST, place: str) -> Iterator[Mutant]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from self._functions(child, f"{place}{child.name}.")
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                for statement in child.body:
                    yield from self._within(statement, f"{place}{child.name}")

    def _within(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.Assert | ast.Import | ast.ImportFrom | ast.JoinedStr):
            return
        if isinstance(node, ast.Call) and _name(node.func) in UNWATCHED_CALLS:
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.keyword) and node.arg in UNWATCHED_ARGUMENTS - {None}:
            return
        for whole, new in self._mistakes(node):
            yield self._mutant(function, whole, new)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self._within(child, function)

    def _mistakes(self, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
        text = self._text
        match node:
            case ast.Compare(left, [operator], [right]) if type(operator) in COMPARISONS:
                yield node, self._between(left, right, node, *COMPARISONS[type(operator)])
            case ast.BinOp(left, operator, right) if type(operator) in ARITHMETIC:
                if not isinstance(left, ast.Constant) or not isinstance(left.value, str):
                    yield node, self._between(left, right, node, *ARITHMETIC[type(operator)])
            case ast.AugAssign(target, operator, value) if type(operator) in ARITHMETIC:
                yield node, self._between(target, value, node, *ARITHMETIC[type(operator)])
            case ast.BoolOp(operator, values):
                other = " or " if isinstance(operator, ast.And) else " and "
                yield node, "(" + other.join(f"({text(value)})" for value in values) + ")"
            case ast.UnaryOp(ast.Not() | ast.USub() | ast.Invert(), operand):
                yield node, text(operand)
            case ast.If(test) | ast.While(test) | ast.IfExp(test):
                yield test, f"(not ({text(test)}))"
            case ast.Constant(value):
                yield from ((node, new) for new in _other_constants(value))
            case ast.Expr(ast.Call()):
                yield node, "pass"
            case ast.Break() | ast.Continue():
                yield node, "pass"
            case ast.Return(value) if value is not None and not isinstance(value, ast.Constant):
                yield value, "None"
            case ast.Call(function, _, keywords):
                name = _name(function)
                if name in OPPOSITES:
                    yield function, text(function)[: -len(name)] + OPPOSITES[name]
                for keyword in keywords:
                    if keyword.arg not in UNWATCHED_ARGUMENTS:
                        yield node, self._without(node, keyword)

    def _between(self, left: ast.AST, right: ast.AST, whole: ast.AST, old: str, new: str) -> str:
        """The whole with another operator between its parts."""
        (start, stop), gap = self._span(whole), (self._span(left)[1], self._span(right)[0])
        operator = self.bytes[gap[0] : gap[1]].decode().replace(old, new, 1)
        before, behind = self.bytes[start : gap[0]], self.bytes[gap[1] : stop]
        return before.decode() + operator + behind.decode()

    def _without(self, call: ast.Call, keyword: ast.keyword) -> str:
        """The call without one of its keyword arguments."""
        parts = [self._text(argument) for argument in call.args]
        parts += [self._text(other) for other in call.keywords if other is not keyword]
        return f"{self._text(call.func)}({', '.join(parts)})"

    def _text(self, node: ast.AST) -> str:
        start, stop = self._span(node)
        return self.bytes[start:stop].decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self.lines[node.lineno - 1] + node.col_offset,  # type: ignore[attr-defined]
            self.lines[node.end_lineno - 1] + node.end_col_offset,  # type: ignore[attr-defined]
        )

    def _mutant(self, function: str, node: ast.AST, new: str) -> Mutant:
        start, stop = self._span(node)
        before, old = self.bytes[:start].decode(), self.bytes[start:stop].decode()
        lost = "\n" * (old.count("\n") - new.count("\n"))  # what follows stays on its line
        if isinstance(node, ast.expr) and "\n" in old:
            new = f"({new}{lost})"
        else:
            new += lost
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        return Mutant(function, line, column, len(before), len(before) + len(old), old, new)


def _other_constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif isinstance(value, int):
        yield str(value + 1)
    elif isinstance(value, float):
        yield repr(2.0 * value if value else 1.0)
    elif isinstance(value, str) and value in SIDES:
        yield repr(SIDES[value])


def _name(function: ast.AST) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
