"""Kernels: small objects that every estimator accepts, by name or as an instance."""

from __future__ import annotations

from ordrec.runtime.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
