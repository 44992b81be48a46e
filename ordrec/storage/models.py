"""Models as files: their classes by name, their contents from `to_state` and `from_state`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.storage.archive import REMEDY, load_arrays, save_arrays
from ordrec.storage.limits import TooLarge, claim_memory, memory_limit

__all__ = ["load", "model_of", "register", "save", "state_of"]

MAX_MEMORY = 8.0  # gigabytes, as the models' own limit

# Modules whose ``storable_kinds`` lists storable classes. They are imported by name when needed,
# because this room may not import from rooms to its right.
_TABLES = ("ordrec.recommend.registry", "ordrec.ordinal.storable")
_REGISTERED: dict[str, str] = {}
# Raised while rebuilding a model from wrong contents.
_REBUILDING_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError,
                      RecursionError, MemoryError)  # fmt: skip


def save(model: Any, path: str | Path) -> None:
    """Save a fitted model to a file, which is replaced in one atomic step.

    Parameters
    ----------
    model : object
        A fitted model of a registered class.
    path : str or Path

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> from ordrec.data import Ratings
    >>> from ordrec.recommend import BiasModel
    >>> frame = pd.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rating": [5, 3, 4]})
    >>> model = BiasModel().fit(Ratings.from_frame(frame))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/biases.ordrec")
    ...     again = load(f"{folder}/biases.ordrec")
    >>> bool((again.predict([1], ["b"]) == model.predict([1], ["b"])).all())
    True
    """
    save_arrays(path, *state_of(model))


def load(path: str | Path, *, max_memory: float = MAX_MEMORY) -> Any:
    """Load a model from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
    max_memory : float
        Gigabytes that the model may take. What it needs is estimated before it is allocated: a
        small file can describe a model that needs much more memory than the file.

    Raises
    ------
    ModelFileError
        If the file is damaged, was altered, has an unknown version, is not a model file, or needs
        too much memory.
    """
    with memory_limit(max_memory):
        try:
            if os.path.isfile(path):
                claim_memory(os.path.getsize(path), "its arrays")
            arrays, metadata = load_arrays(path)
            return _rebuilt(path, arrays, metadata)
        except TooLarge as error:
            raise ModelFileError(f"{path}: {error}") from None


def _rebuilt(
    path: str | Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]
) -> Any:
    """The model, or an error that names the file."""
    try:
        return model_of(arrays, metadata)
    except TooLarge:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}; {REMEDY}") from None
    except _REBUILDING_ERRORS as error:
        kind = str(metadata.get("kind"))[:50]
        raise ModelFileError(
            f"{path}: its contents are not those of a {kind}: {error!r}; {REMEDY}"
        ) from error


def state_of(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a model, and metadata that say which registered class it has."""
    kind, homes = type(model).__name__, _homes()
    if homes.get(kind) != f"{type(model).__module__}:{kind}":
        raise ArgumentError(f"a {kind} cannot be saved: only {', '.join(sorted(homes))} can")
    arrays, metadata = model.to_state()
    return arrays, {"kind": kind, "state": metadata}


def model_of(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any]) -> Any:
    """Rebuild a model from the result of `state_of`; errors of ``from_state`` are passed on."""
    kind, state, homes = metadata.get("kind"), metadata.get("state"), _homes()
    if not isinstance(kind, str) or kind not in homes or not isinstance(state, dict):
        raise ModelFileError(
            f"holds a {str(kind)[:50]!r}, not one of {', '.join(sorted(homes))}, nor a class of "
            "your own that is registered",
            parameter="register",
        )
    module, _, name = homes[kind].partition(":")
    return getattr(import_module(module), name).from_state(arrays, state)


def register(kind: str, home: str) -> None:
    """Make a class known to `save` and `load`: its name, and ``"package.module:Class"``."""
    taken = _homes().get(kind, home)
    if taken != home:
        raise ArgumentError(f"the kind {kind!r} is taken by {taken}: choose another name")
    _REGISTERED[kind] = home


def _homes() -> dict[str, str]:
    """``"package.module:Class"`` of each storable class; a file can only name one of these."""
    tables = [import_module(module).storable_kinds() for module in _TABLES]
    return dict(itertools.chain.from_iterable(table.items() for table in (*tables, _REGISTERED)))
