"""Load rating, relevance and ordinal data sets, by name or from files.

The loaders are imported when they are first used: listing the data sets needs none of them.
"""

from __future__ import annotations

from ordrec.runtime.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
