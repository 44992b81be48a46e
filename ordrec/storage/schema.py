"""What a class stores in a model file, declared field by field.

A storable class maps in ``stored`` the names of attributes to fields:

>>> class Biases(Storable):
...     stored = {"names_": Texts("users"), "bias_": Array("users"), "mean_": Number(low=0)}

`Array`, `Ids` and the other fields write one attribute each, and check it when it is read: compiled
loops do not. The lengths of arrays have names. A length is fixed by the first field that mentions
it, and all later ones must agree: above, there is one bias for each name. A sum such as
``"users+1"`` is a length, too. In the file, an attribute has its name without underscores at the
ends.

Fields are written and read in the order in which they are declared. Then ``check_stored`` checks
what a declaration cannot say, and computes what is not stored. A `Part` is another class with
``stored``, whose constructor takes these attributes; a `Model` is a whole model inside another one.
Classes of models are found in a fixed table, the `Kinds`, which is handed down: a file cannot name
any other class.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from ordrec.errors import ModelFileError
from ordrec.storage.arrays import (
    LARGEST,
    few_values,
    ids_from_arrays,
    ids_to_arrays,
    narrowed,
    take,
    take_covariance,
    take_rows,
    take_starts,
    texts_from_arrays,
    texts_to_arrays,
)

__all__ = [
    "Array",
    "As",
    "ByName",
    "Covariance",
    "Field",
    "Flag",
    "Ids",
    "Integer",
    "Kinds",
    "Matrix",
    "Member",
    "Model",
    "Names",
    "Number",
    "Numbers",
    "Optional",
    "Part",
    "Parts",
    "Reader",
    "Seconds",
    "Size",
    "Starts",
    "Storable",
    "Table",
    "Text",
    "Texts",
    "Together",
    "Writer",
    "contents_of",
    "model_of",
]

Length = str | int | None  # a name, a sum of names and numbers, or any
Bound = float | str | None  # a number, or the name of a length
UNSET = object()  # read for an attribute that the model does not have


class Kinds(Protocol):
    """The fixed table of the classes that files can hold."""

    def name_of(self, model: Any) -> str:
        """Return the name of a model's class, or raise an ArgumentError."""

    def class_of(self, name: Any) -> type:
        """Return the class of a name, or raise a ModelFileError."""


class Storable:
    """A class whose ``stored`` declares what its files hold."""

    stored: ClassVar[Mapping[str, Field]]

    def write_to(self, file: Writer) -> None:
        """Write what is declared."""
        file.add_attributes(self)

    @classmethod
    def read_from(cls, file: Reader) -> Any:
        """Read what is declared, check it, and return the model."""
        model = cls()
        file.restore(model)
        return model

    def check_stored(self) -> None:
        """Check what the declaration cannot say, and compute what is not stored."""


def contents_of(model: Any, kinds: Kinds) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the arrays of a model's file, and its metadata."""
    file = Writer(kinds)
    return file.arrays, _write_model(model, file)


def model_of(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any], kinds: Kinds) -> Any:
    """Return the model of the arrays and the metadata of a file."""
    return _read_model(Reader(arrays, {}, kinds), metadata)


def _write_model(model: Any, file: Writer) -> dict[str, Any]:
    kind = file.kinds.name_of(model)
    model.write_to(file)
    return {"kind": kind, "state": file.values}


def _read_model(file: Reader, metadata: Any) -> Any:
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("state"), dict):
        raise ModelFileError(f"{file.place or 'the file'} describes no model")
    file.values = metadata["state"]
    return file.kinds.class_of(metadata.get("kind")).read_from(file)  # type: ignore[attr-defined]


