"""A small model to serve, and a client that asks it."""

from __future__ import annotations

from typing import Any

import pandas as pd
from support.two_taste_ratings import two_taste_ratings

from ordrec.data import Ratings

TITLES = ("Amélie (2001)", "The Third Man (1949)", "Third Time Lucky <b>", "Stalker (1979)")


def titled_ratings() -> Ratings:
    """Ratings of 30 films, the first four with titles that tests look for."""
    ratings = two_taste_ratings(0)
    names = [*TITLES, *(f"Film {k}" for k in range(4, ratings.n_items))]
    return ratings.with_side_tables(
        item_table=pd.DataFrame({"title": names}, index=ratings.item_ids)
    )


def client_of(model: Any, **options: Any) -> Any:
    """A client of an application that serves a model."""
    from fastapi.testclient import TestClient

    from ordrec.serve.app import make_app

    return TestClient(make_app(model, **options), base_url="http://127.0.0.1:8000")
