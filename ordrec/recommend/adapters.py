"""Other people's models as rows of the same table.

Each adapter takes an unfitted model of another package, fits a copy of it to `Ratings` and
answers for original ids: Surprise, implicit, myFM, and any regressor or classifier with
scikit-learn's face (LightGBM, mord and skordinal among them). The packages are imported when
a model is fitted; ``pip install 'ordrec[peers]'`` brings them.

A few stand in the command line under names of their own (``surprise-svd``, ``surprise-knn``,
``implicit-bpr``, ``myfm``, ``ridge``); any other is a row of the same table from a script::

    evaluate(ratings, {"forest": SklearnModel(RandomForestRegressor()), "predictor": "predictor"})
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.metaestimators import available_if

from ordrec.errors import ArgumentError
from ordrec.parallel import one_blas_thread
from ordrec.ratings import Ratings
from ordrec.recommend.models import RemembersIds

__all__ = [
    "ImplicitModel",
    "MyFMModel",
    "SklearnModel",
    "SurpriseModel",
    "implicit_bpr",
    "ridge_on_ids",
    "surprise_knn",
]

SEEDED_BY_SURPRISE = ("SVD", "SVDpp", "NMF", "CoClustering")
MAX_WORDS = 100  # distinct words of a side column that is still a category


def _peer(module: str, package: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of their own imports
            return import_module(module)
    except ImportError as error:
        raise ArgumentError(
            f"{package} cannot be imported ({error}): pip install 'ordrec[peers]'"
        ) from None


# ---- Surprise ----------------------------------------------------------------------------


@dataclass(eq=False)
class SurpriseModel(RemembersIds):
    """An algorithm of Surprise.

    Parameters
    ----------
    algorithm : str or surprise.AlgoBase
        The name of a class in ``surprise``, or an instance, which stays as it is.
    options : dict
        Arguments of the class, if it is given by name.
    random_state : int
        For an algorithm given by name that draws numbers.
    """

    algorithm: Any = "SVD"
    options: dict[str, Any] = field(default_factory=dict)
    random_state: int = 0

    def fit(self, ratings: Ratings) -> SurpriseModel:
        """Hand the ratings over by their codes and fit."""
        surprise = _peer("surprise", "scikit-surprise")
        self._remember(ratings)
        if not isinstance(self.algorithm, str):
            self.model_ = copy.deepcopy(self.algorithm)
        elif hasattr(surprise, self.algorithm):
            seeded = self.algorithm in SEEDED_BY_SURPRISE
            options = {"random_state": self.random_state} if seeded else {}
            self.model_ = getattr(surprise, self.algorithm)(**options | self.options)
        else:
            raise ArgumentError(f"surprise has no algorithm {self.algorithm!r}")
        frame = pd.DataFrame(
            {"user": ratings.users, "item": ratings.items, "rating": ratings.values}
        )
        low, high = ratings.scale.values[[0, -1]].tolist()
        table = surprise.Dataset.load_from_df(frame, surprise.Reader(rating_scale=(low, high)))
        self.model_.verbose = False
        self.model_.fit(table.build_full_trainset())
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Its estimates, one pair at a time, as Surprise does."""
        user_codes, item_codes = self._codes(users, items)
        pairs = zip(user_codes.tolist(), item_codes.tolist(), strict=True)
        return np.array([self.model_.predict(u, i).est for u, i in pairs], dtype=np.float64)


def surprise_knn(k: int = 40, shrinkage: float = 100.0) -> SurpriseModel:
    """Surprise's best neighbourhood model: items, around baselines."""
    similarity = {"name": "pearson_baseline", "user_based": False, "shrinkage": shrinkage}
    return SurpriseModel("KNNBaseline", {"k": k, "sim_options": similarity})


# ---- implicit ----------------------------------------------------------------------------


