"""Ratings on disk: the same as in memory, whatever the chunks; and every bad folder is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordrec import Ratings, Scale
from ordrec.data.on_disk.partitions import ITEMS, MANIFEST, write_partitions
from ordrec.datasets import synthetic_chunks, synthetic_ratings
from ordrec.errors import ArgumentError, DataError

FIVE = Scale.regular(1, 5)


def folder_of(frames: dict[str, pd.DataFrame], folder: Path, **options) -> Path:
    """A folder that ordrec did not write."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(folder / name, index=False, **options)
    return folder


def table(users, items, ratings, **more) -> pd.DataFrame:
    return pd.DataFrame({"user": users, "item": items, "rating": ratings, **more})


def sorted_rows(ratings: Ratings) -> pd.DataFrame:
    return ratings.to_frame().sort_values(["user", "item"]).reset_index(drop=True)


def with_weights(ratings: Ratings, seed: int = 0) -> Ratings:
    weights = np.random.default_rng(seed).integers(0, 5, ratings.n_ratings) / 4
    return Ratings.from_frame(
        ratings.to_frame().assign(weight=weights), scale=ratings.scale, weight="weight"
    )


# ---- the same ratings --------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(
    n_users=st.integers(1, 25),
    seed=st.integers(0, 99),
    rows_per_part=st.integers(1, 120),
    rows=st.integers(1, 120),
    dated=st.booleans(),
    named=st.booleans(),
    weighted=st.booleans(),
)
def test_disk_and_back(
    tmp_path_factory, n_users, seed, rows_per_part, rows, dated, named, weighted
):
    ratings = synthetic_ratings(
        n_users, 12, n_ratings=max(1, 5 * n_users), dated=dated, seed=seed, activity=1.5
    )
    ratings = ratings.select(np.random.default_rng(seed).permutation(ratings.n_ratings))
    if named:
        frame = ratings.to_frame()
        frame["user"], frame["item"] = (
            "u" + frame["user"].astype(str),
            frame["item"].map("i{}".format),
        )
        ratings = Ratings.from_frame(frame, scale=FIVE)
    if weighted:
        ratings = with_weights(ratings)
    folder = tmp_path_factory.mktemp("scan") / "ratings"
    ratings.to_partitions(folder, rows_per_part=rows_per_part)
    scan = Ratings.scan(folder)
    scan.check()
    assert (scan.n_ratings, scan.n_items) == (ratings.n_ratings, ratings.n_items)
    assert scan.n_users == np.count_nonzero(ratings.user_counts)
    assert scan.scale == ratings.scale
    assert (scan.weight is not None) == weighted == ("weighted" in repr(scan))
    assert scan.item_ids.equals(pd.Index(ratings.item_ids.to_numpy()))
    assert scan.item_counts.tolist() == ratings.item_counts.tolist()
    largest = int(ratings.user_counts.max())
    assert all(part.n_ratings <= max(rows_per_part, largest) for part in scan.parts)
    chunks = list(scan.chunks(rows))
    assert all(chunk.n_ratings < rows + largest for chunk in chunks)
    assert all(chunk.item_ids is scan.item_ids for chunk in chunks)
    users = np.concatenate([chunk.user_ids for chunk in chunks])
    assert len(set(users.tolist())) == users.size == scan.n_users
    pd.testing.assert_frame_equal(
        pd.concat([chunk.to_frame() for chunk in chunks], ignore_index=True),
        scan.collect().to_frame(),
    )
    pd.testing.assert_frame_equal(sorted_rows(scan.collect()), sorted_rows(ratings))


