"""
Thresholds of SVOREX and SVORIM
===============================

Both machines of Chu and Keerthi (2007) learn one latent score and the thresholds that divide it
into grades. SVOREX lets only the two neighbouring grades pull at a threshold and keeps the
thresholds in order by constraints; SVORIM lets all grades pull, which keeps the order by itself.
The difference shows where a grade is rare.

The data are invented: 150 students with the hours they studied and the score of a mock exam, few
of whom got the grade "C".
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec.ordinal import SVOREX, SVORIM

rng = np.random.default_rng(3)
grades = ["F", "D", "C", "B", "A"]  # lowest first
hours, mock = rng.uniform(0, 10, 150), rng.normal(50, 15, 150)
ability = 0.5 * hours + 0.06 * mock + rng.normal(scale=0.7, size=150)
y = np.array(grades)[np.digitize(ability, [3.8, 5.2, 5.5, 7.0])]
X = np.column_stack([hours, mock])
print({grade: int((y == grade).sum()) for grade in grades})

# %%
# Both models are given the grades in their order. Hours and points are in unlike units, which the
# estimators standardise by themselves.

models = {
    "SVOREX": SVOREX(C=1, kernel="linear", classes=grades).fit(X, y),
    "SVORIM": SVORIM(C=1, kernel="linear", classes=grades).fit(X, y),
}
for name, model in models.items():
    print(name, np.round(model.thresholds_, 2), f"accuracy {model.score(X, y):.2f}")

# %%
# The latent score of every student, with the thresholds as lines. The explicit constraints may give
# two thresholds one place: the rare grade between them is then never predicted.

colours = plt.cm.viridis(np.linspace(0, 0.9, len(grades)))
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    latent = model.predict_latent(X)
    for k, grade in enumerate(grades):
        own = latent[y == grade]
        ax.scatter(own, k + rng.uniform(-0.25, 0.25, own.size), s=12, color=colours[k])
    for threshold in model.thresholds_:
        ax.axvline(threshold, color="0.3", linewidth=0.9)
    ax.set(title=name, xlabel="latent score", yticks=range(len(grades)))
    ax.set_yticklabels(grades)
axes[0].set_ylabel("grade")
plt.show()
