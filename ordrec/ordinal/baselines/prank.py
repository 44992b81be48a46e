"""PRank, the online perceptron with thresholds (Crammer and Singer 2002), with kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from ordrec.errors import ArgumentError
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, fitted
from ordrec.runtime.compiling import compiled
from ordrec.storage.schema import Integer

__all__ = ["PRank"]


class PRank(KernelMixin, ThresholdModel):
    """Online perceptron that moves its score and thresholds after each mistake.

    Parameters
    ----------
    kernel : str or Kernel
        "linear", "rbf", ... or an object, as in `ordrec.kernels`.
    gamma, degree, coef0 :
        Parameters of a kernel given by name, as in scikit-learn.
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`.
    n_iter : int
        Passes over the data, each in a new random order; the paper makes one.
    random_state : int, RandomState or None
    classes : sequence, optional
        The labels in ascending order.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Always in order (the paper's lemma 1).
    dual_coef_ : ndarray of shape (n_samples,)
    n_mistakes_ : int
        Number of mistakes in all passes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1) - 5.5
    >>> model = PRank(random_state=0, n_iter=50).fit(X, np.repeat([1, 2, 3], 4))
    >>> model.predict([[-5.5], [0.0], [5.5]])
    array([1, 2, 3])
    """

    stored: ClassVar = KERNEL_ESTIMATOR | {
        "dual_coef_": fitted("rows"),
        "thresholds_": fitted("thresholds"),
        "n_mistakes_": Integer(),
    }
    remedy_of_constants: ClassVar[str] = "raise n_iter"

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        n_iter: int = 20,
        random_state: Any = None,
        classes: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.n_iter = n_iter
        self.random_state = random_state
        self.classes = classes

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any) -> PRank:
        """Pass over the samples ``n_iter`` times."""
        if self.n_iter < 1:
            raise ArgumentError(f"n_iter must be at least 1, got {self.n_iter!r}")
        X, ranks, _ = self._validate_fit(X, y)
        K = np.ascontiguousarray(self._fit_gram(X))
        random = check_random_state(self.random_state)
        order = np.concatenate([random.permutation(ranks.size) for _ in range(self.n_iter)])
        coef, self.thresholds_, self.n_mistakes_ = _passes(
            K, ranks, self.n_ranks_, order.astype(np.int64)
        )
        self.dual_coef_ = coef
        self._keep_rows(X, np.arange(ranks.size))
        return self

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the perceptron's score."""
        X = self._validate_predict(X)
        return self._cross_gram(X) @ self.dual_coef_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on blobs that no linear score orders
        return tags


@compiled
def _passes(
    K: np.ndarray, ranks: np.ndarray, n_ranks: int, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Figure 1 of the paper; scores of all samples are kept, so only mistakes cost time."""
    coef = np.zeros(ranks.size)
    f = np.zeros(ranks.size)
    b = np.zeros(n_ranks - 1)
    mistakes = 0
    for i in order:
        step = 0.0
        score = f[i]
        for j in range(n_ranks - 1):
            side = 1.0 if ranks[i] > j else -1.0
            if side * (score - b[j]) <= 0.0:
                step += side
                b[j] -= side
        if step != 0.0:
            mistakes += 1
            coef[i] += step
            f += step * K[i]
    return coef, b, mistakes