def test_weights_of_folders_from_elsewhere_have_to_be_named(tmp_path):
    ratings = with_weights(synthetic_ratings(12, 10, n_ratings=60, seed=1))
    frame = ratings.to_frame().rename(columns={"weight": "sure"})
    folder = folder_of({"all.parquet": frame}, tmp_path, row_group_size=7)
    assert Ratings.scan(folder, scale=FIVE).collect().weights is None
    scan = Ratings.scan(folder, scale=FIVE, weight="sure")
    assert scan.collect().weights.tolist() == frame["sure"].tolist()
    sample = scan.sample_users(5)
    of_sample = frame[frame["user"].isin(sample.user_ids)]
    assert sample.weights.tolist() == of_sample["sure"].tolist()
    with pytest.raises(DataError, match=r"all\.parquet: no columns 'surely'"):
        Ratings.scan(folder, weight="surely")
    folder_of({"all.parquet": frame.assign(sure=frame["sure"] * 2)}, tmp_path)
    with pytest.raises(DataError, match=r"row group 0, row \d+: sure (1.5|2) is not a weight"):
        Ratings.scan(folder, weight="sure")


def test_all_chunks_have_weights_or_none_has(tmp_path):
    chunks = list(synthetic_chunks(20, 12, n_ratings=100, rows=50))
    with pytest.raises(DataError, match=r"only some chunks have weights: drop them \(without_weig"):
        write_partitions([chunks[0], with_weights(chunks[1])], tmp_path / "x")


@settings(max_examples=12, deadline=None)
@given(rows=st.integers(1, 700), group=st.integers(1, 300))
def test_row_groups_do_not_matter(tmp_path_factory, rows, group):
    ratings = synthetic_ratings(40, 30, n_ratings=600, seed=1)
    folder = tmp_path_factory.mktemp("scan")
    folder_of({"all.parquet": ratings.to_frame()}, folder, row_group_size=group)
    chunks = [chunk.to_frame() for chunk in Ratings.scan(folder, scale=FIVE).chunks(rows)]
    expected, ends = [], np.cumsum(ratings.user_counts)
    start = 0
    while start < 600:  # a chunk ends with the user who fills it
        stop = int(ends[np.searchsorted(ends, start + rows)]) if start + rows <= 600 else 600
        expected.append(stop - start)
        start = stop
    assert [len(chunk) for chunk in chunks] == expected
    assert pd.concat(chunks, ignore_index=True).equals(ratings.to_frame())


@settings(max_examples=12, deadline=None)
@given(rows=st.integers(1, 400), rows_per_part=st.integers(1, 400))
def test_parts_do_not_depend_on_the_chunks(tmp_path_factory, rows, rows_per_part):
    folder = tmp_path_factory.mktemp("scan")
    options = {"n_ratings": 400, "seed": 5, "dated": True}
    write_partitions(
        synthetic_chunks(30, 40, rows=rows, **options), folder / "a", rows_per_part=rows_per_part
    )
    synthetic_ratings(30, 40, **options).to_partitions(folder / "b", rows_per_part=rows_per_part)
    one, two = Ratings.scan(folder / "a"), Ratings.scan(folder / "b")
    assert one.parts == two.parts
    assert one.collect().to_frame().equals(two.collect().to_frame())


def test_a_sample_of_users_is_whole_and_does_not_depend_on_the_parts(tmp_path):
    ratings = synthetic_ratings(60, 30, n_ratings=700, seed=2, dated=True)
    ratings.to_partitions(tmp_path / "few")
    ratings.to_partitions(tmp_path / "many", rows_per_part=50)
    one = Ratings.scan(tmp_path / "few").sample_users(10, seed=3)
    two = Ratings.scan(tmp_path / "many").sample_users(10, seed=3)
    assert one.n_users == two.n_users == 10
    assert one.to_frame().equals(two.to_frame())
    assert one.n_items == 30
    whole = ratings.to_frame()
    expected = whole[whole["user"].isin(one.user_ids)].reset_index(drop=True)
    assert one.to_frame().equals(expected)
    other = Ratings.scan(tmp_path / "few").sample_users(10, seed=4)
    assert set(other.user_ids) != set(one.user_ids)
    assert Ratings.scan(tmp_path / "few").sample_users(1000).n_users == 60


