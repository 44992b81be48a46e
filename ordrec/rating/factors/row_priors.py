"""Priors of the rows of `OrdinalFactors`, learnt from who rated what and from side data.

With ``F`` the features of the rows that the prior is learnt from, ``M`` the means of their
posteriors and ``C`` a sum of their covariances (4), the best parameters of the prior ``N(B' f, S)``
are

(1) ``B = (F'F + D)^-1 F'M``, where D is diagonal: 0 for the constant feature, and
(2) ``S = ((M - FB)'(M - FB) + C + B'DB + PRIOR_ROWS PRIOR_VARIANCE I) / (n + PRIOR_ROWS)``,

as if B had the prior ``N(0, S D^-1)`` and there were a few more rows, of a small variance.

The prior of a row u must not contain the row's own ratings, which have had their share in B:
otherwise a prior with many features would seem more certain than it is. Integrating over B, given
the other rows, the prior of u is

(3) ``N((B' f_u - l_u m_u) / (1 - l_u), S / (1 - l_u))`` with the leverage ``l_u = f_u' (F'F + D)^-1
    f_u``: the regression without u, and its uncertainty. In (2), likewise,
(4) ``C = sum_u (1 - l_u) Cov_u``.

The prior is not learnt from rows with very few ratings: their posteriors are close to the prior, so
learning from them would freeze it.

Rows without ratings have no features of the pattern, whose coefficients predict badly at zero
ratings. For these rows, `ColdPrior` is a regression on side columns alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from ordrec.errors import ModelFileError
from ordrec.rating.factors.rows import (
    CompactRows,
    PriorArrays,
    RowPosteriors,
    packed_outer,
    unpacked,
)
from ordrec.storage.schema import Array

__all__ = [
    "FEW",
    "ColdPrior",
    "ColdSums",
    "LearntRows",
    "LearntSums",
    "RowPrior",
    "least_to_learn_from",
    "precision_of",
    "starting_covariance",
    "weighted_sum",
]

PATTERN_RIDGE = 20.0
SIDE_RIDGE = 10.0
PRIOR_ROWS = 10.0
FEW = 3  # rows with up to this number of ratings are not learnt from
MOST_LEVERAGE = 0.9  # without one row, the regression must not lose all it knows
ENOUGH = 100  # with this number of other rows, those with few ratings can be spared
PRIOR_VARIANCE = 0.1
START_VARIANCE = 10.0  # of factors: they shrink in a few sweeps, but would grow only slowly
START_STEPS = {"user": (0.7, 0.8), "item": (0.3, 0.05)}  # common and own variance of steps
BLOCK = 4096  # rows whose moments are in double precision at a time


@dataclass(frozen=True)
class LearntRows:
    """Rows that a prior is learnt from, in memory.

    Attributes
    ----------
    F, M : ndarray
        Their features and the means of their posteriors.
    """

    F: np.ndarray
    M: np.ndarray

    @property
    def FM(self) -> np.ndarray:
        """F'M."""
        return self.F.T @ self.M

    def residual_squares(self, B: np.ndarray) -> np.ndarray:
        """(M - FB)'(M - FB)."""
        rest = self.M - self.F @ B
        return rest.T @ rest

    def sums(self) -> LearntSums:
        """Return the sums that stand for these rows when they are not in memory."""
        return LearntSums(self.F.T @ self.F, self.FM, self.M.T @ self.M)


@dataclass(frozen=True)
class LearntSums:
    """Rows that a prior is learnt from, of which only F'F, F'M and M'M are in memory."""

    FF: np.ndarray
    FM: np.ndarray
    MM: np.ndarray

    def residual_squares(self, B: np.ndarray) -> np.ndarray:
        """(M - FB)'(M - FB)."""
        return residual_squares(self.FF, self.FM, self.MM, B)

    def __add__(self, other: LearntSums) -> LearntSums:
        return LearntSums(self.FF + other.FF, self.FM + other.FM, self.MM + other.MM)


