"""
What p_pick means
=================

Beside every recommended item stands ``p_pick``: the probability that the item is among the user's
next picks. Most recommenders have scores that only order the items; this number can be checked. A
fifth of each user's ratings is hidden, lists are made from the rest, and the picks that came true
are counted.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import Recommender, load_dataset
from ordrec.evaluation import UserHoldOut

ratings = load_dataset("ml-latest-small-2016").without_timestamps()
split = next(UserHoldOut(0.2, random_state=1).split(ratings))
model = Recommender(rating=None).fit(split.train)  # the choice model alone
lists = model.recommend_all(10)
lists.head()

# %%
# An item of a list was picked if it is among the hidden ratings of its user.

hidden = split.test.to_frame()[["user", "item"]].assign(picked=True)
lists = lists.merge(hidden, how="left", on=["user", "item"])
lists["picked"] = lists["picked"].notna()
print(f"expected {lists['p_pick'].sum():.0f} picks, counted {lists['picked'].sum()}")

# %%
# The same by the size of ``p_pick``, in eight bins of equally many recommendations.

lists["bin"] = np.minimum(8 * lists["p_pick"].rank(pct=True), 7).astype(int)
by_bin = lists.groupby("bin")[["p_pick", "picked"]].agg(["mean", "size"])
p, share = by_bin["p_pick"]["mean"], by_bin["picked"]["mean"]
error = 1.96 * np.sqrt(share * (1 - share) / by_bin["picked"]["size"])

fig, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
top = 1.15 * max(p.max(), share.max())
ax.plot([0, top], [0, top], ":", color="0.4", label="perfect")
ax.errorbar(p, share, yerr=error, fmt="o", label="observed, with 95 % intervals")
ax.set(xlabel="p_pick", ylabel="share that was picked")
ax.legend(frameon=False)
plt.show()

# %%
# The sum is right within a tenth. Picks of middling probability come true a little less often than
# said, those of high probability a little more often.
