"""Somebody with ratings and views: from both to lists, reasons, further ratings and comparisons."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.tasteful_events import SCALE, of_strangers, rated_and_viewed

from ordrec import RatingPredictor, Ratings, Recommender, evaluate, load, save
from ordrec.cli import main
from ordrec.errors import OrdrecWarning
from ordrec.recommend import BiasModel

RATINGS, VIEWS = rated_and_viewed()
BOTH = RATINGS.with_events(VIEWS)
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def model() -> Recommender:
    return Recommender(rating="factors", n_jobs=1).fit(BOTH)


def test_a_recommender_lists_what_is_new_and_says_why(model: Recommender, tmp_path: Path) -> None:
    assert model.choice_.event_weights_["view"] > 0
    viewed = set(VIEWS.loc[VIEWS["user"] == 4, "item"])
    listed = model.recommend(4, n=10)
    assert not viewed & set(listed["item"])
    assert listed["p_pick"].between(0, 1).all()
    assert "(seen)" in str(model.explain(4, listed["item"][0]))
    save(model, tmp_path / "m.ordrec")
    again = load(tmp_path / "m.ordrec")
    assert again.recommend(4, n=10)["item"].tolist() == listed["item"].tolist()

    # a rating of the first item takes it out, and what was viewed stays out
    updated = again.update(4, listed["item"][0], 5.0)
    assert not (viewed | {listed["item"][0]}) & set(updated.recommend(4, n=50)["item"])
    new = Ratings.from_frame(RATINGS.of_user(4).assign(user=800), scale=SCALE)
    joined = again.fold_in(new.with_events(VIEWS[VIEWS["user"] == 4].assign(user=800)))
    assert not viewed & set(joined.recommend(800, n=50)["item"])


def test_picks_with_times_and_views_take_in_further_picks() -> None:
    ratings, views = rated_and_viewed(dated=True)
    both = ratings.with_events(views).without_ratings()
    fitted = Recommender(future="next", n_jobs=1).fit(both)
    assert fitted.choice_.event_weights_["view"] > 0
    first = fitted.recommend(3, n=1)["item"][0]
    updated = fitted.update(3, first)
    seen = set(views.loc[views["user"] == 3, "item"])
    assert not ({first} | seen) & set(updated.recommend(3, n=30)["item"])


def test_noise_changes_neither_lists_nor_ratings() -> None:
    plain, noisy = (
        Recommender(rating="factors", n_jobs=1).fit(each)
        for each in (RATINGS, RATINGS.with_events(of_strangers(VIEWS)))
    )
    assert plain.recommend(9)["item"].tolist() == noisy.recommend(9)["item"].tolist()
    pairs = [1, 2, 3], RATINGS.item_ids[[5, 6, 7]]
    assert np.array_equal(plain.predict(*pairs), noisy.predict(*pairs))


def test_models_that_take_no_notice_say_so_and_others_do_not(recwarn) -> None:
    with pytest.warns(OrdrecWarning, match="BiasModel takes no notice of events"):
        BiasModel().fit(BOTH)
    recwarn.clear()
    RatingPredictor("large", n_jobs=1).fit(BOTH)
    assert not [each for each in recwarn if "notice" in str(each.message)]


def test_a_comparison_is_the_same_from_both_faces(tmp_path: Path, capsys: Captured) -> None:
    RATINGS.to_frame().to_csv(tmp_path / "r.csv", index=False)
    VIEWS.to_csv(tmp_path / "v.csv", index=False)
    words = ["evaluate", tmp_path / "r.csv", "--events", tmp_path / "v.csv", "-m", "ease",
             "--metrics", "ndcg@10", "-o", tmp_path / "out.csv", "-q"]  # fmt: skip
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    said = pd.read_csv(tmp_path / "out.csv")
    ours = evaluate(BOTH, ["ease"], metrics=["ndcg@10"], n_resamples=0).frame
    assert np.allclose(said["value"], ours["value"])
    capsys.readouterr()
    alone = evaluate(RATINGS, ["ease"], metrics=["ndcg@10"], n_resamples=0).frame
    assert not np.allclose(said["value"].iloc[0], alone["value"].iloc[0])
