"""Model files: models load as they were saved; damaged and forged files are refused."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ordrec import load, save
from ordrec.datasets import synthetic_ratings
from ordrec.errors import ArgumentError, ModelFileError
from ordrec.files import register
from ordrec.recommend import EASE, OrdinalFactors, make_model
from ordrec.storage.archive import load_arrays, save_arrays
from ordrec.storage.arrays import (
    few_values,
    ids_from_arrays,
    ids_to_arrays,
    narrowed,
    round_to_bytes,
    take,
    take_covariance,
    take_rows,
)
from ordrec.storage.limits import TooLarge, memory_limit

STORABLE = {
    "mean": {},
    "histogram": {},
    "bias": {},
    "item-knn": {"similarity": "cosine"},
    "als": {"n_factors": 3, "n_iter": 3},
    "popularity": {},
    "ease": {},
    "choice": {"n_factors": 3},
    "recommender": {"choice": EASE(), "rating": OrdinalFactors(n_factors=2, max_iter=3)},
    "factors": {"n_factors": 2, "pattern": 3, "max_iter": 3},
}
ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "flags": np.array([True, False])}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ordrec"


@pytest.fixture(scope="module")
def ratings():
    return synthetic_ratings(20, 15, n_ratings=150, seed=1)


def forged(path, members, header=None, compression=zipfile.ZIP_STORED):
    """Write a forged file, with correct checksums unless a header is given."""
    if header is None:
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in members}
        header = {"format": "ordrec model", "version": 1, "sha256": sums, "metadata": {}}
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("ordrec.json", json.dumps(header))
        for name, data in members:
            archive.writestr(f"{name}.npy", data)


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), **options)
    return stream.getvalue()


# ---- round trips --------------------------------------------------------------------------


@given(
    array=hnp.arrays(
        st.one_of(hnp.boolean_dtypes(), hnp.integer_dtypes(), hnp.floating_dtypes(sizes=(32, 64))),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    note=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    ),
)
def test_arrays_and_metadata_come_back_as_they_were(tmp_path_factory, array, note):
    path = tmp_path_factory.mktemp("there") / "a.ordrec"
    save_arrays(path, {"x": array, "turned": array.T}, {"note": note})
    arrays, metadata = load_arrays(path)
    assert metadata == {"note": note}
    for back, was in ((arrays["x"], array), (arrays["turned"], array.T)):
        assert back.dtype == was.dtype
        assert back.shape == was.shape
        np.testing.assert_array_equal(back, was)
        assert back.flags.writeable


@pytest.mark.parametrize("name", STORABLE)
def test_models_predict_the_same_after_loading(name, path, ratings):
    model = make_model(name, **STORABLE[name]).fit(ratings)
    save(model, path)
    again = load(path)
    assert repr(again) == repr(model)
    users, items = np.repeat(ratings.user_ids, 15), np.tile(ratings.item_ids, 20)
    users, items = [*users, -5, users[0]], [*items, items[0], -5]
    for method in ("predict", "predict_proba", "scores"):
        if hasattr(model, method):
            np.testing.assert_array_equal(
                getattr(again, method)(users, items), getattr(model, method)(users, items)
            )
    if hasattr(model, "fold_in"):
        newcomer = ratings.select(ratings.users == 3)
        ask = "predict" if hasattr(model, "predict") else "scores"
        np.testing.assert_array_equal(
            getattr(again.fold_in(newcomer), ask)(users, items),
            getattr(model.fold_in(newcomer), ask)(users, items),
        )
        save(model.fold_in(newcomer), path)
        load(path)


def test_equal_models_make_equal_files_that_numpy_can_read(path, tmp_path, ratings):
    for target in (path, tmp_path / "other"):
        save(make_model("bias").fit(ratings), target)
    assert path.read_bytes() == (tmp_path / "other").read_bytes()
    with np.load(path) as arrays:
        assert arrays["user_bias"].shape == (20,)


@given(
    ids=st.lists(st.text(), unique=True) | st.lists(st.integers(-(2**63), 2**63 - 1), unique=True)
)
def test_ids_come_back_as_they_were(ids):
    index = pd.Index(ids, dtype=np.int64 if ids and isinstance(ids[0], int) else object)
    back = ids_from_arrays("user_ids", ids_to_arrays("user_ids", index))
    assert back.tolist() == ids


# ---- writing ---------------------------------------------------------------------------------


def test_what_cannot_be_stored_is_refused_before_anything_is_written(path, ratings):
    with pytest.raises(ArgumentError, match="a list cannot be saved: only"):
        save([1], path)
    with pytest.raises(ArgumentError, match="only numbers are stored"):
        save_arrays(path, {"x": np.array([object()])}, {})
    with pytest.raises(ArgumentError, match=r"array name '\.\./x' must be"):
        save_arrays(path, {"../x": np.zeros(1)}, {})
    with pytest.raises(ArgumentError, match="representable as json"):
        save_arrays(path, {}, {"x": float("nan")})
    with pytest.raises(ArgumentError, match="representable as json"):
        save_arrays(path, {}, {"x": {1, 2}})
    with pytest.raises(ArgumentError, match="there is no folder"):
        save_arrays(path / "deeper", {}, {})
    with pytest.raises(ArgumentError, match="ids must be integers or strings"):
        ids_to_arrays("user_ids", pd.Index([1, "a"], dtype=object))
    with pytest.raises(ArgumentError, match="taken by"):
        register("BiasModel", "somewhere:Else")
    assert list(path.parent.iterdir()) == []


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(path, monkeypatch):
    save_arrays(path, ARRAYS, {})
    before = path.read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        save_arrays(path, {"x": np.zeros(9)}, {})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# ---- untrusted files -------------------------------------------------------------------------


class Trap:
    """Would raise when unpickled."""

    def __reduce__(self):
        return (eval, ("1/0",))


def test_pickles_are_not_opened(path):
    trap = npy(np.array([Trap()], dtype=object), allow_pickle=True)
    assert b"eval" in trap
    forged(path, [("x", trap)])
    with pytest.raises(ModelFileError, match=r"x\.npy: has the type object"):
        load_arrays(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ModelFileError, match=r"model\.ordrec: not a model file"):
        load_arrays(path)


@pytest.mark.parametrize(
    ("shape", "complaint"),
    [
        ("(1000000000000,)", "header says 8000000000000 bytes, found 8"),
        ("(-1,)", "header says -8 bytes, found 8"),
        ("(-1, -1)", "header says 8 bytes, found 8"),
        ("(4294967296, 4294967296, 2)", "bytes, found"),
    ],
)
def test_headers_that_claim_other_shapes_allocate_nothing(path, shape, complaint):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(8)
    forged(path, [("x", data)])
    with pytest.raises(ModelFileError, match=complaint):
        load_arrays(path)


@pytest.mark.parametrize("descr", ["'|O'", "[('a', '<f8')]", "'<M8[s]'", "'<c16'", "('<f8', (1,))"])
def test_only_plain_numbers_are_read(path, descr):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}".ljust(117) + "\n"
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(16)
    forged(path, [("x", data)])
    with pytest.raises(ModelFileError, match=r"x\.npy"):
        load_arrays(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_archives_with_other_things_in_them_are_refused(path):
    good = npy(np.zeros(3))
    forged(path, [("x", good), ("x", good)])
    with pytest.raises(ModelFileError, match=r"x\.npy occurs twice"):
        load_arrays(path)
    forged(path, [("../../x", good)])
    with pytest.raises(ModelFileError, match=r"'\.\./\.\./x\.npy' is not a name of this format"):
        load_arrays(path)
    forged(path, [("x", good)], compression=zipfile.ZIP_BZIP2)
    with pytest.raises(ModelFileError, match="is compressed as ordrec never does"):
        load_arrays(path)
    forged(path, [(f"x{k}", b"") for k in range(5000)])
    with pytest.raises(ModelFileError, match="5001 members"):
        load_arrays(path)
    np.savez(path.with_suffix(".npz"), x=np.zeros(3))
    with pytest.raises(ModelFileError, match=r"contains no ordrec\.json"):
        load_arrays(path.with_suffix(".npz"))
    with pytest.raises(ModelFileError, match="no such file"):
        load_arrays(path.parent)


def test_arrays_that_are_equal_are_written_once_and_deflated_where_they_shrink(path):
    """What is read are arrays of their own."""
    noise = np.random.default_rng(0).integers(-(2**62), 2**62, 40_000)
    arrays = {"a": noise, "b": np.zeros(50_000), "c": noise.copy(), "d": np.zeros(50_000)}
    save_arrays(path, arrays, {}, deflated=True)
    with zipfile.ZipFile(path) as archive:
        kinds = {entry.filename: entry.compress_type for entry in archive.infolist()}
    stored, deflated = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    assert kinds == {"ordrec.json": stored, "a.npy": stored, "b.npy": deflated}
    assert path.stat().st_size < noise.nbytes + 4000
    found, _ = load_arrays(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
    found["c"][0] = -1
    assert found["a"][0] == noise[0]


def test_a_bomb_is_refused_by_what_it_claims(path):
    """A hundred names for a megabyte of zeros in a kilobyte."""
    save_arrays(path, {f"x{k}": np.zeros(10**6 // 8) for k in range(100)}, {}, deflated=True)
    assert path.stat().st_size < 20_000
    with memory_limit(0.05), pytest.raises(TooLarge, match="its arrays"):
        load_arrays(path)
    with memory_limit(0.2):
        assert len(load_arrays(path)[0]) == 100


def test_no_more_is_unpacked_than_an_archive_claims(path):
    """The directory says a thousand bytes less than there are, or a thousand times more."""
    data = npy(np.zeros(10**5))
    for claimed, complaint in ((len(data) - 1000, "Bad CRC"), (10**9, "cannot have")):
        save_arrays(path, {"x": np.zeros(10**5)}, {}, deflated=True)
        raw = bytearray(path.read_bytes())
        true = struct.pack("<I", len(data))
        at = raw.rfind(true)  # in the directory
        raw[at : at + 4] = struct.pack("<I", claimed)
        path.write_bytes(raw)
        with pytest.raises(ModelFileError, match=complaint):
            load_arrays(path)


def test_members_that_share_their_bytes_are_refused(path):
    """A thousand names for the same bytes: a small file that would fill the memory."""
    forged(path, [("a", npy(np.zeros(50_000)))])
    with zipfile.ZipFile(path, "a") as archive:
        for k in range(1000):
            twin = zipfile.ZipInfo(f"b{k}.npy")
            original = archive.getinfo("a.npy")
            for field in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(twin, field, getattr(original, field))
            archive.filelist.append(twin)
            archive.NameToInfo[twin.filename] = twin
        archive._didModify = True
    with pytest.raises(ModelFileError, match="claim to be larger than the file"):
        load_arrays(path)


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ([], "does not say"),
        ({"format": "other"}, "does not say 'ordrec model'"),
        ({"format": "ordrec model", "version": 2}, "version 2 of the format"),
        ({"format": "ordrec model", "version": 1}, "lacks checksums"),
        ({"format": "ordrec model", "version": 1, "sha256": {}, "metadata": {}}, "only in one"),
        (
            {"format": "ordrec model", "version": 1, "sha256": {"x": "0"}, "metadata": {}},
            "sha256 differs",
        ),
    ],
)
def test_headers_that_say_something_else(path, header, complaint):
    forged(path, [("x", npy(np.zeros(3)))], header)
    with pytest.raises(ModelFileError, match=complaint):
        load_arrays(path)


def test_arrays_are_exactly_those_of_the_header(path):
    data = npy(np.zeros(3))
    sums = {"x": hashlib.sha256(data).hexdigest()}
    header = {"format": "ordrec model", "version": 1, "metadata": {}}
    forged(path, [("x", data)], header | {"sha256": sums | {"y": "0"}})  # one sum too many
    with pytest.raises(ModelFileError, match="'y' is only in one"):
        load_arrays(path)
    forged(path, [("x", data), ("y", data)], header | {"sha256": sums})  # one array too many
    with pytest.raises(ModelFileError, match="'y' is only in one"):
        load_arrays(path)


def test_json_nested_without_end_is_refused(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ordrec.json", "[" * 10**6)
    with pytest.raises(ModelFileError, match=r"ordrec\.json is damaged"):
        load_arrays(path)


def test_a_file_cannot_name_its_own_class(path):
    for kind in ("os:system", "Ratings", None, ["BiasModel"]):
        save_arrays(path, {}, {"kind": kind, "state": {}})
        with pytest.raises(ModelFileError, match="not one of BiasModel"):
            load(path)


@pytest.mark.parametrize("name", STORABLE)
def test_arrays_that_do_not_fit_together_are_refused(name, path, ratings):
    """Every array in turn is left out, cut short, or holds codes that point nowhere."""
    save(make_model(name, **STORABLE[name]).fit(ratings), path)
    arrays, metadata = load_arrays(path)
    for key, array in arrays.items():
        wrong = {"missing": None, "retyped": array.astype(np.float32)}
        if array.size:
            wrong["cut"] = array[:-1]
        if array.size and array.dtype.kind in "iu" and "ids" not in key:
            far = min(10**6, np.iinfo(array.dtype).max)
            if not key.endswith("item_counts"):  # an item may have been rated any number of times
                wrong["pointing nowhere"] = np.full_like(array, far)
            wrong["negative"] = array - far
        for how, changed in wrong.items():
            others = {k: v for k, v in arrays.items() if k != key}
            save_arrays(path, others if changed is None else others | {key: changed}, metadata)
            if how == "retyped" and array.dtype.kind == "f":
                if array.itemsize > 2:
                    load(path)  # single precision is a float too
                continue
            if how == "cut" and name in ("mean", "histogram") and "ids" in key:
                continue  # these two know nothing about single users and items
            if how == "cut" and key.endswith("loss"):
                continue  # a fit ends after any number of sweeps
            with pytest.raises(ModelFileError):
                load(path)
    for key in metadata["state"]:
        state = {k: v for k, v in metadata["state"].items() if k != key}
        save_arrays(path, arrays, metadata | {"state": state})
        with pytest.raises(ModelFileError, match=r"are not those of a|is missing|is not "):
            load(path)


def test_take_checks_kind_shape_and_range():
    arrays = {"x": np.array([[1.0, np.inf]]), "k": np.array([0, 7])}
    with pytest.raises(ModelFileError, match="array 'y' is missing"):
        take(arrays, "y", np.float64, (None,))
    with pytest.raises(ModelFileError, match=r"not float64 and \(any,\)"):
        take(arrays, "x", np.float64, (None,))
    with pytest.raises(ModelFileError, match="NaN, infinity, or numbers beyond"):
        take(arrays, "x", np.float64, (1, None))
    with pytest.raises(ModelFileError, match="has type int64"):
        take(arrays, "k", np.float64, (2,))
    with pytest.raises(ModelFileError, match=r"outside 0\.\.6"):
        take(arrays, "k", np.int64, (2,), low=0, high=6)
    with pytest.raises(ModelFileError, match="has type int64"):
        take(arrays, "k", np.int32, (2,))


# ---- damage ------------------------------------------------------------------------------------


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes cut, flipped, overwritten, doubled or shuffled somewhere."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at, n = int(rng.integers(len(out))), int(rng.integers(1, 40))
        how = rng.integers(5)
        if how == 0:
            out[at] ^= 1 << int(rng.integers(8))
        elif how == 1:
            out[at : at + n] = rng.bytes(n)
        elif how == 2:
            del out[at : at + n]
        elif how == 3:
            out[at:at] = out[at : at + n]
        else:
            del out[at:]
        if not out:
            break
    return bytes(out)


def damage(path, ratings, n_rounds):
    save(make_model("item-knn").fit(ratings), path)
    data, outcomes = path.read_bytes(), [0, 0]  # unharmed, refused by a message with the path
    want = load(path).predict(ratings.user_ids, ratings.user_ids)
    for seed in range(n_rounds):
        path.write_bytes(mutated(data, np.random.default_rng(seed)))
        try:
            model = load(path)
        except ModelFileError as error:
            outcomes[1] += str(path) in str(error)
        else:  # harmless places exist: dates, permissions
            np.testing.assert_array_equal(model.predict(ratings.user_ids, ratings.user_ids), want)
            outcomes[0] += 1
    assert sum(outcomes) == n_rounds
    return outcomes


def test_damaged_files_are_refused_or_harmless(path, ratings):
    unharmed, refused = damage(path, ratings, 300)
    assert refused > unharmed


def test_every_truncation_is_refused(path):
    save_arrays(path, ARRAYS, {"a": 1})
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(ModelFileError):
            load_arrays(path)


@pytest.mark.fuzz
def test_damaged_files_at_length(path, ratings):
    damage(path, ratings, 30_000)


def test_rows_name_a_column_once_and_stay_within_bounds() -> None:
    arrays = {"start": np.array([0, 2, 3]), "items": np.array([0, 1, 1])}
    start, items = take_rows(arrays, "start", "items", 2, 2)
    assert start.tolist() == [0, 2, 3]
    assert items.tolist() == [0, 1, 1]
    for wrong in ([0, 0, 1], [0, 2, 1], [0, -1, 1]):
        with pytest.raises(ModelFileError, match="items"):
            take_rows(arrays | {"items": np.array(wrong)}, "start", "items", 2, 2)
    with pytest.raises(ModelFileError, match="start"):
        take_rows(arrays | {"start": np.array([0, 4, 3])}, "start", "items", 2, 2)


def test_a_covariance_matrix_is_symmetric_and_can_be_inverted():
    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(take_covariance({"S": good}, "S", 2), good)
    for bad in ([[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.5], [0.4, 1.0]], [[1.0, 0.0], [0.0, 1e-300]],
                [[-1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]):  # fmt: skip
        with pytest.raises(ModelFileError, match="not a covariance"):
            take_covariance({"S": np.array(bad)}, "S", 2)


@pytest.mark.parametrize("most", [0, 1, 2**7, 2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**62])
def test_numbers_in_few_bytes_are_the_same_numbers(most: int) -> None:
    for numbers in ([most], [-most], [-most - 1, 0], [most, -1]):
        given = np.array(numbers, dtype=np.int64)
        found = narrowed(given)
        assert found.tolist() == numbers
        fits = all(-(2**15) <= number < 2**15 for number in numbers)
        assert (found.itemsize == 2) == fits


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(max_dims=2, max_side=30),
        elements=st.floats(-9e4, 9e4, width=32),
    )
)
def test_numbers_in_a_byte_each_are_near(array: np.ndarray) -> None:
    rounded = array.copy()
    round_to_bytes(rounded)
    largest = min(float(np.abs(array).max()), 65504.0)
    values = np.unique(rounded)
    assert values.size <= 255
    assert np.array_equal(values, values.astype(np.float16))
    kept = np.clip(array, -largest, largest)
    steps = 6e-8 if largest < 1.0 else 0.0  # of half precision near 0
    np.testing.assert_allclose(rounded, kept, rtol=0.035, atol=largest / 4096 / 2 + steps)
    again = rounded.copy()
    round_to_bytes(again)
    np.testing.assert_array_equal(again, rounded)  # what was rounded stays


def test_values_of_rare_numbers_are_found_or_none() -> None:
    many = np.zeros(100_000, dtype=np.float32)
    many[-1] = 0.1  # not in half precision, and beyond the entries that are seen first
    assert few_values(many) is None
    many[-1] = 0.25
    assert few_values(many).tolist() == [0.0, 0.25]
    assert few_values(np.arange(2000.0) % 256).size == 256
    assert few_values(np.arange(2000.0) % 257) is None
    assert few_values(np.arange(4000.0) % 256 / 3.0).size == 256
    assert few_values(np.arange(4000.0) % 257 / 3.0) is None
    assert few_values(np.tile([1, 2], 4000)) is None  # integers have a width of their own


@pytest.mark.parametrize("variance", [0.0, -1.0])
def test_a_single_variance_is_positive(variance: float) -> None:
    with pytest.raises(ModelFileError, match="is not a covariance matrix"):
        take_covariance({"S": np.array([[variance]])}, "S", 1)
    assert take_covariance({"S": np.array([[0.5]])}, "S", 1).tolist() == [[0.5]]


def test_models_are_deflated_and_their_headers_are_ascii(path, ratings) -> None:
    model = make_model("factors", n_factors=2, max_iter=2).fit(ratings.renamed("Üß"))
    save(model, path)
    with zipfile.ZipFile(path) as archive:
        kinds = {each.compress_type for each in archive.infolist()}
    assert zipfile.ZIP_DEFLATED in kinds
    save_arrays(path, {}, {"note": "Üß \ud800"})
    assert load_arrays(path)[1]["note"] == "Üß \ud800"
