"""What files hold of every ordinal estimator, and fields for labels and kernels.

The lengths are "features", "ranks", "thresholds" (one less), and "rows": the training rows that
predictions are made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from ordrec import kernels
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.kernels import Kernel
from ordrec.ordinal.scaling import Standardisation
from ordrec.ordinal.thresholds.link import OrdinalLink
from ordrec.storage.arrays import LARGEST, take, texts_from_arrays, texts_to_arrays
from ordrec.storage.parameters import plain_of, value_of
from ordrec.storage.schema import (
    Array,
    Field,
    Flag,
    Integer,
    Matrix,
    Number,
    Optional,
    Part,
    Reader,
    Size,
    Texts,
    Writer,
)

__all__ = ["ESTIMATOR", "KERNELS", "KERNEL_ESTIMATOR", "SOLUTION", "StoredKernel", "fitted"]


class _Kernels(Mapping[str, type]):
    """The kernels that a file can hold, imported when they are asked for."""

    names = (
        "Gaussian", "ARDGaussian", "Linear", "ARDLinear", "Polynomial", "Pearson", "Precomputed",
        "Constant", "Scaled", "Sum", "Product", "Normalised",
    )  # fmt: skip

    def __getitem__(self, name: str) -> type:
        if name not in self.names:
            raise KeyError(name)
        return getattr(kernels, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


KERNELS = _Kernels()


class StoredKernel(Field):
    """A kernel of ordrec, with its parameters."""

    def write(self, file: Writer, name: str, value: Kernel) -> None:
        """Write its kind and its parameters."""
        file.values[name] = plain_of(value, f"the kernel {value!r}", KERNELS)

    def read(self, file: Reader, name: str) -> Kernel:
        """Return the kernel, which checks its parameters itself."""
        _check_sizes(file.value(name), file.prefix + name)
        kernel = value_of(file.value(name), KERNELS)
        if not isinstance(kernel, Kernel):
            raise ModelFileError(f"{file.prefix}{name} is no kernel")
        return kernel


def _check_sizes(plain: Any, place: str) -> None:
    """Check that no parameter of a kernel is too large to compute with."""
    if isinstance(plain, dict):
        plain = list(plain.values())
    if isinstance(plain, list):
        for each in plain:
            _check_sizes(each, place)
    elif isinstance(plain, (int, float)) and not abs(plain) <= LARGEST:
        raise ModelFileError(f"{place} has the parameter {plain:g}, which is too large")


class StoredLabels(Field):
    """Distinct labels, numbers or texts, which fix the lengths "ranks" and "thresholds"."""

    def write(self, file: Writer, name: str, value: np.ndarray) -> None:
        """Write the labels."""
        if value.dtype.kind in "biuf":
            file.arrays[file.prefix + name] = value
        elif all(isinstance(label, str) for label in value.tolist()):
            file.arrays.update(texts_to_arrays(file.prefix + name, value.tolist()))
        else:
            raise ArgumentError(
                f"labels of type {value.dtype} cannot be saved: use numbers or texts"
            )

    def read(self, file: Reader, name: str) -> np.ndarray:
        """Return the labels."""
        place = file.prefix + name
        if place in file.arrays:
            labels = take(file.arrays, place, file.arrays[place].dtype, (None,))
        else:
            labels = np.array(texts_from_arrays(place, file.arrays), dtype=object)
        if labels.size < 2 or pd.Index(labels).has_duplicates:
            raise ModelFileError("the classes are not distinct")
        file.sizes |= {"ranks": labels.size, "thresholds": labels.size - 1}
        return labels


class StoredNames(Texts):
    """Names of the features, in an array as scikit-learn has them."""

    def read(self, file: Reader, name: str) -> Any:
        """Return the array."""
        return np.array(super().read(file, name), dtype=object)


def fitted(*shape: str | int | None) -> Array:
    """Return the field of fitted numbers, some of which may be missing."""
    return Array(*shape, gaps=True)


ESTIMATOR: dict[str, Field] = {
    "n_features_in_": Size("features"),
    "classes_": StoredLabels(),
    "feature_names_in_": Optional(StoredNames("features"), unset=True),
    "link_": Optional(Part(OrdinalLink), unset=True),
}
KERNEL_ESTIMATOR: dict[str, Field] = ESTIMATOR | {
    "scaling_": Optional(Part(Standardisation)),
    "kernel_": Optional(StoredKernel(), unset=True),
    "_rows": Optional(Array("rows", dtype=np.int64, low=0), unset=True),
    "_inputs": Optional(Matrix("rows", "features")),
}
SOLUTION: dict[str, Field] = {
    "objective_": Number(gap=True),
    "dual_gap_": Number(gap=True),
    "violation_": Number(gap=True),
    "n_iter_": Integer(),
    "converged_": Flag(),
    "left_out_": Number(gap=True),
}
