"""
One model per user
==================

The papers fit one ordinal model to the ratings of one user, over a kernel between items. Users with
many ratings can afford it; those with few gain from what is learnt of all. ``PerUserPredictor``
does the first with any ordinal estimator, ``OrdinalFactors`` the second.
"""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np

from ordrec import OrdinalFactors
from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import UserHoldOut
from ordrec.ordinal import SVORIM, OrdinalLogistic
from ordrec.recommend import BiasModel, PerUserPredictor

ratings = synthetic_ratings(300, 150, n_ratings=12_000, n_factors=2, noise=0.4, seed=1)
split = next(UserHoldOut(0.25, random_state=0).split(ratings))
train, test = split.train, split.test
users, items = test.user_ids[test.users], test.item_ids[test.items]

models = {
    "biases": BiasModel(),
    "SVORIM per user": PerUserPredictor(SVORIM(C=1), min_ratings=5),
    "logistic per user": PerUserPredictor(OrdinalLogistic(), features="mean", min_ratings=5),
    "factors of all": OrdinalFactors(n_factors=4),
}
errors = {
    name: np.abs(np.asarray(model.fit(train).predict(users, items)) - test.values)
    for name, model in models.items()
}

# %%
# The mean absolute error by the number of training ratings of the user.

counts = train.user_counts[test.users]
edges = [0, 10, 20, 40, 80, 150]
names = [f"{low + 1}-{high}" for low, high in pairwise(edges)]
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for name, error in errors.items():
    means = [error[(counts > low) & (counts <= high)].mean() for low, high in pairwise(edges)]
    ax.plot(names, means, marker="o", label=f"{name}: {error.mean():.3f}")
ax.set(xlabel="training ratings of the user", ylabel="MAE", ylim=(0, None))
ax.legend(frameon=False, loc="lower left")
plt.show()