class Writer:
    """Collects the arrays and the metadata of one model, or of a part of it.

    Attributes
    ----------
    arrays : dict of str to ndarray
        Those of the whole file.
    values : dict
        Metadata of this model or part, which json can represent.
    kinds : Kinds
    prefix : str
        Before the names of this part's arrays.
    shared : collection of str
        Attributes that the owner of this part stores.
    """

    def __init__(
        self,
        kinds: Kinds,
        arrays: dict[str, np.ndarray] | None = None,
        prefix: str = "",
        shared: tuple[str, ...] = (),
    ):
        self.arrays = {} if arrays is None else arrays
        self.values: dict[str, Any] = {}
        self.kinds, self.prefix, self.shared = kinds, prefix, shared

    def inside(self, name: str, shared: tuple[str, ...] = ()) -> Writer:
        """Return a writer for something inside this."""
        return Writer(self.kinds, self.arrays, f"{self.prefix}{name}.", shared)

    def add_floats(self, name: str, array: np.ndarray) -> None:
        """Write an array; one of floats that takes few values as codes of a byte each."""
        place, values = self.prefix + name, few_values(array)
        if values is None:
            self.arrays[place] = array
        else:
            codes = np.searchsorted(values, array).astype(np.uint8)
            self.arrays[f"{place}.values"], self.arrays[f"{place}.codes"] = values, codes

    def add_attributes(self, owner: Any) -> None:
        """Write the attributes that the class of an object declares."""
        for attribute, field in type(owner).stored.items():
            if attribute not in self.shared:
                value = (
                    getattr(owner, attribute, None)
                    if isinstance(field, Optional)
                    else getattr(owner, attribute)
                )
                field.write(self, attribute.strip("_"), value)


class Reader:
    """Reads one model, or a part of it, without trusting the file.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        Those of the whole file.
    values : dict
        Metadata of this model or part.
    kinds : Kinds
    prefix : str
        Before the names of this part's arrays.
    sizes : dict of str to int
        Lengths that are known so far.
    shared : dict
        Attributes that are those of the owner of this part.
    owner : object
        The model whose attributes are being read; it has those that were read before.
    """

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        values: Any,
        kinds: Kinds,
        prefix: str = "",
        sizes: dict[str, int] | None = None,
        shared: Mapping[str, Any] | None = None,
    ):
        self.arrays, self.values, self.kinds, self.prefix = arrays, values, kinds, prefix
        self.sizes = {} if sizes is None else sizes
        self.shared = shared or {}
        self.owner: Any = None

    @property
    def place(self) -> str:
        """Where in the file this is, for messages."""
        return self.prefix.rstrip(".")

    def inside(
        self, name: str, values: Any, sizes: dict[str, int], shared: Mapping[str, Any] | None = None
    ) -> Reader:
        """Return a reader of something inside this."""
        return Reader(self.arrays, values, self.kinds, f"{self.prefix}{name}.", sizes, shared)

    def restore(self, model: Any) -> None:
        """Set the attributes that the class of a model declares, and check them together."""
        self.owner = model
        for attribute, field in type(model).stored.items():
            value = (
                self.shared[attribute]
                if attribute in self.shared
                else field.read(self, attribute.strip("_"))
            )
            if value is not UNSET:
                setattr(model, attribute, value)
        model.check_stored()

    def built(self, kind: Any) -> Any:
        """Return an object of a class whose constructor takes what it declares."""
        return _checked(
            kind(**{name: field.read(self, name.strip("_")) for name, field in kind.stored.items()})
        )

    def value(self, name: str) -> Any:
        """Return an entry of the metadata."""
        if not isinstance(self.values, dict):
            raise ModelFileError(f"{self.place!r} is not a set of values")
        if name not in self.values:
            raise ModelFileError(f"the value {self.prefix + name!r} is missing")
        return self.values[name]

    def take(
        self, name: str, dtype: Any, shape: tuple[Length, ...], low: Bound, high: Bound
    ) -> np.ndarray:
        """Return an array after checking its type, shape and range; names unknown lengths."""
        full = self.prefix + name
        coded = full not in self.arrays and f"{full}.codes" in self.arrays
        where = f"{full}.codes" if coded else full
        found = self.arrays[where].shape if where in self.arrays else ()
        lengths = tuple(
            self.length(length, found[axis] if len(found) == len(shape) else None)
            for axis, length in enumerate(shape)
        )
        bounds = self._bound(low), self._bound(high)
        if not coded:
            return take(self.arrays, full, dtype, lengths, low=bounds[0], high=bounds[1])
        values = take(self.arrays, f"{full}.values", dtype, (None,), low=bounds[0], high=bounds[1])
        codes = take(self.arrays, where, np.uint8, lengths, low=0, high=values.size - 1)
        return values[codes]

    def length(self, length: Length, found: int | None = None) -> int | None:
        """Return a length; a name that is not known is given what is left of ``found``."""
        if not isinstance(length, str):
            return length
        total, unknown = 0, None
        for term in length.split("+"):
            if term.isdigit():
                total += int(term)
            elif term in self.sizes:
                total += self.sizes[term]
            else:
                unknown = term
        if unknown is None:
            return total
        if found is None:
            return None
        if found < total:
            raise ModelFileError(f"{self.place!r} has an array with {found} columns, too few")
        self.sizes[unknown] = found - total
        return found

    def known(self, length: Length) -> int:
        """Return a length that has been fixed before."""
        known = self.length(length)
        assert known is not None, length
        return known

    def _bound(self, bound: Bound) -> float | None:
        return self.known(bound) if isinstance(bound, str) else bound

    def number(self, name: str, value: Any, low: Bound, high: Bound) -> float:
        """Return a finite number after checking its range."""
        bottom, top = self._bound(low), self._bound(high)
        if (
            type(value) not in (int, float)
            or not math.isfinite(value)
            or not (-LARGEST if bottom is None else bottom) <= value
            or not value <= (LARGEST if top is None else top)
        ):
            raise ModelFileError(f"{self.prefix}{name} is {str(value)[:50]!r}, no allowed number")
        return value


