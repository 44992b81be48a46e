"""ordrec: recommenders and rankers that treat ratings as ordered categories."""

from __future__ import annotations

from ordrec.runtime.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
__all__ += ["__version__"]
__version__ = "0.2.0.dev0"
