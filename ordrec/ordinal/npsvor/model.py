"""NPSVOR, the scikit-learn layer."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ordrec.errors import ArgumentError
from ordrec.ordinal.base import ProximityModel, warn_if_constant
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.npsvor import active_set, admm
from ordrec.ordinal.npsvor.problem import Planes, planes_for
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, SOLUTION, fitted
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["NPSVOR"]

SOLVERS = ("active-set", "admm", "algorithm-2", "published")
SINGLE_PRECISION = 1500  # rows from which single precision is tried first
SINGLE_ITER = 100  # iterations after which single precision is given up
NARROW = 5  # rows per column from which a factor of the kernel is faster than the kernel


class NPSVOR(KernelMixin, ProximityModel):
    """Nonparallel support vector ordinal regression (Wang, Shi, Niu and Tian 2017).

    For each rank, a plane close to its samples, with lower ranks on one side and higher
    ones on the other; a new sample gets the rank of the nearest plane.

    Parameters
    ----------
    C1 : float
        Cost of a sample outside the band around the plane of its own rank.
    C2 : float, optional
        Cost of a sample on the wrong side of another rank's plane. C1 if not given, as in
        the paper's tables.
    epsilon : float
        Half width of the band.
    eta : float
        Penalty of ADMM. All but "active-set" take it as it is, as the paper does;
        "active-set" multiplies the penalty natural to the data's scale by it.
    kernel : str or Kernel
        "rbf", "linear", "poly", "precomputed", ... or an object, as in `ordrec.kernels`. A linear
        one is solved through its features, in time linear in the rows, where these are five times
        as many as the features.
    gamma, degree, coef0 :
        Of a kernel given by name, as in scikit-learn.
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`.
    solver : {"active-set", "admm", "algorithm-2", "published"}
        "active-set" finishes what ADMM or, where costs are small, SMO starts, and is exact.
        "algorithm-2" is Algorithm 2 of the paper as printed; "admm" is the same with
        over-relaxation and with an absolute tolerance in units of the multipliers: where these are
        small (C of 0.01, say), the printed algorithm stops at its first iteration.
        "published" does what the authors' program does: it stops Algorithm 2 after 50 iterations,
        or at 1e-2, whatever ``tol`` and ``max_iter`` are. Where C and gamma are large, so that the
        exact solution overfits, stopping early regularises: this is how the paper's figure 7 has
        the least errors at C = 100, gamma = 1. With C and gamma chosen by cross-validation
        the exact solution is better on most sets (9 of 13), and it is the default.
    tol : float
        For "active-set" the largest violation of optimality, in units of the margin, and ten times
        the largest duality gap, as a share of the objective; for "admm" and "algorithm-2" both
        tolerances of the residuals (the paper's are 1e-2).
    max_iter : int
        Limit of ADMM iterations.
    n_jobs : int, optional
        Threads, all cores by default; each works on one rank at a time.
    n_landmarks : int or array of int, optional
        For many rows: the kernel is approximated through that many of them, or through the rows
        with these numbers, as in `SVORIM`. None, the default, is the exact kernel.
    random_state : int, RandomState or None
        Draws the landmarks.
    class_weight : None, "balanced" or dict, optional
        Weights of the classes, as in `SVORIM`. They decide how closely planes follow the samples
        of a class, not how often its plane is the nearest.
    classes : sequence, optional
        The labels in ascending order; needed where labels have no numeric order or not all
        of them occur in training. A rank without samples has no plane and never wins.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
    dual_coef_ : ndarray of shape (n_support, n_ranks)
        Multipliers rho, one column per rank (coefficients, where there are landmarks).
    intercept_ : ndarray of shape (n_ranks,)
        The biases; NaN for a rank without samples.
    support_ : ndarray of shape (n_support,)
        Training rows with a multiplier that is not zero, or the landmarks.
    objective_, dual_gap_, violation_ : float
        Primal objective and duality gap, summed over the ranks; largest violation. "published"
        has no gap (NaN), as its multipliers may leave their bounds.
    n_iter_ : int
    converged_ : bool
    scaling_ : Standardisation or None
        What was done to the features.
    left_out_ : float
        Share of the kernel's trace that the landmarks leave out; 0 for the exact kernel.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = np.repeat([1, 2, 3], 4)
    >>> model = NPSVOR(kernel="linear").fit(X, y)
    >>> model.predict([[0.0], [5.5], [11.0]])
    array([1, 2, 3])
    """

    stored: ClassVar = (
        KERNEL_ESTIMATOR
        | SOLUTION
        | {
            "dual_coef_": fitted("rows", "ranks"),
            "intercept_": fitted("ranks"),
        }
    )
    remedy_of_constants: ClassVar[str] = "raise C1"

    def __init__(
        self,
        C1: float = 1.0,
        C2: float | None = None,
        epsilon: float = 0.2,
        eta: float = 1.0,
        kernel: Any = "rbf",
        *,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        solver: str = "active-set",
        tol: float = 1e-3,
        max_iter: int = 5000,
        n_jobs: int | None = None,
        n_landmarks: Any = None,
        random_state: Any = None,
        class_weight: Any = None,
        classes: Any = None,
        verbose: bool | None = None,
    ):
        self.C1 = C1
        self.C2 = C2
        self.epsilon = epsilon
        self.eta = eta
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.class_weight = class_weight
        self.classes = classes
        self.verbose = verbose

    @warn_if_constant
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NPSVOR:
        """Fit one plane per rank.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Or the Gram matrix, with ``kernel="precomputed"``.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Multiplies C1 and C2 of each sample.
        """
        C1, C2 = self._check_parameters()
        exact = self.solver == "active-set"
        with one_blas_thread():  # the threads are those of `active_set`
            X, ranks, weight = self._validate_fit(X, y, sample_weight)
            rows = np.flatnonzero(weight > 0)
            ranks, weight = ranks[rows], weight[rows]
            present = np.unique(ranks)
            planes = planes_for(ranks, present, C1 * weight, C2 * weight, float(self.epsilon))
            solution, coef, support = self._solve_rows(
                X,
                rows,
                lambda gram: self._solve(gram, planes),
                by_features=exact and NARROW * X.shape[1] <= rows.size,
                single=exact and rows.size >= SINGLE_PRECISION,
            )
            if self.solver != "published":  # which is meant to stop early
                self._warn_unless_converged(solution, self.tol)
            self._keep_solution(solution)
            self.dual_coef_ = np.zeros((support.size, self.n_ranks_))
            self.dual_coef_[:, present] = coef
            self.intercept_ = np.full(self.n_ranks_, np.nan)
            self.intercept_[present] = solution.thresholds
            self.support_ = support
            self._keep_rows(X, support)
        return self

    def _solve(self, gram: Gram, planes: Planes) -> Solution:
        if self.solver == "published":
            return admm.solve_published(gram, planes, eta=float(self.eta))
        if self.solver != "active-set":
            return admm.solve(
                gram,
                planes,
                eta=float(self.eta),
                tol=self.tol,
                max_iter=self.max_iter,
                as_printed=self.solver == "algorithm-2",
            )
        single = gram.values.dtype == np.float32  # double precision comes next
        return active_set.solve(
            gram,
            planes,
            eta=float(self.eta) * admm.natural_penalty(gram, planes),
            tol=self.tol,
            max_iter=min(self.max_iter, SINGLE_ITER) if single else self.max_iter,
            largest=float(np.maximum(planes.upper, -planes.lower).max()),
            n_jobs=self.n_jobs,
        )

    def predict_distances(self, X: Any) -> np.ndarray:
        """``|f_k(x)|`` by rank, shape (n_samples, n_ranks); inf for a rank without plane."""
        X = self._validate_predict(X)
        values = self._expanded(X, self.dual_coef_) + self.intercept_
        return np.where(np.isnan(self.intercept_), np.inf, np.abs(values))

    def check_stored(self) -> None:
        """Check the expansion, whose rows are the support."""
        super().check_stored()
        self.support_ = self._rows

    def _check_parameters(self) -> tuple[float, float]:
        C2 = self.C1 if self.C2 is None else self.C2
        for name, value in {"C1": self.C1, "C2": C2, "eta": self.eta, "tol": self.tol}.items():
            if not (np.isfinite(value) and value > 0):
                raise ArgumentError(f"{name} must be a positive number, got {value!r}")
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ArgumentError(f"epsilon must not be negative, got {self.epsilon!r}")
        if self.solver not in SOLVERS:
            names = ", ".join(f'"{name}"' for name in SOLVERS)
            raise ArgumentError(
                f"solver must be one of {names}, got {self.solver!r}", parameter="solver"
            )
        if self.max_iter < 1:
            raise ArgumentError(f"max_iter must be at least 1, got {self.max_iter!r}")
        return float(self.C1), float(C2)