def _checked(part: Any) -> Any:
    if hasattr(part, "check_stored"):
        part.check_stored()
    return part


# ---- fields --------------------------------------------------------------------------------------


class Field(ABC):
    """How one attribute is written to a file and read from it."""

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the attribute: an array as it is, unless a field does otherwise."""
        file.arrays[file.prefix + name] = value

    @abstractmethod
    def read(self, file: Reader, name: str) -> Any:
        """Return the attribute after checking it."""


class Optional(Field):
    """An attribute that is None, or that a model may lack.

    Parameters
    ----------
    field : Field
    unset : bool
        Whether a model without it has no such attribute, rather than None.
    """

    def __init__(self, field: Field, *, unset: bool = False):
        self.field, self.missing = field, UNSET if unset else None

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write whether there is one, and which."""
        file.values[f"has_{name}"] = value is not None
        if value is not None:
            self.field.write(file, name, value)

    def read(self, file: Reader, name: str) -> Any:
        """Return the attribute, if there is one."""
        there = Flag().read(file, f"has_{name}")
        return self.field.read(file, name) if there else self.missing


class Array(Field):
    """An array of numbers.

    Parameters
    ----------
    *shape : str, int or None
        Lengths.
    dtype : data type
        In memory; the stored type must be of the same kind, and no wider.
    low, high : float or str, optional
        Bounds of the entries, both inclusive; a text names a length.
    codes : str, optional
        The length of which the entries are codes, which go from 0.
    stored_as : data type, optional
        In the file, if narrower.
    gaps : bool
        Whether entries may be missing (NaN).
    """

    def __init__(
        self,
        *shape: Length,
        dtype: Any = np.float64,
        low: Bound = None,
        high: Bound = None,
        codes: str | None = None,
        stored_as: Any = None,
        gaps: bool = False,
    ):
        self.shape, self.dtype, self.low, self.high = shape, dtype, low, high
        self.codes, self.stored_as, self.gaps = codes, stored_as or dtype, gaps

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the array, and which of its entries are missing."""
        array = narrowed(np.asarray(value).astype(self.stored_as, copy=False))
        if self.gaps and np.isnan(array).any():
            missing = np.isnan(array)
            file.arrays[f"{file.prefix}{name}.missing"] = missing
            array = np.where(missing, 0.0, array)
        file.add_floats(name, array)

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the array after checking it."""
        low, high = self.low, self.high
        if self.codes is not None:
            low, high = 0, file.known(self.codes) - 1
        array = file.take(name, self.dtype, self.shape, low, high)
        if self.gaps and f"{file.prefix}{name}.missing" in file.arrays:
            missing = file.take(f"{name}.missing", np.bool_, array.shape, None, None)
            array = np.where(missing, np.nan, array)
        return array


class Seconds(Field):
    """Times in seconds since 1970, whole ones in the file, 0 where unknown; floats in memory."""

    def __init__(self, length: Length):
        self.length = length

    def write(self, file: Writer, name: str, value: np.ndarray) -> None:
        """Write whole seconds."""
        file.arrays[file.prefix + name] = narrowed(np.nan_to_num(value).astype(np.int64))

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the times."""
        return file.take(name, np.int64, (self.length,), None, None).astype(np.float64)


class Covariance(Field):
    """A symmetric matrix that can be inverted."""

    def __init__(self, length: Length):
        self.length = length

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the matrix after checking that it can be inverted."""
        return take_covariance(file.arrays, file.prefix + name, file.known(self.length))


