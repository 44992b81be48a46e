"""SVORIM, SVOREX and SVORSLA, the scikit-learn layer."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ordrec.errors import ArgumentError, callers_level
from ordrec.ordinal.base import CalibratedModel, warn_if_constant
from ordrec.ordinal.gram.matrix import Gram
from ordrec.ordinal.kernel_model import KernelMixin
from ordrec.ordinal.labels import class_weighted
from ordrec.ordinal.solution import Solution
from ordrec.ordinal.stored import KERNEL_ESTIMATOR, SOLUTION, fitted
from ordrec.ordinal.svor.problems import solve_explicit, solve_implicit
from ordrec.ordinal.svor.solver import SINGLE_TOL
from ordrec.ordinal.thresholds.probabilities import ranks_between
from ordrec.runtime.parallel import one_blas_thread

__all__ = ["SVOREX", "SVORIM", "SVORSLA"]

SINGLE_ABOVE = 1000  # samples from which a single-precision kernel is tried first
DOUBLE_UP_TO = 12_000  # samples up to which a failure is tried again in double precision
STRONG = 1e3  # times C, or 1: to see whether any C would help
UNIFORM = 0.05  # of a margin: scores that are no further apart are constant
NARROW = 10  # rows per column from which a factor of the kernel is faster than the kernel


class _SVOR(KernelMixin, CalibratedModel):
    """Common base of the three: a Gram matrix, a solver, a sparse expansion."""

    stored: ClassVar = (
        KERNEL_ESTIMATOR
        | SOLUTION
        | {
            "dual_coef_": fitted("rows"),
            "thresholds_": fitted("thresholds"),
        }
    )

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
        probability: bool = False,
        class_weight: Any = None,
        classes: Any = None,
        solver: str = "interior",
        max_iter: int | None = None,
        n_landmarks: Any = None,
        random_state: Any = None,
        verbose: bool | None = None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.tol = tol
        self.probability = probability
        self.class_weight = class_weight
        self.classes = classes
        self.solver = solver
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _solve(
        self, K: np.ndarray | Gram, ranks: np.ndarray, C: np.ndarray, **options: Any
    ) -> Solution:
        """Solve the problem of the class."""

    @warn_if_constant
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the expansion and the thresholds.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Or the Gram matrix, with ``kernel="precomputed"``.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
            Multiplies C. Samples of weight zero are ignored.
        """
        self._check_parameters()
        with one_blas_thread():  # large factorisations have threads of their own
            X, ranks, weight = self._validate_fit(X, y, sample_weight)
            rows = np.flatnonzero(weight > 0)
            solution, coef, support = self._solve_rows(
                X,
                rows,
                lambda K: self._solve_gram(K, ranks[rows], weight[rows]),
                by_features=self.solver == "interior" and NARROW * X.shape[1] <= rows.size,
                single=rows.size > SINGLE_ABOVE and self.tol >= SINGLE_TOL,
                again=rows.size <= DOUBLE_UP_TO,
            )
            self._warn_unless_converged(solution, self.tol)
            self._keep_solution(solution)
            self.dual_coef_, self.support_ = coef, support
            self.thresholds_ = solution.thresholds
            self._keep_rows(X, support)
            if self.probability:
                self._fit_link(X, ranks, weight)
        return self

    def _remedy(self, X: Any, y: Any, weight: Any) -> str:
        """Raise C, unless no C helps.

        If w = 0 is optimal for one C, its multipliers times C'/C show that it is for any C'. With
        a very large C, scores are either that, zero to within tol, or apart by margins of one.
        """
        strong = clone(self).set_params(C=STRONG * max(float(self.C), 1.0), probability=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inspect.unwrap(type(self).fit)(strong, X, y, weight)
            scores = strong.predict_latent(X)
        if np.ptp(scores) > max(UNIFORM, 10 * self.tol):
            return self.remedy_of_constants
        return (
            "no C helps, since the classes overlap so much for this kernel that constant scores "
            'have the least loss: use another kernel (such as "rbf"), further features, or '
            "OrdinalLogistic"
        )

    def _solve_gram(
        self, K: np.ndarray | Gram, ranks: np.ndarray, weight: np.ndarray, start: Any = None
    ) -> Solution:
        return self._solve(
            K,
            ranks,
            self.C * weight,
            tol=self.tol,
            max_iter=self.max_iter,
            method=self.solver,
            start=start,
        )

    def rank_path(
        self,
        K: np.ndarray,
        ranks: np.ndarray,
        n_ranks: int,
        held: np.ndarray,
        settings: list[dict[str, Any]],
    ) -> list[np.ndarray]:
        """Ranks predicted for held-out rows under each setting of parameters, for `tune`.

        Parameters
        ----------
        K : ndarray of shape (n, n)
            Gram matrix of the training rows.
        ranks : ndarray of shape (n,)
            Zero-based.
        n_ranks : int
        held : ndarray of shape (m, n)
            Kernel of held-out rows with the training rows.
        settings : list of dict
            Each starts from the solution of the one before.
        """
        labels = np.arange(n_ranks) if self.classes is None else np.asarray(self.classes)
        model = copy(self)
        model.classes_ = np.arange(n_ranks)
        if ranks.size > SINGLE_ABOVE and self.tol >= SINGLE_TOL:
            K = K.astype(np.float32)
        predicted, start, failed = [], None, 0
        for setting in settings:
            for name, value in setting.items():
                setattr(model, name, value)
            model._check_parameters()
            weight = class_weighted(model.class_weight, ranks, np.ones(ranks.size), labels)
            solution = model._solve_gram(K, ranks, weight, start)
            start = solution.state
            failed += not solution.converged
            predicted.append(ranks_between(held @ solution.coef, solution.thresholds))
        if failed:
            warnings.warn(
                f"{type(self).__name__} did not converge for {failed} of {len(settings)} settings",
                ConvergenceWarning,
                stacklevel=callers_level(),
            )
        return predicted

    def predict_latent(self, X: Any) -> np.ndarray:
        """The latent score f(x), (13), on the scale of ``thresholds_``."""
        X = self._validate_predict(X)
        if not (sparse.issparse(X) or sparse.issparse(self._inputs)):
            Z, training = self.kernel_.factor(X), self.kernel_.factor(self._inputs)
            if Z is not None and training is not None:
                return Z @ (training.T @ self.dual_coef_)
        return self._expanded(X, self.dual_coef_)

    def check_stored(self) -> None:
        """Check the expansion, whose rows are the support."""
        super().check_stored()
        self.support_ = self._rows

    def _check_parameters(self) -> None:
        C: Any = self.C
        tol: Any = self.tol
        if not (isinstance(C, Real) and 0 < float(C) < np.inf):
            raise ArgumentError(f"C must be a positive number, got {C!r}")
        if not (isinstance(tol, Real) and 0 < float(tol) < np.inf):
            raise ArgumentError(f"tol must be a positive number, got {tol!r}")
        if self.solver not in ("interior", "smo"):
            raise ArgumentError(f'solver must be "interior" or "smo", got {self.solver!r}')
        limit: Any = self.max_iter
        if limit is not None and not (isinstance(limit, Integral) and int(limit) > 0):
            raise ArgumentError(f"max_iter must be a positive integer or None, got {limit!r}")


class SVORIM(_SVOR):
    """Support vector ordinal regression with implicit constraints on the thresholds.

    Every sample pays a hinge loss at every threshold, an upper bound of the absolute error;
    the thresholds come out ordered by themselves. Section 3 of Chu and Keerthi, "Support
    vector ordinal regression", Neural Computation 19 (2007).

    Parameters
    ----------
    C : float
        Weight of the losses against the margin; a larger C fits closer.
    kernel : str or Kernel
        "rbf", "linear", "poly", "precomputed" or an `ordrec.kernels` object. A linear
        one is solved through its features, in time linear in the rows, where these are ten times
        as many.
    gamma : "scale", "auto" or float
        Of "rbf" and "poly", as in scikit-learn. The paper's kappa is 2 gamma.
    degree, coef0 :
        Of "poly".
    scaling : {"auto", "standard", None}
        Whether features are standardised first. "auto" does so where their units hide most of
        them: where a quarter of the features is ten times smaller than the largest one, or the
        default width does not fit them. Features that were scaled before are left as they are,
        and so are those of kernel objects and of precomputed kernels.
    tol : float
        Bound on the violation of the optimality conditions, the paper's tau in (19). The
        relative duality gap must be at most a tenth of it.
    costs : array of shape (n_ranks, n_ranks), optional
        Cost of predicting the column where the row is true, times C; default the absolute
        difference of the ranks. Must not fall away from the diagonal. Each threshold that a
        wrong prediction crosses is charged with the difference of the costs on its two
        sides. Rows that are not convex (zero-one costs) lose the natural order of the
        thresholds, which is then imposed.
    probability : bool
        Whether to calibrate `predict_proba`: an ordered probit on scores out of five folds,
        which takes five more fits.
    class_weight : None, "balanced" or dict, optional
        Weights of the classes, which multiply those of their samples: a dict of label to weight,
        or "balanced" for the same total weight of every class.
    classes : sequence, optional
        The labels in ascending order; needed where labels have no numeric order or not all
        of them occur in training. An ordered pandas Categorical brings its own order.
        Scorers of scikit-learn assume alphabetical order: for other orders, see
        `ordrec.ordinal.scorers`.
    solver : {"interior", "smo"}
        The fast interior-point method, or the paper's sequential minimal optimisation.
    max_iter : int, optional
        Factorisations of "interior" (default 200) or steps of "smo" (default at least a
        million).
    n_landmarks : int or array of int, optional
        For many rows: the kernel is approximated through that many of them (drawn at random,
        those less alike more often), or through the rows with these numbers. Time and memory
        are then linear in the rows, and the solution is the exact optimum of the approximated
        problem. None, the default, is the exact kernel.
    random_state : int, RandomState or None
        Draws the landmarks.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
    thresholds_ : ndarray of shape (n_ranks - 1,)
    support_ : ndarray
        Training rows with a nonzero coefficient, or the landmarks.
    dual_coef_ : ndarray
        Their coefficients, the beta of (8).
    objective_ : float
        Primal objective.
    dual_gap_ : float
        Primal minus dual objective, computed from scratch at the end.
    violation_ : float
        What (19) bounds by tol.
    n_iter_ : int
    converged_ : bool
        Whether violation and gap are within their bounds; if not, a ConvergenceWarning is issued.
    kernel_ : Kernel
    scaling_ : Standardisation or None
        What was done to the features.
    left_out_ : float
        Share of the kernel's trace that the landmarks leave out; 0 for the exact kernel.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(9.0).reshape(-1, 1)
    >>> y = np.repeat(["poor", "fair", "good"], 3)
    >>> model = SVORIM(C=10, kernel="linear", classes=["poor", "fair", "good"]).fit(X, y)
    >>> model.predict([[0.5], [4.2], [8.0]]).tolist()
    ['poor', 'fair', 'good']
    >>> model.thresholds_.round(2).tolist(), model.converged_
    ([5.0, 11.0], True)
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
        costs: Any = None,
        probability: bool = False,
        class_weight: Any = None,
        classes: Any = None,
        solver: str = "interior",
        max_iter: int | None = None,
        n_landmarks: Any = None,
        random_state: Any = None,
        verbose: bool | None = None,
    ):
        super().__init__(
            C,
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            scaling=scaling,
            tol=tol,
            probability=probability,
            class_weight=class_weight,
            classes=classes,
            solver=solver,
            max_iter=max_iter,
            n_landmarks=n_landmarks,
            random_state=random_state,
            verbose=verbose,
        )
        self.costs = costs

    def _solve(
        self, K: np.ndarray | Gram, ranks: np.ndarray, C: np.ndarray, **options: Any
    ) -> Solution:
        return solve_implicit(K, ranks, self.n_ranks_, C=C, costs=self.costs, **options)


class SVOREX(_SVOR):
    """Support vector ordinal regression with explicit constraints on the thresholds.

    A sample pays a hinge loss at the two thresholds around its rank, an upper bound of the
    zero-one error; the order of the thresholds is a constraint. Section 2 of the paper.

    Parameters and attributes are those of `SVORIM`, without costs.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(9.0).reshape(-1, 1)
    >>> model = SVOREX(C=10, kernel="linear").fit(X, np.repeat([1, 2, 3], 3))
    >>> model.predict([[0.5], [4.2], [8.0]]).tolist()
    [1, 2, 3]
    """

    def _solve(
        self, K: np.ndarray | Gram, ranks: np.ndarray, C: np.ndarray, **options: Any
    ) -> Solution:
        return solve_explicit(K, ranks, self.n_ranks_, C=C, ordered=True, **options)


class SVORSLA(SVOREX):
    """The fixed-margin form of Shashua and Levin: SVOREX without the order of the thresholds.

    Kept as the paper's baseline. The thresholds may come out disordered; a prediction is
    the first rank whose threshold exceeds the score all the same.

    Parameters and attributes are those of `SVORIM`, without costs.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(9.0).reshape(-1, 1)
    >>> model = SVORSLA(C=10, kernel="linear").fit(X, np.repeat([1, 2, 3], 3))
    >>> model.predict([[0.5], [4.2], [8.0]]).tolist()
    [1, 2, 3]
    """

    def _solve(
        self, K: np.ndarray | Gram, ranks: np.ndarray, C: np.ndarray, **options: Any
    ) -> Solution:
        return solve_explicit(K, ranks, self.n_ranks_, C=C, ordered=False, **options)
