"""
Documents by graded relevance
=============================

A dozen queries, and documents that were judged 0, 1 or 2 for them. ``RelevanceRanker`` makes
features of the words of query and document and learns from the grades; it can rank documents for
queries it has never seen.
"""

import matplotlib.pyplot as plt

from ordrec.documents import RelevanceRanker, evaluate_ranking, read_judgements
from ordrec.documents.judgements import sample_of_judgements

judged = read_judgements(sample_of_judgements())
print(judged)

# %%
# Rankers are compared on held-out queries, with intervals over queries.

result = evaluate_ranking(["ordinal", "bm25"], judged)
result

# %%
# A model for all queries, and a new one.

ranker = RelevanceRanker().fit(judged.X, judged.grades, judged.queries)
texts = [
    "Pruning roses in early spring keeps the bushes healthy.",
    "The history of the rose in heraldry.",
    "Tuning a violin with and without fine tuners.",
    "Compost for the garden: what to put on the heap.",
]
ranked = ranker.rank(texts, ["pruning roses"] * 4, documents=["a", "b", "c", "d"])
ranked

# %%
# The probabilities of the grades, best document first.

p = ranker.predict_proba(texts, ["pruning roses"] * 4)
order = [["a", "b", "c", "d"].index(name) for name in ranked["document"]]
fig, ax = plt.subplots(figsize=(7.5, 2.8), layout="constrained")
left = 0
for k, (grade, colour) in enumerate(
    {"not relevant": "0.85", "somewhat": "lightsteelblue", "relevant": "tab:blue"}.items()
):
    ax.barh(range(4), p[order, k], left=left, color=colour, label=grade)
    left = left + p[order, k]
ax.set_yticks(range(4), [texts[k][:34] + "…" for k in order])
ax.invert_yaxis()
ax.set_xlabel("probability")
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.4, 1.0))
plt.show()
