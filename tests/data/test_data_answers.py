"""What is read from samples of all formats, and what generators invent, is as recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.recorded_answers import compare_with_record, recorded_names

from ordrec.data import Ratings, Scale
from ordrec.datasets import (
    discretise,
    latent_model,
    load_eachmovie,
    load_jester,
    load_letor,
    load_movielens,
    load_movietweetings,
    load_ohsumed,
    load_ratings,
    load_table,
    synthetic_chunks,
    synthetic_long_tail,
    synthetic_ratings,
)

RECORD = Path(__file__).with_suffix(".json")
LOADERS: dict[str, Callable[[Path], Any]] = {
    **dict.fromkeys(("ml-100k", "ml-1m", "ml-10m", "ml-latest"), load_movielens),
    "movietweetings": load_movietweetings,
    "eachmovie": load_eachmovie,
    "eachmovie-triple": load_eachmovie,
    "jester": load_jester,
    "jester-matrix": partial(load_jester, ranks=8),
}
INVENTED: dict[str, Callable[[], Ratings]] = {
    "ratings": partial(synthetic_ratings, 12, 9, n_ratings=60, seed=1),
    "noisy ratings": partial(synthetic_ratings, 12, 9, n_ratings=60, noise=2.0, seed=2),
    "long tail": partial(synthetic_long_tail, 40, 30, n_ratings=300, rare_items=0.3, seed=3),
}


def described(ratings: Ratings) -> dict[str, Any]:
    """Everything that ratings hold, as lists."""
    said: dict[str, Any] = {"ratings": ratings.to_frame().astype(str), "name": ratings.name}
    said["scale"] = ratings.scale.values
    for kind in ("user_table", "item_table"):
        table = getattr(ratings, kind)
        if table is not None:
            said[kind] = table.reset_index().astype(str)
    said["folds"] = {name: np.flatnonzero(rows) for name, rows in ratings.folds.items()}
    return said


@pytest.mark.parametrize("name", LOADERS)
def test_recorded_answers_of_loaders(samples: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ratings = LOADERS[name](samples / name)
    compare_with_record(RECORD, name, described(ratings))


@pytest.mark.parametrize("name", INVENTED)
def test_recorded_answers_of_invented_ratings(name: str) -> None:
    frame = INVENTED[name]().to_frame().head(60)
    compare_with_record(RECORD, name, frame)


def test_recorded_answers_of_other_tables(samples: Path) -> None:
    table = load_table(samples / "ordinal" / "invented.csv", label="y5")
    letor = load_letor(samples / "letor")
    ohsumed = load_ohsumed(samples / "ohsumed")
    chunks = [chunk.to_frame().head(4) for chunk in synthetic_chunks(20, 15, n_ratings=90, seed=5)]
    said = {
        "table": [table.X, table.y, table.partitions],
        "letor": [letor.X[:5], letor.y, letor.queries],
        "ohsumed": str(ohsumed),
        "chunks": chunks,
        "latent": latent_model(4, 3).item_factors,
        "ranks": discretise(np.arange(40) ** 1.5, 5),
        "equal length": discretise(np.arange(40) ** 1.5, 5, how="length"),
    }
    compare_with_record(RECORD, "others", said)


SCALES: dict[str, Callable[[], Scale]] = {
    "stars": lambda: Scale.regular(1, 5),
    "halves": lambda: Scale.regular(0.5, 5, 0.5),
    "one": lambda: Scale([1, 2]),
    "uneven": lambda: Scale([-3, 0, 1, 10]),
    "binned": lambda: Scale.binned(np.round(np.sin(np.arange(300)) * 10, 3), 7),
    "cut": lambda: Scale.binned(np.arange(100) / 7, [3.0, 8.5]),
}


@pytest.mark.parametrize("name", SCALES)
def test_recorded_answers_of_scales(name: str) -> None:
    scale = SCALES[name]()
    said: dict[str, Any] = {"values": scale.values, "edges": scale.edges, "text": str(scale)}
    said["liked"] = scale.liked_from
    compare_with_record(RECORD, name, said)


@pytest.mark.parametrize("name", ["plain", "semicolons", "named otherwise"])
def test_recorded_answers_of_tables_of_ratings(tmp_path: Path, name: str) -> None:
    texts = {
        "plain": "user,item,rating,timestamp\n1,a,3,2001-02-03\n1,b,5,2001-02-03 04:05:06\n",
        "semicolons": "user;item;rating\n 01;x;3,5\n02;y;4,0\n02;x;0,5\n",
        "named otherwise": "uid\tmovieId\tstars\tdate\n7\t8\t1\t1e9\n7\t9\t2\t1100000001\n",
    }
    (tmp_path / "r.csv").write_text(texts[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare_with_record(RECORD, name, described(load_ratings(tmp_path / "r.csv")))


def test_every_record_has_a_test() -> None:
    tables = {"plain", "semicolons", "named otherwise", "others"}
    assert recorded_names(RECORD) == {*LOADERS, *INVENTED, *SCALES, *tables}
