"""
Landmarks: kernel machines on many rows
=======================================

The kernel matrix of n rows has n² entries. With ``n_landmarks`` a kernel method works through that
many rows of the data instead, and its time grows linearly with the rows. How much accuracy does it
cost?
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec.evaluation import mae
from ordrec.ordinal import SVORIM

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(4000, 2))
score = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + rng.normal(scale=0.25, size=len(X))
y = np.digitize(score, [-0.4, 0.3, 1.0, 1.7]) + 1
train, test = slice(0, 2000), slice(2000, None)

# %%
# Without landmarks, all 2000 training rows are in the kernel matrix.

rows = []
for n_landmarks in (10, 20, 40, 80, 160, None):
    model = SVORIM(C=1, gamma=1, n_landmarks=n_landmarks, random_state=0)
    model.fit(X[train], y[train])
    rows.append((n_landmarks or 2000, mae(y[test], model.predict(X[test]))))
landmarks, errors = np.array(rows).T
for row in rows:
    print("{:5d} landmarks: MAE {:.3f}".format(*row))

# %%
# Left: the error against the number of landmarks. Right: the grades that 80 landmarks predict.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogx(landmarks[:-1], errors[:-1], marker="o", label="landmarks")
left.axhline(errors[-1], color="0.4", linestyle=":", label="all rows")
left.set(xlabel="landmarks", ylabel="MAE")
left.legend(frameon=False)
model = SVORIM(C=1, gamma=1, n_landmarks=80, random_state=0).fit(X[train], y[train])
grid = np.stack(np.meshgrid(np.linspace(-2, 2, 120), np.linspace(-2, 2, 120)), axis=-1)
grades = model.predict(grid.reshape(-1, 2)).reshape(120, 120)
image = right.contourf(grid[..., 0], grid[..., 1], grades, levels=np.arange(0.5, 6), cmap="viridis")
fig.colorbar(image, ax=right, ticks=range(1, 6), label="grade")
plt.show()
