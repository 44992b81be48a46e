"""Read the files of a data set from a folder, an archive or a single file.

`open_source` returns a `Source` that lists and opens its members without writing anything to
disk. `unpack` extracts an archive. Both refuse what a hostile archive may contain: absolute
paths, ``..``, links, devices, and members that expand beyond all bounds.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from ordrec.errors import DataError, DatasetMissing, StorageError
from ordrec.runtime.files import make_folder, storage_errors

__all__ = ["Source", "open_source", "unpack"]

MAX_UNPACKED_BYTES = 16 * 1024**3
MAX_RATIO = 250  # of expansion: real data sets stay below 30; deflate can reach 1032
RATIO_APPLIES_ABOVE = 64 * 1024**2
MAX_MEMBERS = 100_000
MAX_DEPTH = 3

_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers")
_DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
           RuntimeError, NotImplementedError, ValueError)  # fmt: skip


@dataclass
class Source:
    """The files of one data set.

    Attributes
    ----------
    path : Path
        The folder, archive or file.
    members : mapping of str to function
        For each member name (with ``/``), a function that opens it for reading bytes.
    single : bool
        Whether the source is a single file.
    """

    path: Path
    members: dict[str, Callable[[], BinaryIO]]
    single: bool = False
    _closers: list[Callable[[], None]] = field(default_factory=list, repr=False)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *exc: object) -> None:
        for close in self._closers:
            close()

    @property
    def stem(self) -> str:
        """Name of the folder, archive or file without suffixes, the default name of a data set."""
        return self.path.name.split(".")[0]

    def find(self, *names: str) -> str | None:
        """Return the member with one of these base names (also with ``.gz``), or None.

        Earlier names come first, then members nearer to the top. Two at the same depth are
        an error, since the path then holds more than one data set.
        """
        for name in names:
            wanted = {name.lower(), f"{name.lower()}.gz"}
            found = [m for m in self.members if PurePosixPath(m).name.lower() in wanted]
            if found:
                top = min(m.count("/") for m in found)
                nearest = sorted(m for m in found if m.count("/") == top)
                if len({PurePosixPath(m).parent for m in nearest}) > 1:
                    raise DataError(
                        f"{self.path}: holds more than one {name} ({', '.join(nearest[:4])}): "
                        "name the folder of one data set"
                    )
                return nearest[0]
        return None

    def side_file(self, *names: str) -> str | None:
        """Like `find`, but None if the source is a single file, which has no other files."""
        return None if self.single else self.find(*names)

    def matching(self, pattern: str) -> list[str]:
        """Return the members whose base name (without ``.gz`` etc.) fits a regular expression."""
        fits = re.compile(pattern, re.IGNORECASE)
        packed = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)
        names = {m: packed.sub("", PurePosixPath(m).name) for m in self.members}
        return sorted(member for member, name in names.items() if fits.fullmatch(name))

    def place(self, member: str) -> str:
        """Return the name of a member for error messages."""
        return str(self.path) if self.single else f"{self.path}: {member}"

    def open(self, member: str) -> BinaryIO:
        """Open a member for reading bytes; gzip, bzip2 and xz are decompressed."""
        place = self.place(member)
        try:
            raw = self.members[member]()
            unpacking = _unpacking_of(raw, member)
            if unpacking is not None:
                guarded = _Guarded(cast(BinaryIO, unpacking(raw)), place, _length(raw), raw=raw)
            else:
                guarded = _Guarded(raw, place, None)
        except _DAMAGE as error:
            raise DataError(f"{place}: cannot be opened ({error}): get the file again") from error
        return cast(BinaryIO, io.BufferedReader(guarded, 1 << 16))

    def read(self, member: str) -> bytes:
        """Return all bytes of a member."""
        with self.open(member) as stream:
            return stream.read()

    def text(self, member: str, encodings: Iterable[str] = ("utf-8",)) -> str:
        """Return a member as text, in the first of the encodings that fits."""
        return decode(self.read(member), self.place(member), encodings)


@contextmanager
def prefix_errors(place: str) -> Iterator[None]:
    """Put the name of the file in front of errors about its rows."""
    try:
        yield
    except DataError as error:
        raise error.prefixed(place) from None


def decode(data: bytes, place: str, encodings: Iterable[str] = ("utf-8",)) -> str:
    """Decode bytes as text, strictly, in the first of the encodings that fits."""
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise DataError(
            f"{place}, line {line}: NUL byte: the file is binary or UTF-16; save it as UTF-8"
        )
    failure: UnicodeDecodeError | None = None
    for encoding in encodings:
        try:
            return data.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        except UnicodeDecodeError as error:
            failure = error
    assert failure is not None
    line = data.count(b"\n", 0, failure.start) + 1
    raise DataError(
        f"{place}, line {line}: byte 0x{data[failure.start]:02x} is not {failure.encoding}: "
        f"convert the file to {' or '.join(encodings)}"
    )


def open_source(path: str | Path | Source) -> Source:
    """Open a folder, a zip or tar archive, or a single (possibly gzipped) file.

    A source that is open already is returned as it is, and stays open until its owner closes it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "u.data").write_text("1\\t2\\t3\\t4\\n")
    >>> with open_source(folder) as source:
    ...     source.read(source.find("u.data"))
    b'1\\t2\\t3\\t4\\n'
    """
    if isinstance(path, Source):
        return Source(path.path, path.members, path.single)  # without what closes it
    path = Path(path).expanduser()
    if path.is_dir():
        return Source(path, {p.relative_to(path).as_posix(): _opener(p) for p in files_below(path)})
    if not path.is_file():
        raise DatasetMissing(f"no such file or folder: {path}")
    if path.suffix.lower() in _SPREADSHEETS:
        raise DataError(f"{path}: is a spreadsheet: open it and save the sheet as csv")
    try:
        if path.name.lower().endswith(_TAR_ENDINGS):
            return _tar_source(path)
        if zipfile.is_zipfile(path):
            return _zip_source(path)
    except _DAMAGE as error:
        if isinstance(error, DataError):
            raise
        why = " ".join(
            str(error).split()
        )  # tarfile lists every compression it tried, on several lines
        raise DataError(f"{path}: damaged archive ({why[:200]}): get it again") from error
    if path.name.lower().endswith(".zip"):
        raise DataError(f"{path}: not a zip archive: get it again")
    return Source(path, {path.name: _opener(path)}, single=True)


def unpack(archive: str | Path, folder: str | Path) -> list[Path]:
    """Extract a zip or tar archive into ``folder``, and return the paths of its members.

    Nothing is written outside ``folder``, and nothing at all until every name is checked.
    """
    folder = Path(folder)
    written = []
    with open_source(archive) as source:
        budget = MAX_UNPACKED_BYTES
        for member in sorted(source.members):
            target = folder / member
            make_folder(target.parent)
            place = source.place(member)
            try:
                with (
                    storage_errors(target),
                    source.members[member]() as raw,
                    open(target, "wb") as out,
                ):
                    shutil.copyfileobj(_Guarded(raw, place, None, budget), out, 1 << 20)
            except (DataError, StorageError):
                raise
            except _DAMAGE as error:
                raise DataError(f"{place}: cannot be unpacked ({error})") from error
            budget -= target.stat().st_size
            written.append(target)
    return written


# ---- guards ----------------------------------------------------------------------------


class _Guarded(io.RawIOBase):
    """A stream that stops at a decompression bomb, and raises `DataError` for damaged data."""

    def __init__(
        self,
        stream: BinaryIO,
        place: str,
        packed: int | None,
        bound: int | None = None,
        raw: BinaryIO | None = None,
    ):
        self._stream, self._place, self._read = stream, place, 0
        self._raw = raw  # what is unpacked leaves it open
        self._bound = MAX_UNPACKED_BYTES if bound is None else bound
        if packed is not None:
            self._bound = min(self._bound, max(packed * MAX_RATIO, RATIO_APPLIES_ABOVE))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            got = self._stream.readinto(buffer)  # type: ignore[attr-defined]
        except _DAMAGE as error:
            raise DataError(
                f"{self._place}: damaged after {self._read} bytes ({error}): get the file again"
            ) from error
        self._read += got
        if self._read > self._bound:
            raise DataError(
                f"{self._place}: it expands to more than {self._bound} bytes: "
                "this looks like a decompression bomb; unpack it yourself if you trust it"
            )
        return got

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            if self._raw is not None:
                self._raw.close()
        super().close()


def _safe_name(name: str, archive: Path) -> str:
    """Return the member name with forward slashes; refuse it if it could leave the folder."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if not parts or plain.startswith("/") or ".." in parts or ":" in parts[0] or "\0" in plain:
        raise DataError(
            f"{archive}: member {name!r} would land outside the folder: do not use this archive"
        )
    return "/".join(parts)


