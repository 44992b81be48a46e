"""OrdinalLogistic, the scikit-learn layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import log_softmax
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.linalg.low_rank import coordinates, expansion
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.coefficients import coefficient_table
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.logistic.covariance import (
    MOST_FEATURES,
    in_users_units,
    sandwich,
)
from ordrec.ordinal.logistic.newton import solve
from ordrec.ordinal.losses import Loss, Reach, checked_reach, signs
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, fitted
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.ordinal.thresholds.probabilities import log_interval
from ordrec.storage.schema import Flag, Integer, Number, Optional

__all__ = ["OrdinalLogistic"]

FAMILY = ("logistic", "shifted", "generalised")


class OrdinalLogistic(KernelMixin, ThresholdModel):
    """Ordinal logistic regression (Rennie 2005), linear or with a kernel.

    This is Rennie's all-threshold model, or with ``threshold="immediate"`` the immediate-threshold
    model, and not the proportional-odds model that statistics calls ordinal logistic regression
    (that is `CumulativeLink`): it sums a loss over thresholds, which is no log-likelihood of a
    label. Where proportional odds hold, coefficients and thresholds of both tend to the same values
    in large samples; in small ones they differ.

    Minimises ``sum_i sum_k loss(m_ik) + alpha/2 |w|^2`` where ``m_ik`` is the margin of
    sample i at threshold k: by how much its score lies on the right side.

    Parameters
    ----------
    threshold : {"all", "immediate"}
        Whether the loss of a sample counts all thresholds or only the two ends of its rank.
        "all" aims at small absolute errors, "immediate" at few errors.
    loss : {"logistic", "shifted", "generalised"}
        ``ln(1 + exp(-m))``, ``ln(1 + exp(margin - m))`` or
        ``ln(1 + exp(sharpness (1 - m))) / sharpness``. See `ordrec.ordinal.losses` for the
        sign of the shift and for how the last two tend to the hinge loss of SVORIM and
        SVOREX (C = 1 / alpha for the generalised, 1 / (alpha margin) for the shifted one).
    margin : float
        Margin of the shifted loss.
    sharpness : float
        Sharpness of the generalised loss.
    alpha : float
        Weight of the penalty (the note's lambda). The thresholds are not penalised.
    kernel : None, str or Kernel
        None for the linear form; else a name or object as in `ordrec.kernels`.
    gamma, degree, coef0 :
        Parameters of a kernel given by name, as in scikit-learn.
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`.
    ordered : bool
        Whether the thresholds of "immediate" are constrained to be in order. Those of "all"
        always are.
    class_weight : None, "balanced" or dict, optional
        Weights of the classes, as in `SVORIM`.
    classes : sequence, optional
        The labels in ascending order; needed where labels have no numeric order or not all
        of them occur in training. Scorers of scikit-learn
        assume alphabetical order: for other orders, see `ordrec.ordinal.scorers`.
    tol : float
        Relative decrease of the objective below which Newton's method stops.
    max_iter : int
    n_landmarks : int or array of int, optional
        For a kernel and many rows: it is approximated through that many of them, or through the
        rows with these numbers, as in `SVORIM`. None, the default, is the exact kernel.
    random_state : int, RandomState or None
        Draws the landmarks.

    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
    thresholds_ : ndarray of shape (n_ranks - 1,)
    coef_ : ndarray of shape (n_features,)
        Linear form only. In the units of the features given, like ``thresholds_``, whether or
        not they were standardised for the fit.
    scaling_ : Standardisation or None
        What was done to the features.
    covariance_ : ndarray of shape (n_features + n_ranks - 1, n_features + n_ranks - 1) or None
        Linear form only: that of ``coef_`` and ``thresholds_`` over samples like this one, which
        `summary` shows; see `ordrec.ordinal.logistic.covariance`. Weights count as repeated
        samples. None for more than 200 features.
    dual_coef_ : ndarray
        Kernel form only: coefficients of the training rows ``support_``.
    left_out_ : float
        Kernel form only: share of the kernel's trace that the landmarks leave out; 0 for the
        exact kernel.
    separated_ : bool
        Whether every training sample lies on the right side of every threshold.
    objective_ : float
    n_iter_ : int

    Notes
    -----
    `predict_proba` returns the probabilities for which the fitted scores minimise the expected
    loss. With "all" these are cumulative, P(y > k) at each k, and `predict` is the median of the
    distribution. With "immediate" a sample of rank k is only compared with its neighbours, so
    they are adjacent-category odds, P(k + 1) / P(k); with ordered thresholds `predict` is then
    the mode.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = np.repeat([1, 2, 3], 4)
    >>> model = OrdinalLogistic(alpha=0.1).fit(X, y)
    >>> model.predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = KERNEL_ESTIMATOR | {
        "coef_": Optional(fitted("features"), unset=True),
        "covariance_": Optional(fitted("coefficients", "coefficients"), unset=True),
        "dual_coef_": Optional(fitted("rows"), unset=True),
        "thresholds_": fitted("thresholds"),
        "objective_": Number(gap=True),
        "n_iter_": Integer(),
        "left_out_": Optional(Number(gap=True), unset=True),
        "separated_": Flag(),
    }
    gram_copies: ClassVar[int] = 3
    remedy_of_constants: ClassVar[str] = "lower alpha"

    def __init__(
        self,
        threshold: str = "all",
        loss: str = "logistic",
        margin: float = 0.0,
        sharpness: float = 1.0,
        alpha: float = 1.0,
        kernel: Any = None,
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        ordered: bool = True,
        class_weight: Any = None,
        classes: Any = None,
        tol: float = 1e-8,
        max_iter: int = 200,
        n_landmarks: Any = None,
        random_state: Any = None,
    ):
        self.threshold = threshold
        self.loss = loss
        self.margin = margin
        self.sharpness = sharpness
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.ordered = ordered
        self.class_weight = class_weight
        self.classes = classes
        self.tol = tol
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OrdinalLogistic:
        """Fit weights and thresholds.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Or the Gram matrix, with ``kernel="precomputed"``.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        loss, reach = self._check_parameters()
        X, ranks, weight = self._validate_fit(X, y, sample_weight)
        counted = np.flatnonzero(weight > 0)
        ranks, weight = ranks[counted], weight[counted]
        features = X if counted.size == X.shape[0] else X[counted]
        if self.kernel is not None:
            features, pivots, expand = self._kernel_features(X, counted)
        part = PresentRanks(ranks, self.n_ranks_, inner=reach == "immediate")
        solution = solve(
            features,
            part.ranks,
            part.n_ranks,
            loss=loss,
            reach=reach,
            alpha=float(self.alpha),
            weight=weight,
            ordered=self.ordered,
            tol=self.tol,
            max_iter=self.max_iter,
        )
        self._warn_unless_converged(solution, self.tol)
        thresholds = solution.thresholds
        if reach == "all":
            thresholds = np.maximum.accumulate(thresholds)  # rounding may put ties out of order
        self.thresholds_ = part.all_thresholds(
            thresholds, features @ solution.coef, weight, loss.sharpness
        )
        if self.kernel is None:
            self.coef_ = solution.coef
            self._keep_covariance(features, part, weight, thresholds, loss, reach)
            if self.scaling_ is not None:
                self.coef_, self.thresholds_ = self.scaling_.undo(self.coef_, self.thresholds_)
        else:
            self.support_ = counted[pivots]
            self.dual_coef_ = expand(solution.coef)
            self._keep_rows(X, self.support_)
        m = signs(part.ranks, part.n_ranks) * ((features @ solution.coef)[:, None] - thresholds)
        self.separated_ = bool((m > 0).all())
        self.objective_ = solution.objective
        self.n_iter_ = solution.n_iter
        return self

    def _keep_covariance(
        self,
        X: Any,
        part: PresentRanks,
        weight: np.ndarray,
        thresholds: np.ndarray,
        loss: Loss,
        reach: Reach,
    ) -> None:
        """Set ``covariance_``, that of all thresholds, in the units of the user."""
        d, alpha = self.coef_.size, float(self.alpha)
        if d > MOST_FEATURES:
            self.covariance_ = None
            return
        found, _ = sandwich(X, part.ranks, weight, self.coef_, thresholds, loss, reach, alpha)
        self.covariance_ = in_users_units(found, d, part, self.scaling_)

    def summary(self) -> pd.DataFrame:
        """Return a table of coefficients and thresholds with their standard errors.

        Columns are the ``estimate``, its standard error ``std_err`` (from ``covariance_``),
        ``z``, their ratio, and ``p``, the two-sided probability of a ratio as large if the true
        value were 0. The penalty draws coefficients towards 0, so for inference ``alpha`` should
        be small beside the number of samples. Errors are those of large samples: with 40 of them,
        intervals of two errors cover the truth in 88 to 92 of 100 cases rather than in 95.

        Warns
        -----
        UserWarning
            If the model separates the labels of all training samples. Without the penalty, its
            coefficients would have no bounds: errors, z and p mean nothing and are NaN.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 2))
        >>> y = np.digitize(X[:, 0] + rng.logistic(size=500), [-1.0, 1.0])
        >>> OrdinalLogistic(alpha=1e-3).fit(X, y).summary().round(2)
                       estimate  std_err      z     p
        x0                 1.15     0.11  10.43  0.00
        x1                -0.01     0.09  -0.10  0.92
        threshold 0|1     -0.83     0.11  -7.68  0.00
        threshold 1|2      0.88     0.11   8.32  0.00
        """
        check_is_fitted(self)
        if self.kernel is not None:
            raise ArgumentError("summary describes the linear form: use kernel=None")
        if self.covariance_ is None:
            raise ArgumentError(
                f"summary is for up to {MOST_FEATURES} features, and there are {self.coef_.size}"
            )
        return coefficient_table(self)

    def _kernel_features(
        self, X: Any, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The kernel form as a linear one, by the representer theorem.

        w lies in the span of the mapped samples. The rows of L, K = L L', are coordinates in that
        span: f = L w, and |w| is the norm in feature space. Returned are L, the rows that span
        everything, and the map from w to their coefficients.
        """
        if self.n_landmarks is not None:
            Z, landmarks = self._fit_landmarks(X, rows)
            return Z, landmarks.rows, landmarks.coefficients
        self.left_out_ = 0.0
        L, pivots = coordinates(self._fit_gram(X, rows=rows))
        return L, pivots, partial(expansion, L[pivots])

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the score f(x), on the scale of ``thresholds_``."""
        if self.kernel is None:
            return ThresholdModel._validate_predict(self, X) @ self.coef_  # in their own units
        return self._expanded(self._validate_predict(X), self.dual_coef_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(rank), one column for each of ``classes_``."""
        loss, reach = self._check_parameters()
        odds = loss.logit(self.predict_latent(X)[:, None] - self.thresholds_)
        end = np.full((odds.shape[0], 1), np.inf)
        if reach == "immediate":
            steps = np.hstack([np.zeros_like(end), np.cumsum(odds, axis=1)])
            return np.exp(log_softmax(steps, axis=1))
        edges = np.hstack([-end, -odds, end])
        p = np.exp(log_interval(edges[:, :-1], edges[:, 1:], "logit"))
        return p / p.sum(axis=1, keepdims=True)

    def check_stored(self) -> None:
        """Check the order of the thresholds, and that the parts are those of the kernel."""
        super().check_stored()
        if self._check_parameters()[1] == "all" and (np.diff(self.thresholds_) < 0).any():
            raise ModelFileError("the thresholds are not in order")
        if self.kernel is not None:
            self.support_, _ = self._rows, self.dual_coef_
            return
        size = self.coef_.size + self.thresholds_.size
        self.covariance_ = getattr(self, "covariance_", None)
        if self.covariance_ is not None and self.covariance_.shape != (size, size):
            raise ModelFileError("the covariance is not that of the coefficients")

    def _check_parameters(self) -> tuple[Loss, Reach]:
        reach = checked_reach(self.threshold)
        if self.loss not in FAMILY:
            raise ArgumentError(f"loss must be one of {', '.join(FAMILY)}, got {self.loss!r}")
        if not 0 <= self.alpha < np.inf:
            raise ArgumentError(f"alpha must be a finite number, not negative, got {self.alpha!r}")
        if not self.max_iter >= 1:
            raise ArgumentError(f"max_iter must be at least 1, got {self.max_iter!r}")
        if self.kernel is None and self.n_landmarks is not None:
            raise ArgumentError(
                "n_landmarks approximates a kernel, and OrdinalLogistic has none unless kernel is "
                'given, such as kernel="rbf"'
            )
        loss = Loss(self.loss, margin=self.margin, sharpness=self.sharpness)
        return loss, reach
