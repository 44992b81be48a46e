"""Model files that were damaged, or forged with correct checksums.

Damaged bytes must be refused, or harmless. A forged file passes the checksums, so that what a
model checks by itself is reached; whatever loads must predict.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import io
import json
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fuzz.campaign import answered, both_runs, explore
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from ordrec import load, save
from ordrec.datasets import synthetic_ratings
from ordrec.recommend import (
    BiasModel,
    PersonalThresholds,
    ProcessPredictor,
    make_model,
    model_names,
)
from ordrec.recommend.registry import storable_kinds
from ordrec.storage.archive import REMEDY, load_arrays

SMALL = {
    "als": {"n_factors": 2, "n_iter": 2},
    "factors": {"n_factors": 2, "pattern": 2, "max_iter": 2},
}
RATINGS = synthetic_ratings(9, 8, n_ratings=45, seed=1)
USERS, ITEMS = [0, 1, 5, -7, 8], [0, 3, -7, 2, 7]


@functools.cache
def stored() -> dict[str, bytes]:
    """The file of one small model of every kind that can be saved."""
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ordrec"
        makers = {name: functools.partial(make_model, name) for name in model_names()}
        makers["process"] = functools.partial(ProcessPredictor, preset="fast")
        makers["thresholds"] = functools.partial(PersonalThresholds, BiasModel())
        for name, make in makers.items():
            try:
                model = make(**SMALL.get(name, {}))
            except ImportError:  # peers that are not installed
                continue
            kind = type(model).__name__
            if hasattr(model, "stored") and kind not in files:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    save(model.fit(RATINGS), path)
                files[kind] = path.read_bytes()
    return files


def test_every_kind_of_model_file_takes_part():
    assert set(stored()) == set(storable_kinds())


def use(model):
    """Call all methods of a loaded model; the results must be valid."""
    given = {}
    if isinstance(model, PersonalThresholds) and model.model is None:  # fitted to scores
        given = {"scores": [0.0, 1.0, 2.0, 3.0, 4.0]}
    if hasattr(model, "predict"):
        predicted = model.predict(USERS, ITEMS, **given)
        low, high = model.scale_.values[[0, -1]]
        assert ((predicted >= low - 1e-9) & (predicted <= high + 1e-9)).all()
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(USERS, ITEMS, **given)
        assert (probabilities >= 0).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)
    if hasattr(model, "scores"):
        assert not np.isnan(model.scores(USERS, ITEMS)).any()
    repr(model)


# ---- damage ------------------------------------------------------------------------------------


@st.composite
def damaged(draw):
    """The bytes of a file cut, flipped, overwritten or doubled somewhere; or any bytes."""
    kinds = sorted(stored())
    data = stored()[draw(st.sampled_from(kinds))]
    if draw(st.integers(0, 20)) == 0:
        return draw(st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])) + draw(
            st.binary(max_size=60)
        )
    rng = np.random.default_rng(draw(st.integers(0, 2**62)))  # drawn bytes would cost too much
    out = bytearray(data)
    directory = data.rindex(b"PK\x01\x02", 0, data.rindex(b"PK\x05\x06"))
    for _ in range(int(rng.integers(1, 4))):
        ends = rng.random() < 0.4  # where the archive describes itself, a few flips do most
        at = int(
            rng.integers(min(directory, len(out) - 1), len(out))
            if ends and len(out) > 1
            else rng.integers(max(len(out), 1))
        )
        n = int(rng.integers(1, 40))
        how = rng.integers(6)
        if how == 0 and out:
            out[at] ^= 1 << int(rng.integers(8))
        elif how == 1:
            out[at : at + n] = rng.bytes(n)
        elif how == 2:
            del out[at : at + n]
        elif how == 3:
            out[at:at] = out[at : at + n]
        elif how == 4:
            out[at : at + 4] = rng.choice([b"\xff" * 4, bytes(4), b"\0\0\0\x80"])
        else:
            del out[at:]
    return bytes(out)


@both_runs
def test_damaged_files_are_refused_or_harmless(run, tmp_path):
    path = tmp_path / "model.ordrec"
    for data in stored().values():
        path.write_bytes(data)
        use(load(path))

    def check(data):
        path.write_bytes(data)
        model = answered(lambda: load(path), says=(str(path), REMEDY))
        if model is not None:
            use(model)

    explore("damaged models", run, check, damaged())


# ---- forgery -----------------------------------------------------------------------------------

ODD_VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 7, 10**6, 2**31, 2**40, 2**63, 10**400, 0.0, 0.5, -0.5,
    1e-300, 1e300, float("nan"), float("inf"), -float("inf"), "", "x", "linear", [], [1], [1, 2, 3],
    ["a", "b"], [None], [[1]], {}, {"a": 1},
]  # fmt: skip
ODD_DTYPES = ["int8", "int32", "int64", "uint8", "uint64", "float16", "float32", "float64", "bool",
              ">f8", ">i4", "complex128"]  # fmt: skip
ODD_ENTRIES = [0, 1, -1, 2, 100, 2**31 - 1, 2**62, 0.5, 1e-300, 1e300, np.nan, np.inf, -np.inf]


def changed_array(draw, array, others):
    how = draw(st.sampled_from(["cut", "grow", "empty", "flat", "deeper", "turn", "retype", "fill",
                                "one", "one", "one", "shuffle", "other"]))  # fmt: skip
    if how == "cut":
        return array[:-1]
    if how == "grow":
        return np.concatenate([array, array]) if array.ndim else array
    if how == "empty":
        return array[:0] if array.ndim else array
    if how == "flat":
        return array.reshape(-1)
    if how == "deeper":
        return array[None]
    if how == "turn":
        return array.T
    if how == "retype":
        with np.errstate(all="ignore"):
            return array.astype(draw(st.sampled_from(ODD_DTYPES)))
    if how == "other":
        return draw(st.sampled_from(others))
    array = np.array(array)
    if how == "shuffle":
        return np.random.default_rng(draw(st.integers(0, 999))).permutation(array)
    with np.errstate(all="ignore"):
        value = np.asarray(draw(st.sampled_from(ODD_ENTRIES))).astype(array.dtype)
    if how == "fill" or not array.size:
        array[...] = value
    else:
        array.reshape(-1)[draw(st.integers(0, array.size - 1))] = value
    return array


def changed_state(draw, state):
    """One entry somewhere in the nested metadata replaced, left out or added."""
    state = copy.deepcopy(state)
    places = []

    def walk(node):
        keys = node if isinstance(node, dict) else range(len(node))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(state)
    if not places:
        return {"state": draw(st.sampled_from(ODD_VALUES))}
    node, key = draw(st.sampled_from(places))
    how = draw(st.sampled_from(["replace", "replace", "replace", "drop", "add", "nudge"]))
    if how == "replace":
        node[key] = draw(st.sampled_from(ODD_VALUES))
    elif how == "drop":
        del node[key]
    elif how == "add" and isinstance(node, dict):
        node["other"] = draw(st.sampled_from(ODD_VALUES))
    elif isinstance(node[key], (int, float)):
        node[key] = type(node[key])(node[key] * 2 - 1)
    return state


@st.composite
def forged(draw):
    """A file with correct checksums and one to three changes inside."""
    arrays, metadata = parts()[draw(st.sampled_from(sorted(stored())))]
    arrays, metadata = dict(arrays), metadata
    for _ in range(draw(st.integers(1, 3))):
        if arrays and draw(st.booleans()):
            name = draw(st.sampled_from(sorted(arrays)))
            if draw(st.integers(0, 8)) == 0:
                del arrays[name]
            else:
                arrays[name] = changed_array(draw, arrays[name], list(arrays.values()))
        else:
            metadata = changed_state(draw, metadata)
    return packed(arrays, metadata)


@functools.cache
def parts():
    """Arrays and metadata of the stored models."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ordrec"
        for kind, data in stored().items():
            path.write_bytes(data)
            found[kind] = load_arrays(path)
    return found


def packed(arrays, metadata):
    members = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of complex and structured types, which are meant
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)
            members[name] = stream.getvalue()
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    header = {"format": "ordrec model", "version": 1, "sha256": sums, "metadata": metadata}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("ordrec.json", json.dumps(header))
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@both_runs
def test_forged_files_are_refused_or_predict(run, tmp_path):
    path = tmp_path / "model.ordrec"
    newcomer = RATINGS.select(RATINGS.users == 3)

    def check(data):
        path.write_bytes(data)
        model = answered(lambda: load(path), says=(str(path), REMEDY))
        if model is None:
            return
        use(model)
        if hasattr(model, "fold_in"):
            known = answered(lambda: model.fold_in(newcomer))
            if known is not None:
                use(known)

    stored()
    with np.errstate(all="ignore"):  # forged numbers may overflow: only the answers count
        explore("forged models", run, check, forged())
