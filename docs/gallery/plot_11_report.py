"""
A comparison and its report
===========================

``evaluate`` compares models on one split, with intervals over users and tests against the best.
``evaluation_report`` makes a page of the result that one can send around; ``ordrec evaluate
--report r.html`` does the same.
"""

import tempfile
from pathlib import Path

from ordrec import evaluate
from ordrec.datasets import synthetic_ratings
from ordrec.report.evaluation import evaluation_report

ratings = synthetic_ratings(300, 120, n_ratings=9_000, seed=2)
result = evaluate(
    ratings,
    ["mean", "bias", "item-knn", "factors", "popularity"],
    metrics=["rmse", "mae", "log_loss", "ndcg@10"],
)
result

# %%
# The same as a chart. "best" and what is not significantly worse are coloured.

figure = result.plot()

# %%
# The page, written into a folder with every figure as svg and pdf.

folder = Path(tempfile.mkdtemp())
page = evaluation_report(result, "Invented ratings").write(folder)
print(sorted(path.name for path in folder.rglob("*") if path.is_file()))
print(evaluation_report(result).lead)
