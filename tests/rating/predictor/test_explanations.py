"""Explanations: sums in units of the ratings that a reader can follow."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.two_taste_ratings import two_taste_ratings

from ordrec.data import Ratings, Scale
from ordrec.recommend import Explanation, RatingPredictor

PRESETS = ["full", "fast", "large"]
COLUMNS = ["source", "id", "title", "rating", "contribution"]


def titled(ratings: Ratings) -> Ratings:
    titles = [f"Film №{k}" for k in range(ratings.n_items)]
    return ratings.with_side_tables(
        item_table=pd.DataFrame({"title": titles}, index=ratings.item_ids)
    )


RATINGS = titled(two_taste_ratings(dated=True))
SPAN = float(np.ptp(RATINGS.scale.values))


@pytest.fixture(scope="module")
def models() -> dict[str, RatingPredictor]:
    fitted = {}
    for preset in PRESETS:
        model = RatingPredictor(preset=preset, learn="defaults").fit(RATINGS)  # type: ignore[arg-type]
        fitted[preset] = model.update([7] * 3, [501, 502, 900], [5.0, 1.0, 4.0])
    return fitted


def check(model: RatingPredictor, explained: Explanation, user, item, time=None) -> None:
    times = None if time is None else [time]
    expected = float((model.predict_proba([user], [item], times) @ model.scale_.values)[0])
    terms = explained.table["contribution"]
    assert explained.expected == pytest.approx(expected, abs=1e-9)
    assert terms.sum() == pytest.approx(expected, abs=1e-9)
    assert np.isfinite(terms).all()
    assert terms[0] == pytest.approx(model.known_ratings().values.mean())
    assert (terms[1:].abs() <= SPAN).all()
    own = explained.table[explained.table["source"] == "own rating"]
    assert set(np.sign(own["contribution"])) <= {-1.0} or set(np.sign(own["contribution"])) <= {1.0}


@given(
    preset=st.sampled_from(PRESETS),
    user=st.sampled_from([*RATINGS.user_ids.tolist(), 7, -1]),
    item=st.sampled_from([*RATINGS.item_ids.tolist(), 900, -7]),
    time=st.sampled_from([None, 12_000]),
)
@settings(max_examples=40)
def test_they_add_up_and_no_term_leaves_the_scale(models, preset, user, item, time) -> None:
    model = models[preset]
    check(model, model.explain(user, item, time), user, item, time)


def test_the_terms_of_a_known_user(models) -> None:
    model = models["fast"]
    table = model.explain(103, 504).table
    assert table.columns.tolist() == COLUMNS
    assert table["source"].tolist()[:3] == ["all ratings", "this item", "you"]
    rated = RATINGS.of_user(103).set_index("item")["rating"]
    own = table[table["source"] == "own rating"]
    assert set(own["id"]) <= set(rated.index)
    assert own["rating"].tolist() == rated[own["id"]].tolist()
    assert own["title"].tolist() == [f"Film №{item - 500}" for item in own["id"]]
    assert table["title"].tolist()[:3] == ["", "", ""]


def test_what_is_said_of_the_item_and_of_the_user_is_that_of_strangers(models) -> None:
    model, values = models["fast"], RATINGS.scale.values
    table = model.explain(103, 504).table
    users, items = [-1, 103, -1], [504, -7, -7]
    of_item, of_user, of_nobody = model.predict_proba(users, items) @ values
    mean = table["contribution"][0]
    assert table["contribution"][1] == pytest.approx(of_item - mean)
    assert table["contribution"][2] == pytest.approx(of_user - of_nobody)


@pytest.mark.parametrize("preset", PRESETS)
def test_strangers_are_explained_too(models, preset: str) -> None:
    model = models[preset]
    for user, item in ((-1, 504), (-1, -7), (103, -7)):
        table = model.explain(user, item).table
        assert table["source"].tolist() == ["all ratings", "this item", "you", "taste"]
        assert table["contribution"][3] == pytest.approx(0.0, abs=1e-9)
        if user == -1:
            assert table["contribution"][2] == pytest.approx(0.0, abs=1e-9)
    assert "your taste as a whole" in str(model.explain(-1, 504))


def test_in_words(models) -> None:
    explained = models["fast"].explain(103, 504)
    lines = str(explained).splitlines()
    assert lines[0] == f"expected rating {explained.expected:.2f}"
    assert lines[1].endswith("the mean of all ratings")
    assert lines[2].endswith("what others think of this item")
    assert lines[3].endswith("how you rate in general")
    assert "because you gave" in lines[4] or "of your ratings, such as" in lines[4]
    assert "to Film №" in lines[4]
    assert all(len(line) < 80 for line in lines)


def test_in_words_many_small_reasons_are_one() -> None:
    general = [("all ratings", 3.5), ("this item", -0.5), ("you", 0.25)]
    titles = ["The " + "Very " * 20 + "Long Title", *[f"Film {k}" for k in range(99)]]

    def explanation(own: list[float]) -> str:
        table = pd.DataFrame(
            {
                "source": [name for name, _ in general] + ["own rating"] * len(own),
                "id": [None] * 3 + list(range(len(own))),
                "title": ["", "", "", *titles[: len(own)]],
                "rating": [np.nan] * 3 + [4.5] * len(own),
                "contribution": [size for _, size in general] + own,
            }
        )
        return str(Explanation(float(table["contribution"].sum()), table))

    small = explanation([0.004] * 50).splitlines()
    assert small[:3] == [
        "expected rating 3.45",
        "+3.50 the mean of all ratings",
        "-0.50 what others think of this item",
    ]
    assert len(small) == 5
    assert small[4].startswith("+0.20 from 50 of your ratings, such as 4.5 to The Very Very")
    assert small[4].endswith(" ...")
    mixed = explanation([-0.001, -0.2, *[-0.1] * 6]).splitlines()
    assert mixed[4] == "-0.20 because you gave 4.5 to Film 0"
    assert mixed[-1] == "-0.20 from 3 more ratings"
    assert len(mixed) == 1 + 3 + 5 + 1
    assert max(map(len, small + mixed)) <= 80


def test_the_largest_terms_and_the_rest(models) -> None:
    explained = models["fast"].explain(103, 504)
    some = explained.largest(2)
    assert some["source"].tolist()[:3] == ["all ratings", "this item", "you"]
    assert some["source"].tolist()[3:] == ["own rating", "own rating", "others"]
    assert some["contribution"].sum() == pytest.approx(explained.expected)
    assert some["title"].notna().all()
    own = explained.table["contribution"][3:].abs()
    assert some["contribution"][3:5].abs().tolist() == own.nlargest(2).tolist()
    assert len(explained.largest(10_000)) == len(explained.table)


def test_without_titles_ids_are_named() -> None:
    plain = two_taste_ratings(n_users=20, n_items=15)
    model = RatingPredictor(preset="large").fit(plain)
    explained = model.explain(103, 504)
    assert explained.table.columns.tolist() == [name for name in COLUMNS if name != "title"]
    rows = explained.table
    first = rows[rows["source"] == "own rating"].iloc[0]
    assert f"to {first['id']}" in str(Explanation(explained.expected, rows[:4]))


@pytest.mark.parametrize("scale", [Scale([0, 1]), Scale([-1, 0, 7]), Scale.regular(0.5, 5, 0.5)])
def test_any_scale(scale: Scale) -> None:
    ratings = two_taste_ratings(8, n_users=25, n_items=15, scale=scale)
    model = RatingPredictor(preset="fast").fit(ratings)
    for user, item in ((100, 500), (103, 507), (-1, 503), (101, -7)):
        explained = model.explain(user, item)
        expected = float((model.predict_proba([user], [item]) @ scale.values)[0])
        assert explained.table["contribution"].sum() == pytest.approx(expected, abs=1e-9)
        assert (explained.table["contribution"][1:].abs() <= np.ptp(scale.values)).all()