def _check_totals(archive: Path, n_members: int, unpacked: int) -> None:
    if n_members > MAX_MEMBERS:
        raise DataError(f"{archive}: {n_members} members are too many for a data set")
    if unpacked > MAX_UNPACKED_BYTES:
        raise DataError(
            f"{archive}: would expand to {unpacked} bytes (limit {MAX_UNPACKED_BYTES}): "
            "unpack it yourself if you trust it"
        )


# ---- kinds of sources ------------------------------------------------------------------


def _opener(path: Path) -> Callable[[], BinaryIO]:
    return lambda: open(path, "rb")


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, down to `MAX_DEPTH` levels."""
    level, found = [folder], []
    for _ in range(MAX_DEPTH):
        entries = [entry for one in level for entry in sorted(one.iterdir())]
        found += [entry for entry in entries if entry.is_file()]
        level = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
    return found


def _zip_source(path: Path) -> Source:
    archive = zipfile.ZipFile(path)
    members: dict[str, Callable[[], BinaryIO]] = {}
    infos = [info for info in archive.infolist() if not info.is_dir()]
    try:
        _check_totals(path, len(infos), sum(info.file_size for info in infos))
        for info in infos:
            name = _safe_name(info.filename, path)
            kind = (info.external_attr >> 16) & 0o170000
            if kind not in (0, 0o100000):  # a symbolic link, a device, ...
                raise DataError(f"{path}: member {name!r} is a link or device, not a file")
            ratio = info.file_size / max(info.compress_size, 1)
            if info.file_size > RATIO_APPLIES_ABOVE and ratio > MAX_RATIO:
                raise DataError(
                    f"{path}: member {name!r} expands {ratio:.0f}-fold: "
                    "this looks like a decompression bomb"
                )
            members[name] = partial(_open_in_zip, archive, info)
    except DataError:
        archive.close()
        raise
    return Source(path, members, _closers=[archive.close])


def _open_in_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> BinaryIO:
    return cast(BinaryIO, archive.open(info))


def _open_in_tar(archive: tarfile.TarFile, info: tarfile.TarInfo) -> BinaryIO:
    return cast(BinaryIO, archive.extractfile(info))


def _tar_source(path: Path) -> Source:
    packed = path.stat().st_size
    bound = min(MAX_UNPACKED_BYTES, max(packed * MAX_RATIO, RATIO_APPLIES_ABOVE))
    archive = tarfile.open(path)  # noqa: SIM115 (stays open as long as the source)
    members: dict[str, Callable[[], BinaryIO]] = {}
    total = 0
    try:
        for info in archive:
            name = _safe_name(info.name, path)
            if info.isdir():
                continue
            if not info.isreg():
                raise DataError(f"{path}: member {name!r} is a link or device, not a file")
            total += info.size
            _check_totals(path, len(members), total)
            if total > bound:
                raise DataError(
                    f"{path}: member {name!r} brings the contents to {total} bytes from "
                    f"{packed}: this looks like a decompression bomb"
                )
            members[name] = partial(_open_in_tar, archive, info)
    except BaseException:
        archive.close()
        raise
    return Source(path, members, _closers=[archive.close])


def _unpacking_of(raw: BinaryIO, member: str) -> Callable[[BinaryIO], object] | None:
    """What decompresses a file, which is recognised by its first bytes; None if it is not packed.

    A file called ``.gz`` must be one.
    """
    if not raw.seekable():
        return _gunzip if member.lower().endswith(".gz") else None
    start = raw.read(6)
    raw.seek(-len(start), io.SEEK_CUR)
    for mark, unpacking in _PACKED.items():
        if start.startswith(mark):
            return unpacking
    return _gunzip if member.lower().endswith(".gz") else None


def _gunzip(raw: BinaryIO) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=raw)


_PACKED: dict[bytes, Callable[[BinaryIO], object]] = {
    b"\x1f\x8b": _gunzip,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}


def _length(stream: BinaryIO) -> int | None:
    """Number of bytes in a stream, or None if it cannot be found out."""
    try:
        here = stream.tell()
        end = stream.seek(0, io.SEEK_END)
        stream.seek(here)
    except (OSError, io.UnsupportedOperation):
        return None
    return end