@dataclass(eq=False)
class ImplicitModel(RemembersIds):
    """A recommender of implicit, for ranking only; an unknown user or item scores last.

    Parameters
    ----------
    model : implicit recommender
        Such as ``implicit.bpr.BayesianPersonalizedRanking()``; it stays as it is.
    entries : {"one", "rank"}
        What the user-item matrix holds: ones, or the ratings' ranks.
    """

    model: Any = None
    entries: Literal["one", "rank"] = "one"

    def fit(self, ratings: Ratings) -> ImplicitModel:
        """Fit a copy to the matrix of users and items."""
        if not hasattr(self.model, "recommend"):
            raise ArgumentError(f"model must be a recommender of implicit, got {self.model!r}")
        self._remember(ratings)
        self._rated = sparse.csr_matrix(ratings.matrix(self.entries).T)
        self.model_ = copy.deepcopy(self.model)
        with one_blas_thread():
            self.model_.fit(self._rated, show_progress=False)
        return self

    def scores(self, users: Any, items: Any) -> np.ndarray:
        """Its scores; pairs it has none for come last."""
        user_codes, item_codes = self._codes(users, items)
        scores = np.full(user_codes.size, -np.inf)
        for user in np.unique(user_codes[user_codes >= 0]).tolist():
            mine = np.flatnonzero((user_codes == user) & (item_codes >= 0))
            wanted = np.unique(item_codes[mine])
            if not wanted.size:
                continue
            ids, values = self.model_.recommend(
                user, self._rated[user], N=wanted.size, filter_already_liked_items=False,
                items=wanted,
            )  # fmt: skip
            known = np.full(len(self.item_ids_), -np.inf)
            known[ids[ids >= 0]] = values[ids >= 0]
            scores[mine] = known[item_codes[mine]]
        lowest = min(scores[np.isfinite(scores)].min(initial=0.0), 0.0)
        return np.where(np.isfinite(scores), scores, lowest - 1.0)


def implicit_bpr(factors: int = 64, iterations: int = 100, random_state: int = 0) -> ImplicitModel:
    """implicit's Bayesian personalised ranking, of ones."""
    bpr = _peer("implicit.bpr", "implicit").BayesianPersonalizedRanking(
        factors=factors, iterations=iterations, random_state=random_state, num_threads=1
    )
    return ImplicitModel(bpr)


# ---- myFM --------------------------------------------------------------------------------


