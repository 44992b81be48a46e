"""What rankers of documents and their rivals answer on a few judged texts is as recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from support.recorded_answers import compare_with_record, recorded_names
from support.small_pieces import make_pieces_small

from ordrec.documents import (
    BM25,
    QueryDocumentFeatures,
    RankSVM,
    RelevanceRanker,
    evaluate_ranking,
    make_ranker,
    read_judgements,
)
from ordrec.ordinal import SVORIM, CumulativeLink, OrdinalLogistic

RECORD = Path(__file__).with_suffix(".json")
RANKERS: dict[str, Callable[[], Any]] = {
    "ordinal": RelevanceRanker,
    "expected": partial(RelevanceRanker, OrdinalLogistic(), rank_by="expected"),
    "predict": partial(RelevanceRanker, OrdinalLogistic(alpha=0.1), rank_by="predict"),
    "latent": partial(RelevanceRanker, SVORIM(kernel="linear"), rank_by="latent", balance=False),
    "ranges": partial(RelevanceRanker, CumulativeLink(), scaling="range", n_splits=3),
    "centred": partial(RelevanceRanker, OrdinalLogistic(), scaling="centre"),
    "as it is": partial(RelevanceRanker, OrdinalLogistic(), scaling="none", balance=False),
    "ridge": partial(RelevanceRanker, Ridge(2.0)),
}


def judged(seed: int = 0, n_queries: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three features, the first of which decides within a query, and grades from 0 to 2."""
    rng = np.random.default_rng(seed)
    queries = np.repeat(np.arange(n_queries), 6)
    X = rng.normal(size=(queries.size, 3)) * [1.0, 5.0, 0.1]
    X[:, 0] += 2.0 * rng.normal(size=n_queries)[queries]
    score = (
        X[:, 0] - np.bincount(queries, X[:, 0])[queries] / 6 + 0.3 * rng.normal(size=queries.size)
    )
    return X, np.digitize(score, [0.0, 0.8]), queries


@pytest.mark.parametrize("name", RANKERS)
def test_recorded_answers_of_rankers(name: str) -> None:
    X, y, queries = judged()
    new, _, asked = judged(1, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = RANKERS[name]().fit(X, y, queries)
        said: dict[str, Any] = {
            "scores": ranker.scores(new, asked),
            "rank": ranker.rank(new, asked),
        }
        if name not in ("ridge", "latent"):
            said["p"] = ranker.predict_proba(new, asked)
        if name not in ("predict", "ordinal"):
            said["why"] = ranker.explain(new, asked, 3)
        if name != "ridge":
            later = ranker.update(*judged(2, 2)[:2], judged(2, 2)[2] + 20)
            said["updated"] = later.scores(new, asked)
    compare_with_record(RECORD, name, said, rtol=1e-4, atol=1e-5)


TEXTS: dict[str, Callable[[], QueryDocumentFeatures]] = {
    "texts": QueryDocumentFeatures,
    "stems": partial(QueryDocumentFeatures, stem="plural", stop_words="english", min_documents=2),
    "pivots": partial(QueryDocumentFeatures, k1=2.0, b=0.3, mu=50.0, smoothing=0.4),
}


@pytest.mark.parametrize("name", TEXTS)
def test_recorded_answers_of_texts(samples: Path, name: str) -> None:
    found = read_judgements(samples / "documents/judged-documents.csv")
    features = TEXTS[name]().fit(found.X)
    rows = features.transform(found.queries[:6], found.X.iloc[:6])
    bm25 = BM25(TEXTS[name]()).fit(found.X, found.grades, found.queries)
    said = {
        "names": list(features.get_feature_names_out()),
        "rows": rows,
        "bm25": bm25.scores(found.X.iloc[:6], found.queries[:6]),
    }
    compare_with_record(RECORD, name, said)


def test_recorded_answers_of_rivals(samples: Path) -> None:
    X, y, queries = judged()
    found = read_judgements(samples / "documents/judged-documents.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranking = evaluate_ranking(["bm25", "ridge", "ranksvm"], found, metrics=["map", "ndcg@3"])
        svm = RankSVM(max_pairs=50).fit(X, y, np.full(8, 6))
        ridge = make_ranker("ridge").fit(X, y, queries)
    said = {
        "table": ranking.per_query("ndcg@3"),
        "svm": svm.coef_,
        "ridge": ridge.scores(X[:4], queries[:4]),
    }
    compare_with_record(RECORD, "rivals", said, rtol=1e-3)


@pytest.mark.parametrize("name", RANKERS)
def test_recorded_answers_do_not_depend_on_the_size_of_pieces(monkeypatch, name: str) -> None:
    make_pieces_small(monkeypatch)
    test_recorded_answers_of_rankers(name)


def test_every_record_has_a_test() -> None:
    assert recorded_names(RECORD) == {*RANKERS, *TEXTS, "rivals"}
