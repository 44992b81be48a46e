"""CumulativeLink, the scikit-learn layer."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, ModelFileError, callers_level
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.coefficients import coefficient_table
from ordrec.ordinal.cumulative.brant import parallel_lines
from ordrec.ordinal.cumulative.effects import average_effects
from ordrec.ordinal.cumulative.links import LINKS, log_probability
from ordrec.ordinal.cumulative.objective import CumulativeObjective, link_start
from ordrec.ordinal.labels import ordered_classes
from ordrec.ordinal.logistic.covariance import MOST_FEATURES, in_users_units
from ordrec.ordinal.logistic.newton import minimise
from ordrec.ordinal.losses import signs
from ordrec.ordinal.scaling import Standardisation, scaling_for
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.stored import ESTIMATOR, fitted
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.storage.schema import Flag, Integer, Number, Optional, Part

__all__ = ["CumulativeLink"]

STEEPNESS = {"logit": 1.0, "probit": 1.7, "cloglog": 1.3}  # of the logistic curve next to F


class CumulativeLink(ThresholdModel):
    """A cumulative-link model: what statistics calls ordinal regression.

    ``P(y <= k | x) = F(b_k - w.x)`` with one direction w for all thresholds: proportional odds
    (McCullagh 1980) with the logit link, ordered probit, or proportional hazards with the
    complementary log-log link. Thresholds and weights maximise the likelihood of the labels, less
    a penalty.

    Parameters
    ----------
    link : {"logit", "probit", "cloglog"}
        F: the logistic or the normal distribution function, or 1 - exp(-exp(z)).
    alpha : float
        Weight of the penalty ``alpha/2 |w|^2``. 0 is maximum likelihood, as other statistical
        packages have it, and the right value for `summary`; the labels must then not be separable.
        The thresholds are not penalised.
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`. Without penalty it changes nothing
        but the rounding.
    class_weight : None, "balanced" or dict, optional
        Weights of the classes, as in `SVORIM`.
    classes : sequence, optional
        The labels in ascending order; needed where labels have no numeric order or not all of
        them occur in training.
    tol : float
        Relative decrease of the objective below which Newton's method stops.
    max_iter : int

    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
    coef_ : ndarray of shape (n_features,)
        In the units of the features given, like ``thresholds_``.
    thresholds_ : ndarray of shape (n_ranks - 1,)
    covariance_ : ndarray of shape (n_features + n_ranks - 1, n_features + n_ranks - 1) or None
        That of ``coef_`` and ``thresholds_``: the inverse of the observed information or, with a
        penalty, H^-1 (H - alpha I) H^-1. None for more than 200 features.
    log_likelihood_ : float
        Of the training samples, without the penalty.
    objective_ : float
    n_iter_ : int
    converged_ : bool
    separated_ : bool
        Whether every training sample lies on the right side of every threshold. Without penalty
        the coefficients then have no bounds, and errors of theirs mean nothing.
    scaling_ : Standardisation or None
        What was done to the features.

    Notes
    -----
    `predict` is the median of the distribution for ``link="logit"`` and ``"probit"``: the rank
    whose interval holds the score. ``decide(model.predict_proba(X), "mode")`` makes the fewest
    mistakes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.digitize(X[:, 0] + rng.logistic(size=500), [-1.0, 1.0])
    >>> model = CumulativeLink(alpha=0.0).fit(X, y)
    >>> model.summary().round(2)
                   estimate  std_err      z     p
    x0                 1.13     0.11  10.54  0.00
    x1                -0.02     0.09  -0.19  0.85
    threshold 0|1     -0.83     0.11  -7.86  0.00
    threshold 1|2      0.87     0.11   8.19  0.00
    """

    stored: ClassVar = ESTIMATOR | {
        "scaling_": Optional(Part(Standardisation)),
        "coef_": fitted("features"),
        "thresholds_": fitted("thresholds"),
        "covariance_": Optional(fitted("coefficients", "coefficients")),
        "log_likelihood_": Number(gap=True),
        "objective_": Number(gap=True),
        "n_iter_": Integer(),
        "converged_": Flag(),
        "separated_": Flag(),
    }
    remedy_of_constants: ClassVar[str] = "lower alpha"

    def __init__(
        self,
        link: str = "logit",
        alpha: float = 1.0,
        *,
        scaling: str | None = "auto",
        class_weight: Any = None,
        classes: Any = None,
        tol: float = 1e-12,
        max_iter: int = 200,
    ):
        self.link = link
        self.alpha = alpha
        self.scaling = scaling
        self.class_weight = class_weight
        self.classes = classes
        self.tol = tol
        self.max_iter = max_iter

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CumulativeLink:
        """Maximise the penalised likelihood.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            How many samples a row stands for.
        """
        self._check_parameters()
        X, ranks, weight = self._validate_fit(X, y, sample_weight)
        counted = np.flatnonzero(weight > 0)
        X, ranks, weight = X[counted], ranks[counted], weight[counted]
        self.scaling_ = scaling_for(self.scaling, X, kernel=None, gamma=None)
        X = X if self.scaling_ is None else self.scaling_(X)
        part, d = PresentRanks(ranks, self.n_ranks_, inner=True), X.shape[1]
        J = CumulativeObjective(X, part.ranks, weight, part.n_ranks, self.link, float(self.alpha))
        start = link_start(part.ranks, part.n_ranks, weight, self.link)
        x, value, violation, n_iter = minimise(
            J, np.concatenate([np.zeros(d), start]), self.tol, self.max_iter
        )
        converged = violation <= self.tol
        margins = signs(part.ranks, part.n_ranks) * ((X @ x[:d])[:, None] - x[d:])
        self.separated_ = bool((margins > 0).all())
        if self.separated_ and self.alpha == 0:
            warnings.warn(
                "the features separate the labels of all training samples: without penalty, "
                "coefficients have no bounds, and their size is where the search ended: pass "
                "alpha above 0, or take fewer features",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )
        else:
            self._warn_unless_converged(
                Solution(x[:d], x[d:], value, violation, np.nan, n_iter, converged), self.tol
            )
        self.coef_, self.objective_, self.n_iter_ = x[:d], value, n_iter
        self.converged_ = bool(converged)
        self.log_likelihood_ = 0.5 * float(self.alpha) * float(x[:d] @ x[:d]) - value
        self.thresholds_ = part.all_thresholds(x[d:], X @ x[:d], weight, STEEPNESS[self.link])
        self.covariance_ = None
        if d <= MOST_FEATURES:
            self.covariance_ = in_users_units(_covariance(J, x), d, part, self.scaling_)
        if self.scaling_ is not None:
            self.coef_, self.thresholds_ = self.scaling_.undo(self.coef_, self.thresholds_)
        return self

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the score w.x, on the scale of ``thresholds_``."""
        return self._validate_predict(X) @ self.coef_

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return P(rank), one column for each of ``classes_``."""
        latent = self.predict_latent(X)
        z = np.concatenate([[-np.inf], self.thresholds_, [np.inf]]) - latent[:, None]
        p = np.exp(log_probability(z[:, :-1], z[:, 1:], self.link))
        return p / p.sum(axis=1, keepdims=True)

    def summary(self) -> pd.DataFrame:
        """Return a table of coefficients and thresholds with their standard errors.

        Columns are the ``estimate``, its standard error ``std_err`` (from ``covariance_``), their
        ratio ``z``, and ``p``, the two-sided probability of a ratio as large if the true value
        were 0. Errors are those of large samples, and without penalty: use ``alpha=0.0``.

        Warns
        -----
        UserWarning
            If the model has a penalty, which draws coefficients towards 0, or separates the labels
            of all training samples: errors, z and p then mean nothing and are NaN.
        """
        self._check_inference("summary")
        if self.alpha > 0:
            warnings.warn(
                f"the penalty (alpha={self.alpha:g}) draws coefficients towards 0, and p is that "
                "of the drawn ones: fit with alpha=0.0 for tests of coefficients",
                stacklevel=callers_level(),
            )
        return coefficient_table(self)

    def marginal_effects(self, X: Any, sample_weight: Any = None) -> pd.DataFrame:
        """Return how the probability of each label changes with each feature.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples over which the derivatives are averaged, mostly the training samples.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        DataFrame
            A row for each feature and label: the average derivative ``effect`` of P(label) in the
            feature, its standard error ``std_err`` by the delta method, ``z`` and ``p``. Effects
            of one feature add up to zero.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.arange(40.0).reshape(-1, 1) % 8
        >>> y = (X[:, 0] + np.arange(40) % 5) // 4
        >>> effects = CumulativeLink(alpha=0.0).fit(X, y).marginal_effects(X)["effect"]
        >>> (effects.round(2) + 0.0).tolist()
        [-0.11, 0.0, 0.11]
        """
        covariance = self._check_inference("marginal_effects")
        X = self._validate_predict(X)
        weight = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, float)
        effects, errors = average_effects(
            X, self.coef_, self.thresholds_, covariance, self.link, weight / weight.sum()
        )
        names = getattr(self, "feature_names_in_", [f"x{v}" for v in range(self.coef_.size)])
        with np.errstate(divide="ignore", invalid="ignore"):
            z = effects / errors
        rows = pd.MultiIndex.from_product([list(names), self.classes_.tolist()])
        columns = {"effect": effects, "std_err": errors, "z": z, "p": 2.0 * ndtr(-np.abs(z))}
        flat = {name: values.ravel() for name, values in columns.items()}
        return pd.DataFrame(flat, index=rows.set_names(["feature", "label"]))

    def brant(self, X: Any, y: Any) -> pd.DataFrame:
        """Test whether all thresholds have the same coefficients (Brant 1990).

        Parameters
        ----------
        X, y : as for `fit`
            The training samples.

        Returns
        -------
        DataFrame
            A row for all features together, "omnibus", and one for each: Wald's ``chi2``, its
            degrees of freedom ``df`` and ``p``. A small p says that the lines are not parallel.
        """
        self._check_inference("brant")
        if self.link != "logit":
            raise ArgumentError(f'link must be "logit" for the test of Brant, got {self.link!r}')
        X = self._validate_predict(X)
        _, ranks = ordered_classes(np.asarray(y), self.classes_)
        if np.unique(ranks).size < 3:
            raise ArgumentError("y must have at least three labels: two have one threshold only")
        names = getattr(self, "feature_names_in_", [f"x{v}" for v in range(self.coef_.size)])
        rows = parallel_lines(X, ranks)
        table = pd.DataFrame(rows, columns=["chi2", "df", "p"], index=["omnibus", *names])
        return table.astype({"df": int})

    def check_stored(self) -> None:
        """Check the order of the thresholds, and the covariance."""
        if (np.diff(self.thresholds_) < 0).any():
            raise ModelFileError("the thresholds are not in order")
        size = self.coef_.size + self.thresholds_.size
        if self.covariance_ is not None and self.covariance_.shape != (size, size):
            raise ModelFileError("the covariance is not that of the coefficients")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on blobs that no linear score orders
        return tags

    def _check_inference(self, name: str) -> np.ndarray:
        """Return the covariance, if there is one."""
        check_is_fitted(self)
        if self.covariance_ is None:
            raise ArgumentError(
                f"{name} is for up to {MOST_FEATURES} features, and there are {self.coef_.size}"
            )
        return self.covariance_

    def _check_parameters(self) -> None:
        if self.link not in LINKS:
            raise ArgumentError(f"link must be one of {', '.join(LINKS)}, got {self.link!r}")
        if not 0 <= self.alpha < np.inf:
            raise ArgumentError(f"alpha must be a finite number, not negative, got {self.alpha!r}")
        if not self.max_iter >= 1:
            raise ArgumentError(f"max_iter must be at least 1, got {self.max_iter!r}")
        if not self.tol > 0:
            raise ArgumentError(f"tol must be positive, got {self.tol!r}")


def _covariance(J: CumulativeObjective, x: np.ndarray) -> np.ndarray:
    """H^-1 (H - alpha I) H^-1, with alpha at the weights only; NaN where H is singular."""
    H = J.at(x)[2]
    penalty = np.zeros(x.size)
    penalty[: J.X.shape[1]] = J.alpha
    try:
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        return np.full_like(H, np.nan)
    return inverse - (inverse * penalty) @ inverse
