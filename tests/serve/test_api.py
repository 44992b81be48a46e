"""The API behind ``ordrec serve``: the answers of the model, and refusals in plain words."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from support.serving import TITLES, client_of, titled_ratings
from support.walks import N_ITEMS, walks

from ordrec.data import Ratings, Scale
from ordrec.datasets import synthetic_ratings
from ordrec.recommend import (
    BiasModel,
    GlobalMean,
    OrderedChoice,
    OrdinalFactors,
    Popularity,
    RatingPredictor,
    Recommender,
)
from ordrec.serve.catalogue import Catalogue
from ordrec.serve.guard import LARGEST_BODY

STARS = Scale.regular(1, 5)
RATED = [{"item": 500, "rating": 5}, {"item": 503, "rating": 1.0}]


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return titled_ratings()


@pytest.fixture(scope="module")
def model(ratings: Ratings) -> Recommender:
    return Recommender(rating=RatingPredictor("fast")).fit(ratings)


@pytest.fixture(scope="module")
def client(model: Recommender) -> Any:
    return client_of(model, name="films")


def test_the_model_introduces_itself(client: Any, ratings: Ratings) -> None:
    about = client.get("/api/model").json()
    assert (about["name"], about["model"]) == ("films", "Recommender")
    assert (about["n_users"], about["n_items"]) == (ratings.n_users, ratings.n_items)
    assert about["scale"] == [1, 2, 3, 4, 5]
    assert about["can"] == dict.fromkeys(("distributions", "recommend", "explain", "fold_in"), True)


def test_titles_are_found_by_words_without_case_and_accents(client: Any, ratings: Ratings) -> None:
    def found(**query: Any) -> list[str]:
        return [each["title"] for each in client.get("/api/items", params=query).json()["items"]]

    assert found(q="AMELIE") == [TITLES[0]]
    assert found(q="man third") == [TITLES[1]]
    assert set(found(q="third")) == set(TITLES[1:3])
    assert found(q="nothing of the kind") == []
    popular = found(n=3)
    names = ratings.item_table["title"].to_numpy()  # type: ignore[index]
    assert popular == names[np.argsort(-ratings.item_counts, kind="stable")[:3]].tolist()


def test_predictions_are_those_of_the_model(client: Any, model: Recommender) -> None:
    pairs = [{"user": 100, "item": 501}, {"user": "101", "item": "502"}, {"user": 7, "item": 8}]
    answer = client.post("/api/predict", json={"pairs": pairs}).json()
    users, items = [100, 101, 7], [501, 502, 8]
    p = model.predict_proba(users, items)
    np.testing.assert_allclose([each["distribution"] for each in answer["pairs"]], p, atol=1e-6)
    np.testing.assert_allclose(
        [each["rating"] for each in answer["pairs"]], model.predict(users, items), atol=1e-6
    )
    assert [each["known_user"] for each in answer["pairs"]] == [True, True, False]
    assert [each["title"] for each in answer["pairs"]] == [TITLES[1], TITLES[2], ""]


def test_lists_are_those_of_the_model(client: Any, model: Recommender) -> None:
    answer = client.post("/api/recommend", json={"user": 100, "n": 5}).json()
    table = model.recommend(100, 5)
    assert [row["item"] for row in answer["items"]] == table["item"].astype(str).tolist()
    for name in ("score", "p_pick", "expected", "p_like"):
        values = [row[name] for row in answer["items"]]
        np.testing.assert_allclose(values, table[name], atol=1e-6)
    assert answer["ordered_by"] == "recommended"
    assert answer["items"][0]["reasons"] is None


def test_the_reasons_add_up_to_the_expected_rating(client: Any) -> None:
    answer = client.post("/api/explain", json={"user": 100, "item": 501}).json()
    like = [each["contribution"] for each in answer["reasons"] if each["why"] == "like"]
    assert sum(like) == pytest.approx(answer["expected"], abs=1e-4)
    assert answer["title"] == TITLES[1]
    own = [each for each in answer["reasons"] if each["source"] == "own rating"]
    assert own
    assert all(each["title"] for each in own)


def test_somebody_new_is_folded_in_and_forgotten(client: Any, model: Recommender) -> None:
    before = client.get("/api/model").json()
    answer = client.post("/api/fold-in", json={"ratings": RATED, "n": 4, "reasons": 3}).json()
    frame = pd.DataFrame({"user": "new", "item": [500, 503], "rating": [5.0, 1.0]})
    folded = model.fold_in(Ratings.from_frame(frame, scale=model.scale_))
    listed = [int(row["item"]) for row in answer["items"]]
    assert listed == folded.recommend("new", 4)["item"].tolist()
    p = folded.predict_proba(["new"] * 4, listed)
    np.testing.assert_allclose([row["distribution"] for row in answer["items"]], p, atol=1e-6)
    assert all(row["reasons"] for row in answer["items"])
    assert client.get("/api/model").json() == before


def test_the_order_in_which_somebody_rates_counts() -> None:
    ratings = Ratings.from_frame(walks(), scale=Scale.regular(1, 5))
    choice = OrderedChoice("next", n_factors=4).fit(ratings)
    assert choice.weights_
    for model in (choice, Recommender.of_fitted(choice, None, choice.calibration_)):
        client = client_of(model)

        def listed(items: list[int], model: Any = model, client: Any = client, **order: bool):  # type: ignore[no-untyped-def]
            rated = [{"item": item, "rating": 4} for item in items]
            asked = {"ratings": rated, "n": 3} | order
            rows = client.post("/api/fold-in", json=asked).json()["items"]
            frame = pd.DataFrame({"user": -5, "item": items, "rating": 4})
            if order.get("ordered"):
                frame["timestamp"] = int(choice.newest_time) + 1 + np.arange(len(items))
            folded = model.fold_in(Ratings.from_frame(frame, scale=model.scale_))
            found = [int(row["item"]) for row in rows]
            assert found == folded.recommend(-5, 3)["item"].tolist()
            return found

        ahead = listed([3, 22, 30, 10], ordered=True)
        assert 1 <= (ahead[0] - 10) % N_ITEMS <= 3
        turned = listed([10, 22, 30, 3], ordered=True)
        assert 1 <= (turned[0] - 3) % N_ITEMS <= 3
        assert listed([3, 22, 30, 10]) == listed([10, 22, 30, 3])


def test_other_ratings_make_another_list(client: Any) -> None:
    def listed(*ratings: dict[str, float]) -> list[str]:
        asked = {"ratings": list(ratings), "n": 10}
        rows = client.post("/api/fold-in", json=asked).json()["items"]
        return [row["item"] for row in rows]

    assert listed() != listed(*RATED)
    assert "500" in [*listed(), *listed(RATED[1])]
    assert "500" not in listed(*RATED)


def test_somebody_new_may_ask_about_items(client: Any) -> None:
    asked = {"ratings": RATED, "items": [502, 500]}
    answer = client.post("/api/fold-in", json=asked).json()
    assert [row["item"] for row in answer["items"]] == ["502", "500"]
    assert answer["ordered_by"] == "as asked"


@pytest.mark.parametrize("start", [2**53, 10**18, 2**63 - 41])
def test_ids_beyond_what_browsers_count_to_come_back_as_they_were(start: int) -> None:
    """JavaScript reads 9007199254740993 as 9007199254740992, which is another item."""
    made = synthetic_ratings(30, 40, n_ratings=500, seed=0)
    frame = made.to_frame()
    frame["item"] += start
    frame["user"] += start
    model = OrdinalFactors(n_factors=2, max_iter=2).fit(Ratings.from_frame(frame, scale=made.scale))
    client = client_of(model)
    as_javascript = {"parse_int": lambda text: int(float(text))}
    found = json.loads(client.get("/api/items?n=40").text, **as_javascript)["items"]
    assert sorted(int(each["item"]) for each in found) == [start + k for k in range(40)]
    rated = [{"item": found[0]["item"], "rating": 5}, {"item": found[1]["item"], "rating": 1}]
    answer = client.post("/api/fold-in", json={"ratings": rated, "n": 3})
    assert answer.status_code == 200, answer.text
    listed = json.loads(answer.text, **as_javascript)["items"]
    assert not {each["item"] for each in rated} & {each["item"] for each in listed}
    pair = {"user": str(start + 3), "item": listed[0]["item"]}
    known = client.post("/api/predict", json={"pairs": [pair]}).json()["pairs"][0]
    assert (known["known_user"], known["known_item"]) == (True, True)
    assert known["user"] == str(start + 3)


# ---- other models ------------------------------------------------------------------------------


def test_every_serious_model_can_be_served(ratings: Ratings) -> None:
    for fitted in (RatingPredictor("fast").fit(ratings), OrdinalFactors(max_iter=3).fit(ratings)):
        client = client_of(fitted)
        answer = client.post("/api/fold-in", json={"ratings": RATED, "n": 3, "reasons": 2})
        rows = answer.json()["items"]
        assert len(rows) == 3
        assert not {"500", "503"} & {row["item"] for row in rows}
        assert all(sum(row["distribution"]) == pytest.approx(1, abs=1e-4) for row in rows)
        assert client.post("/api/recommend", json={"user": 100, "n": 3}).status_code == 200


def test_a_choice_model_has_lists_but_no_ratings(ratings: Ratings) -> None:
    client = client_of(Popularity().fit(ratings))
    assert client.get("/api/model").json()["can"] == {
        "distributions": False,
        "recommend": True,
        "explain": False,
        "fold_in": True,
    }
    rows = client.post("/api/fold-in", json={"ratings": RATED, "n": 3}).json()["items"]
    assert [row["distribution"] for row in rows] == [None] * 3
    pairs = {"pairs": [{"user": 100, "item": 500}]}
    assert client.post("/api/predict", json=pairs).json()["pairs"][0]["score"] is not None
    refused = client.post("/api/explain", json={"user": 100, "item": 500})
    assert (refused.status_code, refused.json()) == (
        422,
        {"error": "a Popularity cannot explain its predictions"},
    )


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (BiasModel(), "a BiasModel makes no lists: serve a recommender"),
        (GlobalMean(), "a GlobalMean cannot take in new users"),
        (Recommender(rating=GlobalMean()), "GlobalMean cannot take in new users"),
    ],
)
def test_what_a_model_cannot_do_is_said(model: Any, text: str, ratings: Ratings) -> None:
    client = client_of(model.fit(ratings))
    assert not client.get("/api/model").json()["can"]["fold_in"]
    refused = client.post("/api/fold-in", json={"ratings": RATED})
    assert refused.status_code == 422
    assert text in refused.json()["error"]
    pairs = {"pairs": [{"user": 100, "item": 500}]}
    assert client.post("/api/predict", json=pairs).json()["pairs"][0]["rating"] is not None


def test_string_ids_and_fine_scales() -> None:
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((20, 8)) < 0.7)
    frame = pd.DataFrame(
        {
            "user": [f"u{k}" for k in users[:-1]] + ["visitor"],
            "item": [f"tea {k}" for k in items],
            "rating": rng.integers(0, 1001, users.size) / 10,
        }
    )
    scale = Scale.binned(frame["rating"], bins=5)
    client = client_of(Popularity().fit(Ratings.from_frame(frame, scale=scale)))
    rated = [{"item": "tea 1", "rating": 33.3}]
    rows = client.post("/api/fold-in", json={"ratings": rated}).json()["items"]
    assert "tea 1" not in {row["item"] for row in rows}
    assert client.get("/api/items", params={"q": "TEA 3"}).json()["items"][0]["title"] == "tea 3"
    refused = client.post("/api/fold-in", json={"ratings": [{"item": "tea 1", "rating": 200}]})
    assert "ratings[0].rating: 200 is not between" in refused.json()["error"]


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("fold-in", {"ratings": [{"item": 1, "rating": 3}]}, 404,
         "item 1 is not in the model: look for it in /api/items?q="),
        ("fold-in", {"ratings": [{"item": 500, "rating": 4.2}]}, 422,
         "ratings[0].rating: 4.2 is not on the scale of the model, 1, 2, 3, 4, 5"),
        ("fold-in", {"ratings": [{"item": 500, "rating": "good"}]}, 422,
         "ratings[0].rating: input should be a valid number"),
        ("fold-in", {"ratings": [{"item": "x", "rating": 3}]}, 422,
         "item: the ids of this model look like 500"),
        ("fold-in", {"ratings": RATED * 2}, 422, "duplicate"),
        ("fold-in", {"ratings": RATED, "number": 3}, 422, "number: extra inputs"),
        ("fold-in", {"ratings": [RATED[0]] * 501}, 422, "ratings: list should have at most 500"),
        ("recommend", {"user": 100, "n": 0}, 422, "n: input should be greater than or equal to 1"),
        ("recommend", {"user": 100, "n": 101}, 422, "n: input should be less than or equal to 100"),
        ("recommend", {"user": "x" * 300}, 422, "user: string should have at most 200 characters"),
        ("recommend", {"user": True}, 422, "user: input should be a valid integer"),
        ("recommend", {}, 422, "user: field required"),
        ("predict", {"pairs": []}, 422, "pairs: list should have at least 1 item"),
        ("predict", {"pairs": [{"user": 100, "item": 500, "timestamp": "soon"}]}, 422,
         "timestamp 'soon' is neither seconds since 1970 nor a date"),
        ("explain", {"user": 100, "item": 1}, 404, "item 1 is not in the model"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(client: Any, path: str, body: Any, status: int, text: str) -> None:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == status
    assert text in answer.json()["error"]


def test_other_hosts_and_other_pages_are_refused(client: Any) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example:8000", "evil@127.0.0.1", ""):
        assert client.get("/api/model", headers={"host": host}).status_code == 421, host
    for host in ("localhost:8000", "127.0.0.1"):
        assert client.get("/api/model", headers={"host": host}).status_code == 200
    other = {"origin": "http://evil.example"}
    refused = client.post("/api/recommend", json={"user": 100}, headers=other)
    assert refused.status_code == 403
    own = {"origin": "http://127.0.0.1:8000"}
    assert client.post("/api/recommend", json={"user": 100}, headers=own).status_code == 200


def test_bodies_are_limited_and_must_be_json(client: Any) -> None:
    large = b" " * (LARGEST_BODY + 1)
    kind = {"content-type": "application/json"}
    assert client.post("/api/predict", content=large, headers=kind).status_code == 413
    parts = (large[:1000] for _ in range(LARGEST_BODY // 1000 + 2))  # without a Content-Length
    assert client.post("/api/predict", content=parts, headers=kind).status_code == 413
    assert client.post("/api/predict", content=b"{", headers=kind).status_code == 400
    deep = b"[" * 100_000
    assert client.post("/api/predict", content=deep, headers=kind).status_code == 400
    half = json.dumps({"user": "\ud800"}).encode()
    refused = client.post("/api/recommend", content=half, headers=kind)
    assert refused.status_code == 422
    form = client.post("/api/predict", content=b"pairs=1", headers={"content-type": "text/plain"})
    assert (form.status_code, form.json()["error"]) == (
        415,
        "the body must be json: send Content-Type: application/json",
    )


def test_what_is_not_there_is_said(client: Any) -> None:
    assert client.get("/nowhere").json() == {"error": "there is nothing at /nowhere: see /docs"}
    wrong = client.get("/api/predict")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert client.get("/redoc").status_code == 404


# ---- pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/docs", "/page.css", "/page.js", "/openapi.json"])
def test_nothing_is_loaded_from_outside(client: Any, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    known = ("http://127.0.0.1:8000/", "http://www.w3.org/2000/svg")  # itself, and a name
    text = answer.text
    for address in known:
        text = text.replace(address, "")
    assert not re.search(r"//[^ ]|http:|https:|@import", text)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_documentation_names_every_question(client: Any) -> None:
    text = client.get("/docs").text
    for path in client.get("/openapi.json").json()["paths"]:
        assert path in text
    assert "items[].reasons[].contribution" in text


def test_predictions_and_explanations_are_for_the_time_that_is_asked_for() -> None:
    ratings = titled_ratings()
    late = ratings.users % 2 == 0
    days = np.random.default_rng(0).integers(1, 700, ratings.n_ratings)
    levels = np.clip(ratings.levels + np.where(days > 350, 1, -1) * late, 0, 4)
    dated = ratings._replaced(levels=levels, timestamps=1_500_000_000 + 86_400 * days)
    model = OrdinalFactors(n_factors=2, pattern=2, max_iter=4).fit(dated)
    client, found = client_of(model), []
    user, item = 100, 500
    for when in ("2017-07-20", "2019-05-30"):
        seconds = int(pd.Timestamp(when).timestamp())
        asked = {"user": user, "item": item, "timestamp": when}
        why = client.post("/api/explain", json=asked).json()
        said = client.post("/api/predict", json={"pairs": [asked]}).json()["pairs"][0]
        expected = float(model.predict([user], [item], [seconds])[0])
        assert said["rating"] == pytest.approx(expected, abs=1e-3)
        assert why["expected"] == pytest.approx(expected, abs=1e-3)
        found.append(expected)
    assert abs(found[0] - found[1]) > 0.02


def test_ids_of_each_side_are_read_as_those_of_that_side() -> None:
    texts, numbers = ["07", "7", "8", "07"], [7, 8, 7, 9]
    for users, items, expected in ((texts, numbers, ["07", 7]), (numbers, texts, [7, "07"])):
        frame = pd.DataFrame({"user": users, "item": items, "rating": [1, 3, 5, 4]})
        catalogue = Catalogue(BiasModel().fit(Ratings.from_frame(frame, scale=STARS)))
        assert [catalogue.ids_of(["07"], side)[0] for side in ("user", "item")] == expected
