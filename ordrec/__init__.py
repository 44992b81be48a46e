"""ordrec: recommenders and rankers that treat ratings as ordered categories.

The public names are loaded when first used, so that ``import ordrec`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ordrec.datasets import load_dataset
    from ordrec.errors import OrdrecError
    from ordrec.ratings import Ratings, Scale

__all__ = ["OrdrecError", "Ratings", "Scale", "__version__", "load_dataset"]
__version__ = "0.1.0"

_HOME = {
    "OrdrecError": "ordrec.errors",
    "Ratings": "ordrec.ratings",
    "Scale": "ordrec.ratings",
    "load_dataset": "ordrec.datasets",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ordrec' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
