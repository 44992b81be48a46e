"""Malformed files and archives of data sets give a clear error or load; never anything else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fuzz.campaign import answered, both_runs, explore
from fuzz.mutation import mutated

from ordrec.datasets import (
    load_eachmovie,
    load_jester,
    load_letor,
    load_movielens,
    load_movietweetings,
    load_ohsumed,
    load_ratings,
    load_table,
)
from ordrec.errors import OrdrecError

SAMPLES = Path(__file__).parent.parent.parent / "data" / "samples"


def my_ratings(path):
    return load_ratings(
        path / "mine.csv", user="who", item="what", rating="stars", timestamp="when"
    )


def my_table(path):
    return load_table(path / "invented.csv", label="y5")


LOADERS = {
    "ml-100k": load_movielens,
    "ml-1m": load_movielens,
    "ml-10m": load_movielens,
    "ml-latest": load_movielens,
    "eachmovie": load_eachmovie,
    "eachmovie-triple": load_eachmovie,
    "eachmovie-csv": load_eachmovie,
    "ohsumed": load_ohsumed,
    "ohsumed-original": load_ohsumed,
    "letor": load_letor,
    "movietweetings": load_movietweetings,
    "jester": load_jester,
    "jester-matrix": load_jester,
    "ordinal": my_table,
    "ratings": my_ratings,
}
NOT_READ = (".base", ".genre", "train-rows-10.txt", "grades.csv", "grades.train-rows.txt")
FILES = [
    (folder, file.name)
    for folder in LOADERS
    for file in sorted((SAMPLES / folder).iterdir())
    if not file.name.endswith(NOT_READ) and file.name not in ("u2.test", "u3.test", "u4.test")
]


@both_runs
@pytest.mark.parametrize(("folder", "file"), FILES, ids=["-".join(f) for f in FILES])
def test_mutated_samples(run, tmp_path, folder, file):
    shutil.copytree(SAMPLES / folder, tmp_path, dirs_exist_ok=True)
    alone = folder in ("ordinal", "ratings")  # these loaders are told the file's name

    def check(content):
        (tmp_path / file).write_bytes(content)
        for path in (tmp_path,) if alone else (tmp_path, tmp_path / file):
            repr(answered(lambda path=path: LOADERS[folder](path), says=str(tmp_path)))

    content = (SAMPLES / folder / file).read_bytes()
    explore("loaders", run, check, mutated(content), pieces=len(FILES))


@both_runs
@pytest.mark.parametrize("packing", ["zip", "tar.gz"])
@pytest.mark.parametrize("folder", ["ml-100k", "letor", "eachmovie", "ratings"])
def test_mutated_archives(run, tmp_path, folder, packing):
    """The archive itself is damaged: its directory, its sizes, its packed bytes."""
    kind = {"zip": "zip", "tar.gz": "gztar"}[packing]
    made = shutil.make_archive(str(tmp_path / "made"), kind, SAMPLES / folder)
    path = tmp_path / f"set.{packing}"
    loader = load_ratings if folder == "ratings" else LOADERS[folder]

    def check(content):
        path.write_bytes(content)
        repr(answered(lambda: loader(path), says=str(path)))

    explore("archives", run, check, mutated(Path(made).read_bytes()), pieces=8)


@pytest.mark.parametrize("folder", sorted(LOADERS))
@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"\0" * 100, b"\xff" * 100, b"PK\x03\x04garbage", b"\x1f\x8bgarbage",
     "user,item\n1,2\n".encode("utf-16")],
)  # fmt: skip
def test_files_of_another_kind(tmp_path, folder, content):
    for file in (SAMPLES / folder).iterdir():
        (tmp_path / file.name).write_bytes(content)
    with pytest.raises(OrdrecError):
        LOADERS[folder](tmp_path)
