"""The sum of kernels that per-user models share: its parts, and their weights by pooled evidence.

A user with twenty ratings says little about what makes two items alike. The parts of the kernel are
the same for all users, so that their weights can be learnt from all of them together:

* "ratings": Pearson's correlation of the items' filled ratings, the kernel of the papers;
* "co-rating": the cosine of who rated the items, whatever the rating;
* "choice": products of the item factors of `implicit`'s ALS, who would rate what;
* "item mean": the product of two items' means over the ratings of the other users, minus these
  users' own means. A user's model starts from what others think of the item, and the other parts
  describe how the user departs from that;
* "user": a constant. It moves the user's latent scores against thresholds shared with other users
  and does nothing where a model has thresholds of its own.

The user whose model is made is left out of every part, exactly or with their fold of users.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ordrec.data import Ratings
from ordrec.features.matrix import RatingMatrix
from ordrec.kernels.items.corating import CoRating
from ordrec.kernels.items.kernel import ItemKernel
from ordrec.kernels.items.low_rank import LowRank
from ordrec.ordinal.gpor.evidence import LikelihoodBounds
from ordrec.ordinal.gpor.pooled import PooledFit, fit_many
from ordrec.rating.per_user.items import ItemSource, UserSample

__all__ = ["PARTS", "SMOOTH", "ItemMeans", "PooledSource"]

PARTS = ("ratings", "co-rating", "choice", "item mean", "user")
SMOOTH = 10.0  # ratings by which the kernels of rarely rated items are shrunk
CHOICE_RANK = 16
ITEM_DAMPING = 5.0
MOST_USERS, MOST_RATINGS = 200, 100  # users, and ratings of each, that the evidence is summed over
# The noise is the unit. Laplace's evidence is far too large where the noise is small beside the
# gaps between thresholds, so these are kept below two units.
BOUNDS = LikelihoodBounds(noise="fixed", gap=(1e-2, 2.0))


class ItemMeans:
    """Damped means of items over the ratings of all users but one, minus these users' means."""

    def __init__(self, matrix: RatingMatrix):
        centred = matrix.user_centred()
        self._of_user = centred.tocsc()
        self._sum = np.asarray(centred.sum(axis=1)).ravel()
        self._count = matrix.item_counts.astype(np.float64)

    def __call__(self, user: int, items: np.ndarray) -> np.ndarray:
        """Return the means of some items without the user; 0 for an unknown item (-1)."""
        own = slice(*self._of_user.indptr[user : user + 2])
        total, count = self._sum.copy(), self._count.copy()
        total[self._of_user.indices[own]] -= self._of_user.data[own]
        count[self._of_user.indices[own]] -= 1.0
        return np.where(items >= 0, (total / (count + ITEM_DAMPING))[items], 0.0)


class PooledSource:
    """An item source whose kernel is a weighted sum of `PARTS`; all weights are 1 at first.

    Parameters
    ----------
    ratings : Ratings
    filled : ItemSource
        The part "ratings", and the features of estimators without kernels.
    """

    def __init__(self, ratings: Ratings, filled: ItemSource):
        matrix = RatingMatrix.from_ratings(ratings)
        rank = min(CHOICE_RANK, *matrix.shape)
        choice = [CoRating().normalised(SMOOTH), LowRank(rank, source="corating").normalised()]
        self._filled = filled
        self._choice = ItemKernel(choice).fit(matrix)
        self._means = ItemMeans(matrix)
        self.weights = np.ones(len(PARTS))
        self._learnt: PooledFit | None = None

    def gram(self, user: int, items: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """Kernel of some items with others (or with themselves), without the user's ratings."""
        return np.tensordot(self.weights, self.parts(user, items, others), axes=1)

    def parts(self, user: int, items: np.ndarray, others: np.ndarray | None = None) -> np.ndarray:
        """The kernels one by one, without weights, shape (n_parts, n_items, n_others)."""
        columns = items if others is None else others
        choice = self._choice.parts_for_user(user, np.maximum(items, 0), others)
        choice[:, items < 0] = 0.0
        mean = np.outer(self._means(user, items), self._means(user, columns))
        filled = self._filled.gram(user, items, others)
        return np.concatenate([filled[None], choice, [mean, np.ones_like(mean)]])

    def rows(self, user: int, items: np.ndarray) -> np.ndarray:
        """The filled ratings of other users and, last, the item means."""
        return np.column_stack([self._filled.rows(user, items), self._means(user, items)])

    def learn(self, users: Sequence[UserSample], n_ranks: int) -> PooledFit:
        """Set the weights, with noise and thresholds, to maximise the summed evidence of users.

        Parameters
        ----------
        users : sequence of UserSample
            At most 200 of them, evenly spaced, are used, and of each at most 100 ratings, which
            all count as 1.
        n_ranks : int
        """
        if self._learnt is None:
            random = np.random.default_rng(0)
            n_used = min(len(users), MOST_USERS)
            problems = []
            for k in np.linspace(0, len(users) - 1, n_used).astype(int):
                user, items, levels, _ = users[k]
                part = np.sort(random.permutation(items.size)[:MOST_RATINGS])
                problems.append((self.parts(user, items[part]), levels[part]))
            self._learnt = fit_many(problems, n_ranks, bounds=BOUNDS)
            self.weights = self._learnt.weights
        return self._learnt
