"""Public names of a package, imported when they are first used.

Each package lists its public names in an ``__init__.pyi``, one import per name, which type checkers
read too. A package may offer names of other packages: `ordrec.recommend` offers the rating models
of `ordrec.rating` and the choice models of `ordrec.choice`.
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
    homes = _homes(package, Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        import_module(package).__dict__[name] = value  # the next look-up does not come here
        return value

    return get, lambda: sorted(homes), sorted(homes)


def _homes(package: str, stub: str) -> dict[str, str]:
    """The module of each public name."""
    homes: dict[str, str] = {}
    for node in ast.parse(stub).body:
        if isinstance(node, ast.ImportFrom):
            inside = f"{package}." if node.level else ""
            homes |= {alias.name: f"{inside}{node.module}" for alias in node.names}
    return homes
