"""Parameters of estimators as values that json can represent, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ordrec import kernels
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.kernels import Kernel

__all__ = [
    "kernel_of",
    "kernel_to_plain",
    "parameters_of",
    "parameters_to_plain",
    "plain_of",
    "value_of",
]

# What makes a kernel of each kind; its values are checked by the kernel itself.
KERNELS: dict[str, tuple[str, ...]] = {
    "Gaussian": ("gamma", "bounds"),
    "ARDGaussian": ("gamma", "bounds"),
    "Linear": (),
    "ARDLinear": ("weight", "bounds"),
    "Polynomial": ("degree", "gamma", "coef0", "bounds"),
    "Pearson": (),
    "Precomputed": (),
    "Constant": ("value", "bounds"),
    "Scaled": ("kernel", "variance", "bounds"),
    "Sum": ("first", "second"),
    "Product": ("first", "second"),
    "Normalised": ("kernel", "smooth", "bounds"),
}


def parameters_to_plain(model: Any) -> dict[str, Any]:
    """The parameters of an estimator; a random state other than a number is left out."""
    plain = {}
    for name, value in model.get_params(deep=False).items():
        if name == "verbose":
            continue  # how it was fitted, not what
        if name == "random_state" and not isinstance(value, (int, np.integer)):
            value = None
        plain[name] = plain_of(value, f"{type(model).__name__}({name}=...)")
    return plain


def parameters_of(kind: type, plain: Mapping[str, Any]) -> Any:
    """An estimator that is not fitted, with the parameters of a file."""
    model: Any = kind()
    unknown = set(plain) - set(model.get_params(deep=False))
    if unknown:
        raise ModelFileError(f"{sorted(map(str, unknown))[0][:50]!r} is no parameter of {kind}")
    model.set_params(**{name: value_of(value) for name, value in plain.items()})
    if hasattr(model, "_check_parameters"):
        model._check_parameters()
    return model


def kernel_to_plain(kernel: Kernel) -> dict[str, Any]:
    """A kernel by its kind and its values."""
    kind = type(kernel).__name__
    if kind not in KERNELS or type(kernel) is not getattr(kernels, kind, None):
        raise ArgumentError(
            f"an estimator with the kernel {kernel!r} cannot be saved: only "
            f"{', '.join(KERNELS)} can"
        )
    return {"kind": kind} | {name: plain_of(getattr(kernel, name), kind) for name in KERNELS[kind]}


def kernel_of(plain: Mapping[str, Any]) -> Kernel:
    """The kernel that `kernel_to_plain` described."""
    kind = plain["kind"]
    if kind not in KERNELS or set(plain) != {"kind", *KERNELS[kind]}:
        raise ModelFileError(f"{str(kind)[:50]!r} with these values is not a kernel of ordrec")
    values = {name: value_of(plain[name]) for name in KERNELS[kind]}
    return getattr(kernels, kind)(**values)


def plain_of(value: Any, place: str) -> Any:
    """A parameter as json can represent it; the place is for the error if it cannot."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Kernel):
        return {"kernel": kernel_to_plain(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": value.tolist()}
    if isinstance(value, dict):  # json would turn the labels of class_weight into texts
        return {"pairs": [[plain_of(k, place), plain_of(v, place)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [plain_of(each, place) for each in value]}
    if isinstance(value, (list, range)) or hasattr(value, "tolist"):
        return [plain_of(each, place) for each in list(value)]
    raise ArgumentError(
        f"{place} of type {type(value).__name__} cannot be saved: use numbers, texts, or a kernel "
        "of ordrec"
    )


def value_of(value: Any) -> Any:
    """The parameter that `plain_of` described."""
    if isinstance(value, list):
        return [value_of(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"kernel"}:
        return kernel_of(value["kernel"])
    if set(value) == {"tuple"}:
        return tuple(value_of(each) for each in value["tuple"])
    if set(value) == {"array"}:
        return np.array(value["array"])
    if set(value) == {"pairs"}:
        return {value_of(key): value_of(each) for key, each in value["pairs"]}
    raise ModelFileError("a parameter is neither a number, a text, nor a kernel")
