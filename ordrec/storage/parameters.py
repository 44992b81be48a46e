"""Parameters of models as values that json can represent, and back."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.storage.arrays import LARGEST

__all__ = ["check_types", "fits", "plain_of", "value_of"]

MOST_JOBS = 4096
LONGEST_INTEGER = 1 << 63  # of 64 bits, which arrays hold
NO_OBJECTS: Mapping[str, type] = types.MappingProxyType({})


def plain_of(value: Any, place: str, objects: Mapping[str, type] = NO_OBJECTS) -> Any:
    """Return a parameter as json can represent it.

    Parameters
    ----------
    value : object
    place : str
        What it is the value of, for the error if it cannot be represented.
    objects : mapping of str to type
        Classes of which it may be; their constructors take attributes.

    Examples
    --------
    >>> plain_of({"poor": (1, 2.0)}, "Model(class_weight=...)")
    {'pairs': [['poor', {'tuple': [1, 2.0]}]]}
    >>> value_of({'pairs': [['poor', {'tuple': [1, 2.0]}]]})
    {'poor': (1, 2.0)}
    """

    def plain(each: Any) -> Any:
        return plain_of(each, place, objects)

    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    kind = type(value).__name__
    if objects.get(kind) is type(value):
        own = {name: plain(getattr(value, name)) for name in _arguments(type(value))}
        return {"object": kind, "values": own}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": value.tolist()}
    if isinstance(value, Mapping):  # json would turn the labels of class_weight into texts
        return {"pairs": [[plain(key), plain(each)] for key, each in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [plain(each) for each in value]}
    if isinstance(value, (set, frozenset)):
        return [plain(each) for each in sorted(value)]
    if isinstance(value, (list, range)) or hasattr(value, "tolist"):
        return [plain(each) for each in list(value)]
    allowed = f", or one of {', '.join(objects)}" if objects else ""
    raise ArgumentError(f"{place} is a {kind}, which cannot be saved: use numbers, texts{allowed}")


def value_of(plain: Any, objects: Mapping[str, type] = NO_OBJECTS) -> Any:
    """Return the parameter that `plain_of` described."""
    if isinstance(plain, list):
        return [value_of(each, objects) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if set(plain) == {"object", "values"}:
        kind, values = plain["object"], plain["values"]
        if not isinstance(kind, str) or kind not in objects:
            raise ModelFileError(f"a parameter is a {str(kind)[:50]!r}, which ordrec does not know")
        if not isinstance(values, dict) or set(values) != set(_arguments(objects[kind])):
            raise ModelFileError(f"the values of a {kind} are not its parameters")
        return objects[kind](**{name: value_of(each, objects) for name, each in values.items()})
    if set(plain) == {"tuple"}:
        return tuple(value_of(each, objects) for each in plain["tuple"])
    if set(plain) == {"array"}:
        return np.array(plain["array"])
    if set(plain) == {"pairs"}:
        pairs = plain["pairs"]
        return {value_of(key, objects): value_of(each, objects) for key, each in pairs}
    raise ModelFileError("a parameter is neither a number, a text, nor a known object")


def check_types(kind: type, parameters: Mapping[str, Any]) -> None:
    """Raise an error unless each parameter has the type that its class declares for it.

    Examples
    --------
    >>> class Model:
    ...     n_factors: int | None
    >>> check_types(Model, {"n_factors": None})
    >>> check_types(Model, {"n_factors": "many"})
    Traceback (most recent call last):
    ...
    ordrec.errors.ModelFileError: parameter n_factors is 'many'
    """
    hints = typing.get_type_hints(kind)
    for name, value in parameters.items():
        too_many = name == "n_jobs" and value is not None and not 1 <= abs(value) <= MOST_JOBS
        if not fits(value, hints[name]) or too_many:
            raise ModelFileError(f"parameter {name} is {str(value)[:50]!r}")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value has a type, of those that parameters have.

    Examples
    --------
    >>> fits(3, float), fits("3", float), fits(True, int), fits(None, int | None)
    (True, False, False, True)
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if type(value) is int and not -LONGEST_INTEGER <= value < LONGEST_INTEGER:
        return False
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each) for each in inner)
    if origin is typing.Literal:
        return any(type(value) is type(each) and value == each for each in inner)
    if hint is float:
        return type(value) in (int, float) and -LARGEST < value < LARGEST
    if origin is not None and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            fits(key, inner[0]) and fits(each, inner[1]) for key, each in value.items()
        )
    if origin is not None and issubclass(origin, Collection):
        return isinstance(value, (list, tuple)) and all(fits(each, inner[0]) for each in value)
    if hint is np.ndarray:
        return isinstance(value, (list, np.ndarray))
    return type(value) is (origin or hint)


def _arguments(kind: type) -> list[str]:
    """The parameters of a constructor, which are also attributes."""
    if kind.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return list(inspect.signature(kind).parameters)
