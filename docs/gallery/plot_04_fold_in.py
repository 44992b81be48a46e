"""
A new user, without a new fit
=============================

A customer who was not there when the model was fitted rates a film, and another one. ``fold_in``
takes the ratings into the model within milliseconds. With every rating the model knows the customer
better, and the distribution of a film they have not rated moves to where their taste lies.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ordrec import OrdinalFactors, Ratings, load_dataset

ratings = load_dataset("ml-latest-small-2016").without_timestamps()
model = OrdinalFactors(n_factors=16).fit(ratings)
titles = ratings.item_table["title"]

NEW = 1000  # no user has this id yet

# Somebody who loves space operas and has no patience with romances.
given = [(260, 5), (1196, 5), (1210, 4.5), (2571, 4.5), (356, 2), (597, 1), (587, 1.5), (1721, 1)]
print([titles[item] for item, _ in given])

# %%
# After 0, 2, 4 and 8 ratings: what is expected of "Raiders of the Lost Ark" and of "Notting Hill"?

films = [1198, 2671]
values = ratings.scale.values
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for n in (0, 2, 4, 8):
    frame = pd.DataFrame(given[:n], columns=["item", "rating"]).assign(user=NEW)
    knows = model.fold_in(Ratings.from_frame(frame, scale=ratings.scale)) if n else model
    p = knows.predict_proba([NEW, NEW], films)
    for ax, film, row in zip(axes, films, p, strict=True):
        ax.plot(values, row, marker="o", markersize=4, label=f"{n} ratings: {row @ values:.2f}")
        ax.set(title=titles[film].split(" (")[0], xlabel="stars")
for ax in axes:
    ax.legend(frameon=False)
axes[0].set_ylabel("probability")
plt.show()

# %%
# ``update`` adds one rating to what is known of a user; ``fold_in`` replaces it.

frame = pd.DataFrame(given, columns=["item", "rating"]).assign(user=NEW)
knows = model.fold_in(Ratings.from_frame(frame, scale=ratings.scale))
knows = knows.update(NEW, 2671, 4.5)  # they liked that one
print(np.round(knows.predict([NEW], [597]), 2), "stars are expected of Pretty Woman now")
