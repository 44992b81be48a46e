"""PRank, the online perceptron with thresholds (Crammer and Singer 2002), with kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from ordrec.errors import ArgumentError
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.gram.matrix import DenseGram, FactoredGram, Gram
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, fitted
from ordrec.runtime.compiling import compiled
from ordrec.storage.schema import Integer, Number

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
        Draws the orders and the landmarks.
    classes : sequence, optional
        The labels in ascending order.
    n_landmarks : int, array of row numbers or None
        Rows that stand for all others, as in `SVORIM`: memory is then linear in the rows, as it is
        with a linear kernel. None, the default, is the exact kernel.

    Attributes
    ----------
    thresholds_ : ndarray of shape (n_ranks - 1,)
        Always in order (the paper's lemma 1).
    dual_coef_ : ndarray
        Coefficients of the training samples, or of the landmarks.
    left_out_ : float
        Share of the kernel's trace that the landmarks leave out; 0 for the exact kernel.
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
        "left_out_": Number(),
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
        n_landmarks: Any = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.n_iter = n_iter
        self.random_state = random_state
        self.classes = classes
        self.n_landmarks = n_landmarks

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any) -> PRank:
        """Pass over the samples ``n_iter`` times."""
        if self.n_iter < 1:
            raise ArgumentError(f"n_iter must be at least 1, got {self.n_iter!r}")
        X, ranks, _ = self._validate_fit(X, y)
        rows, landmarks = np.arange(ranks.size), None
        self.left_out_ = 0.0
        if self.n_landmarks is None:
            self._fit_kernel(X, None)
            factor = self.kernel_.factor(X) if X.shape[1] <= ranks.size else None
            gram: Gram = DenseGram(self._fit_gram(X)) if factor is None else FactoredGram(factor)
        else:
            Z, landmarks = self._fit_landmarks(X, rows)
            gram = FactoredGram(Z)
        random = check_random_state(self.random_state)
        order = np.concatenate([random.permutation(ranks.size) for _ in range(self.n_iter)])
        self.dual_coef_, self.thresholds_, self.n_mistakes_ = _passes(
            *gram.form, ranks, self.n_ranks_, order.astype(np.int64)
        )
        if landmarks is not None:
            self.dual_coef_ = landmarks.coefficients(gram.values.T @ self.dual_coef_)
            rows = landmarks.rows
        self._keep_rows(X, rows)
        return self

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the perceptron's score."""
        X = self._validate_predict(X)
        return self._expanded(X, self.dual_coef_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on blobs that no linear score orders
        return tags


@compiled
def _passes(
    values: np.ndarray,
    factored: bool | None,
    ranks: np.ndarray,
    n_ranks: int,
    order: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Figure 1 of the paper, for the values of a Gram matrix or of a factor of it.

    Kept are the scores of all samples, or the weights of the factor's columns: a mistake adds a
    row of the values to either.
    """
    coef = np.zeros(ranks.size)
    kept = np.zeros(values.shape[1])
    b = np.zeros(n_ranks - 1)
    mistakes = 0
    for i in order:
        step = 0.0
        score = 0.0
        if factored is None:
            score = kept[i]
        else:
            for a in range(kept.size):
                score += values[i, a] * kept[a]
        for j in range(n_ranks - 1):
            side = 1.0 if ranks[i] > j else -1.0
            if side * (score - b[j]) <= 0.0:
                step += side
                b[j] -= side
        if step != 0.0:
            mistakes += 1
            coef[i] += step
            kept += step * values[i]
    return coef, b, mistakes
