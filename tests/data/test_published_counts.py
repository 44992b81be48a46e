"""The real data sets in ORDREC_DATA give the numbers their publishers state."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import pytest

from ordrec.datasets import describe_dataset, discretise, list_datasets, load_dataset

pytestmark = pytest.mark.realdata

RATINGS = [
    "ml-100k", "ml-1m", "ml-latest-small", "ml-latest-small-2016", "eachmovie-5055users",
    "eachmovie-324movies", "movietweetings-100k", "jester-5k",
]  # fmt: skip
HISTOGRAMS = {
    "ml-100k": [6110, 11370, 27145, 34174, 21201],
    "ml-1m": [56174, 107557, 261197, 348971, 226310],
    "eachmovie-5055users": [157349, 57315, 128939, 254466, 255417, 155916],
}


def load(name, real_data, **options):
    return load_dataset(name, folder=real_data, offline=True, **options)


@pytest.mark.parametrize("name", RATINGS)
def test_rating_counts(name, real_data):
    ratings = load(name, real_data)
    expected = describe_dataset(name).counts
    found = {"ratings": ratings.n_ratings, "users": ratings.n_users, "items": ratings.n_items}
    assert found == expected
    if name in HISTOGRAMS:
        assert np.bincount(ratings.levels).tolist() == HISTOGRAMS[name]


@pytest.mark.parametrize("name", ["ml-100k", "ml-1m", "ml-latest-small", "movietweetings-100k"])
def test_every_film_has_a_title(name, real_data):
    table = load(name, real_data).item_table
    assert table["title"].notna().all()
    assert table["year"].between(1890, 2030).mean() > 0.99
    assert not table["title"].str.contains("\ufffd").any()


def test_100k_folds_and_people(real_data):
    ratings = load("ml-100k", real_data)
    sizes = {fold: int(mask.sum()) for fold, mask in ratings.folds.items()}
    assert sizes == dict.fromkeys(["u1", "u2", "u3", "u4", "u5"], 20_000) | {
        "ua": 9_430,
        "ub": 9_430,
    }
    five = sum(ratings.folds[f"u{k}"].astype(int) for k in range(1, 6))
    assert (five == 1).all()
    assert not (ratings.folds["ua"] & ratings.folds["ub"]).any()
    assert (ratings.select(ratings.folds["ua"]).user_counts == 10).all()
    assert ratings.user_table["gender"].value_counts().to_dict() == {"M": 670, "F": 273}


def test_1m_probe_and_known_times(real_data):
    ratings = load("ml-1m", real_data)
    assert int(ratings.folds["pmf_probe"].sum()) == 100_203
    assert int((ratings.timestamps == 0).sum()) == 410_106
    assert ratings.user_counts.min() == 20
    assert abs(ratings.values.mean() - 3.5816) < 5e-5
    assert ratings.user_table["gender"].value_counts().to_dict() == {"M": 4331, "F": 1709}


def test_bundled_ratings_are_the_published_ones(real_data):
    theirs = load("ml-latest-small-2016", real_data)
    ours = load_dataset("ml-latest-small-2016", offline=True)
    assert ours.to_frame().equals(theirs.to_frame())
    assert ours.item_table.equals(theirs.item_table)


def test_eachmovie_parts_agree(real_data):
    heavy = load("eachmovie-5055users", real_data)
    assert int(heavy.folds["set"].sum()) == 199_876
    films = load("eachmovie-324movies", real_data).to_frame()
    both = heavy.to_frame().merge(films, on=["user", "item"])
    assert len(both) == 1_009_402 + 506_123 - 1_324_037
    assert (both["rating_x"] == both["rating_y"]).all()
    assert load("eachmovie", real_data).n_ratings == heavy.n_ratings


def test_jester_levels_are_the_intervals(real_data):
    ratings = load("jester-5k", real_data, ranks=4)
    raw = pd.read_csv(real_data / "jester-5k" / "ratings.csv.gz")["rating"].to_numpy()
    assert ratings.scale.values.tolist() == [-7.5, -2.5, 2.5, 7.5]
    assert (np.abs(ratings.values - raw) <= 2.5 + 1e-9).all()
    assert ratings.user_counts.min() >= 36


def test_letor_pairs_and_folds(real_data):
    letor = load("ohsumed-letor", real_data)
    assert letor.X.shape == (16_140, 45)
    assert np.bincount(letor.y).tolist() == [11_303, 2_585, 2_252]
    assert np.bincount(letor.parts)[1:].tolist() == [2_570, 3_076, 3_573, 3_538, 3_383]
    assert np.unique(letor.queries).size == 106
    assert np.unique(letor.documents).size == 14_430
    assert letor.X.min() >= 0
    assert letor.X.max() <= 1
    assert [len(rows) for rows in next(letor.folds())] == [9_219, 3_538, 3_383]
    null = load("ohsumed-letor", real_data, features="Feature-null")
    missing = np.isnan(null.X)
    assert sorted(np.flatnonzero(missing.any(axis=0)) + 1) == [
        *range(11, 16),
        *range(26, 31),
        *range(41, 46),
    ]
    assert [int(missing[:, at].sum()) for at in (10, 25, 40)] == [5_344, 3_378, 1_576]
    np.testing.assert_array_equal(null.y, letor.y)
    judged = pd.read_csv(real_data / "ohsumed-letor" / "judgments.csv")
    assert sorted(zip(judged["query"], judged.docid, judged.label, strict=True)) == sorted(
        zip(letor.queries, letor.documents, letor.y, strict=True)
    )


def test_ohsumed_pieces(real_data):
    found = load("ohsumed-trec9", real_data)
    assert len(found.documents) == 444
    assert int((found.documents["abstract"] == "").sum()) == 155
    assert len(found.topics) == 63
    assert (found.topics != "").all(axis=None)
    assert len(found.judgements) == 3_205
    assert found.judgements["ui"].nunique() == 3_121
    first = found.judgements[found.judgements["topic"] == "OHSU1"]["grade"]
    assert first.value_counts().to_dict() == {1: 23, 2: 21}
    letor = load("ohsumed-letor", real_data)
    assert int(np.isin(letor.documents, found.documents.index).sum()) == 22
    assert found.documents["ui"].str.fullmatch(r"\d{8}").all()


TABLES = [name for name in list_datasets() if describe_dataset(name).kind == "table"]


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, real_data):
    table = load(name, real_data)
    info = describe_dataset(name)
    folder, file = info.places[0].removesuffix(".csv").split("/")
    label = info.options.get("label", "y")
    with open(real_data / "ordinal-index.csv", encoding="utf-8") as stream:
        row = next(
            r
            for r in csv.DictReader(stream)
            if (r["folder"], r["name"], r["label_column"]) == (folder, file, label)
        )
    assert table.X.shape == (int(row["rows"]), int(row["features"]))
    assert table.n_ranks == int(row["classes"])
    assert np.bincount(table.y)[1:].tolist() == [
        int(n) for n in row["class_counts_or_range"].split()
    ]
    assert len(table.partitions) == int(row["partitions"] or 0)
    for number in range(len(table.partitions)):
        train, test = table.split(number)
        assert (train.size, test.size) == (int(row["train_rows"]), int(row["test_rows"]))


@pytest.mark.parametrize("file", ["abalone", "autompg", "housing", "machine", "stock", "wisconsin"])
@pytest.mark.parametrize("bins", [5, 10])
def test_discretise_gives_the_published_ranks_of_equal_length(file, bins, real_data):
    frame = pd.read_csv(real_data / "ordinal-regression-length" / f"{file}.csv")
    ours = discretise(frame["target"], bins, "length")
    np.testing.assert_array_equal(ours, frame[f"y{bins}"])


@pytest.mark.parametrize("file", ["abalone", "stock", "housing", "calhousing"])
def test_discretise_agrees_with_the_published_ranks_of_equal_size(file, real_data):
    frame = pd.read_csv(real_data / "ordinal-regression-frequency" / f"{file}.csv.gz")
    ours = discretise(frame["target"], 5)
    # ties at a border are split arbitrarily, so only the rank of equal targets may differ
    assert np.abs(ours - frame["y5"]).max() <= 1
    sizes = np.bincount(frame["y5"])[1:]
    assert np.abs(np.bincount(ours)[1:] - sizes).max() <= 1
