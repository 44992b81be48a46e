"""Flat tables of the kernel expressions that an `ItemKernel` can evaluate without a user.

A sum of scaled products of item kernels, each normalised or not, becomes *terms* (a weight and
the leaves to multiply) over distinct *leaves* (a component kernel and its smoothing count).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.kernels.base import Constant, Kernel, Normalised, Product, Scaled, Sum
from ordrec.kernels.items.content import Content
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.low_rank import LowRank
from ordrec.kernels.items.pearson import Pearson, Residual

__all__ = ["Expression", "Leaf", "Plan", "expression_of"]


@dataclass(frozen=True)
class Leaf:
    """One component kernel; ``smooth`` is None when it is not normalised."""

    kernel: Pearson | Residual | CoRating | Content | LowRank
    smooth: float | None


@dataclass(frozen=True)
class Expression:
    """Distinct leaves, and terms over them: weight times the product of some leaves.

    ``start`` and ``members`` list the leaves of each term as in a CSR matrix, and
    ``component`` says which of the components given by the user a term belongs to.
    """

    leaves: list[Leaf]
    weights: np.ndarray
    start: np.ndarray
    members: np.ndarray
    component: np.ndarray

    def plan(self, slots: np.ndarray, component: int | None = None) -> Plan:
        """Split the terms (of one component, or all) into linear part, constant and products.

        ``slots`` names the moments each leaf reads: of two leaves with the same moments only
        the first can be in the linear part.
        """
        linear, constant = np.zeros(len(self.leaves)), 0.0
        owner: dict[int, int] = {}
        rest: list[tuple[float, np.ndarray]] = []
        for t in range(len(self.weights)):
            if component is not None and self.component[t] != component:
                continue
            members = self.members[self.start[t] : self.start[t + 1]]
            if len(members) == 0:
                constant += self.weights[t]
                continue
            leaf = int(members[0])
            if len(members) == 1 and owner.setdefault(int(slots[leaf]), leaf) == leaf:
                linear[leaf] += self.weights[t]
            else:
                rest.append((self.weights[t], members))
        weights = np.array([weight for weight, _ in rest], dtype=np.float64)
        start = np.cumsum([0, *(len(members) for _, members in rest)]).astype(np.int64)
        chosen = np.concatenate([np.empty(0, dtype=np.int64), *(m for _, m in rest)])
        return Plan(linear, float(constant), (weights, start, chosen, np.unique(chosen)))


class Plan(NamedTuple):
    """How to evaluate an expression: weights of leaves, a constant, and products of leaves.

    ``products`` are the weights of the products, where the leaves of each begin, these leaves, and
    the distinct ones among them.
    """

    linear: np.ndarray
    constant: float
    products: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


Term = tuple[float, list[Leaf]]


def expression_of(components: Sequence[Kernel], weights: Sequence[float] | None) -> Expression:
    """The flat form of ``sum_k weights_k components_k``."""
    if len(components) == 0:
        raise ArgumentError("an item kernel needs at least one component")
    factors = np.ones(len(components)) if weights is None else np.asarray(weights, dtype=float)
    if factors.shape != (len(components),) or not (np.isfinite(factors) & (factors >= 0)).all():
        raise ArgumentError(
            f"weights must be {len(components)} numbers of at least 0, one per component, "
            f"got {weights!r}"
        )
    leaves: dict[Leaf, int] = {}
    scales, members, component, start = [], [], [], [0]
    for index, (kernel, factor) in enumerate(zip(components, factors, strict=True)):
        for scale, parts in _terms(kernel):
            scales.append(factor * scale)
            members += [leaves.setdefault(leaf, len(leaves)) for leaf in parts]
            start.append(len(members))
            component.append(index)
    return Expression(
        list(leaves),
        np.array(scales, dtype=np.float64),
        np.array(start, dtype=np.int64),
        np.array(members, dtype=np.int64),
        np.array(component, dtype=np.int64),
    )


def _terms(kernel: Kernel) -> list[Term]:
    if isinstance(kernel, Sum):
        return _terms(kernel.first) + _terms(kernel.second)
    if isinstance(kernel, Scaled):
        return [(kernel.variance * scale, parts) for scale, parts in _terms(kernel.kernel)]
    if isinstance(kernel, Product):
        both = product(_terms(kernel.first), _terms(kernel.second))
        return [(s * t, left + right) for (s, left), (t, right) in both]
    if isinstance(kernel, Constant):
        return [(kernel.value, [])]
    inside = kernel.kernel if isinstance(kernel, Normalised) else kernel
    if isinstance(inside, Pearson | Residual | CoRating | Content | LowRank):
        return [(1.0, [Leaf(inside, kernel.smooth if isinstance(kernel, Normalised) else None)])]
    raise ArgumentError(
        f"an item kernel cannot leave a user out of {kernel!r}: combine Pearson, Residual, "
        "CoRating, Content, LowRank and Constant, each normalised or not, by + and *"
    )
