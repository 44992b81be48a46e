"""Import another package, or say how to install it."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from ordrec.errors import ArgumentError

__all__ = ["import_peer"]


def import_peer(module: str, package: str) -> Any:
    """The module, without the warnings of its own imports."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of their own imports
            return import_module(module)
    except ImportError as error:
        raise ArgumentError(
            f"{package} cannot be imported ({error}): pip install 'ordrec[peers]'"
        ) from None