@dataclass(frozen=True)
class RowPrior:
    """The prior of all users or of all items, see (1) and (2).

    Attributes
    ----------
    B, S : ndarray
    ridge : ndarray
        The diagonal of D.
    inverse : ndarray
        Of ``F'F + D``.
    least : int
        The prior is learnt from rows with at least this number of ratings.
    n_rows : int
        Number of these rows.
    is_learnt : bool
        Whether B and S have been learnt.
    """

    B: np.ndarray
    S: np.ndarray
    ridge: np.ndarray
    inverse: np.ndarray
    least: int
    n_rows: int
    is_learnt: bool = False

    @classmethod
    def start(
        cls, FF: np.ndarray, n_side: int, counts: np.ndarray, mean: np.ndarray, S: np.ndarray
    ) -> RowPrior:
        """Return the prior before learning, with one mean and covariance for all rows.

        Parameters
        ----------
        FF : ndarray
            F'F of the rows that have at least ``least_to_learn_from(counts)`` ratings. The first
            feature is constant; the last ``n_side`` are side data.
        n_side : int
        counts : ndarray of int
            The rows' numbers of ratings.
        mean, S : ndarray
        """
        ridge, least = ridge_of(len(FF), n_side), least_to_learn_from(counts)
        B = np.zeros((len(FF), mean.size))
        B[0] = mean
        inverse = np.linalg.inv(FF + np.diag(ridge))
        return cls(B, S, ridge, inverse, least, int((counts >= least).sum()))

    def of_rows(self, features: np.ndarray, mean: np.ndarray, counts: np.ndarray) -> PriorArrays:
        """Return the prior of each row, (3), given the means of the rows' posteriors."""
        P = precision_of(self.S)
        if not self.is_learnt:
            pulls, weights = features @ (self.B @ P), np.ones(len(features), np.float32)
        else:
            leverage = np.einsum("nf,nf->n", features @ self.inverse, features)
            leverage = np.where(counts >= self.least, leverage, 0.0)
            leverage = np.minimum(leverage, MOST_LEVERAGE)
            pulls = (features @ self.B - leverage[:, None] * mean) @ P
            weights = (1.0 - leverage).astype(np.float32)
        return PriorArrays(pulls.astype(np.float32), weights, P.astype(np.float32))

    def rows_to_learn_from(
        self, features: np.ndarray, mean: np.ndarray, counts: np.ndarray
    ) -> LearntRows:
        """Select the rows that have enough ratings."""
        enough = counts >= self.least
        return LearntRows(features[enough].astype(np.float64), mean[enough].astype(np.float64))

    def learnt(
        self,
        rows: LearntRows | LearntSums,
        covariances: Mapping[tuple[int, int], np.ndarray],
    ) -> RowPrior:
        """Return the prior with the best B and S, (1) and (2).

        Parameters
        ----------
        rows : LearntRows or LearntSums
        covariances : mapping
            Sums (4) of posterior covariances, by the span of the rows' numbers of ratings. Only
            lower triangles are read.
        """
        B = self.inverse @ rows.FM
        C = np.sum([own for span, own in covariances.items() if span[0] >= self.least], axis=0)
        S = best_covariance(rows.residual_squares(B), C, B, self.ridge, self.n_rows)
        return replace(self, B=B, S=S, is_learnt=True)


def least_to_learn_from(counts: np.ndarray) -> int:
    """Return the number of ratings that a row needs for the prior to be learnt from it.

    Examples
    --------
    >>> least_to_learn_from(np.full(1000, 5)), least_to_learn_from(np.full(1000, 2))
    (4, 1)
    """
    return FEW + 1 if (counts > FEW).sum() >= ENOUGH else 1


def ridge_of(n_features: int, n_side: int) -> np.ndarray:
    """Return the diagonal of D."""
    ridge = np.full(n_features, PATTERN_RIDGE)
    ridge[n_features - n_side :] = SIDE_RIDGE
    ridge[0] = 0.0
    return ridge


def best_covariance(
    rest: np.ndarray, C: np.ndarray, B: np.ndarray, ridge: np.ndarray, n_rows: int
) -> np.ndarray:
    """Return S of (2), given (M - FB)'(M - FB) and the lower triangle of C."""
    total = rest + np.tril(C) + np.tril(C, -1).T + B.T @ (ridge[:, None] * B)
    total[np.diag_indices_from(total)] += PRIOR_ROWS * PRIOR_VARIANCE
    return total / (n_rows + PRIOR_ROWS)


def precision_of(S: np.ndarray) -> np.ndarray:
    """Return the inverse of a covariance, exactly symmetric."""
    P = np.linalg.inv(S)
    return (P + P.T) / 2


def starting_covariance(n_factors: int, n_steps: int, side: str) -> np.ndarray:
    """Return the covariance before learning: wide for factors, correlated for steps."""
    common, own = START_STEPS[side]
    S = np.diag(np.full(n_factors + n_steps, START_VARIANCE))
    S[n_factors:, n_factors:] = common + own * np.eye(n_steps)
    return S


