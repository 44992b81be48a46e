"""Import another package, or say how to install it."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from ordrec.errors import ArgumentError

__all__ = ["import_peer"]


def import_peer(module: str, package: str) -> Any:
    """Import a module without showing its warnings; the error says how to install it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise ArgumentError(
            f"{package} cannot be imported ({error}): pip install 'ordrec[peers]'"
        ) from None
