"""
Do the probabilities come true?
===============================

``predict_proba`` of a rating model is a distribution over the whole scale. If it says 0.3, that
rating should be given about three times in ten. A reliability diagram compares the two on ratings
that the model has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np

from ordrec import OrdinalFactors, load_dataset
from ordrec.evaluation import UserHoldOut, expected_calibration_error
from ordrec.recommend import RatingHistogram

ratings = load_dataset("ml-latest-small-2016")
split = next(UserHoldOut(0.2, random_state=0).split(ratings))
test = split.test
users, items = test.user_ids[test.users], test.item_ids[test.items]

models = {
    "histogram of all ratings": RatingHistogram().fit(split.train),
    "ordinal factors": OrdinalFactors(n_factors=16).fit(split.train.without_timestamps()),
}

# %%
# Every probability of every rating value is sorted into one of ten bins; the dots show how often
# the ratings in a bin were given. The size of a dot is the share of the predictions in its bin.

fig, axes = plt.subplots(1, 2, figsize=(8.4, 4), sharex=True, sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    p = model.predict_proba(users, items)
    happened = np.asarray(test.levels)[:, None] == np.arange(p.shape[1])
    place = np.minimum((10 * p).astype(int), 9)
    filled = [b for b in range(10) if (place == b).sum() >= 50]
    predicted = [p[place == b].mean() for b in filled]
    observed = [happened[place == b].mean() for b in filled]
    share = [(place == b).mean() for b in filled]
    ax.plot([0, 1], [0, 1], ":", color="0.4")
    ax.scatter(predicted, observed, s=20 + 400 * np.array(share))
    error = expected_calibration_error(np.asarray(test.levels), p)
    ax.set(title=f"{name}\ncalibration error {error:.3f}", xlabel="predicted probability")
axes[0].set_ylabel("observed frequency")
plt.show()

# %%
# The histogram is calibrated too, but it never says more than 0.3: calibration alone is no virtue.
# The factors dare to say 0.7 and are right about it. ``ordrec.report.figures.reliability_diagram``
# draws this diagram for any model, and `ordrec evaluate --report` puts it on its page.