def residual_squares(FF: np.ndarray, FM: np.ndarray, MM: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return (M - FB)'(M - FB), given F'F, F'M and M'M."""
    cross = B.T @ FM
    return MM - cross - cross.T + B.T @ FF @ B


@dataclass(frozen=True)
class ColdSums:
    """What `ColdPrior` needs of weighted rows, F being a constant and their side data.

    Attributes
    ----------
    FF, FM, MM : ndarray
        F'F, F'M and M'M, M being the means of the posteriors.
    moments, variances : ndarray
        Sums of those of the posteriors.
    """

    FF: np.ndarray
    FM: np.ndarray
    MM: np.ndarray
    moments: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(cls, rows: RowPosteriors, side: np.ndarray, weights: np.ndarray) -> ColdSums:
        """Sum over these rows."""
        M = rows.mean.astype(np.float64)
        F = np.column_stack([np.ones(len(M)), side])
        return cls(
            F.T @ (weights[:, None] * F),
            F.T @ (weights[:, None] * M),
            _gram(M, weights),
            weighted_sum(weights, rows.moments),
            weighted_sum(weights, rows.variances),
        )

    @property
    def second_moment(self) -> np.ndarray:
        """The mean second moment of the factors."""
        return unpacked(self.moments) / self.FF[0, 0]

    def __add__(self, other: ColdSums) -> ColdSums:
        return ColdSums(
            *(getattr(self, each.name) + getattr(other, each.name) for each in fields(self))
        )


@dataclass(frozen=True)
class ColdPrior:
    """Rows without ratings: a regression of the fitted rows on a constant and their side data.

    A row without side data is an average row, see `of`.

    Attributes
    ----------
    B : ndarray of shape (1 + n_side, width)
        Coefficients with side data.
    average : ndarray of shape (width,)
    moments, variances : tuple of two ndarrays
        Second moments of the factors around the predicted mean, and variances of the steps: with
        side data, and without.
    """

    stored: ClassVar = {
        "B": Array("side+1", "factors+thresholds"),
        "average": Array("factors+thresholds"),
        "moments": Array(2, "moments"),
        "variances": Array(2, "thresholds", low=0),
    }

    B: np.ndarray
    average: np.ndarray
    moments: np.ndarray
    variances: np.ndarray

    @classmethod
    def of(
        cls,
        rows: RowPosteriors,
        side: np.ndarray,
        row_weights: np.ndarray,
        average_weights: np.ndarray | None = None,
    ) -> ColdPrior:
        """Fit to the rows of positive weight.

        Parameters
        ----------
        rows : RowPosteriors
        side : ndarray of shape (n_rows, n_side)
        row_weights : ndarray of shape (n_rows,)
        average_weights : ndarray of shape (n_rows,), optional
            Weights of the average, which rows without side data get; by default ``row_weights``.
        """
        sums = ColdSums.of(rows, side, row_weights / row_weights[row_weights > 0].mean())
        if average_weights is None:
            return cls.from_sums(sums)
        weights = average_weights / average_weights[average_weights > 0].mean()
        return cls.from_sums(sums, ColdSums.of(rows, side[:, :0], weights))

    @classmethod
    def from_sums(cls, sums: ColdSums, of_average: ColdSums | None = None) -> ColdPrior:
        """Fit to rows of which only sums are known; the average may have sums of its own."""
        with_side = cls._fitted(sums)
        average = with_side if of_average is None else cls._fitted(of_average)
        return cls(
            with_side.B,
            average.average,
            np.stack([with_side.moments[0], average.moments[1]]),
            np.stack([with_side.variances[0], average.variances[1]]),
        )

    @classmethod
    def _fitted(cls, sums: ColdSums) -> ColdPrior:
        ridge = np.append(0.0, np.full(len(sums.FF) - 1, SIDE_RIDGE))
        B, n = np.linalg.solve(sums.FF + np.diag(ridge), sums.FM), sums.FF[0, 0]
        average = sums.FM[0] / n
        n_factors = B.shape[1] - sums.variances.size
        lower = np.tril_indices(n_factors)
        own = (
            sums.moments - sums.MM[:n_factors, :n_factors][lower]
        )  # the sum of the rows' own covariances
        moments, variances = [], []
        for coefficients in (B, np.vstack([average, np.zeros_like(B[1:])])):
            rest = residual_squares(sums.FF, sums.FM, sums.MM, coefficients)
            moments.append((own + rest[:n_factors, :n_factors][lower]) / n)
            variances.append((sums.variances + np.diag(rest)[n_factors:]) / n)
        return cls(B, average, np.stack(moments), np.stack(variances))

    def rows(self, side: np.ndarray) -> RowPosteriors:
        """Return the posteriors of rows without ratings, given their side data."""
        described = np.abs(side).sum(axis=1) > 0
        mean = np.where(described[:, None], self.B[0] + side @ self.B[1:], self.average)
        n_factors = mean.shape[1] - self.variances.shape[1]
        kind = np.where(described, 0, 1)
        moments = self.moments[kind] + packed_outer(mean[:, :n_factors])
        return RowPosteriors.of(mean, moments, self.variances[kind])

    def compact_rows(self, side: np.ndarray, axes: np.ndarray) -> CompactRows:
        """Return `rows` as a fitted model keeps them, along these axes."""
        starts = range(0, max(len(side), 1), BLOCK)
        parts = [CompactRows.of(self.rows(side[a : a + BLOCK]), axes) for a in starts]
        mean, spreads, variances = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("mean", "spreads", "variances")
        )
        return CompactRows(mean, spreads, variances, parts[0].axes)

    def check_stored(self) -> None:
        """Check that the second moments are those of the factors."""
        n_factors = self.B.shape[1] - self.variances.shape[1]
        if self.moments.shape[1] != n_factors * (n_factors + 1) // 2 or n_factors < 1:
            raise ModelFileError(f"the moments of rows are not those of {n_factors} factors")


def weighted_sum(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ``weights @ rows`` in double precision, summed by blocks of rows."""
    total = np.zeros(rows.shape[1])
    for a in range(0, len(rows), BLOCK):
        total += weights[a : a + BLOCK] @ rows[a : a + BLOCK].astype(np.float64)
    return total


def _gram(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return rows.T @ (weights[:, None] * rows)
