"""The schema of model files: what is declared comes back, and what does not fit is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from scipy import sparse

from ordrec.errors import ArgumentError, ModelFileError
from ordrec.storage.arrays import texts_from_arrays
from ordrec.storage.parameters import check_types, plain_of, value_of
from ordrec.storage.schema import (
    Array,
    As,
    ByName,
    Flag,
    Integer,
    Member,
    Model,
    Number,
    Numbers,
    Optional,
    Part,
    Parts,
    Reader,
    Storable,
    Table,
    Text,
    Texts,
    Together,
    contents_of,
    model_of,
)


@dataclass(frozen=True)
class Line:
    stored: ClassVar = {"slope": Number(), "points": Array("points")}

    slope: float
    points: np.ndarray

    def check_stored(self) -> None:
        if self.slope == 0:
            raise ModelFileError("a flat line")


@dataclass(frozen=True)
class StoredSet:
    """A set as a sorted array."""

    stored: ClassVar = {"sorted": Array("entries", dtype=np.int64)}

    sorted: np.ndarray

    @classmethod
    def of(cls, found: set[int]) -> StoredSet:
        return cls(np.array(sorted(found)))

    def restored(self, owner: Any) -> set[int]:
        return set(self.sorted.tolist()) | {len(owner.names_)}


class Inner(Storable):
    stored: ClassVar = {"names_": Texts("users"), "bias_": Array("users")}


class Outer(Storable):
    stored: ClassVar = {
        "names_": Texts("users"),
        "scores_": Array("users+1", "factors", stored_as=np.float32),
        "weights_": Array("factors", low=0, high="users"),
        "codes_": Array("ratings", dtype=np.int32, codes="users"),
        "gaps_": Array("users", gaps=True),
        "rate_": Number(0.0, 1.0, gap=True),
        "rounds_": Integer(low=1),
        "done_": Flag(),
        "kind_": Text("one", "two"),
        "range_": Numbers(2),
        "title_": Optional(Text()),
        "link_": Optional(Number(), unset=True),
        "lines_": Parts(Line, 1, 2),
        "line_": Part(Line),
        "pair_": Together(first=Array("factors"), second=Number()),
        "sides_": ByName(Number(), "left", "right"),
        "set_": As(StoredSet),
        "member_": Member(Inner, "names_"),
        "model_": Optional(Model()),
    }


class OnlyThese:
    """A table of two classes."""

    classes: ClassVar = {"Outer": Outer, "Inner": Inner}

    def name_of(self, model: Any) -> str:
        return type(model).__name__

    def class_of(self, name: Any) -> type:
        if name not in self.classes:
            raise ModelFileError(f"no {name}")
        return self.classes[name]


KINDS = OnlyThese()


def inner(names: list[str], bias: list[float]) -> Inner:
    model = Inner()
    model.names_, model.bias_ = names, np.array(bias)
    return model


def outer() -> Outer:
    model: Any = Outer()
    model.names_ = ["a", "b"]
    model.scores_ = np.arange(6.0).reshape(3, 2) / 7
    model.weights_, model.codes_ = np.array([0.0, 2.0]), np.array([1, 0, 1], np.int32)
    model.gaps_, model.rate_ = np.array([np.nan, 1.0]), float("nan")
    model.rounds_, model.done_, model.kind_, model.range_ = 3, True, "two", (0.0, 1.0)
    model.title_ = None
    model.line_ = Line(1.0, np.zeros(4))
    model.lines_ = (Line(2.0, np.zeros(1)), Line(3.0, np.zeros(5)))  # each of a length of its own
    model.pair_, model.sides_, model.set_ = (np.ones(2), 5.0), {"right": 1.0}, {7}
    model.member_, model.model_ = inner(model.names_, [1.0, 2.0]), inner(["x"], [3.0])
    return model


def test_everything_comes_back() -> None:
    model, again = outer(), model_of(*contents_of(outer(), KINDS), KINDS)
    np.testing.assert_array_equal(again.scores_, model.scores_.astype(np.float32))
    assert again.scores_.dtype == np.float64
    np.testing.assert_array_equal(again.gaps_, model.gaps_)
    assert np.isnan(again.rate_)
    assert (again.rounds_, again.done_, again.kind_, again.range_) == (3, True, "two", (0.0, 1.0))
    assert again.title_ is None
    assert not hasattr(again, "link_")
    assert [line.points.size for line in again.lines_] == [1, 5]
    assert again.pair_[1] == 5.0
    assert again.sides_ == {"right": 1.0}
    assert again.set_ == {7, 2}
    assert again.member_.names_ is again.names_
    assert again.model_.names_ == ["x"]


def test_what_is_shared_is_stored_once() -> None:
    arrays, metadata = contents_of(outer(), KINDS)
    assert "member.bias" in arrays
    assert not any(name.startswith("member.names") for name in arrays)
    assert metadata["state"]["model"]["kind"] == "Inner"
    assert metadata["state"]["has_title"] is False
    assert arrays["scores"].dtype == np.float32


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("scores", np.zeros((2, 2)), r"array 'scores' has type float64 and shape \(2, 2\)"),
        ("scores", np.zeros((3, 2), int), "has type int64"),
        ("weights", np.zeros(3), r"array 'weights' .* and \(2,\)"),
        ("weights", np.array([0.0, 2.5]), r"array 'weights' has entries outside 0\.\.2"),
        ("codes", np.array([2], np.int32), r"array 'codes' has entries outside 0\.\.1"),
        ("gaps", np.array([np.nan, 0.0]), "array 'gaps' holds NaN"),
        ("member.bias", np.zeros(3), "array 'member.bias' has"),
        ("model.bias", np.zeros(2), "array 'model.bias' has"),
        ("pair.first", np.zeros(1), "array 'pair.first' has"),
    ],
)
def test_arrays_that_do_not_fit(name: str, array: np.ndarray, says: str) -> None:
    arrays, metadata = contents_of(outer(), KINDS)
    with pytest.raises(ModelFileError, match=says):
        model_of(arrays | {name: array}, metadata, KINDS)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("rate", 1.5, "rate is '1.5', no allowed number"),
        ("rate", True, "rate is 'True', no allowed number"),
        ("rounds", 0, "rounds is '0'"),
        ("rounds", 1.0, "no integer"),
        ("done", 1, "not true or false"),
        ("kind", "three", "kind is 'three'"),
        ("range", [1.0], "no list of 2 numbers"),
        ("has_title", None, "has_title is 'None'"),
        ("has_title", True, "the value 'title' is missing"),
        ("line", {"slope": 0.0}, "a flat line"),
        ("line", 3, "'line' is not a set of values"),
        ("lines", [], "not a list of Lines"),
        ("sides", {"middle": 1.0}, "not by left and right"),
        ("model", {"kind": "Line", "state": {}}, "no Line"),
        ("model", {"kind": "Inner"}, "model describes no model"),
    ],
)
def test_values_that_do_not_fit(name: str, value: Any, says: str) -> None:
    arrays, metadata = contents_of(outer(), KINDS)
    state = metadata["state"] | {name: value}
    with pytest.raises(ModelFileError, match=says):
        model_of(arrays, metadata | {"state": state}, KINDS)
    del state[name]
    with pytest.raises(ModelFileError, match=f"the value '{name}' is missing"):
        model_of(arrays, metadata | {"state": state}, KINDS)


def test_a_length_that_cannot_be_the_rest_of_a_sum() -> None:
    file = Reader({}, {}, KINDS, sizes={"thresholds": 4})
    assert file.length("factors+thresholds", 6) == 6
    assert file.sizes["factors"] == 2
    with pytest.raises(ModelFileError, match="3 columns, too few"):
        file.length("more+thresholds", 3)


# ---- parameters ----------------------------------------------------------------------------------


class Box:
    def __init__(self, size: float):
        self.size = size


@pytest.mark.parametrize(
    "value", [None, 3, 0.5, "text", True, [1, "a"], (1, (2,)), {1: "a", "b": None}, {"b", "a"}]
)
def test_parameters_come_back(value: Any) -> None:
    expected = sorted(value) if isinstance(value, set) else value
    assert value_of(plain_of(value, "here")) == expected


def test_objects_are_those_of_the_table() -> None:
    plain = plain_of(Box(2.0), "here", {"Box": Box})
    assert value_of(plain, {"Box": Box}).size == 2.0
    with pytest.raises(ArgumentError, match="here is a Box, which cannot be saved"):
        plain_of(Box(2.0), "here")
    with pytest.raises(ModelFileError, match="which ordrec does not know"):
        value_of(plain)
    with pytest.raises(ModelFileError, match="values of a Box are not its parameters"):
        value_of({"object": "Box", "values": {"colour": 1}}, {"Box": Box})
    with pytest.raises(ModelFileError, match="neither a number"):
        value_of({"odd": 1})


class Declared:
    size: int | None
    rate: float
    mode: Literal["a", "b"] | bool
    names: Mapping[str, str] | None
    n_jobs: int | None


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("size", (None, 3, 2**63 - 1), (True, 3.0, "3", 2**63)),
        ("rate", (1, 0.5, -(2**63)), (1e200, float("nan"), None, False, 2**63, -(2**63) - 1)),
        ("mode", ("a", True), ("c", 1, None)),
        ("names", (None, {"a": "b"}), ({"a": 1}, ["a"])),
        ("n_jobs", (None, -1, 8), (0, 10**9)),
    ],
)
def test_parameters_have_the_types_that_are_declared(name: str, good: Any, bad: Any) -> None:
    for value in good:
        check_types(Declared, {name: value})
    for value in bad:
        with pytest.raises(ModelFileError, match=f"parameter {name} is"):
            check_types(Declared, {name: value})


@pytest.mark.parametrize("ends", [[2, 1, 3], [1, 2], [4, 3], [3, 3, 4], [-1, 3]], ids=str)
def test_texts_end_where_they_may(ends: list[int]) -> None:
    arrays = {"t.text": np.frombuffer(b"abc", np.uint8), "t.ends": np.array(ends, np.int64)}
    with pytest.raises(ModelFileError):
        texts_from_arrays("t", arrays)
    arrays["t.ends"] = np.array([0, 2, 2, 3])
    assert texts_from_arrays("t", arrays) == ["", "ab", "", "c"]


class Wide(Storable):
    stored: ClassVar = {
        "rows_": Array("users", "factors", dtype=np.float32, low=-2, high=2),
        "table_": Table("users", 2, high=1),
    }


WIDE = OnlyThese()
WIDE.classes = {"Wide": Wide}


def wide(values: list[float], repeated: int = 600) -> Wide:
    model = Wide()
    model.rows_ = np.tile(np.array(values, dtype=np.float32), (repeated, 1))
    every = np.ones((repeated, 2)) * [0.2, 0.7]
    model.table_ = sparse.csr_array(every)
    return model


def test_numbers_of_few_values_take_a_byte_each() -> None:
    model = wide([0.5, -0.25, 0.0, 1.0])
    arrays, metadata = contents_of(model, WIDE)
    assert arrays["rows.codes"].dtype == arrays["table.entries.codes"].dtype == np.uint8
    assert arrays["rows.values"].tolist() == [-0.25, 0.0, 0.5, 1.0]
    assert arrays["table.entries.values"].tolist() == [0.2, 0.7]
    assert "rows" not in arrays
    again = model_of(arrays, metadata, WIDE)
    assert again.rows_.dtype == np.float32
    np.testing.assert_array_equal(again.rows_, model.rows_)
    np.testing.assert_array_equal(again.table_.toarray(), model.table_.toarray())
    few, _ = contents_of(wide([0.5], repeated=20), WIDE)  # short arrays are as they are
    assert "rows" in few


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("rows.codes", np.full((600, 4), 4, dtype=np.uint8), r"'rows.codes' has entries outside"),
        ("rows.codes", np.zeros((600, 4), dtype=np.int64), r"'rows.codes' has type int64"),
        ("rows.codes", np.zeros(600, dtype=np.uint8), r"'rows.codes' has type uint8 and shape"),
        ("rows.values", np.array([0.5, -0.25, 0.0, 3.0]), r"'rows.values' has type float64"),
        ("rows.values", np.float32([0.5, -0.25, 0.0, 3.0]), r"'rows.values' has entries outside"),
        ("rows.values", np.float32([0.5, np.nan, 0.0, 1.0]), r"'rows.values' holds NaN"),
        ("rows.values", np.zeros((2, 2), np.float32), r"'rows.values' has type float32 and shape"),
        ("rows.values", None, r"'rows.values' is missing"),
        ("rows.codes", None, r"'rows' is missing"),
        ("table.entries.values", np.array([0.2, 1.5]), "has entries outside"),
    ],
)
def test_forged_codes_are_refused(name: str, array: np.ndarray | None, says: str) -> None:
    arrays, metadata = contents_of(wide([0.5, -0.25, 0.0, 1.0]), WIDE)
    forged = {key: found for key, found in arrays.items() if key != name}
    if array is not None:
        forged[name] = array
    with pytest.raises(ModelFileError, match=says):
        model_of(forged, metadata, WIDE)
