"""Load rating, relevance and ordinal data sets, by name or from files.

The loaders are imported when they are first used: listing the data sets needs none of them.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