@dataclass(eq=False)
class MyFMModel(RemembersIds):
    """myFM's Bayesian factorisation machine with an ordered probit, by Gibbs sampling.

    Parameters
    ----------
    rank : int
    n_iter : int
        Sweeps; all but a tenth of them are kept.
    implicit : bool
        Whether users are also described by the items they rated and items by their users.
    random_state : int
    """

    rank: int = 10
    n_iter: int = 512
    implicit: bool = False
    random_state: int = 0

    def fit(self, ratings: Ratings) -> MyFMModel:
        """Sample."""
        self._myfm = _peer("myfm", "myfm")
        self._remember(ratings)
        seen = sparse.csr_matrix(ratings.matrix("one").T)
        # The last row of each block is an unknown: no features.
        self._blocks = [_described(side, self.implicit) for side in (seen, seen.T.tocsr())]
        groups = [ratings.n_users, ratings.n_items]
        if self.implicit:
            groups = [groups[0], groups[1], groups[1], groups[0]]
        self._present, levels = np.unique(ratings.levels, return_inverse=True)
        if self._present.size < 2:
            raise ArgumentError("myFM's ordered probit needs ratings of at least two values")
        self.model_ = self._myfm.MyFMOrderedProbit(self.rank, random_seed=self.random_state)
        self.model_.fit(
            sparse.csr_matrix((ratings.n_ratings, 0)),
            levels,
            X_rel=self._relations(ratings.users, ratings.items),
            n_iter=self.n_iter,
            n_kept_samples=max(self.n_iter - self.n_iter // 10, 1),
            group_shapes=groups,
        )
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """Expected ratings."""
        return self.predict_proba(users, items) @ self.scale_.values

    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """Distributions averaged over the samples."""
        user_codes, item_codes = self._codes(users, items)
        p = np.zeros((user_codes.size, self.scale_.n_ranks))
        if user_codes.size:
            relations = self._relations(
                np.where(user_codes < 0, len(self.user_ids_), user_codes),
                np.where(item_codes < 0, len(self.item_ids_), item_codes),
            )
            nothing = sparse.csr_matrix((user_codes.size, 0))
            p[:, self._present] = self.model_.predict_proba(nothing, relations)
        return p

    def _relations(self, users: np.ndarray, items: np.ndarray) -> list[Any]:
        pairs = zip((users, items), self._blocks, strict=True)
        return [self._myfm.RelationBlock(codes.tolist(), block) for codes, block in pairs]


def _described(seen: sparse.csr_matrix, implicit: bool) -> sparse.csr_matrix:
    """One-hot rows, with the row of ratings at unit length if wanted, and a row of zeros."""
    parts = [sparse.identity(seen.shape[0], format="csr")]
    if implicit:
        counts = np.diff(seen.indptr)
        parts.append(sparse.diags(1.0 / np.sqrt(np.maximum(counts, 1.0))) @ seen)
    rows = sparse.hstack(parts)
    return sparse.vstack([rows, sparse.csr_matrix((1, rows.shape[1]))]).tocsr()


# ---- scikit-learn ------------------------------------------------------------------------


@dataclass(eq=False)
class SklearnModel(RemembersIds):
    """Any regressor or classifier, a sample being a pair of a user and an item.

    A classifier is trained on the ranks 0, 1, ...; with ``predict_proba`` it gives
    distributions. A regressor is trained on the ratings.

    Parameters
    ----------
    estimator : estimator
        It stays as it is.
    features : {"ids", "side", "both"}
        One column for each user and item, the columns of the side tables, or both. In the
        tables numbers are taken as they are, the mean where one is missing; words ("a" or
        "a|b") become a column each, unless there are more than a hundred (titles). An unknown
        user or item has zeros for its ids and means for its side features.
    dense : bool
        Whether the estimator wants a dense matrix.
    """

    estimator: Any = None
    features: Literal["ids", "side", "both"] = "ids"
    dense: bool = False

    def fit(self, ratings: Ratings) -> SklearnModel:
        """Make the matrix of pairs and fit a clone."""
        from sklearn.base import clone, is_classifier

        if self.features not in ("ids", "side", "both"):
            raise ArgumentError(f'features must be "ids", "side" or "both", got {self.features!r}')
        if not hasattr(self.estimator, "fit"):
            raise ArgumentError(f"estimator must have fit and predict, got {self.estimator!r}")
        self._remember(ratings)
        tables = (ratings.user_table, ratings.item_table)
        if self.features != "ids" and all(table is None for table in tables):
            raise ArgumentError("these ratings have no side tables: use features='ids'")
        counts = (ratings.n_users, ratings.n_items)
        self._sides = [self._side(*side) for side in zip(counts, tables, strict=True)]
        self._classifies = is_classifier(self.estimator)
        y = ratings.levels.astype(np.int64) if self._classifies else ratings.values
        self.model_ = clone(self.estimator).fit(self._pairs(ratings.users, ratings.items), y)
        return self

    def predict(self, users: Any, items: Any) -> np.ndarray:
        """What the estimator says, within the scale."""
        codes = self._codes(users, items)
        if not codes[0].size:
            return np.zeros(0)
        said = self.model_.predict(self._pairs(*codes))
        return self.scale_.values[said] if self._classifies else self._clipped(said)

    @available_if(lambda model: hasattr(model.estimator, "predict_proba"))
    def predict_proba(self, users: Any, items: Any) -> np.ndarray:
        """The estimator's distribution; ranks that training did not have get none."""
        codes = self._codes(users, items)
        p = np.zeros((codes[0].size, self.scale_.n_ranks))
        if codes[0].size:
            p[:, self.model_.classes_] = self.model_.predict_proba(self._pairs(*codes))
        return p

    def _side(self, n_rows: int, table: pd.DataFrame | None) -> sparse.csr_matrix:
        """Rows of all users or items, and one for the unknown."""
        parts = []
        if self.features in ("ids", "both"):
            ids = sparse.identity(n_rows, format="csr")
            parts.append(sparse.vstack([ids, sparse.csr_matrix((1, n_rows))]))
        if self.features in ("side", "both") and table is not None:
            columns = _columns_of(table)
            parts.append(sparse.csr_matrix(np.vstack([columns, columns.mean(axis=0)])))
        return sparse.hstack(parts).tocsr() if parts else sparse.csr_matrix((n_rows + 1, 0))

    def _pairs(self, users: np.ndarray, items: np.ndarray) -> Any:
        rows = [side[codes] for side, codes in zip(self._sides, (users, items), strict=True)]
        X = sparse.hstack(rows).tocsr()
        return X.toarray() if self.dense else X


def ridge_on_ids(alpha: float = 5.0) -> SklearnModel:
    """scikit-learn's ridge regression on one column for each user and item."""
    from sklearn.linear_model import Ridge

    return SklearnModel(Ridge(alpha))


def _columns_of(table: pd.DataFrame) -> np.ndarray:
    """A side table as numbers."""
    numbers = table.select_dtypes(["number", "bool"]).astype(np.float64)
    parts = [numbers.fillna(numbers.mean()).fillna(0.0).to_numpy()]
    for name in table.columns.difference(numbers.columns):
        words = table[name].fillna("").astype(str)
        if len(set("|".join(words.unique()).split("|"))) <= MAX_WORDS:
            parts.append(words.str.get_dummies("|").to_numpy(np.float64))
    return np.hstack(parts)
