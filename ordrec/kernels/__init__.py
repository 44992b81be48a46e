"""Kernels: small objects that every solver takes, by name or by instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ordrec.lazy import lazy_names

if TYPE_CHECKING:
    from ordrec.kernels.base import Constant, Kernel, Normalised, Product, Scaled, Sum
    from ordrec.kernels.content import Content
    from ordrec.kernels.corating import CoRating
    from ordrec.kernels.gaussian import ARDGaussian, Gaussian
    from ordrec.kernels.items import ItemKernel
    from ordrec.kernels.linear import ARDLinear, Linear
    from ordrec.kernels.low_rank import LowRank
    from ordrec.kernels.names import kernel_for
    from ordrec.kernels.pearson import Pearson, Residual
    from ordrec.kernels.polynomial import Polynomial
    from ordrec.kernels.precomputed import Precomputed
    from ordrec.kernels.scanned import ItemMoments, item_moments, scan_gram

__all__ = [
    "ARDGaussian",
    "ARDLinear",
    "CoRating",
    "Constant",
    "Content",
    "Gaussian",
    "ItemKernel",
    "ItemMoments",
    "Kernel",
    "Linear",
    "LowRank",
    "Normalised",
    "Pearson",
    "Polynomial",
    "Precomputed",
    "Product",
    "Residual",
    "Scaled",
    "Sum",
    "item_moments",
    "kernel_for",
    "scan_gram",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": "Constant Kernel Normalised Product Scaled Sum",
        "content": "Content",
        "corating": "CoRating",
        "gaussian": "ARDGaussian Gaussian",
        "items": "ItemKernel",
        "linear": "ARDLinear Linear",
        "low_rank": "LowRank",
        "names": "kernel_for",
        "pearson": "Pearson Residual",
        "polynomial": "Polynomial",
        "precomputed": "Precomputed",
        "scanned": "ItemMoments item_moments scan_gram",
    },
)
