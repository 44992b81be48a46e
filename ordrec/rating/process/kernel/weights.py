"""Names, starting values and logarithms of the joint model's weights.

Every weight is the variance of one component, relative to a noise variance of 1, for ratings
scaled to the spread of 5-star ratings. The starting values were learnt on an inner hold-out of
training data of MovieLens 100K (the optimum is flat: weights a factor of two off cost little).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.rating.process.kernel.components import (
    N_SMOOTHED,
    SMOOTHED_NAMES,
    SideWeights,
    component_names,
)

if TYPE_CHECKING:
    from ordrec.rating.process.solve.covariance import JointData

__all__ = ["DEFAULTS", "FAST_DEFAULTS", "TIME_SCALES", "Layout", "Weights"]

TIME_SCALES = {"10s": 10.0, "2min": 120.0, "2h": 7200.0}

DEFAULTS: dict[str, float] = {
    "item.residual": 0.16, "item.implicit": 0.14, "item.squared": 0.78, "item.activity": 0.042,
    "item.constant": 0.55, "item.slope": 0.126, "item.popularity": 0.021, "item.lowrank": 0.27,
    "item.labels": 0.117, "item.numbers": 0.107,
    "item.time.10s": 0.117, "item.time.2min": 0.175, "item.time.2h": 0.33,
    "user.residual": 1.35, "user.implicit": 0.024, "user.squared": 0.038, "user.activity": 0.18,
    "user.constant": 0.104, "user.slope": 0.036, "user.lowrank": 0.63, "user.numbers": 0.042,
    "user.labels": 0.0135,
    "product.ones*implicit": 0.115, "product.implicit*ones": 0.106,
    "product.implicit*implicit": 1.24, "product.implicit*labels": 0.022,
    "product.implicit*numbers": 0.048, "product.numbers*implicit": 0.217,
    "product.numbers*labels": 0.027, "product.labels*implicit": 0.1285,
    "smooth.item.residual": 166.0, "smooth.item.implicit": 1.18, "smooth.item.activity": 0.048,
    "smooth.user.residual": 353.0, "smooth.user.implicit": 2.25, "smooth.user.activity": 0.088,
}  # fmt: skip
FAST_DEFAULTS: dict[str, float] = {
    "item.residual": 0.77, "item.implicit": 0.39, "item.squared": 0.62, "item.constant": 1.28,
    "item.slope": 0.2, "item.popularity": 0.027, "item.lowrank": 0.7, "item.labels": 0.134,
    "item.numbers": 0.116, "item.time.10s": 0.09, "item.time.2min": 0.137, "item.time.2h": 0.27,
    "smooth.item.residual": 87.0, "smooth.item.implicit": 1.54,
}  # fmt: skip
OTHER_PRODUCT = 0.01  # products of groups without a default weight


@dataclass(frozen=True)
class Layout:
    """The components of a model, and their order in the arrays of weights.

    Parameters
    ----------
    item_side, user_side : tuple of str
        Names of the kernels of side information on each side.
    scales : tuple of str
        Names of the time scales of the item side.
    products : tuple of str
        Names of the product components.
    chosen : frozenset of str
        Components in use; the others have weight 0.
    """

    item_side: tuple[str, ...]
    user_side: tuple[str, ...]
    scales: tuple[str, ...]
    products: tuple[str, ...]
    chosen: frozenset[str]

    @classmethod
    def choose(
        cls,
        data: JointData,
        scales: Collection[str],
        components: Collection[str] | None,
        defaults: Mapping[str, float],
    ) -> Layout:
        """All components with a default weight, or those named by the caller."""
        products = tuple(f"{a}*{b}" for a, b in data.products.names)
        plain = cls(data.item_kernels, data.user_kernels, tuple(scales), products, frozenset())
        known = [name for name in plain.names if not name.startswith("smooth.")]
        if not data.two_sided:
            known = [name for name in known if name.startswith("item.")]
        if components is None:
            chosen = {name for name in known if name in defaults or name.startswith("product.")}
        else:
            possible = {*known, *(name for name in DEFAULTS if not name.startswith("smooth."))}
            for name in components:
                if name not in possible:
                    raise ArgumentError(
                        f"components: unknown component {name!r}: choose from "
                        f"{', '.join(sorted(possible))}"
                    )
            chosen = set(components) & set(known)
        if not chosen:
            raise ArgumentError("components: these ratings have none of the components named")
        return replace(plain, chosen=frozenset(chosen))

    @property
    def names(self) -> list[str]:
        """All weights: item side, user side, products, smoothing counts."""
        return [
            *self.side_names("item"),
            *self.side_names("user"),
            *(f"product.{name}" for name in self.products),
            *(f"smooth.item.{name}" for name in SMOOTHED_NAMES),
            *(f"smooth.user.{name}" for name in SMOOTHED_NAMES),
        ]

    def side_names(self, side: str) -> list[str]:
        """Names of the components of the "item" or the "user" side."""
        kernels = self.item_side if side == "item" else self.user_side
        return [f"{side}.{name}" for name in component_names(side, kernels, self.scales)]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Number of item side, user side and product weights."""
        return len(self.side_names("item")), len(self.side_names("user")), len(self.products)

    @property
    def free(self) -> np.ndarray:
        """Mask of the weights that may be learnt."""
        return np.array(
            [
                name in self.chosen or (name.startswith("smooth.") and name[7:] in self.chosen)
                for name in self.names
            ]
        )

    def start(self, defaults: Mapping[str, float]) -> Weights:
        """The starting values of all weights, 0 for components not in use."""
        values = []
        for name in self.names:
            if name.startswith("smooth."):
                values.append(defaults.get(name, DEFAULTS[name]))
            elif name not in self.chosen:
                values.append(0.0)
            else:
                values.append(defaults.get(name, DEFAULTS.get(name, OTHER_PRODUCT)))
        return Weights(self, np.array(values))


