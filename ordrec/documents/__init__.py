"""Documents by graded relevance: features of queries and documents, and rankers."""

from __future__ import annotations

from ordrec.runtime.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
