"""`Ratings` and `Scale`: the table of ratings that models are fitted to, in memory or on disk."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
