"""Whatever the description of the API allows or forbids is answered as it says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis: Any = pytest.importorskip("schemathesis")
pytest.importorskip("fastapi")

pytestmark = pytest.mark.fuzz


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """What can be asked, by path."""
    from support.serving import titled_ratings

    from ordrec.recommend import RatingPredictor, Recommender
    from ordrec.serve.app import make_app

    model = Recommender(rating=RatingPredictor("fast")).fit(titled_ratings())
    schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(model, hosts=["testserver"]))
    return {each.ok().path: each.ok() for each in schema.get_all_operations()}


@pytest.mark.parametrize("name", ["model", "items", "predict", "recommend", "explain", "fold-in"])
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_answers_are_as_described(operations: dict[str, Any], name: str, mode: str) -> None:
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    if (name, mode) == ("model", "negative"):
        return  # it is asked without anything that could be wrong
    asked = operations[f"/api/{name}"]

    @settings(max_examples=150, suppress_health_check=list(HealthCheck))
    @given(case=asked.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    def check(case: Any) -> None:
        # a question that the description allows may name unknown items, or ratings off the scale
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    check()