class Starts(Field):
    """Where each row begins in arrays that hold the entries of one row after the other."""

    def __init__(self, rows: Length, entries: str):
        self.rows, self.entries = rows, entries

    def write(self, file: Writer, name: str, value: np.ndarray) -> None:
        """Write the row pointer."""
        file.arrays[file.prefix + name] = narrowed(value)

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the row pointer; its end fixes the number of entries."""
        start = file.take(name, np.int64, (f"{self.rows}+1",), 0, None)
        n_entries = file.length(self.entries, int(start[-1]) if start.size else 0)
        assert n_entries is not None
        return take_starts(file.arrays, file.prefix + name, file.known(self.rows), n_entries)


class Table(Field):
    """A sparse table, none of whose columns occurs twice in a row.

    Parameters
    ----------
    rows, columns : str or int
    low, high : float, optional
        Bounds of its entries.
    parts : bool
        Whether the attribute is the tuple of row pointer, columns and entries, not a csr_array.
    bare : bool
        Whether it is the tuple of row pointer and columns alone.
    dtype : data type
        Of the columns.
    entries : str, optional
        The name of the number of entries.
    """

    def __init__(
        self,
        rows: Length,
        columns: Length,
        *,
        low: float | None = None,
        high: float | None = None,
        parts: bool = False,
        bare: bool = False,
        dtype: Any = np.int64,
        entries: str | None = None,
    ):
        self.rows, self.columns, self.low, self.high = rows, columns, low, high
        self.parts, self.bare, self.dtype, self.entries = parts, bare, dtype, entries

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the row pointer, the columns and the entries."""
        if self.bare:
            start, columns = value
        else:
            start, columns, entries = (
                value if self.parts else (value.indptr, value.indices, value.data)
            )
        place = file.prefix + name
        file.arrays[f"{place}.start"] = narrowed(start.astype(np.int64))
        file.arrays[f"{place}.columns"] = narrowed(columns.astype(self.dtype))
        if not self.bare:
            file.add_floats(f"{name}.entries", entries)

    def read(self, file: Reader, name: str) -> Any:
        """Return the table after checking it."""
        place = file.prefix + name
        start = file.take(f"{name}.start", np.int64, (None,), 0, None)
        n_rows, n_columns = file.length(self.rows, start.size - 1), file.known(self.columns)
        assert n_rows is not None
        names = f"{place}.start", f"{place}.columns"
        start, columns = take_rows(file.arrays, *names, n_rows, n_columns, self.dtype)
        file.length(self.entries, columns.size)
        if self.bare:
            return start, columns
        entries = file.take(f"{name}.entries", np.float64, columns.shape, self.low, self.high)
        if self.parts:
            return start, columns, entries
        return sparse.csr_array((entries, columns, start), shape=(n_rows, n_columns))


class Matrix(Field):
    """Rows of features, dense or sparse, whose entries are of a data type."""

    def __init__(self, rows: Length, columns: Length, *, dtype: Any = np.float64):
        self.dense, self.thin = Array(rows, columns, dtype=dtype), Table(rows, columns)
        self.dtype = dtype

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write one array, or those of a sparse table."""
        if sparse.issparse(value):
            value = value.tocsr().copy()
            value.sum_duplicates()
            self.thin.write(file, name, value)
        else:
            self.dense.write(file, name, value)

    def read(self, file: Reader, name: str) -> Any:
        """Return the matrix, as it was."""
        place = file.prefix + name
        if place in file.arrays or f"{place}.codes" in file.arrays:
            return self.dense.read(file, name)
        return self.thin.read(file, name).astype(self.dtype, copy=False)


class Ids(Field):
    """Distinct ids, integers or texts, in a pandas index."""

    def __init__(self, length: str):
        self.length = length

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the ids."""
        file.arrays.update(ids_to_arrays(file.prefix + name, value))

    def read(self, file: Reader, name: str) -> Any:
        """Return the ids, whose number fixes the length."""
        ids = ids_from_arrays(file.prefix + name, file.arrays)
        if file.length(self.length, len(ids)) != len(ids):
            raise ModelFileError(f"{file.prefix}{name} are not one for each of {self.length}")
        return ids


