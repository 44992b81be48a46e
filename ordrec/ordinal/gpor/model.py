"""GPOR: Gaussian-process ordinal regression as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ordrec.errors import ArgumentError, ModelFileError, callers_level
from ordrec.kernels import ARDLinear, Kernel, Precomputed, kernel_for
from ordrec.kernels.landmarks import Landmarks, rows_named
from ordrec.ordinal.base import ThresholdModel, limit_blas, warn_if_constant
from ordrec.ordinal.decisions import Decision, decide
from ordrec.ordinal.gpor.evidence import (
    INFERENCES,
    Evidence,
    Inference,
    LikelihoodBounds,
    Maximum,
    Posterior,
    doubt_about_laplace,
    maximise,
)
from ordrec.ordinal.gpor.laplace import LaplacePosterior
from ordrec.ordinal.gpor.parameters import GapPrior, pack, paper_start, unpack
from ordrec.ordinal.gram.posterior import InducingPairs
from ordrec.ordinal.kernel_model import KernelMixin, check_gram, check_gram_size
from ordrec.ordinal.scaling import Standardisation
from ordrec.ordinal.stored import ESTIMATOR, StoredKernel
from ordrec.ordinal.thresholds.probabilities import rank_probabilities
from ordrec.storage.limits import claim_memory
from ordrec.storage.schema import Array, Integer, Matrix, Number, Optional, Part, Text

__all__ = ["GPOR"]

LARGEST = 1e3  # magnitude of an entry of theta: logarithms, and the first threshold
NOISE_FLOOR = 0.1  # of the prior deviation, for Laplace's method
CHUNK = 2048  # rows predicted together
RESTART_SD = 1.0  # standard deviation of random starts around the first one, in log-parameters


class GPOR(KernelMixin, ThresholdModel):
    """Gaussian-process ordinal regression (Chu and Ghahramani, 2005).

    A latent function drawn from a Gaussian process is blurred by noise and cut by
    thresholds. Kernel parameters, noise and thresholds maximise the evidence, so there is
    nothing to cross-validate, and every rank gets a probability.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        "rbf", "linear", "poly", "ard" (Gaussian, one width per feature), "ard-linear" (one weight
        per feature), "precomputed", or a kernel object. The free parameters of the kernel start
        from its values and stay within its bounds.
    gamma : None, "scale", "auto" or float, default=None
        Start of the Gaussian width for kernels given by name; None is the paper's
        1 / (2 n_features), which it writes kappa = 1 / d.
    degree, coef0 : of "poly", as in scikit-learn
    scaling : {"auto", "standard", None}
        Whether features are standardised first, as in `SVORIM`.
    inference : {"auto", "laplace", "ep"}, default="auto"
        EP takes two to three times as long and is the safer choice for few samples in many
        dimensions, where Laplace's evidence can be far too large for small noise. "auto" is
        Laplace's approximation, and EP where its evidence at the end is much lower;
        "laplace" only warns then.
    objective : {"evidence", "variational"}, default="evidence"
        What the parameters maximise. "variational" is the lower bound of the paper's appendix C,
        for ``inference="ep"``; its gradient holds the posterior fixed, so that an ascent may end
        early. "evidence" is that of the approximation, with its exact gradient.
    optimizer : {"l-bfgs-b", None}, default="l-bfgs-b"
        None keeps all parameters at their start.
    n_restarts : int, default=0
        Further ascents from random starts; the best evidence wins.
    decision : {"mode", "median", "mean"} or cost matrix, default="mode"
        How a distribution over the ranks becomes one rank: mode for the fewest mistakes, median
        for the least absolute error.
    noise : float, optional
        Start of sigma. By default the root of the mean k(x, x): one for a Gaussian kernel,
        as in the paper.
    thresholds : array-like of shape (n_ranks - 1,), optional
        Start of the thresholds. By default the paper's b_1 = -1 and gaps of 2 / n_ranks, in
        units of the root of the mean k(x, x).
    noise_bounds : None, (low, high) or "fixed"
        Where sigma may move. None, the default, is (1e-3, 1e3), but with ``inference="laplace"``
        the lower end is 0.1 times the root of the mean k(x, x), or ``noise`` where that is
        smaller: Laplace's evidence can grow without need as the noise vanishes.
    offset_bounds, gap_bounds : (low, high) or "fixed"
        Where the first threshold and the gaps between thresholds may move.
    n_landmarks : int or array of int, optional
        Number of inducing rows (chosen by k-means++ seeding, as the kernel is still to be learnt;
        a precomputed one as in `SVORIM`), or their row numbers. Time falls from n^3 to n m^2. None
        is exact; on 2000 rows, probabilities with 50 and 400 of them were off by 0.05 and 0.004.
    tol : float, default=1e-7
        Relative change of the evidence at which the optimiser stops.
    max_iter : int, default=100
        Iterations of the optimiser from each start.
    classes : sequence, optional
        All labels, lowest first. A declared label without training samples keeps its rank;
        its interval, which the data leave open, gets a weak prior (see Notes).
    random_state : int, RandomState or None
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    classes_ : ndarray
        The labels, lowest first.
    kernel_ : Kernel
        With its fitted parameters.
    noise_ : float
        sigma.
    thresholds_ : ndarray of shape (n_ranks - 1,)
    theta_ : ndarray
        The free parameters: logarithms of the kernel's, ln sigma, b_1, logarithms of the gaps.
    theta_names_ : list of str
    inference_ : {"laplace", "ep"}
        The approximation used.
    log_evidence_ : float
    n_iter_ : int
        Iterations of the best ascent.
    landmarks_ : ndarray of int or None
        Row numbers of the inducing inputs.
    relevance_ : DataFrame
        Relevance of each feature, for ARD kernels.
    scaling_ : Standardisation or None
        What was done to the features.

    Notes
    -----
    With an ARD kernel and many more features than samples, the evidence ends up choosing
    any features that separate the training samples. The ranking is best while the weights
    have moved apart but not settled: stop after about five iterations (``max_iter=5``).

    Without a sample of a declared rank, the evidence would give that rank no room. The
    logarithm of every gap that the data leave open in this way has a normal prior of unit
    variance around the mean of the other log-gaps; ``log_evidence`` does not contain it.

    With a precomputed kernel, the prior variance of new samples is not part of the block
    passed to ``predict``. It is taken to be the mean of the training diagonal (exact for
    normalised kernels) unless ``diag`` is given.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.digitize(np.sin(X[:, 0]) + 0.1 * rng.normal(size=80), [-0.5, 0.5])
    >>> model = GPOR().fit(X, y)
    >>> model.predict([[-1.5], [0.0], [1.5]])
    array([0, 1, 2])
    >>> model.predict_proba([[1.5]]).round(1)
    array([[0. , 0.1, 0.9]])
    """

    # all training data and theta, from which the posterior follows
    stored: ClassVar = ESTIMATOR | {
        "scaling_": Optional(Part(Standardisation)),
        "n_iter_": Integer(),
        "kernel_": StoredKernel(),
        "inference_": Text(*INFERENCES),
        "_prior_variance": Number(low=0.0),
        "_train_ranks": Array("samples", dtype=np.int64, codes="ranks"),
        "_train_inputs": Matrix("samples", "features"),
        "_rho": Array("ranks", low=-LARGEST, high=LARGEST),
        "_free": Array("ranks", dtype=np.bool_),
        "theta_": Array("parameters", low=-LARGEST, high=LARGEST),
        "landmarks_": Optional(Array("landmarks", dtype=np.int64, codes="samples")),
    }
    gram_copies: ClassVar[int] = 4
    remedy_of_constants: ClassVar[str] = "try another kernel"

    def __init__(
        self,
        kernel: str | Kernel = "rbf",
        *,
        gamma: Any = None,
        degree: int = 3,
        coef0: float = 0.0,
        scaling: str | None = "auto",
        inference: Inference | Literal["auto"] = "auto",
        objective: str = "evidence",
        optimizer: str | None = "l-bfgs-b",
        n_restarts: int = 0,
        decision: Decision = "mode",
        noise: float | None = None,
        thresholds: Any = None,
        noise_bounds: Any = None,
        offset_bounds: Any = (-1e3, 1e3),
        gap_bounds: Any = (1e-4, 1e3),
        n_landmarks: Any = None,
        tol: float = 1e-7,
        max_iter: int = 100,
        classes: Any = None,
        random_state: Any = None,
        verbose: bool | None = None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.scaling = scaling
        self.inference = inference
        self.objective = objective
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.decision = decision
        self.noise = noise
        self.thresholds = thresholds
        self.noise_bounds = noise_bounds
        self.offset_bounds = offset_bounds
        self.gap_bounds = gap_bounds
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.classes = classes
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -------------------------------------------------------------------------

    @warn_if_constant
    @limit_blas
    def fit(self, X: Any, y: Any) -> GPOR:
        """Maximise the evidence and keep the posterior."""
        self._check_parameters()
        X, ranks, _ = self._validate_fit(X, y)
        if self._pairwise:
            check_gram(X)
        random = check_random_state(self.random_state)
        start_kernel = self._start_kernel(X)
        self.landmarks_ = self._choose_landmarks(start_kernel, X, random)
        self._train_inputs, self._train_ranks = X, ranks
        prior_variance = start_kernel.diag(X)
        self._prior_variance = float(prior_variance.mean())
        self._rho = self._start_likelihood(float(np.sqrt(self._prior_variance)))
        bounds = LikelihoodBounds(self._noise_bounds(), self.offset_bounds, self.gap_bounds)
        self._free, limits = bounds.free_and_bounds(self._rho)
        limits = np.vstack([start_kernel.theta_bounds, limits[self._free]])
        self.inference_ = "laplace" if self.inference == "auto" else self.inference
        self._learn(start_kernel, limits, random)
        if self.inference == "auto" and any(kind is UserWarning for kind, _ in self._concerns):
            self.inference_ = "ep"
            self._learn(start_kernel, limits, random)
        for kind, concern in self._concerns:
            warnings.warn(f"{type(self).__name__}: {concern}", kind, stacklevel=callers_level())
        del self._concerns
        return self

    def _learn(
        self, start_kernel: Kernel, limits: np.ndarray, random: np.random.RandomState
    ) -> None:
        """Maximise the evidence by ``inference_``, keep the posterior, and note all concerns."""
        self._concerns: list[tuple[type[Warning], str]] = []
        evidence = self._evidence(start_kernel)
        self.theta_, self.n_iter_ = evidence.theta, 0
        if self.optimizer is not None and self.theta_.size:
            best = self._ascend(evidence, limits, random)
            self.theta_, self.n_iter_ = best.theta, best.n_iter
        found = self._keep_posterior(evidence)
        if isinstance(found, LaplacePosterior) and self.optimizer is not None:
            doubt = doubt_about_laplace(found, self.thresholds_, self.noise_)
            self._concerns += [(UserWarning, doubt)] if doubt else []

    def _check_parameters(self) -> None:
        if self.inference != "auto" and self.inference not in INFERENCES:
            raise ArgumentError(
                f'inference must be "auto", "laplace" or "ep", got {self.inference!r}'
            )
        if self.objective not in ("evidence", "variational"):
            raise ArgumentError(
                f'objective must be "evidence" or "variational", got {self.objective!r}'
            )
        if self.objective == "variational" and self.inference != "ep":
            raise ArgumentError(
                'objective must be "evidence" unless inference="ep": the variational bound is that '
                f"of expectation propagation, and inference is {self.inference!r}"
            )
        if self.optimizer not in ("l-bfgs-b", None):
            raise ArgumentError(f'optimizer must be "l-bfgs-b" or None, got {self.optimizer!r}')
        if int(self.n_restarts) != self.n_restarts or self.n_restarts < 0:
            raise ArgumentError(
                f"n_restarts must be a whole number from 0, got {self.n_restarts!r}"
            )
        if int(self.max_iter) != self.max_iter or self.max_iter < 1:
            raise ArgumentError(f"max_iter must be a whole number from 1, got {self.max_iter!r}")
        if not self.tol > 0:
            raise ArgumentError(f"tol must be positive, got {self.tol!r}")

    @property
    def _pairwise(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def _start_kernel(self, X: Any) -> Kernel:
        width = 0.5 / X.shape[1] if self.gamma is None else self.gamma
        if self.kernel == "ard-linear":
            return ARDLinear(np.full(X.shape[1], 1.0 / X.shape[1]))
        return kernel_for(self.kernel, X, gamma=width, degree=self.degree, coef0=self.coef0)

    def _noise_bounds(self) -> Any:
        """Where sigma may move: with Laplace's method alone, not next to zero."""
        if self.noise_bounds is not None:
            return self.noise_bounds
        low, high = LikelihoodBounds.noise
        if self.inference == "laplace":
            floor = NOISE_FLOOR * float(np.sqrt(self._prior_variance))
            low = max(low, min(floor, float(np.exp(self._rho[0])), 0.5 * high))
        return low, high

    def _start_likelihood(self, unit: float) -> np.ndarray:
        """rho at the start, in units of the prior deviation unless given."""
        unit = unit if unit > 0 else 1.0
        noise, thresholds = unpack(paper_start(self.n_ranks_))
        noise = noise * unit if self.noise is None else self.noise
        if self.thresholds is None:
            thresholds = thresholds * unit
        else:
            thresholds = np.asarray(self.thresholds, dtype=np.float64)
            if thresholds.shape != (self.n_ranks_ - 1,):
                raise ArgumentError(
                    f"{self.n_ranks_} classes need {self.n_ranks_ - 1} thresholds, got "
                    f"{self.thresholds!r}"
                )
        return pack(noise, thresholds)

    def _choose_landmarks(
        self, kernel: Kernel, X: Any, random: np.random.RandomState
    ) -> np.ndarray | None:
        if self.n_landmarks is None:
            if not self._pairwise:
                check_gram_size(self, X.shape[0], self.gram_copies * 8)
            return None
        rows = rows_named(self.n_landmarks, X.shape[0])
        if rows is not None:
            return rows
        if self._pairwise:
            return Landmarks.chosen(kernel, X, self.n_landmarks, random).rows
        count = min(int(self.n_landmarks), X.shape[0])
        return np.unique(kmeans_plusplus(X, count, random_state=random)[1])

    def _evidence(self, kernel: Kernel) -> Evidence:
        """The evidence of the training data as a function of theta."""
        X = self._train_inputs
        pairs: Any
        if self.landmarks_ is None:
            pairs = kernel.pairs(X)
        elif self._pairwise:
            block = X[:, self.landmarks_]
            pairs = InducingPairs(X, block, block[self.landmarks_])
        else:
            pairs = InducingPairs.of(kernel, X, self.landmarks_)
        return Evidence(
            kernel,
            pairs,
            self._train_ranks,
            self._rho,
            self._free,
            self.inference_,
            self.objective,
        )

    def _ascend(
        self, evidence: Evidence, limits: np.ndarray, random: np.random.RandomState
    ) -> Maximum:
        """Return the best of the ascents from all starts."""
        counts = np.bincount(self._train_ranks, minlength=self.n_ranks_)
        objective = evidence.with_prior(GapPrior(counts, self._rho))
        first = evidence.theta
        starts = [first]
        for _ in range(int(self.n_restarts)):
            moved = first + RESTART_SD * random.normal(size=first.size)
            starts.append(np.clip(moved, limits[:, 0], limits[:, 1]))
        ascents = []
        for start in starts:
            evidence.warm = None
            ascents.append(
                maximise(objective, start, limits, tol=self.tol, max_iter=int(self.max_iter))
            )
        best = max(ascents, key=lambda ascent: ascent.value)
        if not best.converged:
            _, gradient = objective(best.theta)
            concern = (
                f"the optimiser stopped after {best.n_iter} iterations at log-evidence "
                f"{best.value:.6g} with a gradient of up to {np.abs(gradient).max():.3g} "
                f"({best.message}): raise max_iter, scale the features, or bound the parameters"
            )
            self._concerns.append((ConvergenceWarning, concern))
        return best

    def _keep_posterior(self, evidence: Evidence) -> Posterior:
        """Keep what predictions need of the posterior at theta_; note if it did not converge."""
        self.kernel_, rho = evidence.split(self.theta_)
        self.noise_, self.thresholds_ = unpack(rho)
        found = evidence.posterior(self.theta_)
        if not found.converged:
            concern = (
                f"{self.inference_} inference stopped after {found.n_iter} iterations with a "
                f"violation of {found.violation:.3g} ({evidence.n_unconverged} of "
                f"{evidence.n_evaluations} evaluations did not converge): bound the noise from "
                "below, or scale the features"
            )
            self._concerns.append((ConvergenceWarning, concern))
        self.log_evidence_ = found.log_evidence
        names = ["log noise", "first threshold"]
        names += [f"log gap {j}" for j in range(2, self.n_ranks_)]
        free = [name for name, is_free in zip(names, self._free, strict=True) if is_free]
        self.theta_names_ = [f"log {name}" for name in self.kernel_.theta_names] + free
        self._predictor = found.factor.predictor(found.coef)
        X = self._train_inputs
        rows = np.arange(X.shape[0]) if self.landmarks_ is None else self.landmarks_
        self._keep_rows(X, rows)
        return found

    def check_stored(self) -> None:
        """Compute the posterior of stored data again."""
        kernel, n, n_ranks = self.kernel_, self._train_ranks.size, self.n_ranks_
        decide(np.full((1, n_ranks), 1.0 / n_ranks), self.decision)  # raises if it cannot
        if isinstance(kernel, Precomputed) and n != self.n_features_in_:
            raise ModelFileError("the kernel matrix is not square")
        if self.theta_.size != kernel.theta.size + int(self._free.sum()):
            raise ModelFileError("theta does not have the parameters of the kernel")
        rows = self.landmarks_
        if rows is not None and (not rows.size or np.unique(rows).size < rows.size):
            raise ModelFileError("array 'landmarks' names a row twice, or none")
        width = n if rows is None else rows.size
        claim_memory(8.0 * self.gram_copies * n * width, f"the kernel of {n} samples")
        self._concerns = []
        self._keep_posterior(self._evidence(kernel))
        del self._concerns
        fitted = [self.noise_, *self.thresholds_, *self._predictor.coef]
        if not np.isfinite(fitted).all():
            raise ModelFileError("the parameters have no finite posterior")

    # ---- predicting ----------------------------------------------------------------------

    def predict_latent(self, X: Any, return_std: bool = False, *, diag: Any = None) -> Any:
        """Return the posterior mean of the latent function, on the scale of ``thresholds_``.

        Parameters
        ----------
        X : array-like
        return_std : bool, default=False
            Also return the posterior standard deviation.
        diag : array-like of shape (n_samples,), optional
            k(x, x) of each row, for precomputed kernels.
        """
        X = self._validate_predict(X)
        mean, variance = np.empty(X.shape[0]), np.empty(X.shape[0])
        for start in range(0, X.shape[0], CHUNK):
            part = slice(start, start + CHUNK)
            rows = self._cross_gram(X[part])
            mean[part] = rows @ self._predictor.coef
            if return_std:
                variance[part] = -self._predictor.reduction(rows)
        if not return_std:
            return mean
        variance += self._own_variance(X, diag)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _own_variance(self, X: Any, diag: Any) -> Any:
        if not isinstance(self.kernel_, Precomputed):
            return self.kernel_.diag(X)
        if diag is None:
            return self._prior_variance
        diag = np.asarray(diag, dtype=np.float64)
        if diag.shape != (X.shape[0],):
            raise ArgumentError(
                f"diag must have one entry per row ({X.shape[0]}), got {diag.shape}"
            )
        return diag

    def predict_proba(self, X: Any, *, diag: Any = None) -> np.ndarray:
        """Return P(rank) for each row, in the order of ``classes_``."""
        mean, std = self.predict_latent(X, return_std=True, diag=diag)
        return rank_probabilities(mean, self.thresholds_, np.hypot(self.noise_, std))

    def predict_ranks(self, X: Any) -> np.ndarray:
        """Return zero-based ranks, chosen by ``decision``."""
        return decide(self.predict_proba(X), self.decision)

    # ---- learnt parameters -----------------------------------------------------------------

    def log_evidence(self, theta: Any = None, gradient: bool = True) -> Any:
        """Return the log-evidence of the training data at theta (default ``theta_``).

        Returns
        -------
        value : float
        gradient : ndarray
            Only if ``gradient``.
        """
        check_is_fitted(self)
        theta = self.theta_ if theta is None else np.asarray(theta, dtype=np.float64)
        evidence = self._evidence(self.kernel_)
        return evidence(theta) if gradient else evidence.posterior(theta).log_evidence

    @property
    def relevance_(self) -> pd.DataFrame:
        """ARD parameters, one row per feature and one column per parameter, most relevant first."""
        check_is_fitted(self)
        found: dict[str, np.ndarray] = {}
        for p in self.kernel_.hyperparameters():
            if np.shape(p.value) == (self.n_features_in_,):
                again = sum(name.startswith(p.name) for name in found)
                found[f"{p.name} {again + 1}" if again else p.name] = p.value
        if not found:
            raise AttributeError(
                f"{self.kernel_!r} has no parameter per feature: relevance needs kernel "
                '"ard" or "ard-linear"'
            )
        table = pd.DataFrame(found, index=pd.Index(self._names(), name="feature"))
        return table.sort_values(table.columns[0], ascending=False, kind="stable")

    def select_features(self, k: int) -> np.ndarray:
        """Return the column numbers of the k most relevant features, best first."""
        best_first = self.relevance_
        if not 1 <= k <= len(best_first):
            raise ArgumentError(f"k must lie between 1 and {len(best_first)}, got {k}")
        return pd.Index(self._names()).get_indexer(best_first.index[:k])

    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", [f"x{v}" for v in range(self.n_features_in_)])
