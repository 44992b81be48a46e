"""The common base of the SVM baselines: one Gram matrix for all binary machines.

All binary machines of a baseline use the same kernel matrix with different labels and weights,
so it is computed once and passed to LIBSVM as precomputed. That also gives every baseline the
kernels of `ordrec.kernels`, by name or as objects. On the features that landmarks give, LIBSVM
computes row after row of the kernel and is slow: there a binary machine is solved as what it is,
SVORIM with two ranks.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.svm import SVC

from ordrec.errors import ArgumentError
from ordrec.ordinal.base import OrdinalClassifier, limit_blas, warn_if_constant
from ordrec.ordinal.gram.matrix import DenseGram, FactoredGram, Gram
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.stored import KERNEL_ESTIMATOR
from ordrec.ordinal.svor.problems import solve_implicit
from ordrec.storage.schema import Field, Integer, Number

__all__ = [
    "BASELINE",
    "MAX_FACTORS",
    "MAX_STEPS",
    "KernelBaseline",
    "TwoFormBaseline",
]

BEYOND = 1e99  # a decision value larger than that of any machine
MAX_STEPS = 10_000_000  # as in LIBSVM itself
MAX_FACTORS = 200  # of the machines solved by interior points, which need about twenty
BASELINE: dict[str, Field] = KERNEL_ESTIMATOR | {"n_iter_": Integer(), "left_out_": Number()}


class KernelBaseline(KernelMixin, OrdinalClassifier):
    """Base of the SVM baselines: fitted to a Gram matrix, predicts from a cross-Gram matrix.

    Parameters
    ----------
    C : float
        Cost of a violated margin.
    kernel : str or Kernel
        "rbf", "linear", "poly", "precomputed", ... or an object, as in `ordrec.kernels`.
    gamma, degree, coef0 :
        Parameters of a kernel given by name, as in scikit-learn.
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`.
    tol : float
        Stopping tolerance of LIBSVM.
    max_iter : int
        Maximum number of LIBSVM's steps: without a limit it would never stop on features of
        size 1e12. (OPBE, REDSVM and machines on landmarks are solved by interior points, at most
        200 of them.)
    class_weight : None, "balanced" or dict, optional
        Weights of the classes, as in `SVORIM`.
    classes : sequence, optional
        The labels in ascending order; needed where labels have no numeric order or not all
        of them occur in training. Scorers of scikit-learn
        assume alphabetical order: for other orders, see `ordrec.ordinal.scorers`.
    n_landmarks : int, array of row numbers or None
        Rows that stand for all others, as in `SVORIM`: time and memory are then linear in the
        rows. None, the default, is the exact kernel.
    random_state : int, RandomState or None
        Draws the landmarks.

    Attributes
    ----------
    dual_coef_ : ndarray
        Coefficients of the training samples of positive weight, or of the landmarks.
    left_out_ : float
        Share of the kernel's trace that the landmarks leave out; 0 for the exact kernel.
    """

    dual_coef_: Any
    intercept_: Any

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        tol: float = 1e-3,
        max_iter: int = MAX_STEPS,
        class_weight: Any = None,
        classes: Any = None,
        n_landmarks: Any = None,
        random_state: Any = None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.classes = classes
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the machines.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Or the Gram matrix, with ``kernel="precomputed"``.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Multiplies C of each sample.
        """
        if not (np.isfinite(self.C) and self.C > 0):
            raise ArgumentError(f"C must be a positive number, got {self.C!r}")
        X, ranks, weight = self._validate_fit(X, y, sample_weight)
        rows = np.flatnonzero(weight > 0)
        if self.n_landmarks is None:
            gram: Gram = DenseGram(self._fit_gram(X, rows=rows))
            self.left_out_ = 0.0
            self.n_iter_ = self._fit_machines(gram, ranks[rows], weight[rows])
            self._keep_rows(X, rows)
        else:
            Z, landmarks = self._fit_landmarks(X, rows)
            self.n_iter_ = self._fit_machines(FactoredGram(Z), ranks[rows], weight[rows])
            self.dual_coef_ = landmarks.coefficients(Z.T @ self.dual_coef_)
            self._keep_rows(X, rows[landmarks.rows])
        return self

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks."""
        X = self._validate_predict(X)
        return self._ranks_from(self._expanded(X, self.dual_coef_))

    @abstractmethod
    def _fit_machines(self, gram: Gram, ranks: np.ndarray, weight: np.ndarray) -> int:
        """Fit to K(X, X); return the steps of the machine that took the most.

        Sets ``dual_coef_``, with a row for each sample.
        """

    @abstractmethod
    def _ranks_from(self, scores: np.ndarray) -> np.ndarray:
        """Zero-based ranks from the scores of each machine, K(new, training) @ dual_coef_."""

    def _answer(
        self, gram: Gram, yes: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, float, int]:
        """Fit the machine whose decision values are positive where the answer is yes.

        Returns its coefficient for each sample, its intercept, and the steps it took.
        """
        if gram.factored:
            solution = solve_implicit(
                gram,
                yes.astype(np.int64),
                2,
                C=self.C * weight,
                tol=self.tol,
                max_iter=min(self.max_iter, MAX_FACTORS),
            )
            self._warn_unless_converged(solution, self.tol)
            return solution.coef, -float(solution.thresholds[0]), solution.n_iter
        machine = SVC(C=self.C, kernel="precomputed", tol=self.tol, max_iter=self.max_iter)
        machine.fit(gram.values, yes, sample_weight=np.ascontiguousarray(weight))
        coef = np.zeros(yes.size)
        coef[machine.support_] = machine.dual_coef_[0]
        return coef, float(machine.intercept_[0]), int(np.max(machine.n_iter_))

    def _fit_binary(self, gram: Gram, questions: np.ndarray, weights: np.ndarray) -> int:
        """Fit a machine to each yes-no question; sets ``dual_coef_`` and ``intercept_``.

        Parameters
        ----------
        gram : Gram
            Of n samples.
        questions : ndarray of bool, shape (n, n_questions)
            Where all samples agree, the machine has their answer for every sample.
        weights : ndarray of shape (n, n_questions)
        """
        self.dual_coef_ = np.zeros(questions.shape)
        self.intercept_ = np.where(questions.all(axis=0), BEYOND, -BEYOND)
        steps = 0
        for k in np.flatnonzero(questions.any(axis=0) & ~questions.all(axis=0)):
            coef, intercept, taken = self._answer(gram, questions[:, k], weights[:, k])
            self.dual_coef_[:, k], self.intercept_[k] = coef, intercept
            steps = max(steps, taken)
        return steps


class TwoFormBaseline(KernelBaseline):
    """Base of the SVM baselines that the program of Wang et al. (2017) has in another form.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, scaling, tol, max_iter :
    class_weight, classes, n_landmarks, random_state :
        See `ordrec.ordinal.baselines.machines.KernelBaseline`.
    published : bool
        Whether the method is that of the MATLAB framework which Wang et al. (2017) compare NPSVOR
        in, as all experiments named npsvor-* need it. False, the default, is the method's plain
        form. Each class says what differs.
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        tol: float = 1e-3,
        max_iter: int = MAX_STEPS,
        class_weight: Any = None,
        classes: Any = None,
        n_landmarks: Any = None,
        random_state: Any = None,
        published: bool = False,
    ):
        super().__init__(
            C,
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            scaling=scaling,
            tol=tol,
            max_iter=max_iter,
            class_weight=class_weight,
            classes=classes,
            n_landmarks=n_landmarks,
            random_state=random_state,
        )
        self.published = published
