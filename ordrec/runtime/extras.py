"""Packages that only some tasks need, imported when they are, or how to install them."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from ordrec.errors import ArgumentError

__all__ = ["import_extra"]


def import_extra(module: str, package: str, extra: str) -> Any:
    """Import a module without showing its warnings; the error says how to install it.

    Parameters
    ----------
    module : str
        What to import.
    package : str
        What it is called where packages are installed from.
    extra : str
        The extra of ordrec that installs it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module(module)
    except ImportError as error:
        raise ArgumentError(
            f"{package} cannot be imported ({error}): pip install 'ordrec[{extra}]'"
        ) from None
