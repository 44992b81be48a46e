"""ORBoost and RankBoostAE, the scikit-learn layer."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import has_fit_parameter

from ordrec.errors import ArgumentError, DataError, ModelFileError
from ordrec.ordinal.base import CalibratedModel, limit_blas
from ordrec.ordinal.boosting.ensemble import (
    EarlyStopping,
    Ensemble,
    Learner,
    Margins,
    Member,
    OrdinalLoss,
    StoredEnsemble,
    boost,
    hold_out,
)
from ordrec.ordinal.boosting.orboost import MarginLoss
from ordrec.ordinal.boosting.perceptron import PerceptronRCD, SigmoidRCD
from ordrec.ordinal.boosting.rankboost import PairLoss
from ordrec.ordinal.boosting.stump import StumpSearch
from ordrec.ordinal.boosting.tree import Tree
from ordrec.ordinal.losses import Reach, checked_reach
from ordrec.ordinal.stored import ESTIMATOR, fitted
from ordrec.ordinal.thresholds.absent import PresentRanks
from ordrec.ordinal.thresholds.probabilities import ranks_between
from ordrec.storage.schema import Array, As, Integer, Optional

__all__ = ["ORBoost", "RankBoostAE", "TreeSearch"]

DEPTHS = (1, 2, 4, 6)  # of trees, tried where none is given
PATIENCE = 50  # rounds without a lower error, while depths are compared
SHARE = 0.2  # of the samples, held out to compare depths


class _Boosted(CalibratedModel):
    """Common base of both estimators."""

    base: Any
    n_estimators: int
    gamma: float
    max_depth: int | None
    n_iter_no_change: Any
    validation_fraction: float
    random_state: Any

    stored: ClassVar = ESTIMATOR | {
        "thresholds_": fitted("thresholds"),
        "_outer": Array("thresholds", dtype=np.bool_),
        "_place": Array("thresholds", dtype=np.int64, codes="thresholds"),
        "ensemble_": As(StoredEnsemble),
        "max_depth_": Optional(Integer(), unset=True),
    }

    @abstractmethod
    def _reach(self) -> Reach:
        """The error of early stopping: "immediate" counts mistakes, "all" adds up their sizes."""

    @abstractmethod
    def _loss(self, part: PresentRanks, weight: np.ndarray) -> OrdinalLoss:
        """The loss on a training set."""

    @limit_blas
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the ensemble and the thresholds.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            A sparse matrix is made dense.
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), optional
        """
        self._check_parameters()
        X, ranks, weight = self._validate_fit(X, y, sample_weight)
        X = X.toarray() if sparse.issparse(X) else X
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        train = np.flatnonzero(weight > 0)
        held, rounds = train[:0], self.n_estimators
        learner = self._learner()
        if self._chooses_depth():
            learner, rounds = self._chosen_depth(X, ranks, weight, train, rng)
        elif self.n_iter_no_change is not None:
            train, held = hold_out(train, ranks, self.validation_fraction, rng)
        ensemble, part, _ = self._boosted(
            X, ranks, weight, train, held, learner, rounds, self.n_iter_no_change, rng
        )
        rows = X[train]
        self.ensemble_ = ensemble
        self.n_estimators_ = len(self.ensemble_.members)
        # the log-odds of the exponential loss are twice the margin
        self.thresholds_ = part.all_thresholds(
            self.ensemble_.thresholds[-1], self.ensemble_.latent(rows), weight[train], steepness=2.0
        )
        self._place, self._outer = part.place, part.outer
        if self.probability:
            self._fit_link(X, ranks, weight)
        return self

    def _boosted(
        self,
        X: np.ndarray,
        ranks: np.ndarray,
        weight: np.ndarray,
        train: np.ndarray,
        held: np.ndarray,
        learner: Learner,
        rounds: int,
        patience: Any,
        rng: np.random.Generator,
    ) -> tuple[Ensemble, PresentRanks, float]:
        """The ensemble, cut at its best round if samples are held out; their error then."""
        reach = self._reach()
        part = PresentRanks(ranks[train], self.n_ranks_, inner=reach == "immediate")
        stopping = None
        if held.size:
            stopping = EarlyStopping(X[held], ranks[held], weight[held], part, reach, patience)
        ready = learner.prepare(X[train], weight[train], rng)
        ensemble = boost(self._loss(part, weight[train]), ready, X[train], rounds, stopping)
        if stopping is None:
            return ensemble, part, np.nan
        return ensemble.head(stopping.best_round), part, float(stopping.best_error)

    def _chooses_depth(self) -> bool:
        return isinstance(self.base, str) and self.base == "tree" and self.max_depth is None

    def _chosen_depth(
        self,
        X: np.ndarray,
        ranks: np.ndarray,
        weight: np.ndarray,
        rows: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[Learner, int]:
        """The trees with the least error on held-out samples, and the number of rounds of it."""
        share = SHARE if self.n_iter_no_change is None else self.validation_fraction
        patience = PATIENCE if self.n_iter_no_change is None else self.n_iter_no_change
        if self.n_iter_no_change is None and np.bincount(ranks[rows]).max() < 2:
            self.max_depth_ = DEPTHS[0]  # no sample can be held out to choose by
            return TreeSearch(DEPTHS[0]), self.n_estimators
        train, held = hold_out(rows, ranks, share, rng)
        best: tuple[float, int, int] = (np.inf, DEPTHS[0], 1)
        for depth in DEPTHS:
            ensemble, _, error = self._boosted(
                X, ranks, weight, train, held, TreeSearch(depth), self.n_estimators, patience, rng
            )
            best = min(best, (error, depth, max(len(ensemble.members), 1)))
        self.max_depth_ = best[1]
        return TreeSearch(best[1]), best[2]

    def predict_latent(self, X: Any) -> np.ndarray:
        """Return the ensemble's score H(x), on the scale of ``thresholds_``."""
        X = self._dense(X)
        return self.ensemble_.latent(X)

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Yield labels after each round."""
        X = self._dense(X)
        stages = zip(self.ensemble_.staged_latent(X), self.ensemble_.thresholds[1:], strict=True)
        for H, theta in stages:
            thresholds = np.sort(np.where(self._outer, self.thresholds_, theta[self._place]))
            yield self.classes_[ranks_between(H, thresholds)]

    def normalised_margins(self, X: Any, y: Any) -> Margins:
        """Return the normalised margins of labelled samples, which give the paper's bounds."""
        H = self.predict_latent(X)
        position = {label: rank for rank, label in enumerate(self.classes_.tolist())}
        labels = np.asarray(y).tolist()
        unknown = sorted({str(label) for label in labels if label not in position})
        if unknown:
            raise DataError(f"y contains {unknown[:5]}, which did not occur in training")
        ranks = np.array([position[label] for label in labels], dtype=np.int64)
        size = float(np.abs(self.ensemble_.alpha).sum())
        return Margins.of(H, self.thresholds_, ranks, size)

    def check_stored(self) -> None:
        """Check that the ensemble has the thresholds of the ranks that have samples."""
        if self.ensemble_.thresholds.shape[1] != int(self._place.max()) + 1:
            raise ModelFileError("the thresholds of the ensemble are not those of the ranks")
        self.n_estimators_ = len(self.ensemble_.members)

    def _dense(self, X: Any) -> np.ndarray:
        X = self._validate_predict(X)
        return X.toarray() if sparse.issparse(X) else X

    def _learner(self) -> Learner:
        if isinstance(self.base, str):
            if self.base == "sigmoid":
                return SigmoidRCD(self.gamma)
            if self.base == "perceptron":
                return PerceptronRCD()
            if self.base == "stump":
                return StumpSearch()
            if self.base == "tree":
                return TreeSearch(DEPTHS[0] if self.max_depth is None else self.max_depth)
        elif hasattr(self.base, "prepare") and hasattr(self.base, "train"):
            return self.base
        elif hasattr(self.base, "fit") and hasattr(self.base, "predict"):
            if not has_fit_parameter(self.base, "sample_weight"):
                raise ArgumentError(
                    f"base {self.base!r} takes no sample_weight, which boosting needs"
                )
            return _ClassifierLearner(self.base)
        raise ArgumentError(
            'base must be "sigmoid", "perceptron", "stump", "tree", a learner or a classifier, '
            f"got {self.base!r}"
        )

    def _check_parameters(self) -> None:
        rounds: Any = self.n_estimators
        if not (isinstance(rounds, Integral) and int(rounds) >= 1):
            raise ArgumentError(f"n_estimators must be at least 1, got {rounds!r}")
        gamma: Any = self.gamma
        if not (isinstance(gamma, Real) and 0 < float(gamma) < np.inf):
            raise ArgumentError(f"gamma must be a positive number, got {gamma!r}")
        patience = self.n_iter_no_change
        if patience is not None and not (isinstance(patience, Integral) and int(patience) >= 1):
            raise ArgumentError(f"n_iter_no_change must be None or at least 1, got {patience!r}")
        if not 0 < self.validation_fraction < 1:
            raise ArgumentError(
                f"validation_fraction must lie between 0 and 1, got {self.validation_fraction!r}"
            )
        depth: Any = self.max_depth
        if depth is not None and not (isinstance(depth, Integral) and int(depth) >= 1):
            raise ArgumentError(f"max_depth must be None or at least 1, got {depth!r}")
        self._learner()


class ORBoost(_Boosted):
    """Ordinal regression boosting (Lin & Li 2006): a thresholded ensemble.

    Parameters
    ----------
    threshold : {"all", "immediate"}
        Whether the loss of a sample counts all thresholds (the paper's ORBoost-All), which aims at
        small absolute errors, or only the two ends of its rank (ORBoost-LR, for left and right),
        which aims at few errors.
    base : {"sigmoid", "perceptron", "stump", "tree"}, learner or classifier
        The members of the ensemble. Sigmoids and perceptrons are trained by random coordinate
        descent and need features of comparable scale; the search is not quite that of the
        authors' program, which ``PerceptronRCD(published=True)`` and
        ``SigmoidRCD(published=True)`` have. Trees, which are not in the paper, need no scaling. A
        scikit-learn classifier is trained on two classes with sample weights.
    n_estimators : int
        Number of rounds, the paper's T.
    gamma : float
        Norm of the weights of a "sigmoid": its steepness.
    max_depth : int, optional
        Levels of a "tree". By default 1, 2, 4 or 6, whichever has the least error on a fifth of the
        samples, held out; the number of rounds is then that of the least error too, and all
        samples are fitted with both.
    n_iter_no_change : int, optional
        Early stopping: number of rounds without a lower error on held-out samples after which
        to stop and return to the best round. Off by default.
    validation_fraction : float
        Share of the samples of each rank held out for early stopping.
    probability : bool
        Whether to calibrate `predict_proba`: an ordered probit on the out-of-fold scores of
        five folds, which takes five more fits.
    class_weight : None, "balanced" or dict, optional
        Weights of the classes, as in `SVORIM`.
    classes : sequence, optional
        The labels in ascending order; needed where labels have no numeric order or not all
        of them occur in training. Scorers of scikit-learn
        assume alphabetical order: for other orders, see `ordrec.ordinal.scorers`.
    random_state : int, RandomState or None
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
    thresholds_ : ndarray of shape (n_ranks - 1,)
    ensemble_ : Ensemble
        Members, their weights ``alpha``, thresholds and log-losses after each round.
    n_estimators_ : int
        Number of rounds in the ensemble.
    max_depth_ : int
        The depth that was chosen, where it was left open.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = np.repeat([1, 2, 3], 4)
    >>> model = ORBoost(base="stump", n_estimators=20).fit(X, y)
    >>> model.predict([[0.0], [5.0], [11.0]])
    array([1, 2, 3])
    """

    def __init__(
        self,
        threshold: str = "all",
        base: Any = "sigmoid",
        n_estimators: int = 2000,
        gamma: float = 4.0,
        *,
        max_depth: int | None = None,
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        probability: bool = False,
        class_weight: Any = None,
        classes: Any = None,
        random_state: Any = None,
        verbose: bool | None = None,
    ):
        self.threshold = threshold
        self.base = base
        self.n_estimators = n_estimators
        self.gamma = gamma
        self.max_depth = max_depth
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.probability = probability
        self.class_weight = class_weight
        self.classes = classes
        self.random_state = random_state
        self.verbose = verbose

    def _reach(self) -> Reach:
        return checked_reach(self.threshold)

    def _loss(self, part: PresentRanks, weight: np.ndarray) -> OrdinalLoss:
        return MarginLoss(part.ranks, part.n_ranks, weight, self._reach())


class RankBoostAE(_Boosted):
    """RankBoost with thresholds of least absolute error, or of fewest mistakes (Lin & Li 2006).

    The scores are boosted to order all pairs of samples of different rank; the thresholds
    are fitted to the scores. A round costs O(n), since the loss factorises over the ranks.

    Parameters
    ----------
    base, n_estimators, gamma, max_depth, n_iter_no_change, validation_fraction :
        As in `ORBoost`.
    criterion : {"absolute", "mistakes"}
        What the thresholds minimise on the training samples: the absolute error (RankBoost-AE), or
        the number of mistakes.
    probability, class_weight, classes, random_state :
        As in `ORBoost`.
    verbose : bool, optional
        Whether progress is shown, see `ordrec.runtime.progress`; by default on a terminal.

    Attributes
    ----------
    classes_, thresholds_, ensemble_, n_estimators_ :
        As in `ORBoost`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(12.0).reshape(-1, 1)
    >>> y = np.repeat([1, 2, 3], 4)
    >>> model = RankBoostAE(base="stump", n_estimators=20).fit(X, y)
    >>> model.predict([[0.0], [5.0], [11.0]])
    array([1, 2, 3])
    """

    def __init__(
        self,
        base: Any = "sigmoid",
        n_estimators: int = 2000,
        gamma: float = 4.0,
        *,
        max_depth: int | None = None,
        criterion: str = "absolute",
        n_iter_no_change: int | None = None,
        validation_fraction: float = 0.1,
        probability: bool = False,
        class_weight: Any = None,
        classes: Any = None,
        random_state: Any = None,
        verbose: bool | None = None,
    ):
        self.base = base
        self.n_estimators = n_estimators
        self.gamma = gamma
        self.max_depth = max_depth
        self.criterion = criterion
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.probability = probability
        self.class_weight = class_weight
        self.classes = classes
        self.random_state = random_state
        self.verbose = verbose

    def _reach(self) -> Reach:
        if self.criterion not in ("absolute", "mistakes"):
            raise ArgumentError(
                f'criterion must be "absolute" or "mistakes", got {self.criterion!r}'
            )
        return "all" if self.criterion == "absolute" else "immediate"

    def _loss(self, part: PresentRanks, weight: np.ndarray) -> OrdinalLoss:
        mistakes = self.criterion == "mistakes"
        return PairLoss(part.ranks, part.n_ranks, weight, mistakes=mistakes)


@dataclass(frozen=True)
class _Vote:
    """A fitted classifier of -1 against 1, as a member."""

    classifier: Any

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classifier.predict(X), dtype=np.float64)


