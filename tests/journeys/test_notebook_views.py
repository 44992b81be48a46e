"""What a notebook shows of ratings, models, explanations and figures."""

from __future__ import annotations

from ordrec import OrdinalFactors, Recommender
from ordrec.datasets import synthetic_ratings
from ordrec.evaluation import evaluate
from ordrec.recommend import EASE, BiasModel


def test_objects_are_shown_as_tables_and_names_cannot_bring_html_along() -> None:
    ratings = synthetic_ratings(40, 30, n_ratings=600, dated=True, name="<b>mine</b>")
    shown = ratings._repr_html_()
    assert "<b>" not in shown
    assert "<td>600 (50.00% of all pairs)</td>" in shown
    assert "<tr><th>times</th><td>yes</td></tr>" in shown
    model = BiasModel()
    assert "nothing yet" in model._repr_html_()
    assert "40 users, 30 items, Scale(1..5 by 1)" in model.fit(ratings)._repr_html_()
    explanation = OrdinalFactors(n_factors=2).fit(ratings).explain(0, 3)
    assert f"expected rating {explanation.expected:.2f}" in explanation._repr_html_()


def test_an_explained_pick_says_its_probabilities() -> None:
    ratings = synthetic_ratings(40, 30, n_ratings=600)
    model = Recommender(EASE(), BiasModel()).fit(ratings)
    shown = model.explain(0, 3)._repr_html_()
    assert "picked next with probability" in shown
    assert "<td>pick</td>" in shown


def test_a_figure_is_shown_as_an_image() -> None:
    ratings = synthetic_ratings(40, 30, n_ratings=600)
    figure = evaluate(ratings, ["mean", "bias"], metrics=["rmse"]).plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
