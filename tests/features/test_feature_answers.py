"""Features of tables, of matrices and of texts are as recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.invented_by_taste import invented_by_taste
from support.recorded_answers import compare_with_record, recorded_names
from support.small_pieces import make_pieces_small

from ordrec.features import (
    DocumentTfidf,
    LowRankEM,
    MeanImputer,
    RatingMatrix,
    SideEncoder,
    damped_biases,
)
from ordrec.features.side.columns import infer_kind

RECORD = Path(__file__).with_suffix(".json")
N = 14
TABLE = pd.DataFrame(
    {
        "genres": ["Crime|Drama", "Drama", "Comedy|Crime", "War", None, "War|Drama", "Comedy"] * 2,
        "year": [1931, 1948, 1994, 1972, np.nan, 1999, 2003, 1931, 1950, 1960, 1970, 1980, 1990, 2],
        "price": np.round(np.exp(np.linspace(0, 9, N)), 2),
        "released": pd.date_range("2001-03-04", periods=N, freq="93D"),
        "studio": list("aabbccddaabbcc"),
        "colour": [0, 1] * 7,
        "number": np.arange(N),
        "title": [f"The {name} of the {end}" for name in "abcdefg" for end in ("Night", "Day")],
        "plot": ["a man meets a woman and they walk", "two dogs and one cat run away today"] * 7,
        "same": ["x"] * N,
        "few": [np.nan] * (N - 1) + [3.0],
        "vector": [[0.1 * k, 1.0 - k, 0.5] for k in range(N)],
        "share": [f"{k / 16:.4f}" for k in range(N)],
    }
)
MATRIX = RatingMatrix.from_ratings(invented_by_taste())
WHOLE = np.where(np.isnan(MATRIX.to_dense()), np.nan, MATRIX.to_dense())
FILLED: dict[str, Callable[[], Any]] = {
    "rows": MeanImputer,
    "columns": partial(MeanImputer, "column"),
    "low rank": partial(LowRankEM, 2, random_state=0),
    "low rank from zero": partial(LowRankEM, 2, init="zero", anneal=False, random_state=0),
    "low rank factors": partial(LowRankEM, 3, output="factors", tol=1e-2, random_state=1),
}


@pytest.mark.parametrize("column", TABLE.columns)
def test_recorded_answers_of_columns(column: str) -> None:
    said: dict[str, Any] = {"kind": infer_kind(TABLE[column])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = SideEncoder().fit(TABLE[[column]])
        new = TABLE[[column]].iloc[[3, 0, 12]].reset_index(drop=True)
        said["columns"] = encoder.columns_
        said["likeness"] = {name: rows @ rows.T for name, rows in encoder.blocks(new).items()}
    compare_with_record(RECORD, column, said)


def test_recorded_answers_of_a_table() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = SideEncoder().fit(TABLE)
        rows = encoder.matrix(TABLE)
    compare_with_record(RECORD, "table", {"likeness": rows @ rows[:3].T, "width": rows.shape[1]})


@pytest.mark.parametrize("name", FILLED)
def test_recorded_answers_of_what_is_filled_in(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FILLED[name]().fit(WHOLE)
        rows = np.asarray(model.transform(WHOLE[:4]))
    said = {"rows": rows} if "factors" not in name else {"likeness": rows @ rows.T}
    compare_with_record(RECORD, name, said, rtol=1e-4)


def test_recorded_answers_of_a_matrix() -> None:
    biases = MATRIX.biases(user_damping=2.0, item_damping=3.0)
    ratings = invented_by_taste()
    plain = damped_biases(
        ratings.users, ratings.items, ratings.values, ratings.n_users, ratings.n_items
    )
    said = {
        "biases": [biases.mean, biases.user[:5], biases.item[:5]],
        "damped": [plain.mean, plain.user[:5], plain.item[:5]],
        "residuals": MATRIX.residuals(biases).toarray()[0],
        "z": MATRIX.z_scores().toarray()[1],
        "means": MATRIX.user_means()[:4],
        "centred": MATRIX.user_centred(damping=1.0).toarray()[2],
        "counts": [MATRIX.item_counts[:5], MATRIX.user_counts[:5]],
    }
    compare_with_record(RECORD, "matrix", said)


def test_recorded_answers_of_texts() -> None:
    records = pd.DataFrame({"title": TABLE["title"], "abstract": TABLE["plot"]})
    tfidf = DocumentTfidf(min_documents=2)
    rows = tfidf.fit_transform(records)
    said = {"names": list(tfidf.get_feature_names_out()), "rows": rows.toarray()[:2]}
    compare_with_record(RECORD, "texts", said)


def test_recorded_answers_do_not_depend_on_the_size_of_pieces(monkeypatch) -> None:
    make_pieces_small(monkeypatch)
    test_recorded_answers_of_a_table()
    test_recorded_answers_of_a_matrix()
    for name in FILLED:
        test_recorded_answers_of_what_is_filled_in(name)


def test_every_record_has_a_test() -> None:
    assert recorded_names(RECORD) == {*TABLE.columns, *FILLED, "table", "matrix", "texts"}
