"""
New items in lists
==================

Nobody has picked what came into the shop today. A recommender lists it all the same, by its columns
of the item table, with the probability that it is picked.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import load_dataset
from ordrec.evaluation import split_from_name
from ordrec.recommend import ChoiceMixture

ratings = load_dataset("ml-latest-small-2016").without_timestamps()
ratings.item_table.head(3)

# %%
# Hide every rating of a tenth of the films: they are new to the model, which knows their genres and
# years. The ridge of the regression on these is chosen by other films, set aside in the same way.

split = next(split_from_name("cold-items:0.1").split(ratings))
model = ChoiceMixture(regularization=200.0, mix=0.35, cold=16.0).fit(split.train)
new = np.flatnonzero((split.train.item_counts == 0) & (split.test.item_counts > 0))
model.recommend(15, n=5, only=ratings.item_ids[new])

# %%
# A tenth of a list can be kept for what is new.

model.recommend(15, n=10, explore=0.1)

# %%
# How much of what people picked of the new films is in the first places of lists of these alone,
# beside lists drawn at random and the order of the ratings that were hidden, which nobody can know.

users = np.intersect1d(split.test.users, split.train.users)
picked = split.test.matrix("one").T.tocsr()[users][:, new].toarray() > 0
users, picked = users[picked.any(axis=1)], picked[picked.any(axis=1)]
scores = {
    "new items": model.score_users(users)[:, new],
    "at random": np.random.default_rng(0).random(picked.shape),
    "hidden ratings": np.tile(picked.sum(axis=0), (users.size, 1)),
}
lengths = np.arange(1, 51)
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, own in scores.items():
    order = np.argsort(-own, axis=1, kind="stable")[:, : lengths[-1]]
    found = np.take_along_axis(picked, order, axis=1).cumsum(axis=1)
    ax.plot(lengths, (found / picked.sum(axis=1, keepdims=True)).mean(axis=0), label=name)
ax.set(xlabel="places in the list", ylabel="share of picks found", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
