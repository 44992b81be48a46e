"""
Purchases only
==============

Most shops have no stars, only who bought what. A table without ratings makes lists all the same,
and says how sure it is of every item.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import Ratings, evaluate, load_dataset
from ordrec.recommend import Recommender

watched = load_dataset("ml-latest-small-2016")
frame = watched.to_frame()[["user", "item"]]
purchases = Ratings.from_frame(frame, rating=None, item_table=watched.item_table)
purchases

# %%
# Lists are compared by whether they contain what was bought and hidden; nothing else is known.

result = evaluate(purchases, ["popularity", "ease"], metrics=["ndcg@10", "coverage@10"])
result

# %%
# A recommender of purchases has no expected ratings. ``p_pick`` is the probability that an item is
# among the next purchases, and the reasons are purchases, too.

model = Recommender("ease").fit(purchases)
model.recommend(15, n=5)

# %%
print(model.explain(15, model.recommend(15, n=1)["item"].iloc[0]))

# %%
# What is bought by many need not be what is sure: the probabilities along the list of three users.

fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for user in (15, 30, 100):
    listed = model.recommend(user, n=20)
    size = int((frame["user"] == user).sum())
    ax.plot(np.arange(1, 21), listed["p_pick"], marker="o", ms=3, label=f"{size} purchases")
ax.set(xlabel="place in the list", ylabel="p_pick", ylim=(0, None))
ax.legend(frameon=False)
plt.show()
