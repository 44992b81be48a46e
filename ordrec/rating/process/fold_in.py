"""Add users who were not in training, or whose ratings have changed, without training again.

The coefficients ``a`` of all other users are held fixed; those of the user solve

(1) ``(K_uu + D) a_u = y_u - (prior mean + K_uo a_o)``, with ``a_o`` the others' coefficients
(2) leave-one-out score of each of the user's ratings: ``y_u - a_u / diag (K_uu + D)^-1``
(3) mean at the user's ratings: ``prior mean + K_uo a_o + K_uu a_u``

K_uu is the item side (which leaves the user out anyway), the user side's variance and the
products between the user's own ratings. The user's row of the user side's pair sums is summed
over the items they rated. The approximation is that the others' coefficients do not react to the
user's ratings. Pairs without a time have coefficients of their own, as in `Process`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ordrec.errors import DataError
from ordrec.kernels.items.moments import PairMoments
from ordrec.linalg.lapack import ADDRESSES, factorise, inverse_diagonal_factorised, solve_factorised
from ordrec.rating.process.fit import FittedPredictor
from ordrec.rating.process.kernel.components import N_SMOOTHED, Entries, entry_numbers
from ordrec.rating.process.kernel.pair_sums import N_SUMS
from ordrec.rating.process.kernel.shared_features import USER_SMOOTHING
from ordrec.rating.process.solve.fitting import NEWTON_STEPS, Likelihood, Process
from ordrec.rating.process.solve.owner_blocks import (
    CROSS,
    Output,
    Walk,
    numbers_of,
    training_entries,
)
from ordrec.rating.thresholds.ordered_probit import OrderedProbit, fit_one_user

__all__ = ["FoldedUser", "ResolvedPairs", "fold_in_user", "folded_among", "unsolved_user"]


@dataclass(frozen=True)
class FoldedUser:
    """A user's own part of the model.

    Attributes
    ----------
    code : int
        The user's code in training, -1 if they were not in training.
    items, levels, times : arrays
        The user's ratings.
    trained_x, trained_seen : arrays
        The user's centred training ratings of these items, which the pair sums contain.
    x : float64 array
        Item-centred ratings, for the user side.
    row, diag : float64 arrays
        The user's row of the user side's moments, and its diagonal entry.
    psi : float64 array
        The user's product features.
    a, undated : float64 arrays
        Dual coefficients of the user's ratings, and those without the kernels of times.
    shifts, scale : array and float
        The user's threshold shifts and log-scale in the ordered probit.
    """

    code: int
    items: np.ndarray
    levels: np.ndarray
    times: np.ndarray
    trained_x: np.ndarray
    trained_seen: np.ndarray
    x: np.ndarray
    row: np.ndarray
    diag: np.ndarray
    psi: np.ndarray
    a: np.ndarray
    undated: np.ndarray
    shifts: np.ndarray
    scale: float

    def scores(self, process: Process, items: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Latent scores of items, by code; times are 0 where unknown."""
        scores, dated = np.empty(items.size), times > 0
        for part, a, rows in (
            (process, self.a, dated),
            (process.without_times, self.undated, ~dated),
        ):
            if rows.any():
                scores[rows] = self._mean(part, a, items[rows], times[rows])
        return scores

    def _mean(
        self, process: Process, a: np.ndarray, items: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        """Latent scores of items, from a process and the user's coefficients ``a``."""
        data, K = process.data, process.K
        x, seen = self.trained(process, items)
        scores = data.prior_mean(items, x, seen)
        rows = self.item_rows(process, items, times, x, seen)
        scores += np.einsum("c,qcn,n->q", K.item_weights.weights, rows, a)
        if data.two_sided:
            own_x, own_seen = _looked_up(items, self.items, self.x)
            means, variances = self.user_part(process, items, own_x, own_seen)
            own_a, _ = _looked_up(items, self.items, a)
            scores += means + variances * own_a
            scores += data.products.phi[items] @ (self.psi @ (K.omega * self.table(process, a)))
        return scores

    def table(self, process: Process, a: np.ndarray) -> np.ndarray:
        """The products' table, with the user's coefficients in place of those from training."""
        own = np.outer(self.psi, a @ process.data.products.phi[self.items])
        return _table_of_others(process, self.code) + own

    def trained(self, process: Process, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The user's centred training ratings of items, and whether there is one."""
        return _looked_up(items, *_training_ratings(process, self.code))

    def user_terms(self, process: Process, item: int) -> tuple[np.ndarray, np.ndarray]:
        """User-side components times the others' coefficients, and those of the user's variance."""
        items = np.array([item])
        x, seen = _looked_up(items, self.items, self.x)
        with_others, at, alone = self._user_walks(process, items, x, seen)
        part = with_others.parts(at.size)[0]
        return part * process.a[process.data.by_item[at]], alone.parts(1)[0, :, 0]

    def item_rows(
        self,
        process: Process,
        items: np.ndarray,
        times: np.ndarray,
        x: np.ndarray,
        seen: np.ndarray,
    ) -> np.ndarray:
        """Components (item, component, own rating) of the item side."""
        side, w = process.data.item_side, process.K.item_weights
        if self.items.size == 0:
            return np.zeros((items.size, w.weights.size, 0))

        def entries(codes: np.ndarray, x: np.ndarray, seen: np.ndarray, t: np.ndarray) -> Entries:
            owner, start = np.full(codes.size, self.code), np.array([0, codes.size])
            return Entries(start, codes, numbers_of(side, w, codes, x, seen, t, owner))

        columns = entries(self.items, self.trained_x, self.trained_seen, self.times)
        rows = entries(items, x, seen, times.astype(np.float64))
        activity = side.activity[[self.code]] if self.code >= 0 else np.zeros(1)
        return Walk(side.pairs, activity, w, rows, columns).parts(self.items.size)

    def user_part(
        self, process: Process, items: np.ndarray, x: np.ndarray, seen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The user side's mean of each item, from the others' ratings, and its variance."""
        data, w = process.data, process.K.user_weights
        with_others, at, alone = self._user_walks(process, items, x, seen)
        theirs = process.a[data.by_item[at]]
        theirs[data.user_side.entry[at] == self.code] = 0.0
        sums = np.zeros((2, items.size, w.weights.size + N_SMOOTHED))
        place, cost = np.arange(items.size), data.user_side.sizes[items]
        with_others.run(cost, Output(CROSS, place, right=theirs, out=sums[0]))
        ones = np.ones(items.size)
        alone.run(ones, Output(CROSS, place, right=ones, out=sums[1]))
        means, variances = sums[:, :, : w.weights.size] @ w.weights
        return means, variances

    def _user_walks(
        self, process: Process, items: np.ndarray, x: np.ndarray, seen: np.ndarray
    ) -> tuple[Walk, np.ndarray, Walk]:
        """The user with the raters of each item, whose ratings these are, and with themselves."""
        side, w = process.data.user_side, process.K.user_weights
        diag, activity = np.tile(self.diag, (items.size, 1)), side.activity[items]
        loadings = _user_loadings(process, self.code)[side.fold[items]]
        numbers = entry_numbers(diag, x, seen, activity, np.zeros(items.size), loadings, w)
        itself = np.zeros(items.size, dtype=np.int64)  # the only row of the sums below
        user = Entries(np.arange(items.size + 1), itself, numbers)
        raters, at = training_entries(side, w, items)
        with_others = Walk(_one_row(self.row), activity, w, user, raters)
        return with_others, at, Walk(_one_row(self.diag[None]), activity, w, user, user)

    def probabilities(
        self, scores: np.ndarray, items: np.ndarray, probit: OrderedProbit
    ) -> np.ndarray:
        """P(rank) for scores of items, by code (-1 for the unknown)."""
        new = probit.shifts.shape[0]
        own = probit.with_user(new, self.shifts, self.scale, self.items.size)
        return own.probabilities(scores, np.full(scores.size, new), items)


@dataclass(frozen=True)
class ResolvedPairs:
    """Pairs to predict: codes (-1 for the unknown), times (0 where unknown), folded-in users."""

    users: np.ndarray
    items: np.ndarray
    times: np.ndarray
    folded: list[tuple[FoldedUser, np.ndarray]]


def folded_among(
    folded: Mapping[Any, FoldedUser], users: Any
) -> list[tuple[FoldedUser, np.ndarray]]:
    """The folded-in users among ``users``, each with the rows of their pairs."""
    if not folded:
        return []
    codes, distinct = pd.factorize(pd.Index(np.asarray(users)))
    return [
        (folded[user], np.flatnonzero(codes == k))
        for k, user in enumerate(distinct)
        if user in folded
    ]


def fold_in_user(
    fitted: FittedPredictor,
    code: int,
    items: np.ndarray,
    levels: np.ndarray,
    times: np.ndarray | None,
) -> FoldedUser:
    """Solve (1) for one user; ``code`` is -1 for one who was not in training."""
    user = unsolved_user(fitted, code, items, levels, times)
    if items.size == 0:
        shifts, scale = fit_one_user(fitted.probit, np.zeros(0), levels, items)
        return replace(user, shifts=shifts, scale=scale)
    return _solved(fitted, user)


def unsolved_user(
    fitted: FittedPredictor,
    code: int,
    items: np.ndarray,
    levels: np.ndarray,
    times: np.ndarray | None,
) -> FoldedUser:
    """A user with their pair sums and features, but without coefficients and thresholds."""
    process, n_ranks = fitted.process, fitted.scale.n_ranks
    data = process.data
    items, levels = items.astype(np.int64), levels.astype(np.int64)
    trained_x, trained_seen = _looked_up(items, *_training_ratings(process, code))
    dated = times is not None and process.K.item_weights.scales.size > 0
    stamps = np.asarray(times, dtype=np.float64) if dated else np.zeros(items.size)
    y = fitted.units.inward(fitted.scale.values[levels])
    x = y - data.bias.mean - data.bias.item[items]
    row, diag = _gram_row(process, code, items, x)
    return FoldedUser(
        code, items, levels, stamps, trained_x, trained_seen, x, row, diag,
        _product_features(process, code, items), np.zeros(items.size), np.zeros(items.size),
        np.zeros(n_ranks - 1), 0.0,
    )  # fmt: skip


def _solved(fitted: FittedPredictor, user: FoldedUser) -> FoldedUser:
    """The user with coefficients by (1), then thresholds and scale."""
    process, items, levels = fitted.process, user.items, user.levels
    target = y = fitted.units.inward(fitted.scale.values[levels])
    noise = np.ones(items.size)
    own, known = _own_equations(process, user)
    a, factor = _coefficients(own, noise, y - known)  # (1)
    left_out = y - a / inverse_diagonal_factorised(factor, ADDRESSES)  # (2)
    if fitted.likelihood is not None:
        first, typical = fitted.likelihood
        personal = fit_one_user(first, left_out, levels, items)
        likelihood = _likelihood_of(first, *personal, items, typical)
        mean = known + own @ a  # (3)
        for _ in range(NEWTON_STEPS):
            target, noise = likelihood.newton_target(mean, levels)
            a, factor = _coefficients(own, noise, target - known)  # (1)
            mean = known + own @ a  # (3)
        left_out = target - a / inverse_diagonal_factorised(factor, ADDRESSES)  # (2)
    undated = a
    if process.without_times is not process:
        own, known = _own_equations(process.without_times, user)
        undated, _ = _coefficients(own, noise, target - known)
    shifts, scale = fit_one_user(fitted.probit, left_out, levels, items)
    return replace(user, a=a, undated=undated, shifts=shifts, scale=scale)


def _coefficients(
    own: np.ndarray, noise: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Solution of ``(own + noise) a = right``, and its Cholesky factor."""
    factor, a = own + np.diag(noise), right[None].copy()
    finite = np.isfinite(factor).all() and np.isfinite(a).all()
    if not finite or factorise(factor, ADDRESSES) != 0:
        raise DataError(
            f"a user's {noise.size} ratings cannot be solved for: the model's parameters are "
            "damaged; fit it again"
        )
    solve_factorised(factor, a, ADDRESSES)
    return a[0], factor


def _own_equations(process: Process, user: FoldedUser) -> tuple[np.ndarray, np.ndarray]:
    """``K_uu`` of (1), and the mean of the user's ratings given the others' coefficients."""
    data, K, items = process.data, process.K, user.items
    rows = user.item_rows(process, items, user.times, user.trained_x, user.trained_seen)
    own = np.einsum("c,qcn->qn", K.item_weights.weights, rows)
    undated = np.flatnonzero(~(user.times > 0))
    times = _time_components(K.item_weights.scales.size)
    own[undated, undated] += K.item_weights.weights[times].sum()
    known = data.prior_mean(items, user.trained_x, user.trained_seen)
    if data.two_sided:
        means, variances = user.user_part(process, items, user.x, np.ones(items.size))
        phi = data.products.phi[items].astype(np.float64)
        own += np.diag(variances) + (phi * (user.psi**2 @ K.omega)) @ phi.T
        known = known + means + phi @ (user.psi @ (K.omega * _table_of_others(process, user.code)))
    return own, known


def _likelihood_of(
    probit: OrderedProbit, shifts: np.ndarray, scale: float, items: np.ndarray, typical: float
) -> Likelihood:
    """The ordinal likelihood of one user's ratings."""
    new = probit.shifts.shape[0]
    own, rows = probit.with_user(new, shifts, scale, items.size), np.full(items.size, new)
    return Likelihood(own.thresholds_of(rows), own.scale_of(rows, items), typical)


def _time_components(n_scales: int) -> slice:
    """Places of the time components among those of the item side: the last."""
    return slice(-n_scales, None) if n_scales else slice(0, 0)


def _training_ratings(process: Process, code: int) -> tuple[np.ndarray, np.ndarray]:
    """Items and centred ratings of a user in training; none for the code -1."""
    side = process.data.item_side
    own = slice(side.start[code], side.start[code + 1]) if code >= 0 else slice(0, 0)
    return side.entry[own], side.x[own]


def _looked_up(
    wanted: np.ndarray, items: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Value of each wanted item among ``items``, and 1 or 0 for whether it is among them."""
    if items.size == 0:
        return np.zeros(wanted.size), np.zeros(wanted.size)
    order = np.argsort(items, kind="stable")
    place = order[np.minimum(np.searchsorted(items, wanted, sorter=order), items.size - 1)]
    there = items[place] == wanted
    return np.where(there, values[place], 0.0), there.astype(np.float64)


def _gram_row(
    process: Process, code: int, items: np.ndarray, x: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The user's moments with every other user, and with themselves."""
    side = process.data.user_side
    n_moments = side.pairs.table.shape[1]
    row, diag = np.zeros((side.n_entries, n_moments)), np.zeros(n_moments)
    if process.data.two_sided:
        row[:, :N_SUMS], diag[:N_SUMS] = side.new_entry(items, x)
        if code >= 0:  # kernels of side information, which ratings do not change
            row[:, N_SUMS:] = side.pairs.row(code, side.n_entries)[:, N_SUMS:]
            diag[N_SUMS:] = row[code, N_SUMS:]
    return row, diag


def _one_row(row: np.ndarray) -> PairMoments:
    """Moments of a single entry with all others, for a `Walk`."""
    return PairMoments(row, 1, width=len(row))


def _product_features(process: Process, code: int, items: np.ndarray) -> np.ndarray:
    """The user's features in the products, the implicit ones from the items given."""
    products = process.data.products
    psi = products.psi[code].astype(np.float64) if code >= 0 else products.psi[-1].astype(float)
    if "implicit" in products.user_groups:
        mean = products.projection[items].sum(axis=0) / np.sqrt(items.size + USER_SMOOTHING)
        psi[products.user_groups["implicit"]] = mean
    return psi


def _table_of_others(process: Process, code: int) -> np.ndarray:
    """The products' table without the user's training ratings."""
    if code < 0:
        return process.table
    start, products = process.data.item_side.start, process.data.products
    own = slice(start[code], start[code + 1])
    mine = process.a[own] @ products.phi[products.items[own]]
    return process.table - np.outer(products.psi[code], mine)


def _user_loadings(process: Process, code: int) -> np.ndarray:
    """Loadings of the user in each fold; zeros for a new user."""
    loadings = process.data.user_side.loadings
    if code < 0 or loadings.shape[1] == 0:
        return np.zeros((loadings.shape[0], loadings.shape[2]))
    return np.ascontiguousarray(loadings[:, code])