@dataclass(frozen=True)
class Weights:
    """Values of all weights of a layout, in the order of its names."""

    layout: Layout
    values: np.ndarray

    def side(self, which: str, popularity: np.ndarray) -> SideWeights:
        """The weights of the "item" or the "user" side as compiled loops take them."""
        n_item, n_user, n_products = self.layout.counts
        smoothing = self.values[n_item + n_user + n_products :]
        if which == "item":
            scales = np.array([TIME_SCALES[name] for name in self.layout.scales])
            return SideWeights(
                self.values[:n_item].copy(), smoothing[:N_SMOOTHED].copy(), scales, popularity
            )
        weights = self.values[n_item : n_item + n_user].copy()
        return SideWeights(weights, smoothing[N_SMOOTHED:].copy(), np.zeros(0), popularity)

    @property
    def products(self) -> np.ndarray:
        """One weight per product component."""
        n_item, n_user, n_products = self.layout.counts
        return self.values[n_item + n_user : n_item + n_user + n_products]

    def without_times(self) -> Weights:
        """The same weights in a layout without time scales."""
        layout = replace(self.layout, scales=())
        by_name = dict(zip(self.layout.names, self.values, strict=True))
        return Weights(layout, np.array([by_name[name] for name in layout.names]))

    def with_logs(self, logs: np.ndarray) -> Weights:
        """The same weights with new logarithms of the free ones."""
        values = self.values.copy()
        values[self.layout.free] = np.exp(logs)
        return Weights(self.layout, values)

    @property
    def logs(self) -> np.ndarray:
        """Logarithms of the free weights."""
        return np.log(self.values[self.layout.free])

    def as_dict(self) -> dict[str, float]:
        """The weights in use, by name."""
        free = self.layout.free
        return {
            name: float(value)
            for name, value, used in zip(self.layout.names, self.values, free, strict=True)
            if used
        }
