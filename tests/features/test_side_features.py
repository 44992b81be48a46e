"""Side tables of every kind as features: kernels, inference, gaps, files."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from ordrec.data.side_tables import side_table
from ordrec.errors import ArgumentError, DataError, ModelFileError
from ordrec.features.side.blocks import WIDTH, NumberBlock, VectorBlock
from ordrec.features.side.columns import as_numbers, infer_kind, separator_of
from ordrec.features.side.encoder import SideEncoder
from ordrec.files import KINDS
from ordrec.storage.schema import Reader, Writer

N = 60
TOPICS = [
    "a quiet detective walks the rainy harbour looking for an old friend and a stolen boat",
    "two robots cross the burning desert planet to repair a broken radio telescope together",
]


def shop() -> pd.DataFrame:
    """A table with a column of every kind, and gaps."""
    rng = np.random.default_rng(3)
    kinds = rng.permuted(np.tile([0, 1], N // 2))
    table = pd.DataFrame(
        {
            "name": [f"Article {k}" for k in range(N)],
            "link": [f"https://shop.example/{k * k}" for k in range(N)],
            "row": np.arange(N),
            "tmdbId": 7 * np.arange(N) ** 2,
            "price": np.exp(rng.normal(3.0, 2.0, N)),
            "weight": rng.normal(50.0, 10.0, N),
            "released": pd.date_range("1990-01-01", periods=N, freq="97D"),
            "maker": rng.choice(["Ahti", "Bore", "Caso"], N),
            "stars": rng.choice([1, 2, 3], N),
            "tags": rng.choice(["red|small", "red", "blue|large", "large"], N),
            "colours": rng.choice(["red, small", "blue", "large, blue", "small"], N),
            "about": [TOPICS[k] for k in kinds],
            "country": "Finland",
            "empty": np.nan,
            "sale": rng.integers(0, 2, N).astype(bool),
        },
        index=[f"i{k}" for k in range(N)],
    )
    table.loc["i7", ["price", "maker", "about"]] = [np.nan, " ", None]
    return table.drop("i5").reindex(table.index)


def test_kinds_are_inferred_and_said():
    encoder = SideEncoder().fit(shop())
    assert encoder.used_ == {
        "price": "numeric", "weight": "numeric", "released": "numeric", "maker": "categorical",
        "stars": "categorical", "tags": "labels", "colours": "labels", "about": "text",
        "sale": "categorical",
    }  # fmt: skip
    assert encoder.ignored_ == {
        "name": "nearly every value is different",
        "link": "nearly every value is different",
        "row": "an id",
        "tmdbId": "an id",
        "country": "the same value everywhere",
        "empty": "no values",
    }
    assert encoder.numeric == ["price", "weight", "released"]


def test_rows_are_kernels_of_length_one_and_zero_where_unknown():
    table = shop()
    blocks = SideEncoder().fit(table).blocks(table)
    for name, rows in blocks.items():
        lengths = np.linalg.norm(rows, axis=1)
        unknown = {"price", "maker", "about"} & {name}
        expected = np.ones(N)
        expected[[5, 7] if unknown else [5]] = 0.0
        np.testing.assert_allclose(lengths, expected, atol=2e-3, err_msg=name)
    same = table["maker"].to_numpy()[:, None] == table["maker"].to_numpy()
    known = np.delete(np.arange(N), [5, 7])
    kernel = blocks["maker"] @ blocks["maker"].T
    np.testing.assert_allclose(kernel[np.ix_(known, known)], same[np.ix_(known, known)])
    tags = dict(zip(table["tags"], blocks["tags"], strict=True))
    assert tags["red|small"] @ tags["red"] == pytest.approx(np.sqrt(0.5))
    assert tags["blue|large"] @ tags["red"] == 0.0
    about = blocks["about"] @ blocks["about"].T
    same_group = table["about"].to_numpy()[:, None] == table["about"].to_numpy()
    np.testing.assert_allclose(
        about[np.ix_(known, known)], same_group[np.ix_(known, known)], atol=0.05
    )


def test_numbers_have_a_gaussian_kernel_and_bounded_tails():
    values = np.append(np.linspace(-30.0, 50.0, 400), np.nan)
    block = NumberBlock.of(values)
    rows = block.rows(values)[:-1]
    inner = np.clip(values[:-1], block.low, block.high)
    gaussian = np.exp(-0.5 * ((inner[:, None] - inner) / block.width) ** 2)
    np.testing.assert_allclose(rows @ rows.T, gaussian, atol=3e-3)
    assert block.width == pytest.approx(WIDTH * inner.std())
    far, border = block.rows(np.array([1e9, block.high]))
    np.testing.assert_array_equal(far, border)
    with_typo = NumberBlock.of(np.append(values, 1e6))
    assert with_typo.width == pytest.approx(block.width, rel=0.03)


def test_prices_are_compared_by_ratio():
    prices = np.exp(np.random.default_rng(0).normal(3.0, 2.0, 500))
    block = NumberBlock.of(prices)
    assert block.logarithm
    rows = block.rows(np.array([10.0, 20.0, 1000.0, 1010.0]))
    assert rows[2] @ rows[3] > rows[0] @ rows[1] > 0.5 > rows[1] @ rows[2]


def test_matrix_has_unit_mean_square_and_comparable_blocks():
    table = shop()
    encoder = SideEncoder().fit(table)
    matrix = encoder.matrix(table)
    assert np.mean(np.sum(matrix**2, axis=1)) == pytest.approx(1.0)
    assert not matrix[5].any()
    edges = np.cumsum([rows.shape[1] for rows in encoder.blocks(table).values()])[:-1]
    parts = [np.sum(part**2, axis=1) for part in np.split(matrix, edges, axis=1)]
    known = [part[part > 0].mean() for part in parts]
    np.testing.assert_allclose(known, known[0])


def test_new_tables_may_have_other_rows_types_and_columns():
    table = shop()
    encoder = SideEncoder().fit(table)
    new = pd.DataFrame({"maker": ["Ahti", "Zeta"], "stars": [3, 9], "unheard": [1, 2]})
    blocks = encoder.blocks(new)
    row = table.index.get_loc(table.index[(table["stars"] == 3).to_numpy()][0])
    np.testing.assert_array_equal(blocks["stars"][0], encoder.blocks(table)["stars"][row])
    assert np.linalg.norm(blocks["maker"], axis=1).tolist() == [1.0, 0.0]
    assert not blocks["price"].any()
    assert not blocks["about"].any()
    assert encoder.matrix(new).shape == (2, encoder.matrix(table).shape[1])
    assert encoder.matrix(table.iloc[:0]).shape == (0, encoder.matrix(table).shape[1])


def test_flags_are_the_labels_of_one_block():
    flags = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 1], [0, 0, 1], [0, 0, 0]])
    encoder = SideEncoder().fit(pd.DataFrame(flags, columns=["Comedy", "War", "Drama"]))
    assert set(encoder.used_.values()) == {"flags"}
    (rows,) = encoder.blocks(pd.DataFrame(flags, columns=["Comedy", "War", "Drama"])).values()
    lengths = np.linalg.norm(flags, axis=1)
    cosine = flags @ flags.T / np.maximum(np.outer(lengths, lengths), 1)
    np.testing.assert_allclose(rows @ rows.T, cosine)


def test_many_labels_are_projected():
    rng = np.random.default_rng(0)
    cast = [[f"actor {k}" for k in rng.choice(40, 3) + 40 * (row % 5)] for row in range(500)]
    encoder = SideEncoder().fit(pd.DataFrame({"cast": cast}))
    (rows,) = encoder.blocks(pd.DataFrame({"cast": cast})).values()
    assert rows.shape == (500, 32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    group = np.arange(500) % 5
    kernel = rows @ rows.T
    same_group = group[:, None] == group
    assert kernel[same_group].mean() > 0.1 > 0.01 > np.abs(kernel[~same_group].mean())


def test_declarations_win():
    table = shop()
    encoder = SideEncoder({"name": "text", "stars": "numeric", "tags": "ignore"}).fit(table)
    assert (encoder.used_["name"], encoder.used_["stars"]) == ("text", "numeric")
    assert encoder.ignored_["tags"] == "as declared"
    with pytest.raises(ArgumentError, match="no column 'nmae'"):
        SideEncoder({"nmae": "text"}).fit(table)
    with pytest.raises(ArgumentError, match="'words', not one of numeric, categorical"):
        SideEncoder({"name": "words"}).fit(table)
    with pytest.raises(DataError, match="'maker' cannot be used as numeric"):
        SideEncoder({"maker": "numeric"}).fit(table)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["3", "4.5", "8", "1", "7", "2"], "numeric"),
        (
            ["2001-02-03", "2011-12-31", "1990-01-01", "2000-05-05", "2003-01-01", "2004-02-02"],
            "numeric",
        ),
        ([True, False, None], "flag"),
        ([["a"], ["b", "a"], None], "labels"),
        ([[0.5, 1.0], [2.0, 3.0]], "vector"),
        ([[0.5, 1.0], [2.0]], "labels"),  # one number is no vector
        ([[0.5, 1.0], {2.0, 3.0}], "labels"),  # nor are numbers in no order
        (["b", ["b", "a"], "c", "d", "e", "f"], "labels"),  # a cell may hold a list, or one label
        (["a", None, "a"], "categorical"),
        (["Turku, Finland", "Oslo, Norway", "Lund, Sweden", "Bonn, Germany"], "ignore"),
    ],
)
def test_kind_of_a_column(values, kind):
    assert infer_kind(pd.Series(values, name="x", dtype=object))[0] == kind


def test_dates_are_years():
    dates = as_numbers(pd.Series(["1970-01-01", "2000-01-01T00:00:00Z", "soon", None]))
    np.testing.assert_allclose(dates, [1970.0, 2000.0, np.nan, np.nan], atol=0.01)


@pytest.mark.parametrize(
    ("values", "use"),
    [
        (np.arange(30) * (1 + 2j), "ignored: no values"),
        ([10**400] * 15 + [10**5000] * 15, "categorical"),
        (np.append(np.linspace(0, 1, 27), [np.inf, 1e308, -1e308]), "numeric"),
        (["\ud800", "x\0"] * 15, "categorical"),
        ([1, "a", 2.5, None, True, b"a"] * 5, "categorical"),
        ([{"a": 1}, {}] * 15, "categorical"),
        ([["a", ["b"]], [], None] * 10, "labels"),
        ([datetime.date(2000, 1, 1 + k) for k in range(30)], "numeric"),
        ([Decimal(2 + k) for k in range(30)], "numeric"),
        (pd.array([True, None, False] * 10, dtype="boolean"), "categorical"),
        (pd.Categorical([1, 2, 3, 4, 5, 6] * 5), "categorical"),
        (pd.to_timedelta(np.arange(30), unit="D"), "ignored: nearly every value is different"),
        (1e15 + np.arange(30) % 7 / 4, "ignored: the same number everywhere"),
    ],
)
def test_odd_columns_are_used_or_ignored_and_never_an_error(values, use):
    dtype = object if isinstance(values, list) else None
    table = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    encoder = SideEncoder().fit(table)
    assert encoder.columns_ == {"x": use}
    assert np.isfinite(encoder.matrix(table)).all()


def test_a_column_twice_is_refused():
    with pytest.raises(DataError, match="'a' occurs twice"):
        SideEncoder().fit(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_state_gives_the_same_features():
    table = shop()
    encoder = SideEncoder().fit(table)
    again = SideEncoder.read_from(Reader(*stored(encoder), KINDS))
    np.testing.assert_array_equal(again.matrix(table), encoder.matrix(table))
    assert (again.used_, again.ignored_) == (encoder.used_, encoder.ignored_)
    np.testing.assert_array_equal(
        SideEncoder().fit(table).matrix(table), encoder.matrix(table)
    )  # no chance in it


def stored(encoder):
    """Arrays and metadata of a file."""
    file = Writer(KINDS)
    encoder.write_to(file)
    return file.arrays, file.values


def first(state):
    """Metadata of the first block, which is one of numbers."""
    return state["blocks"]["all"][0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays, state: arrays.pop("scales"),
        lambda arrays, state: first(state)["numbers"].update(low=1.0, high=0.0),
        lambda arrays, state: first(state)["numbers"].update(low=0.0, high=1.0, width=1e-9),
        lambda arrays, state: arrays.update({"blocks.all.3.words.weights": np.array([np.nan])}),
        lambda arrays, state: arrays.update({"blocks.all.7.words.projection": np.ones((2, 2))}),
        lambda arrays, state: state["blocks"]["all"].append(first(state)),
        lambda arrays, state: first(state).update(kind="magic"),
        lambda arrays, state: first(state).update(kind="text"),
        lambda arrays, state: first(state).update(columns=[3]),
        lambda arrays, state: first(state).update(columns=[]),
        lambda arrays, state: state.update(used=3),
    ],
)
def test_damaged_state_is_refused(damage):
    arrays, state = stored(SideEncoder().fit(shop()))
    damage(arrays, state)
    with pytest.raises(ModelFileError):
        SideEncoder.read_from(Reader(arrays, state, KINDS))


# ---- vectors -----------------------------------------------------------------------------------


def embeddings(n: int = 40, size: int = 12) -> np.ndarray:
    return np.random.default_rng(5).normal(1.0, 1.0, (n, size))


def test_vectors_are_columns_sequences_or_an_array():
    rows, ids = embeddings(), [f"i{k}" for k in range(40)]
    cells = pd.DataFrame({"emb": list(rows)}, index=ids)
    numbered = pd.DataFrame(rows, index=ids, columns=[f"emb_{k}" for k in range(12)])
    one, many = SideEncoder().fit(cells), SideEncoder().fit(numbered)
    assert one.used_ == {"emb": "vector"}
    assert set(many.used_.values()) == {"vector"}
    assert list(many.blocks(numbered)) == ["emb_0..emb_11"]
    expected = one.blocks(cells)["emb"]
    np.testing.assert_allclose(many.blocks(numbered)["emb_0..emb_11"], expected, atol=1e-12)
    table = side_table(rows, pd.Index(ids), "item", "item")
    np.testing.assert_array_equal(SideEncoder().fit(table).blocks(table)["vector"], expected)


def test_products_of_vectors_are_cosines_of_directions_from_the_mean():
    rows = embeddings()
    table = pd.DataFrame({"emb": rows.tolist()})
    found = SideEncoder().fit(table).blocks(table)["emb"]
    left = rows - rows.mean(axis=0)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    np.testing.assert_allclose(found @ found.T, left @ left.T, atol=1e-9)  # 12 numbers, all kept


def test_a_missing_vector_is_a_row_of_zeros_and_a_gap_in_one_counts_as_the_mean():
    rows = embeddings()
    table = pd.DataFrame({"emb": [None, *rows[1:]]})
    assert (SideEncoder().fit(table).blocks(table)["emb"][0] == 0).all()
    gappy = pd.DataFrame(rows, columns=[f"e{k}" for k in range(12)])
    gappy.loc[3, "e4"] = np.nan
    filled = gappy.fillna(gappy.mean())
    encoder = SideEncoder().fit(gappy)
    np.testing.assert_allclose(
        encoder.blocks(gappy)["e0..e11"][3], SideEncoder().fit(filled).blocks(filled)["e0..e11"][3],
        atol=1e-9,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ([1.0, 2.0], "vector 'emb' of 'i3' has 2 numbers, not 12 as that of 'i0'"),
        ([1.0, np.nan] * 6, "vector 'emb' of 'i3' holds something that is no number"),
        ("text", "'emb' of 'i3' is 'text', not a vector"),
    ],
)
def test_what_is_no_vector_is_refused_with_its_id(cell, words: str):
    cells = list(embeddings())
    cells[3] = cell
    table = pd.DataFrame({"emb": cells}, index=[f"i{k}" for k in range(40)])
    with pytest.raises(DataError, match=words):
        SideEncoder({"emb": "vector"}).fit(table)


def test_new_vectors_must_have_the_length_of_those_in_training():
    encoder = SideEncoder().fit(pd.DataFrame({"emb": list(embeddings())}))
    with pytest.raises(DataError, match="has 5 numbers, not 12 in training"):
        encoder.blocks(pd.DataFrame({"emb": [np.ones(5)]}))
    assert encoder.blocks(pd.DataFrame({"price": [1.0]}))["emb"].shape == (1, 12)


def test_an_array_of_another_length_is_refused():
    with pytest.raises(ArgumentError, match="one row per item, 3 of them"):
        side_table(np.ones((4, 2)), pd.Index([1, 2, 3]), "item", "item")


def test_numbered_ratings_and_lists_of_numbers_are_no_vectors():
    table = pd.DataFrame({f"q{k}": np.arange(40) % (7 + k) for k in range(9)})
    assert "vector" not in SideEncoder().fit(table).used_.values()
    genres = pd.Series([[1, 3], [2], [3, 1]] * 5, name="genres")
    assert infer_kind(genres)[0] == "labels"


def test_vectors_are_stored(tmp_path):
    from ordrec import load, save
    from ordrec.data import Ratings
    from ordrec.recommend import OrdinalFactors

    cells = np.arange(400)
    frame = pd.DataFrame({"user": cells % 23, "item": cells % 40, "rating": cells % 5 + 1})
    ratings = Ratings.from_frame(frame).with_side_tables(item_table=embeddings())
    model = OrdinalFactors(n_factors=2, max_iter=3).fit(ratings)
    assert model.side_columns_["item"] == {"vector": "vector"}
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict([1, 2], [3, 4]), model.predict([1, 2], [3, 4]))


@pytest.mark.parametrize(
    ("numbers", "name", "kind"),
    [
        (np.arange(100), "no", "ignore"), (np.arange(1, 101), "no", "ignore"),
        (np.arange(2, 102), "no", "numeric"), (np.arange(1, 101) ** 2, "no", "numeric"),
        (np.arange(900, 1000), "film_id", "ignore"), (np.arange(1, 101) / 2, "no", "numeric"),
        (np.append(np.arange(1, 100), 99), "no", "numeric"),
    ],
)  # fmt: skip
def test_a_numbering_is_no_number(numbers, name, kind):
    assert infer_kind(pd.Series(numbers, name=name))[0] == kind


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["War|Love", "Love"], "|"),
        (["War, Love", "Love, Crime", "War, Crime"], ""),  # each label twice only
        (["War, Love", "Love, Crime", "War, Crime", "Crime, War, Love"], ","),
        (["one two three four five six seven, Love"] * 3, ""),  # four words on average are text
        (["one two three four five six, Love"] * 3, ","),
        (["Anna, Berta", "Clara, Dora"], ""),  # no label twice
        (["War", "Love"], ""),
        ([3.0, None], ""),
    ],
)
def test_what_separates_labels(cells, separator):
    assert separator_of(cells) == separator


def test_a_column_of_one_number_says_nothing_unless_some_have_none():
    same = pd.DataFrame({"price": [3.0, 3.0, 3.0]})
    some = pd.DataFrame({"price": [3.0, None, 3.0]})
    assert infer_kind(same["price"])[0] == "ignore"
    assert infer_kind(some["price"])[0] != "ignore"


def test_vectors_without_numbers_are_rows_of_zeros():
    block = VectorBlock.of(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    assert not block.rows(np.zeros((4, 0))).any()
    assert block.rows(np.zeros((4, 0))).shape == (4, block.projection.shape[1])
    assert VectorBlock.of(np.tile([0.5, 2.0], (3, 1))) is None
    assert VectorBlock.of(np.zeros((0, 3))) is None


@pytest.mark.parametrize("unit", [1e-14, 1e14])
def test_vectors_in_any_unit_have_the_same_features(unit):
    vectors = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, np.nan]])
    one, other = VectorBlock.of(vectors), VectorBlock.of(unit * vectors)
    np.testing.assert_allclose(other.rows(unit * vectors), one.rows(vectors), atol=1e-7)


def test_columns_without_a_row_or_a_number_are_no_blocks() -> None:
    for nothing in (np.empty((0, 3)), np.full((4, 2), np.nan), np.ones((5, 2)), np.zeros((5, 2))):
        assert VectorBlock.of(nothing) is None
    assert VectorBlock.of(np.array([[0.0, 0.0], [0.0, 1e-20]])) is not None


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([[0.5, 1.0], [2.0, 3.0]], "vector"),
        ([[1, 2], [3, 4.5]], "vector"),
        ([[1, 2], [3, 4]], "labels"),
        ([[0.5, 1.0], [0.5]], "labels"),
        ([[0.5], [0.25]], "labels"),
        ([[0.5, 1.0], "b"], "labels"),
        ([[0.5, 1.0], {0.5, 1.0}], "labels"),
        ([[0.5, "a"], [0.5, 1.0]], "labels"),
        ([np.array([0.5, 1.0]), (0.5, 2)], "vector"),
        (["a", ["b", "c"]], "labels"),
    ],
)
def test_lists_of_two_or_more_numbers_are_vectors(cells: list, kind: str) -> None:
    assert infer_kind(pd.Series(cells * 3, dtype=object))[0] == kind
