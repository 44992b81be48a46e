"""
Histories in time
=================

People change how they rate, and a random split hides it: it lets the model look at ratings that
were given after those it predicts. A split by time asks what will come. The same models are
compared on both.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import load_dataset
from ordrec.evaluation import evaluate

ratings = load_dataset("ml-latest-small-2016")
models = ["mean", "bias", "popularity", "ease"]
splits = {"random fifth": "user-holdout:0.2", "latest fifth": "user-time:0.2"}
results = {
    name: evaluate(ratings, models, split=split, metrics=["rmse", "ndcg@10"])
    for name, split in splits.items()
}
results["latest fifth"]

# %%
# The two splits ask different questions, and the lists change more than the ratings do. Which
# number counts depends on what the model is for: a shop wants to know what is bought next.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, metric in zip(axes, ["rmse", "ndcg@10"], strict=True):
    for shift, (name, result) in zip((-0.2, 0.2), results.items(), strict=True):
        frame = result.frame
        chosen = frame[(frame["metric"] == metric) & (frame["users"] == "all")]
        chosen = chosen[chosen["average"] == result.averages()[metric]]
        means = chosen.groupby("model")["value"].mean().reindex(models).dropna()
        ax.barh(np.arange(len(means)) + shift, means, height=0.38, label=name)
    ax.set(title=metric, yticks=range(len(means)))
    ax.set_yticklabels(means.index)
    ax.invert_yaxis()
axes[1].legend(frameon=False)
plt.show()
