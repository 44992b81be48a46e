"""Gaussian process regression on the ranks, rounded.

With landmarks, the kernel is Z Z' in the features Z that they give, and the posterior mean is Z w
with w = (Z'Z + s I)^-1 Z'y, s the noise: time is linear in the rows. The parameters of the kernel
then maximise the evidence of a sample of the rows, for which the exact kernel is used.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.utils import check_random_state

from ordrec.errors import ArgumentError, DataError
from ordrec.kernels import Kernel, Precomputed, Scaled, kernel_for
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.baselines.svr import half_way_thresholds
from ordrec.ordinal.kernel_model import KernelMixin, check_gram, check_gram_size
from ordrec.ordinal.stored import KERNEL_ESTIMATOR
from ordrec.storage.schema import Array, Number

__all__ = ["GPRanks"]

EVIDENCE_ROWS = 1000  # of which the evidence is maximised, with landmarks
GRADIENT_BYTES = 8 * 4  # the matrix, its factor, its inverse and one slope at least


class GPRanks(KernelMixin, ThresholdModel):
    """Gaussian process regression on the ranks as numbers, rounded and clipped.

    The kernel's parameters, its variance and the noise maximise the marginal likelihood.

    Parameters
    ----------
    kernel : str or Kernel
        "rbf", "linear", "poly", "precomputed", ... or an object, as in `ordrec.kernels`.
        Its parameters are where the search starts.
    gamma, degree, coef0 :
        Parameters of a kernel given by name, as in scikit-learn.
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`.
    noise : float
        Noise variance at the start of the search, in units of the variance of the ranks.
    n_restarts : int
        Further searches, from random starts.
    random_state : int, RandomState or None
        Draws the starts, the sample and the landmarks.
    classes : sequence, optional
        The labels in ascending order.
    n_landmarks : int, array of row numbers or None
        Rows that stand for all others, as in `SVORIM`: time and memory are then linear in the
        rows, and the marginal likelihood is that of 1,000 of them. None, the default, is the exact
        kernel.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Half way between the ranks 0, 1, 2, ...
    kernel_ : Kernel
        With its variance, and its fitted parameters. The variance of a precomputed kernel is in
        ``dual_coef_`` instead.
    dual_coef_ : ndarray
        Coefficients of the training samples, or of the landmarks.
    intercept_ : float
    log_marginal_likelihood_ : float
        Of the training samples, or of those that were drawn.
    left_out_ : float
        Share of the kernel's trace that the landmarks leave out; 0 for the exact kernel.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> GPRanks().fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = KERNEL_ESTIMATOR | {
        "dual_coef_": Array("rows"),
        "intercept_": Number(),
        "thresholds_": Array("thresholds"),
        "log_marginal_likelihood_": Number(gap=True),
        "left_out_": Number(),
    }
    remedy_of_constants: ClassVar[str] = "try another kernel"

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        noise: float = 0.1,
        n_restarts: int = 0,
        random_state: Any = None,
        classes: Any = None,
        n_landmarks: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.noise = noise
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.classes = classes
        self.n_landmarks = n_landmarks

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any) -> GPRanks:
        """Maximise the marginal likelihood and condition on the ranks."""
        if not (np.isfinite(self.noise) and self.noise > 0):
            raise ArgumentError(f"noise must be a positive number, got {self.noise!r}")
        X, ranks, _ = self._validate_fit(X, y)
        self.kernel_ = kernel_for(
            self.kernel, X, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        pairwise = isinstance(self.kernel_, Precomputed)
        if pairwise:
            check_gram(X)
        if self.n_landmarks is None:
            check_gram_size(self, ranks.size, GRADIENT_BYTES)
        random = check_random_state(self.random_state)
        drawn = np.arange(ranks.size)
        if self.n_landmarks is not None and drawn.size > EVIDENCE_ROWS:
            drawn = np.sort(random.choice(drawn, EVIDENCE_ROWS, replace=False))
        sample = X[np.ix_(drawn, drawn)] if pairwise else X[drawn]
        process = self._maximised(sample, ranks[drawn], random)
        self.log_marginal_likelihood_ = float(process.log_marginal_likelihood_value_)
        scaled: Scaled = process.kernel_.k1.kernel
        self.kernel_, variance = scaled, 1.0
        if pairwise:  # rows of the matrix are looked up, not computed
            self.kernel_, variance = scaled.kernel, scaled.variance
        self.intercept_ = float(process._y_train_mean)
        self.left_out_ = 0.0
        unit = float(process._y_train_std)
        if self.n_landmarks is None:
            self.dual_coef_, kept = unit * variance * process.alpha_, drawn
        else:
            Z, landmarks = self._landmark_features(X, random)
            inside = variance * (Z.T @ Z)
            inside[np.diag_indices_from(inside)] += process.kernel_.k2.noise_level
            target = (ranks - self.intercept_) @ Z
            w = variance * cho_solve(cho_factor(inside, lower=True), target)
            self.dual_coef_, kept = landmarks.coefficients(w), landmarks.rows
        self._keep_rows(X, kept)
        self.thresholds_ = half_way_thresholds(self.n_ranks_)
        return self

    def _maximised(
        self, X: Any, ranks: np.ndarray, random: np.random.RandomState
    ) -> GaussianProcessRegressor:
        """The process whose parameters maximise the evidence of these rows."""
        process = GaussianProcessRegressor(
            _SklearnAdapter(Scaled(self.kernel_)) + WhiteKernel(self.noise),
            normalize_y=True,
            n_restarts_optimizer=self.n_restarts,
            random_state=random,
        )
        try:
            return process.fit(_dense(X), ranks.astype(np.float64))
        except np.linalg.LinAlgError:
            raise DataError(
                f"the kernel matrix plus the noise {self.noise:g} is not positive definite in "
                "floating point: scale the features, or use a valid kernel"
            ) from None

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the posterior mean, on the scale of the ranks 0, 1, 2, ..."""
        X = self._validate_predict(X)
        return self._expanded(X, self.dual_coef_) + self.intercept_


class _SklearnAdapter(SklearnKernel):
    """An ordrec kernel with the interface of scikit-learn's Gaussian processes."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        K = self.kernel(X, Y)
        return (K, np.moveaxis(self.kernel.gradient(X), 0, -1)) if eval_gradient else K

    def diag(self, X: Any) -> np.ndarray:
        return self.kernel.diag(X)

    def is_stationary(self) -> bool:
        return False

    @property
    def n_dims(self) -> int:
        return self.kernel.theta.size

    @property
    def theta(self) -> np.ndarray:
        return self.kernel.theta

    @theta.setter
    def theta(self, theta: np.ndarray) -> None:
        self.kernel = self.kernel.with_theta(theta)

    @property
    def bounds(self) -> np.ndarray:
        return self.kernel.theta_bounds

    @property
    def hyperparameters(self) -> list[Any]:
        return []

    def __repr__(self) -> str:
        return repr(self.kernel)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sparse.issparse(X) else X
