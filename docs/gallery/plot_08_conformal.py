"""
Sets with guaranteed coverage
=============================

A conformal set holds the true grade as often as promised, whatever the model and however wrong its
probabilities. ``ConformalOrdinal`` keeps a part of the data to calibrate the sets; they are
contiguous, such as "fair to good", because the grades are ordered.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec.ordinal import ConformalOrdinal, OrdinalLogistic

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 2))
score = X[:, 0] + rng.logistic(scale=0.3 + 0.5 * (X[:, 1] > 0), size=len(X))
y = np.digitize(score, [-2.0, -0.7, 0.7, 2.0]) + 1
train, test = slice(0, 2000), slice(2000, None)

# %%
# The coverage that was promised, and the coverage on 4000 new samples. The noise depends on the
# second feature, which the model cannot know: its probabilities are wrong, and the sets still hold.

promised = np.array([0.6, 0.7, 0.8, 0.9, 0.95])
reached, sizes = [], []
for coverage in promised:
    model = ConformalOrdinal(OrdinalLogistic(), coverage=coverage, random_state=0)
    low, high = model.fit(X[train], y[train]).predict_interval(X[test]).T
    reached.append(np.mean((low <= y[test]) & (y[test] <= high)))
    sizes.append(np.mean(high - low + 1))
    print(f"promised {coverage:.2f}, reached {reached[-1]:.3f}, {sizes[-1]:.2f} grades on average")

# %%
# What a set says for a row of samples from the lowest to the highest latent score.

line = np.column_stack([np.linspace(-3.5, 3.5, 57), np.zeros(57)])
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot([0.55, 1], [0.55, 1], ":", color="0.4")
left.plot(promised, reached, marker="o")
left.set(xlabel="promised coverage", ylabel="coverage on new samples")
for coverage, colour in ((0.9, "lightsteelblue"), (0.6, "tab:blue")):
    model = ConformalOrdinal(OrdinalLogistic(), coverage=coverage, random_state=0)
    low, high = model.fit(X[train], y[train]).predict_interval(line).T
    right.bar(
        line[:, 0],
        high - low + 1,
        bottom=low - 0.5,
        width=0.125,
        color=colour,
        label=f"{coverage:.0%}",
    )
right.set(xlabel="first feature", ylabel="set of grades", yticks=range(1, 6))
right.legend(frameon=False, loc="upper left")
plt.show()
