"""
Items that nobody has rated
===========================

A film that is new in the catalogue has no ratings, but it has a genre and a year. Models with side
data predict it from these, and say how unsure they are.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import OrdinalFactors, Ratings, load_dataset

ratings = load_dataset("ml-latest-small-2016").without_timestamps()
ratings.item_table.head(3)

# %%
# Hide every rating of a tenth of the items, and fit to the others: once with the table of items and
# once without it.

rng = np.random.default_rng(0)
cold = rng.random(ratings.n_items) < 0.1
train, test = ratings.select(~cold[ratings.items]), ratings.select(cold[ratings.items])
users, items = test.user_ids[test.users], test.item_ids[test.items]

models = {
    "genres, years and titles": OrdinalFactors(n_factors=16).fit(train),
    "ids alone": OrdinalFactors(n_factors=16).fit(
        Ratings.from_frame(train.to_frame(), scale=ratings.scale)
    ),
}
rmse = {
    name: float(np.sqrt(np.mean((model.predict(users, items) - test.values) ** 2)))
    for name, model in models.items()
}
rmse["mean of all ratings"] = float(np.sqrt(np.mean((train.values.mean() - test.values) ** 2)))
print(rmse)

# %%
# Left: errors on the hidden items. Right: how sure the model is. The standard deviation of the
# predicted rating is larger for hidden items than for those with many ratings.

known = rng.choice(train.n_ratings, 3000, replace=False)
pairs = {
    "hidden items": (users[:3000], items[:3000]),
    "items with ratings": (
        train.user_ids[train.users[known]],
        train.item_ids[train.items[known]],
    ),
}
values = ratings.scale.values
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.barh(list(rmse), list(rmse.values()), color="tab:blue", height=0.5)
left.set(xlabel="RMSE on hidden items", xlim=(0.7, None))
for name, pair in pairs.items():
    p = models["genres, years and titles"].predict_proba(*pair)
    spread = np.sqrt(p @ values**2 - (p @ values) ** 2)
    right.hist(spread, bins=40, density=True, alpha=0.6, label=name)
right.set(xlabel="standard deviation of the predicted rating, in stars", yticks=[])
right.legend(frameon=False)
plt.show()
