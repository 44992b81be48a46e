"""Gaussian process regression on the ranks, rounded."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Kernel as SklearnKernel
from sklearn.gaussian_process.kernels import WhiteKernel

from ordrec.errors import ArgumentError, DataError
from ordrec.kernels import Kernel, Precomputed, Scaled, kernel_for
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.baselines.svr import half_way_thresholds
from ordrec.ordinal.kernel_model import KernelMixin, check_gram
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, fitted
from ordrec.storage.schema import Number

__all__ = ["GPRanks"]


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
    classes : sequence, optional
        The labels in ascending order.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Half way between the ranks 0, 1, 2, ...
    kernel_ : Kernel
        With its variance, and its fitted parameters.
    dual_coef_ : ndarray of shape (n_samples,)
    intercept_ : float
    log_marginal_likelihood_ : float

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> GPRanks().fit(X, np.repeat([1, 2, 3], 4)).predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = KERNEL_ESTIMATOR | {
        "dual_coef_": fitted("rows"),
        "intercept_": Number(gap=True),
        "thresholds_": fitted("thresholds"),
        "log_marginal_likelihood_": Number(gap=True),
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
        if isinstance(self.kernel_, Precomputed):
            check_gram(X)
        process = GaussianProcessRegressor(
            _SklearnAdapter(Scaled(self.kernel_)) + WhiteKernel(self.noise),
            normalize_y=True,
            n_restarts_optimizer=self.n_restarts,
            random_state=self.random_state,
        )
        try:
            process.fit(_dense(X), ranks.astype(np.float64))
        except np.linalg.LinAlgError:
            raise DataError(
                f"the kernel matrix plus the noise {self.noise:g} is not positive definite in "
                "floating point: scale the features, or use a valid kernel"
            ) from None
        self.log_marginal_likelihood_ = float(process.log_marginal_likelihood_value_)
        self.kernel_ = process.kernel_.k1.kernel
        self.dual_coef_ = process._y_train_std * process.alpha_
        self.intercept_ = float(process._y_train_mean)
        self._keep_rows(X, np.arange(ranks.size))
        self.thresholds_ = half_way_thresholds(self.n_ranks_)
        return self

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the posterior mean, on the scale of the ranks 0, 1, 2, ..."""
        X = self._validate_predict(X)
        return self._cross_gram(X) @ self.dual_coef_ + self.intercept_


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