class Texts(Field):
    """A list of texts."""

    def __init__(self, length: str, *, distinct: bool = False):
        self.length, self.distinct = length, distinct

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the texts."""
        file.arrays.update(texts_to_arrays(file.prefix + name, value))

    def read(self, file: Reader, name: str) -> list[str]:
        """Return the texts."""
        texts = texts_from_arrays(file.prefix + name, file.arrays)
        wanted = file.length(self.length, len(texts))
        if wanted != len(texts):
            raise ModelFileError(f"{len(texts)} {file.prefix}{name} for {wanted} {self.length}")
        if self.distinct and len(set(texts)) < len(texts):
            raise ModelFileError(f"{file.prefix}{name} holds a text twice")
        return texts


class Value(Field):
    """A value in the metadata, which json can represent."""

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the value."""
        file.values[name] = self._plain(value)

    def read(self, file: Reader, name: str) -> Any:
        """Return the value after checking it."""
        return self._checked(file, name, file.value(name))

    def _plain(self, value: Any) -> Any:
        """What is written."""
        return value

    @abstractmethod
    def _checked(self, file: Reader, name: str, found: Any) -> Any:
        """The value that was written as what is found in the file."""


class Number(Value):
    """A finite number.

    Parameters
    ----------
    low, high : float or str, optional
        Bounds, both inclusive; a text names a length.
    gap : bool
        Whether it may be NaN.
    """

    def __init__(self, low: Bound = None, high: Bound = None, *, gap: bool = False):
        self.low, self.high, self.gap = low, high, gap

    def _plain(self, value: Any) -> float | None:
        return None if self.gap and not math.isfinite(value) else float(value)

    def _checked(self, file: Reader, name: str, found: Any) -> float:
        if self.gap and found is None:
            return math.nan
        return float(file.number(name, found, self.low, self.high))


class Integer(Number):
    """An integer."""

    def _plain(self, value: Any) -> int:
        return int(value)

    def _checked(self, file: Reader, name: str, found: Any) -> int:
        if type(found) is not int:
            raise ModelFileError(f"{file.prefix}{name} is {str(found)[:50]!r}, no integer")
        return int(file.number(name, found, self.low, self.high))


class Size(Integer):
    """A number that fixes a length."""

    def __init__(self, length: str):
        super().__init__(low=1)
        self.length = length

    def _checked(self, file: Reader, name: str, found: Any) -> int:
        file.sizes[self.length] = size = super()._checked(file, name, found)
        return size


class Flag(Value):
    """True or False."""

    def _plain(self, value: Any) -> bool:
        return bool(value)

    def _checked(self, file: Reader, name: str, found: Any) -> bool:
        if type(found) is not bool:
            raise ModelFileError(f"{file.prefix}{name} is {str(found)[:50]!r}, not true or false")
        return found


class Numbers(Value):
    """A short list of numbers, read as a tuple."""

    def __init__(self, length: Length = None, low: Bound = None, high: Bound = None):
        self.length, self.low, self.high = length, low, high

    def _plain(self, value: Any) -> list[float]:
        return [float(each) for each in value]

    def _checked(self, file: Reader, name: str, found: Any) -> tuple[float, ...]:
        if not isinstance(found, list) or file.length(self.length, len(found)) not in (
            None,
            len(found),
        ):
            raise ModelFileError(f"{file.prefix}{name} is no list of {self.length} numbers")
        return tuple(float(file.number(name, each, self.low, self.high)) for each in found)


class Text(Value):
    """A text, one of these if any are given."""

    def __init__(self, *allowed: str):
        self.allowed = allowed

    def _checked(self, file: Reader, name: str, found: Any) -> str:
        if not isinstance(found, str) or (self.allowed and found not in self.allowed):
            raise ModelFileError(f"{file.prefix}{name} is {str(found)[:50]!r}")
        return found


