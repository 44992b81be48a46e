"""Films found by tags: BM25 alone, features of query and text, and a model without the query.

A graded set whose texts are at hand, made from MovieLens' titles, genres and tags. A query is a
tag that users gave to at least five films. A film's grade is 2 if two users or more gave it this
tag, 1 if one did, 0 if nobody did. A document has three fields: the title without the year, the
genres, and the other tags of the film. The tag that is asked for is taken out of them, so that a
ranker has to find it in other words: "space" in "space station", "time travel" in "time loop".

Fifty films of grade 0 are drawn for each query. With ``drawn="matched"`` (the default) a film is
drawn as often as it answers other queries, and one of the tags that it answers is taken out of its
text, as it is where the film is relevant, so that neither the number of a film's tags nor a missing
one gives its grade away. This was settled after two other ways had been measured on all queries:
with ``drawn="uniform"`` all films with tags are drawn alike, with all their tags, and a model
without the query comes close to the best, because films with many tags answer many queries; with
matched films that kept all their tags it found those that lack one.

Five folds by query: no ranker sees a query that it is measured on. What is known about words (how
common they are) comes from the documents of the training queries.
"""

from __future__ import annotations

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.feature_extraction.text import TfidfVectorizer

from ordrec.documents import (
    BM25,
    Judgements,
    QueryDocumentFeatures,
    RankSVM,
    RelevanceRanker,
    evaluate_ranking,
)
from ordrec.errors import ArgumentError
from ordrec.experiments.runner import Reproduction, data_folder, main
from ordrec.ordinal import OrdinalLogistic
from ordrec.report.html import TableSection

NAME = "document-tags"
TITLE = "Films found by tags: does the query count?"
SOURCE = "MovieLens latest-small (Harper and Konstan 2015), titles, genres and tags"
TIME = "about a minute"

ORDINAL, ALONE, WITHOUT = "features and ordinal logistic", "BM25 alone", "without the query"
METRICS = ["ndcg@10", "map", "err@20", "mrr", "p@5"]
FEWEST = 5  # films of a tag
DRAWN = 50  # films of grade 0 for each query


def run(*, data, trials, jobs, quick, out: Path, drawn: str = "matched") -> Reproduction:
    """Measure all rankers on five folds; quick: a third of the queries."""
    del trials, jobs, out
    folder = data_folder(data, "ml-latest-small")
    judged = judged_films(folder, drawn, every=3 if quick else 1)
    text = QueryDocumentFeatures(stem="plural", stop_words="english")
    rankers = {
        ORDINAL: RelevanceRanker(text=text),
        "features and RankSVM": RelevanceRanker(RankSVM(), text=text),
        ALONE: BM25(text),
        WITHOUT: WithoutQuery(),
        "chance": np.random.default_rng(0).random(len(judged)),
    }
    result = evaluate_ranking(rankers, judged, metrics=METRICS)
    values = result.intervals("macro")
    return Reproduction(
        values,
        findings(result),
        sections=[
            TableSection("All rankers", result.table("macro").frame(), result.caption()),
            TableSection(
                f"NDCG@10 against {ALONE}",
                result.against(ALONE).map("{:.4f}".format),
                "Signed-rank tests over the queries, adjusted by Holm.",
            ),
        ],
        usual=False,
        checksums={"ml-latest-small, tags": joblib.hash([judged.X, judged.grades])},
    )


def judged_films(folder: Path, drawn: str = "matched", every: int = 1, seed: int = 0) -> Judgements:
    """Return pairs of a tag and a film, graded by how many users gave the tag."""
    films = pd.read_csv(folder / "movies.csv", index_col="movieId")
    tags = pd.read_csv(folder / "tags.csv")
    tags["tag"] = tags["tag"].astype(str).str.lower().str.strip()
    tags = tags.drop_duplicates(["userId", "movieId", "tag"])
    users = tags.groupby(["tag", "movieId"]).size()
    tags_of = tags.groupby("movieId")["tag"].agg(lambda found: list(dict.fromkeys(found)))
    titles = films["title"].str.replace(r"\s*\(\d{4}\)\s*$", "", regex=True)
    genres = films["genres"].str.replace("|", " ", regex=False)
    counts = users.groupby("tag").size()
    asked = counts.index[counts >= FEWEST]
    if drawn not in ("matched", "uniform"):
        raise ArgumentError(f"drawn must be matched or uniform, got {drawn!r}")
    common = set(asked)
    answers = users.loc[list(asked)].groupby("movieId").size()
    weights = answers if drawn == "matched" else pd.Series(1.0, index=tags_of.index)
    rng = np.random.default_rng(seed)
    rows = []
    for tag in asked[::every]:
        found = users[tag]
        others = weights.drop(found.index)
        shares = others.to_numpy() / others.sum()
        zeros = rng.choice(others.index, min(DRAWN, others.size), replace=False, p=shares)
        for film in [*found.index, *zeros]:
            taken = tag
            if drawn == "matched" and film not in found.index:
                taken = rng.choice([each for each in tags_of[film] if each in common])
            rest = " ".join(each for each in tags_of[film] if each != taken)
            grade = min(int(found.get(film, 0)), 2)
            rows.append((tag, film, titles[film], genres[film], rest, grade))
    columns = ["query", "document", "title", "genres", "tags", "grade"]
    frame = pd.DataFrame(rows, columns=columns)
    return Judgements.from_frame(frame, "ml-latest-small, tags")


class WithoutQuery(BaseEstimator):
    """An ordinal model of the documents' words, which does not look at the query."""

    def fit(self, X, y, queries):
        """Fit to TF-IDF vectors of the texts."""
        self.words_ = TfidfVectorizer(stop_words="english", min_df=2)
        vectors = self.words_.fit_transform(_joined(X))
        self.ranker_ = RelevanceRanker(OrdinalLogistic(alpha=1.0), scaling="none")
        self.ranker_.fit(vectors, y, queries)
        return self

    def scores(self, X, queries):
        """Return the latent scores of the documents."""
        return self.ranker_.scores(self.words_.transform(_joined(X)), queries)


def _joined(X: pd.DataFrame) -> list[str]:
    return [" ".join(map(str, row)) for row in X.itertuples(index=False)]


def findings(result) -> list[str]:
    """Return sentences that say whether the query counts, and by how much."""
    values = result.intervals("macro").set_index(["metric", "model"])
    lines = []
    for metric in ("ndcg@10", "map"):
        parts = []
        for name in (ORDINAL, ALONE, WITHOUT, "chance"):
            row = values.loc[(metric, name)]
            parts.append(f"{name} {row['value']:.4f} ({row['low']:.4f} to {row['high']:.4f})")
        lines.append(f"{metric}: {', '.join(parts)}")
    order = [values.loc[("ndcg@10", name), "value"] for name in (ORDINAL, ALONE, WITHOUT)]
    right = "yes" if order == sorted(order, reverse=True) else "no"
    lines.append(f"{ORDINAL} before {ALONE} before {WITHOUT}: {right}")
    tests = result.against(ALONE)
    row = tests.loc[ORDINAL]
    lines.append(
        f"{ORDINAL} against {ALONE}: NDCG@10 {row['difference']:+.4f}, adjusted p "
        f"{row['adjusted_p']:.4f}"
    )
    return lines


if __name__ == "__main__":
    main(NAME)
