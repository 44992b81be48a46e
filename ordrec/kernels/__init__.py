"""Kernels: small objects that every estimator accepts, by name or as an instance."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
