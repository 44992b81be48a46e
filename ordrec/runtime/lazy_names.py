"""Public names of a package, imported when they are first used.

Each package lists its public names in an ``__init__.pyi``, one import per name, which type checkers
read too. A package may offer names of other packages: `ordrec.recommend` offers the rating models
of `ordrec.rating` and the choice models of `ordrec.choice`. A line ``from . import ordinal`` makes
a module of the package an attribute, so that ``ordrec.ordinal`` needs no import of its own; such
modules are not in ``__all__``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    file : str
        ``__file__`` of the package; the stub lies beside it.

    Examples
    --------
    >>> import ordrec.datasets
    >>> "load_movielens" in dir(ordrec.datasets)
    True
    """
    homes, modules = _homes(package, Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        import_module(package).__dict__[name] = value  # the next look-up does not come here
        return value

    return get, lambda: sorted({*homes, *modules}), sorted(homes)


def _homes(package: str, stub: str) -> tuple[dict[str, str], set[str]]:
    """The module of each public name, and the modules that are attributes themselves."""
    homes: dict[str, str] = {}
    modules: set[str] = set()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom) and node.module is None:
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = f"{package}." if node.level else ""
            homes |= {alias.name: f"{inside}{node.module}" for alias in node.names}
    return homes, modules
