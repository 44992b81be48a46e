"""ordrec: recommenders and rankers that treat ratings as ordered categories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.datasets import load_dataset
    from ordrec.errors import OrdrecError
    from ordrec.persistence import load, save
    from ordrec.ratings import Ratings, Scale

__all__ = ["OrdrecError", "Ratings", "Scale", "__version__", "load", "load_dataset", "save"]
__version__ = "0.1.0"

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "errors": "OrdrecError",
        "persistence": "load save",
        "ratings": "Ratings Scale",
        "datasets": "load_dataset",
    },
)
