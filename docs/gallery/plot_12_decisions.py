"""
Mean, median or mode?
=====================

A distribution becomes one number by a decision, and each decision is best for one measure: the mean
for RMSE, the median for MAE, the mode for the share of exact hits. ``decide`` makes them, and any
other that a table of costs asks for.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import OrdinalFactors
from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import UserHoldOut, decide, mae, mze, rmse

ratings = synthetic_ratings(300, 150, n_ratings=12_000, noise=1.0, seed=4)
split = next(UserHoldOut(0.25, random_state=0).split(ratings))
model = OrdinalFactors(n_factors=4).fit(split.train)
test = split.test
p = model.predict_proba(test.user_ids[test.users], test.item_ids[test.items])
values = ratings.scale.values

guesses = {"mean": p @ values}
guesses |= {name: values[decide(p, name)] for name in ("median", "mode")}
measures = {"RMSE": rmse, "MAE": mae, "share of misses": mze}
for name, guess in guesses.items():
    print(name, {m: round(float(f(test.values, guess)), 3) for m, f in measures.items()})

# %%
# Three distributions, and where the three decisions lie.

rows = [int(np.argmin(np.abs(p @ values - target))) for target in (1.7, 3.0, 4.3)]
fig, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharey=True, layout="constrained")
for ax, row in zip(axes, rows, strict=True):
    ax.bar(values, p[row], color="lightsteelblue")
    for (name, guess), style in zip(guesses.items(), ("-", "--", ":"), strict=True):
        ax.axvline(guess[row], color="0.2", linestyle=style, label=name)
    ax.set(xlabel="rating", xticks=values)
axes[0].set_ylabel("probability")
axes[-1].legend(frameon=False)
plt.show()
