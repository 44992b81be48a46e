"""Three ways through the library from Python: a paper's comparison, documents, a tabular target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ordrec import load, save
from ordrec.datasets import load_letor, synthetic_ratings
from ordrec.documents import RelevanceRanker
from ordrec.evaluation import evaluate
from ordrec.ordinal import GPOR, SVORIM, ConformalOrdinal, OrdinalLogistic
from ordrec.ordinal.tuning import tune
from ordrec.recommend import OrdinalFactors

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
GRADES = ["poor", "fair", "good"]


class Shrunk:
    """A researcher's own model: the mean of each item, drawn towards that of all."""

    def __init__(self, weight: float = 5.0):
        self.weight = weight

    def fit(self, ratings):
        self.mean = ratings.values.mean()
        sums = np.bincount(ratings.items, ratings.values - self.mean, ratings.n_items)
        shift = sums / (ratings.item_counts + self.weight)
        self.shift = pd.Series(shift, index=ratings.item_ids)
        return self

    def predict(self, users, items):
        return self.mean + self.shift.reindex(items).fillna(0.0).to_numpy()


def test_the_comparison_of_a_paper(tmp_path) -> None:
    ratings = synthetic_ratings(120, 50, n_ratings=4000, seed=1)
    models = {
        "ours": Shrunk(),
        "factors": OrdinalFactors(n_factors=3, pattern=2, max_iter=8),
        "mean": "mean",
    }
    result = evaluate(ratings, models, split="user-holdout:0.2", seed=3)
    summary = result.summary()
    assert list(summary.index) == ["ours", "factors", "mean"]
    assert summary["rmse"].idxmin() == "factors"
    assert max(map(len, str(summary).splitlines())) <= 80
    latex = result.to_latex(caption="Rating models", label="tab:models")
    assert r"\toprule" in latex
    best = next(line for line in latex.splitlines() if line.startswith("factors"))
    assert r"\textbf" in best
    assert r"\label{tab:models}" in latex
    result.plot(metrics=["rmse"]).savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    again = evaluate(ratings, models, split="user-holdout:0.2", seed=3)
    pd.testing.assert_series_equal(again.summary()["rmse"], summary["rmse"])


def test_documents_by_relevance(tmp_path) -> None:
    letor = load_letor(SAMPLES / "letor")
    part = letor if hasattr(letor, "X") else next(iter(letor.folds)).train
    ranker = RelevanceRanker(OrdinalLogistic(), scaling="range")
    ranker.fit(part.X, part.y, queries=part.queries)
    ranking = ranker.rank(part.X, queries=part.queries, documents=np.arange(len(part.y)))
    firsts = ranking[ranking["rank"] == 1]
    assert len(firsts) == len(set(part.queries))
    save(ranker, tmp_path / "ranker.ordrec")
    stored = load(tmp_path / "ranker.ordrec")
    pd.testing.assert_frame_equal(
        stored.rank(part.X, queries=part.queries, documents=np.arange(len(part.y))), ranking
    )


@pytest.fixture(scope="module")
def patients() -> tuple[pd.DataFrame, pd.Series]:
    """A table in unlike units with an ordered target, as from a spreadsheet."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "salary": rng.normal(50_000, 20_000, 240),
            "height": rng.normal(1.7, 0.1, 240),
            "visits": rng.poisson(3, 240),
        }
    )
    latent = (table["height"] - 1.7) / 0.1 + 0.3 * rng.normal(size=240)
    return table, pd.Series(pd.cut(latent, [-9, -0.5, 0.5, 9], labels=GRADES))


@pytest.mark.parametrize("model", [SVORIM(), GPOR(), OrdinalLogistic()])
def test_a_tabular_target_as_it_is(patients, tmp_path, model) -> None:
    """Unscaled columns, a data frame, an ordered Categorical: nothing must be prepared."""
    X, y = patients
    model.fit(X[:160], y[:160])
    assert list(model.classes_) == GRADES
    right = (model.predict(X[160:]) == y[160:].to_numpy()).mean()
    assert right > 0.6  # the most frequent grade is right for 0.4
    save(model, tmp_path / "model.ordrec")
    assert (load(tmp_path / "model.ordrec").predict(X[160:]) == model.predict(X[160:])).all()


def test_a_tabular_target_tuned_summed_up_and_with_sets(patients) -> None:
    X, y = patients
    pipeline = make_pipeline(StandardScaler(), SVORIM())
    grid = {"svorim__C": [0.1, 10.0], "svorim__gamma": [0.01, 0.3]}
    found = tune(pipeline, X[:160], y[:160], grid, cv=3)
    assert found.best_params["svorim__C"] in (0.1, 10.0)
    assert cross_val_score(pipeline, X, y.astype(str).map(GRADES.index), cv=3).mean() > 0.6
    summary = OrdinalLogistic().fit(X, y).summary()
    assert abs(summary.loc["height", "z"]) > 5 > abs(summary.loc["salary", "z"])
    sets = ConformalOrdinal(OrdinalLogistic(), coverage=0.8, random_state=0).fit(X[:160], y[:160])
    low, high = (
        pd.Categorical(ends, categories=GRADES, ordered=True).codes
        for ends in sets.predict_interval(X[160:]).T
    )
    truth = y[160:].cat.codes.to_numpy()
    assert ((low <= truth) & (truth <= high)).mean() >= 0.7
    with pytest.raises(AttributeError, match="probability=True"):
        SVORIM().fit(X, y).predict_proba(X)
