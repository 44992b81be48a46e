"""Save models to files and load them: the table of all classes that a file can hold."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.recommend.registry import storable_kinds
from ordrec.storage import schema
from ordrec.storage.archive import REMEDY, load_arrays, save_arrays
from ordrec.storage.limits import TooLarge, memory_limit

__all__ = ["ESTIMATORS", "RANKERS", "contents_of", "load", "model_of", "register", "save"]

MAX_MEMORY = 8.0  # gigabytes, as the models' own limit
# Names in `ordrec.ordinal`.
ESTIMATORS = (
    "CSSVC", "CumulativeLink", "GPOR", "GPRanks", "NPSVOR", "OPBE", "ORBoost", "OrdinalLogistic",
    "PRank", "REDSVM", "RankBoostAE", "SVC1V1", "SVC1VA", "SVMOP", "SVOREX", "SVORIM", "SVORSLA",
    "SVRanks",
)  # fmt: skip

# Names in `ordrec.documents`.
RANKERS = ("RelevanceRanker",)

_registered: dict[str, str] = {}
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
    save_arrays(path, *contents_of(model), deflated=True)


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
            return model_of(*load_arrays(path), place=path)
        except TooLarge as error:
            raise ModelFileError(f"{path}: {error}", parameter=error.parameters) from None


def contents_of(model: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays and the metadata of a model's file."""
    return schema.contents_of(model, KINDS)


def model_of(
    arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], *, place: str | Path = "model"
) -> Any:
    """Return the model of a file's contents, or raise an error that names the file."""
    try:
        return schema.model_of(arrays, metadata, KINDS)
    except TooLarge:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{place}: {error}; {REMEDY}", parameter=error.parameters) from None
    except _REBUILDING_ERRORS as error:
        kind = str(metadata.get("kind"))[:50]
        raise ModelFileError(
            f"{place}: its contents are not those of a {kind}: {error!r}; {REMEDY}"
        ) from error


def register(kind: str, home: str) -> None:
    """Make a class known to `save` and `load`: its name, and ``"package.module:Class"``."""
    taken = _homes().get(kind, home)
    if taken != home:
        raise ArgumentError(f"the kind {kind!r} is taken by {taken}: choose another name")
    _registered[kind] = home


class _Kinds:
    """The classes by name."""

    def name_of(self, model: Any) -> str:
        """Return the name of a model's class."""
        kind = type(model).__name__
        if kind not in _homes() or self.class_of(kind) is not type(model):
            known = ", ".join(sorted(_homes()))
            raise ArgumentError(f"a {kind} cannot be saved: only {known} can")
        return kind

    def class_of(self, name: Any) -> type:
        """Return the class of a name."""
        homes = _homes()
        if not isinstance(name, str) or name not in homes:
            raise ModelFileError(
                f"holds a {str(name)[:50]!r}, not one of {', '.join(sorted(homes))}, nor a class "
                "of your own that is registered",
                parameter="register",
            )
        module, _, attribute = homes[name].partition(":")
        return getattr(import_module(module), attribute)


KINDS = _Kinds()


def _homes() -> dict[str, str]:
    """``"package.module:Class"`` of each storable class; a file can only name one of these."""
    estimators = {kind: f"ordrec.ordinal:{kind}" for kind in ESTIMATORS}
    rankers = {kind: f"ordrec.documents:{kind}" for kind in RANKERS}
    return estimators | rankers | storable_kinds() | _registered