def test_folders_of_others_are_read(tmp_path):
    stamps = pd.to_datetime(["2020-01-01", "2020-01-02"])
    folder = folder_of(
        {
            "bucket=0/a.parquet": table(["x", "x"], ["p", "q"], [1, 5], when=stamps),
            "bucket=1/a.parquet": table(["y", "y"], ["r", "q"], [4, 2], when=stamps),
            "_metadata.parquet": pd.DataFrame({"nothing": [1]}),
        },
        tmp_path / "foreign",
    )
    scan = Ratings.scan(folder, timestamp="when")
    assert scan.scale == FIVE
    assert scan.item_ids.tolist() == ["p", "q", "r"]
    assert scan.item_counts.tolist() == [1, 2, 1]
    frame = scan.collect().to_frame()
    assert frame["timestamp"].tolist() == [1577836800, 1577923200] * 2
    assert frame["item"].tolist() == ["p", "q", "r", "q"]
    assert Ratings.scan(folder, timestamp=None).dated is False
    with pytest.raises(DataError, match=r"no column 'date' \(it has"):
        Ratings.scan(folder, timestamp="date")


def test_other_tools_read_the_folder_as_a_table(tmp_path):
    ratings = synthetic_ratings(20, 10, n_ratings=90)
    ratings.to_partitions(tmp_path / "x", rows_per_part=30)
    frame = pd.read_parquet(tmp_path / "x")
    assert frame[["user", "item", "rating"]].equals(ratings.to_frame())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_that_of_a_chunk(tmp_path):
    """Two million dated ratings take 48 MB as arrays and several times that while read at once."""
    code = f"""
from ordrec import Ratings
from ordrec.datasets import synthetic_chunks
from ordrec.data.on_disk.partitions import write_partitions
def peak():  # in MB; getrusage would begin with the peak of the process that started this one
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
write_partitions(synthetic_chunks(40, 2000, n_ratings=2000, dated=True), {str(tmp_path / "s")!r})
write_partitions(
    synthetic_chunks(20_000, 2000, n_ratings=2_000_000, rows=50_000, dated=True),
    {str(tmp_path / "x")!r}, rows_per_part=100_000)
def read(name, rows):
    scan = Ratings.scan({str(tmp_path)!r} + "/" + name)
    return sum(chunk.n_ratings for chunk in scan.chunks(rows))
read("s", 1000)
before = peak()
assert read("x", 50_000) == 2_000_000
print(peak() - before, before)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    more, before = map(float, done.stdout.split())
    assert before < 700  # writing held a part, no more
    assert more < 60


# ---- bad folders -------------------------------------------------------------------------


def test_a_split_user_is_refused(tmp_path):
    one, two = table([1, 2], [1, 1], [1, 5]), table([3, 2], [1, 2], [3, 4])
    folder = folder_of({"a.parquet": one, "b.parquet": two}, tmp_path / "x")
    with pytest.raises(DataError, match=r"b\.parquet, row group 0: user 2 is also in .*a\.parquet"):
        Ratings.scan(folder)
    within = table([1, 2, 1], [1, 1, 2], [1, 5, 3])
    folder = folder_of({"a.parquet": within}, tmp_path / "y", row_group_size=1)
    with pytest.raises(DataError, match=r"row group 2: user 1 is also in .*row group 0.*sort"):
        Ratings.scan(folder)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (pd.DataFrame({"user": [3], "item": [1]}), r"b\.parquet: no columns 'rating'"),
        (table([3], [1], [2], timestamp=[7]), r"b\.parquet: has the column 'timestamp', unlike a"),
        (table(["c"], [1], [2]), r"b\.parquet, row group 0: ids are integers in some files"),
        (table([3], ["c"], [2]), r"b\.parquet, row group 0: ids are integers in some files"),
        (table([3, None], [1, 2], [2, 2]), r"b\.parquet, row group 0, row 1: no user id"),
        (table([3.5], [1], [2]), r"b\.parquet, row group 0, row 0: user ids of type float64"),
        (table([2**63], [1], [2]), r"b\.parquet, row group 0, row 0: user id .* too large"),
        (table([3], [1], ["good"]), r"b\.parquet, row group 0, row 0: rating 'good' is not a num"),
        (table([3, 4], [1, 1], [2, np.nan]), r"b\.parquet, row group 0, row 1: rating is nan"),
        (table([3], [1], [7]), r"b\.parquet, row group 0, row 0: rating 7 is not on the declared"),
    ],
)
def test_bad_files_are_named(tmp_path, second, message):
    folder = folder_of({"a.parquet": table([1, 2], [1, 1], [1, 5]), "b.parquet": second}, tmp_path)
    with pytest.raises(DataError, match=message):
        Ratings.scan(folder, scale=FIVE)


def test_an_item_rated_twice_is_named_when_read(tmp_path):
    frame = table([1, 2, 2, 2], [1, 4, 1, 4], [1, 5, 3, 2])
    scan = Ratings.scan(folder_of({"a.parquet": frame}, tmp_path, row_group_size=2))
    with pytest.raises(DataError, match=r"a\.parquet, row group 1: user 2 rated item 4 twice"):
        scan.collect()


def test_what_is_no_folder_of_ratings(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        Ratings.scan(tmp_path / "nowhere")
    with pytest.raises(DataError, match="no parquet files"):
        Ratings.scan(tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but nothing else PAR1")
    with pytest.raises(DataError, match=r"a\.parquet: not a parquet table"):
        Ratings.scan(tmp_path)
    folder_of({"a.parquet": table([], [], [])}, tmp_path)
    with pytest.raises(DataError, match="hold no ratings"):
        Ratings.scan(tmp_path)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    synthetic_ratings(20, 10, n_ratings=90, seed=1).to_partitions(tmp_path / "x", rows_per_part=30)
    return tmp_path / "x"


def changed(folder: Path, **changes) -> None:
    header = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(header | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"complete": False}, "interrupted: write it again"),
        ({"version": 2}, "version 2 of the format"),
        ({"format": "shopping list"}, "does not say 'ordrec ratings'"),
        ({"scale": [1]}, ": damaged"),
        ({"parts": [{"file": "part-00000.parquet"}]}, ": damaged"),
        ({"n_users": 7}, "counts of the parts do not add up"),
        ({"n_items": 7}, "_items.parquet: does not fit"),
    ],
)
def test_a_wrong_manifest(written, changes, message):
    changed(written, **changes)
    with pytest.raises(DataError, match=message):
        Ratings.scan(written)


def test_a_broken_manifest(written):
    (written / MANIFEST).write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        Ratings.scan(written)


def test_lost_and_changed_files_are_noticed(written):
    one = written / "part-00001.parquet"
    content = one.read_bytes()
    one.unlink()
    with pytest.raises(DataError, match=r"part-00001\.parquet: missing"):
        Ratings.scan(written)
    one.write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"part-00001\.parquet: is not the file that"):
        Ratings.scan(written)


def test_damage_inside_a_part_is_noticed(written):
    """Bytes of the data, not of the footer, so that only reading finds out."""
    one = written / "part-00001.parquet"
    content = bytearray(one.read_bytes())
    content[4:60] = bytes(56)
    one.write_bytes(content)
    with pytest.raises(DataError, match=r"part-00001\.parquet, row group 0"):
        Ratings.scan(written).check()


def test_a_part_with_other_items_is_noticed(tmp_path):
    """It has as many ratings of as many users, and would be read without a word."""
    synthetic_ratings(9, 30, n_ratings=60, seed=1).to_partitions(tmp_path / "x", rows_per_part=30)
    scan = Ratings.scan(tmp_path / "x")
    scan.check()
    one = tmp_path / "x" / "part-00000.parquet"
    rows = pd.read_parquet(one)
    user = rows["user"].value_counts().index[-1]  # who has rated fewest items
    row = int(np.flatnonzero(rows["user"] == user)[0])
    unrated = set(scan.item_ids) - set(rows.loc[rows["user"] == user, "item"])
    old, new = rows.loc[row, "item"], min(unrated)
    rows.loc[row, "item"] = new
    rows.to_parquet(one, index=False)
    counts = dict(zip(scan.item_ids, scan.item_counts, strict=True))
    item, change = min((old, -1), (new, 1))
    with pytest.raises(DataError, match=f"item {item} has {counts[item] + change} ratings, not"):
        scan.check()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_changed_bytes_are_refused_or_harmless(tmp_path_factory, data):
    ratings = synthetic_ratings(9, 10, n_ratings=40, seed=1, dated=True)
    folder = tmp_path_factory.mktemp("bytes") / "x"
    ratings.to_partitions(folder, rows_per_part=30)
    file = data.draw(st.sampled_from(sorted(folder.iterdir())))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    file.write_bytes(content)
    if data.draw(st.booleans()):
        (folder / MANIFEST).unlink()
        (folder / ITEMS).unlink()
    message = ""
    try:
        scan = Ratings.scan(folder)
        scan.check()
        assert scan.n_ratings == 40
    except DataError as error:
        message = str(error)
    assert message == "" or str(folder) in message


def test_no_changed_bit_of_the_data_is_read_in_silence(tmp_path):
    """In every file, side tables and counts of the items included, and not only in the parts."""
    tables = {
        f"{kind}_table": pd.DataFrame({kind: range(n), "what": [f"{kind} {k}" for k in range(n)]})
        for kind, n in (("user", 9), ("item", 10))
    }
    ratings = synthetic_ratings(9, 10, n_ratings=40, seed=1, dated=True)
    ratings.with_side_tables(**tables).to_partitions(tmp_path / "x", rows_per_part=30)

    def all_that_is_read():
        scan = Ratings.scan(tmp_path / "x")
        scan.check()
        return scan.collect().to_frame(), scan.user_table, scan.item_table, scan.item_counts

    expected, refused = all_that_is_read(), 0
    for file in sorted((tmp_path / "x").glob("*.parquet")):
        content = file.read_bytes()
        for at in range(4, len(content) - 8, 37):
            file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
            try:
                found = all_that_is_read()
            except DataError:
                refused += 1
                continue
            for one, other in zip(found[:3], expected[:3], strict=True):
                pd.testing.assert_frame_equal(one, other)
            np.testing.assert_array_equal(found[3], expected[3])
        file.write_bytes(content)
    assert refused > 50


def test_check_finds_users_split_behind_the_manifest(written):
    header = json.loads((written / MANIFEST).read_text())
    first, second = header["parts"][:2]
    (written / second["file"]).write_bytes((written / first["file"]).read_bytes())
    header["parts"][1] = first | {"file": second["file"]}
    gained = first["n_ratings"] - second["n_ratings"]
    items = pd.read_parquet(written / ITEMS)
    items.loc[0, "n_ratings"] += gained
    items.to_parquet(written / ITEMS, index=False)
    changed(
        written,
        parts=header["parts"],
        n_ratings=90 + gained,
        n_users=20 + first["n_users"] - second["n_users"],
    )
    scan = Ratings.scan(written)
    with pytest.raises(DataError, match=r"part-00001\.parquet: user 0 is also in .*00000"):
        scan.check()


def test_an_item_that_the_folder_does_not_know(written):
    items = pd.read_parquet(written / ITEMS)
    items.loc[0, "item"] = 99
    items.to_parquet(written / ITEMS, index=False)
    with pytest.raises(DataError, match=r"row group 0: item 0 is not in _items\.parquet"):
        Ratings.scan(written).collect()


def test_another_scale_than_the_written_one(written):
    with pytest.raises(ArgumentError, match="has the Scale"):
        Ratings.scan(written, scale=[1, 2])


@pytest.mark.parametrize("rows", [0, -3])
def test_senseless_sizes(written, rows):
    scan = Ratings.scan(written)
    with pytest.raises(ArgumentError):
        next(scan.chunks(rows))
    with pytest.raises(ArgumentError):
        scan.sample_users(rows)
    with pytest.raises(ArgumentError):
        scan.collect().to_partitions(written.parent / "y", rows_per_part=rows)


# ---- writing -----------------------------------------------------------------------------


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("42")
    with pytest.raises(ArgumentError, match="not empty"):
        synthetic_ratings(5, 5).to_partitions(tmp_path)
    with pytest.raises(ArgumentError, match="is a file"):
        synthetic_ratings(5, 5).to_partitions(tmp_path / "thesis.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_what_a_kill_left_of_the_first_file_is_no_obstacle(tmp_path):
    (tmp_path / ".0123456789abcdef.json").write_text("half")
    synthetic_ratings(5, 5).to_partitions(tmp_path)
    assert Ratings.scan(tmp_path).n_items == 5
    assert not list(tmp_path.glob(".*"))


def test_an_interrupted_writing_is_no_folder_and_can_be_repeated(tmp_path):
    def stopping():
        yield from list(synthetic_chunks(30, 10, n_ratings=200, rows=50))[:2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_partitions(stopping(), tmp_path / "x", rows_per_part=40)
    assert list((tmp_path / "x").glob("part-*.parquet"))
    with pytest.raises(DataError, match="interrupted"):
        Ratings.scan(tmp_path / "x")
    write_partitions(synthetic_chunks(30, 10, n_ratings=200), tmp_path / "x", rows_per_part=150)
    scan = Ratings.scan(tmp_path / "x")
    scan.check()
    assert scan.n_ratings == 200
    assert len(list((tmp_path / "x").glob("part-*"))) == len(scan.parts)


def test_chunks_that_do_not_go_together(tmp_path):
    one, two = synthetic_ratings(5, 8, seed=1), synthetic_ratings(5, 8, seed=1, n_ranks=3)
    with pytest.raises(DataError, match="earlier ones have"):
        write_partitions([one, two], tmp_path / "scale")
    with pytest.raises(DataError, match="user 0 occurs in two chunks"):
        write_partitions([one, one], tmp_path / "users")
    dated = synthetic_ratings(5, 8, seed=1, dated=True)
    with pytest.raises(DataError, match="only some chunks have times"):
        write_partitions([one, dated], tmp_path / "times")
    with pytest.raises(DataError, match="no ratings"):
        write_partitions([], tmp_path / "nothing")


def test_items_of_all_chunks_are_known(tmp_path):
    one = Ratings.from_frame(table([1, 1], [5, 3], [1, 5]))
    two = Ratings.from_frame(table([2, 2], [4, 3], [1, 5]))
    write_partitions([one, two], tmp_path / "x")
    scan = Ratings.scan(tmp_path / "x")
    assert scan.item_ids.tolist() == [3, 4, 5]
    assert scan.item_counts.tolist() == [2, 1, 1]
    assert [chunk.items.tolist() for chunk in scan.chunks(1)] == [[2, 0], [1, 0]]


@pytest.mark.parametrize("ids", [["\ud800", "b"], [("a", 1), ("b", 2)], [1.5, 2.5]])
def test_ids_that_cannot_be_written(tmp_path, ids):
    index = pd.Index(ids, dtype=None if isinstance(ids[0], float) else object, tupleize_cols=False)
    ratings = Ratings([0, 1], [0, 0], [0, 4], scale=FIVE, user_ids=index, item_ids=pd.Index([1]))
    with pytest.raises(DataError, match="turn them into integers or strings"):
        ratings.to_partitions(tmp_path / "x")