class Names(Value):
    """A tuple of texts, or with ``values`` a dict of names to texts."""

    def __init__(self, *, values: bool = False):
        self.values = values

    def _plain(self, value: Any) -> Any:
        return dict(value) if self.values else list(value)

    def _checked(self, file: Reader, name: str, found: Any) -> Any:
        texts = list(found.values()) if isinstance(found, dict) else found
        if (
            isinstance(found, dict) != self.values
            or not isinstance(texts, list)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise ModelFileError(f"{file.prefix}{name} is {str(found)[:50]!r}, not names")
        return dict(found) if self.values else tuple(found)


# ---- fields made of fields -----------------------------------------------------------------------


class Together(Field):
    """A tuple of attributes, each with a name in the file."""

    def __init__(self, **fields: Field):
        self.fields = fields

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write each entry of the tuple."""
        inside = file.inside(name)
        for (part, field), each in zip(self.fields.items(), value, strict=True):
            field.write(inside, part, each)
        file.values[name] = inside.values

    def read(self, file: Reader, name: str) -> tuple[Any, ...]:
        """Return the tuple."""
        inside = file.inside(name, file.value(name), file.sizes)
        return tuple(field.read(inside, part) for part, field in self.fields.items())


class Part(Field):
    """An object of a class whose constructor takes what its ``stored`` declares.

    Parameters
    ----------
    kind : type
    **lengths : str
        What names of lengths mean in this part; the others mean what they mean in its owner.
    """

    def __init__(self, kind: Any, **lengths: Length):
        self.kind, self.lengths = kind, lengths

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write what the class declares."""
        inside = file.inside(name)
        inside.add_attributes(value)
        file.values[name] = inside.values

    def read(self, file: Reader, name: str) -> Any:
        """Return the object."""
        for length, meaning in self.lengths.items():
            file.sizes[length] = file.known(meaning)
        return file.inside(name, file.value(name), file.sizes).built(self.kind)


class As(Part):
    """An attribute that is stored as an object of another class.

    The class has ``of(value)``, which makes the object, and ``restored(owner)``, which makes the
    attribute of it. ``owner`` is the model that has the attribute, and all that were read before.
    """

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write what the other class declares."""
        super().write(file, name, self.kind.of(value))

    def read(self, file: Reader, name: str) -> Any:
        """Return the attribute."""
        return super().read(file, name).restored(file.owner)


class Parts(Field):
    """A tuple of objects of one class; lengths that one is the first to name are its own."""

    def __init__(self, kind: Any, *counts: int):
        self.kind, self.counts = kind, counts

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write what the class declares, for each object."""
        described = []
        for number, part in enumerate(value):
            inside = file.inside(f"{name}.{number}")
            inside.add_attributes(part)
            described.append(inside.values)
        file.values[name] = described

    def read(self, file: Reader, name: str) -> tuple[Any, ...]:
        """Return the objects."""
        described = file.value(name)
        if not isinstance(described, list) or (self.counts and len(described) not in self.counts):
            raise ModelFileError(f"{file.prefix}{name} is not a list of {self.kind.__name__}s")
        return tuple(
            file.inside(f"{name}.{number}", values, dict(file.sizes)).built(self.kind)
            for number, values in enumerate(described)
        )


class ByName(Field):
    """A dict of attributes of the same kind, for some of these names."""

    def __init__(self, field: Field, *names: str):
        self.field, self.names = field, names

    def write(self, file: Writer, name: str, value: Mapping[str, Any]) -> None:
        """Write each entry under its name."""
        inside = file.inside(name)
        for key, each in value.items():
            self.field.write(inside, key, each)
        file.values[name] = inside.values

    def read(self, file: Reader, name: str) -> dict[str, Any]:
        """Return the entries that there are."""
        values = file.value(name)
        if not isinstance(values, dict) or not set(values) <= set(self.names):
            raise ModelFileError(f"{file.prefix}{name} is not by {' and '.join(self.names)}")
        inside = file.inside(name, values, file.sizes)
        return {key: self.field.read(inside, key) for key in values}


class Model(Field):
    """A model of any storable class, inside another one."""

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write the name of its class, and what this declares."""
        file.values[name] = _write_model(value, file.inside(name))

    def read(self, file: Reader, name: str) -> Any:
        """Return the model."""
        return _read_model(file.inside(name, {}, {}), file.value(name))


class Member(Field):
    """A model of a known class, which has some attributes in common with its owner.

    Parameters
    ----------
    kind : type
    *shared : str
        Attributes that both have; only those of the owner are stored.
    """

    def __init__(self, kind: Any, *shared: str):
        self.kind, self.shared = kind, shared

    def write(self, file: Writer, name: str, value: Any) -> None:
        """Write what is not the owner's."""
        inside = file.inside(name, self.shared)
        value.write_to(inside)
        file.values[name] = inside.values

    def read(self, file: Reader, name: str) -> Any:
        """Return the model, with the attributes of its owner."""
        shared = {attribute: getattr(file.owner, attribute) for attribute in self.shared}
        sizes = dict(file.sizes) if shared else {}
        inside = file.inside(name, file.value(name), sizes, shared)
        return self.kind.read_from(inside)
