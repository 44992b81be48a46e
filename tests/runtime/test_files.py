"""Files are replaced completely or not at all, and errors of the disk are reported."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ordrec.errors import ArgumentError, OrdrecError, StorageError
from ordrec.runtime.files import make_folder, replace_file, storage_errors, write_text


@contextmanager
def short_files(limit: int) -> Iterator[None]:
    """No file may grow beyond a limit: simulates a full disk without mounting one.

    Not a fixture: pytest writes to files of its own before those are undone.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    text = "a\r\nb\nzweiundvierzig äöü ☃"
    assert write_text(tmp_path / "text.csv", text) == tmp_path / "text.csv"
    assert (tmp_path / "text.csv").read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["text.csv"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("existing", [True, False])
def test_an_exception_leaves_what_was_there(tmp_path: Path, failure: type, existing: bool) -> None:
    target = tmp_path / "model.bin"
    if existing:
        target.write_bytes(b"old")

    def write() -> None:
        with replace_file(target) as part:
            part.write_bytes(b"half of")
            raise failure

    with pytest.raises(failure):
        write()
    assert [p.read_bytes() for p in tmp_path.iterdir()] == ([b"old"] if existing else [])


def test_a_writer_that_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    target = write_text(tmp_path / "a.txt", "old")
    code = (
        "import os, signal, sys\n"
        "from ordrec.runtime.files import replace_file\n"
        "with replace_file(sys.argv[1]) as part:\n"
        "    part.write_text('new')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(target)]).returncode == -9
    assert target.read_text() == "old"


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "a.txt", "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_text(tmp_path / "link", "one")
    write_text(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "two"


@pytest.mark.parametrize("existing", [True, False])
def test_a_file_that_may_not_grow_keeps_the_old_one(tmp_path: Path, existing: bool) -> None:
    target = tmp_path / "results.csv"
    if existing:
        write_text(target, "old")
    with (
        short_files(4096),
        pytest.raises(StorageError, match=r"results\.csv: cannot be written .*limit") as caught,
    ):
        write_text(target, "x" * 4097)
    assert ("unchanged" if existing else "Nothing was written") in str(caught.value)
    assert os.listdir(tmp_path) == (["results.csv"] if existing else [])
    with short_files(4096):
        write_text(target, "x" * 4096)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_errors_of_the_disk_are_reported(code: int) -> None:
    with pytest.raises(StorageError, match=r"here: cannot be written .*\. All is kept"):  # noqa: SIM117
        with storage_errors("here", outcome="All is kept"):
            raise OSError(code, os.strerror(code))


def test_other_errors_are_not_touched(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), storage_errors("here"):
        raise ConnectionResetError(errno.ECONNRESET, "reset")
    with pytest.raises(FileNotFoundError), replace_file(tmp_path / "a"):
        (tmp_path / "not there").read_text()


def test_places_where_no_file_can_be(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "")
    for place in ["nowhere/a.txt", "file/a.txt", "."]:
        with pytest.raises(ArgumentError):
            write_text(tmp_path / place, "a")
    with pytest.raises(ArgumentError, match="not a file"):
        write_text("/dev/null", "a")
    with pytest.raises(OrdrecError, match="file"):
        make_folder(tmp_path / "file" / "below")
    with pytest.raises(OrdrecError, match="file"):
        make_folder(tmp_path / "file")
    with pytest.raises(StorageError, match="shorter"):
        write_text(tmp_path / ("x" * 300), "a")
    assert make_folder(tmp_path / "a" / "b").is_dir()