class _ClassifierLearner:
    """Trains clones of a scikit-learn classifier on labels -sign(g), weights |g|."""

    _X: np.ndarray
    _rng: np.random.Generator

    def __init__(self, classifier: Any):
        self.classifier = classifier

    def prepare(
        self, X: np.ndarray, weight: np.ndarray, rng: np.random.Generator
    ) -> _ClassifierLearner:
        ready = copy.copy(self)
        ready._X, ready._rng = X, rng
        return ready

    def train(self, g: np.ndarray) -> Member:
        classifier = clone(self.classifier)
        if "random_state" in classifier.get_params():
            seed = int(self._rng.integers(2**31 - 1))
            classifier.set_params(random_state=seed)
        weight = np.abs(g) * (g.size / np.abs(g).sum())
        return _Vote(classifier.fit(self._X, np.where(g > 0, -1, 1), sample_weight=weight))


class TreeSearch:
    """Trains one tree per round, of at most ``max_depth`` levels."""

    _X: np.ndarray
    _seed: int

    def __init__(self, max_depth: int = 3):
        self.max_depth = max_depth

    def prepare(self, X: np.ndarray, weight: np.ndarray, rng: np.random.Generator) -> TreeSearch:
        """Return a copy that keeps the samples."""
        ready = copy.copy(self)
        ready._X, ready._seed = X.astype(np.float32), int(rng.integers(2**31 - 1))
        return ready

    def train(self, g: np.ndarray) -> Tree:
        """Return a tree with a small ``sum g h``."""
        grown = DecisionTreeRegressor(max_depth=self.max_depth, random_state=self._seed)
        weight = np.abs(g) * (g.size / max(float(np.abs(g).sum()), np.finfo(float).tiny))
        return Tree.of(grown.fit(self._X, np.where(g > 0, -1.0, 1.0), sample_weight=weight))

    def __repr__(self) -> str:
        return f"TreeSearch(max_depth={self.max_depth})"
