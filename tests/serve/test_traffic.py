"""Who watches over a served model: health, counts for Prometheus, a log; and what it may list."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from support.serving import client_of, titled_ratings

from ordrec.recommend import BiasModel, Popularity, RatingHistogram
from ordrec.serve.traffic import Traffic

POPULARITY = Popularity().fit(titled_ratings())


def counts(client: Any) -> dict[str, float]:
    lines = client.get("/metrics").text.splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def listed(client: Any, **asked: Any) -> list[str]:
    answer = client.post("/api/recommend", json={"user": 100, **asked})
    assert answer.status_code == 200, answer.text
    return [row["item"] for row in answer.json()["items"]]


def test_health_names_the_model() -> None:
    answer = client_of(POPULARITY, name="films").get("/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert answer.json()["model"] == "films"


def test_answers_are_counted_by_address_and_status() -> None:
    client = client_of(POPULARITY)
    listed(client)
    listed(client)
    client.post("/api/recommend", json={"user": 100, "n": 0})
    for k in range(5):
        client.get(f"/nowhere/{k}")
    found = counts(client)
    recommend = 'ordrec_requests_total{path="/api/recommend",method="POST"'
    assert found[recommend + ',status="200"}'] == 2
    assert found[recommend + ',status="422"}'] == 1
    assert found['ordrec_requests_total{path="other",method="GET",status="404"}'] == 5
    assert found['ordrec_request_seconds_count{path="/api/recommend"}'] == 3
    assert not any("nowhere" in name for name in found)


def test_seconds_fall_into_their_bins() -> None:
    traffic = Traffic(["/a"])
    for seconds in (0.004, 0.005, 0.3, 99.0):
        traffic.count("GET", "/a", 200, seconds)
    bins = dict(re.findall(r'le="([^"]+)"} (\d+)', traffic.text()))
    expected = {"0.005": "2", "0.25": "2", "0.5": "3", "10": "3", "+Inf": "4"}
    assert {bound: bins[bound] for bound in expected} == expected
    assert 'ordrec_request_seconds_sum{path="/a"} 99.309000' in traffic.text()


def test_the_log_has_one_printable_line_per_answer() -> None:
    lines: list[str] = []
    client = client_of(POPULARITY, access_log=lines.append)
    client.get("/health")
    client.get("/%1b[31m%0a")
    assert len(lines) == 2
    assert re.fullmatch(r"\S+ GET /health 200 \d+\.\d ms", lines[0])
    assert all(line.isprintable() for line in lines)
    assert lines[1].split()[3] == "404"


@pytest.mark.parametrize("model", [POPULARITY, RatingHistogram().fit(titled_ratings())])
def test_items_can_be_excluded_and_lists_confined(model: Any) -> None:
    client = client_of(model)
    everything = listed(client, n=30)
    first, second, third = everything[:3]
    assert listed(client, n=30, exclude=[first, third]) == [
        item for item in everything if item not in (first, third)
    ]
    assert listed(client, only=[third, second]) == [second, third]
    assert listed(client, only=[third, second], exclude=[second]) == [third]


def test_unknown_items_in_filters_are_named() -> None:
    answer = client_of(POPULARITY).post("/api/recommend", json={"user": 100, "exclude": [-5]})
    assert answer.status_code == 404
    assert "item -5 is not in the model" in answer.json()["error"]


def test_items_as_asked_take_no_filters() -> None:
    client = client_of(POPULARITY)
    asked = {"ratings": [], "items": [500], "only": [501]}
    answer = client.post("/api/fold-in", json=asked)
    assert answer.status_code == 422
    assert "without exclude and only" in answer.json()["error"]


def test_any_host_name_is_answered_where_that_was_asked_for() -> None:
    model = BiasModel().fit(titled_ratings())
    elsewhere = {"Host": "shop.example:8000"}
    assert client_of(model).get("/health", headers=elsewhere).status_code == 421
    assert client_of(model, hosts=("*",)).get("/health", headers=elsewhere).status_code == 200
    named = client_of(model, hosts=("shop.example",))
    assert named.get("/health", headers=elsewhere).status_code == 200
    assert named.get("/health").status_code == 421
