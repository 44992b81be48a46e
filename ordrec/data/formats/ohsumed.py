"""OHSUMED: MEDLINE records, medical queries and relevance judgements (Hersh et al., 1994)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ordrec.data.formats.archives import Source, open_source
from ordrec.data.formats.delimited import MAX_DIGITS, is_whole_number
from ordrec.errors import DataError

__all__ = ["Ohsumed", "load_ohsumed"]

_FIELDS = {
    ".U": "ui", ".S": "source", ".M": "mesh", ".T": "title", ".P": "type", ".W": "abstract",
    ".A": "authors",
}  # fmt: skip
_GRADES = {"n": 0, "p": 1, "d": 2}
_DOCUMENT_FILES = r"ohsumed\..*"
_TOPIC_FILES = r"query\.ohsu.*|queries"
_JUDGEMENT_FILES = r"qrels\.ohsu.*|judged"


@dataclass(frozen=True)
class Ohsumed:
    """Documents, topics and judgements of the collection, as far as they were found.

    Attributes
    ----------
    documents : DataFrame
        One row per record, indexed by sequence number (``.I``): ui, source, mesh, title,
        type, abstract, authors; absent fields are "".
    topics : DataFrame
        Indexed by topic: patient, need.
    judgements : DataFrame
        topic, ui, grade (0 not, 1 possibly, 2 definitely relevant) and, from the
        original file, document (the sequence number).
    """

    documents: pd.DataFrame
    topics: pd.DataFrame
    judgements: pd.DataFrame


def load_ohsumed(path: str | Path) -> Ohsumed:
    """Load OHSUMED documents, topics and judgements, whichever are present.

    Parameters
    ----------
    path : path
        Folder or archive with documents (``ohsumed.*``), topics (TREC-9 ``query.ohsu.*``
        or the original ``queries``) and judgements (TREC-9 ``qrels.ohsu.*``, which list
        relevant documents only, or the original ``judged``); or one of these files,
        recognised by its first line.

    Notes
    -----
    Topics are named as in the files: ``OHSU1`` in TREC-9, ``1`` in the original.
    Where the original file has several judgements of a pair, the first one counts.
    """
    with open_source(path) as source:
        if source.single:
            kinds = {_kind(source): list(source.members)}
        else:
            kinds = {
                "documents": source.matching(_DOCUMENT_FILES),
                "topics": source.matching(_TOPIC_FILES),
                "judgements": source.matching(_JUDGEMENT_FILES),
            }
            if not any(kinds.values()):
                raise DataError(
                    f"{source.path}: contains no ohsumed.*, query.ohsu.* or qrels.ohsu.*"
                )
        documents = [r for m in kinds.get("documents", ()) for r in _records(source, m)]
        topics = [t for m in kinds.get("topics", ()) for t in _topics(source, m)]
        judged = [j for m in kinds.get("judgements", ()) for j in _judgements(source, m)]
        return Ohsumed(
            _indexed(documents, ["document", *_FIELDS.values()], source),
            _indexed(topics, ["topic", "patient", "need"], source),
            pd.DataFrame(judged, columns=["topic", "ui", "grade", "document"])
            .astype({"grade": "int64", "document": "Int64"})
            .drop_duplicates(["topic", "ui"], ignore_index=True),
        )


def _indexed(rows: list[tuple[Any, ...]], columns: list[str], source: Source) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=columns).set_index(columns[0])
    if not frame.index.is_unique:
        twice = frame.index[frame.index.duplicated()][0]
        raise DataError(f"{source.path}: {columns[0]} {twice} occurs twice: keep one file with it")
    return frame


def _kind(source: Source) -> str:
    with source.open(next(iter(source.members))) as stream:
        start = stream.read(1 << 12).decode("latin-1")
    if start.startswith("<top>") or re.match(r"\.I\s+\d+\s+\.B", start):
        return "topics"
    return "documents" if start.startswith(".I") else "judgements"


# ---- documents -------------------------------------------------------------------------


def _records(source: Source, member: str) -> Iterator[tuple[Any, ...]]:
    for place, number, fields in _tagged(source, member, _FIELDS):
        if "ui" not in fields:
            raise DataError(f"{place}: record {number} has no .U (MEDLINE identifier)")
        yield (number, *(fields.get(name, "") for name in _FIELDS.values()))


def _tagged(
    source: Source, member: str, names: dict[str, str]
) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Yield place, number and fields of each record of a file in SMART format."""
    where = source.place(member)
    number, started = -1, 0
    fields: dict[str, str] = {}
    current: str | None = None
    for line, text in enumerate(_lines(source, member), start=1):
        tag = text[:2]
        if tag == ".I" and text[2:3] in ("", " ", "\t"):
            if number >= 0:
                yield f"{where}, line {started}", number, fields
            word = text[2:].strip()
            if not is_whole_number(word):
                raise DataError(f"{where}, line {line}: {text[:40]!r} has no record number")
            number, started, fields, current = int(word), line, {}, None
        elif tag in names and not text[2:].strip():
            current = names[tag]
            if number < 0 or current in fields:
                raise DataError(
                    f"{where}, line {line}: {tag} is out of place: it occurs once per record"
                )
            fields[current] = ""
        elif text.strip():
            if current is None:
                raise DataError(
                    f"{where}, line {line}: {text[:40]!r} does not belong to a field of a record"
                )
            fields[current] = f"{fields[current]} {text.strip()}".strip()
    if number >= 0:
        yield f"{where}, line {started}", number, fields


def _lines(source: Source, member: str) -> Iterator[str]:
    """Yield the lines of a file, which may have hundreds of megabytes."""
    with source.open(member) as stream:
        for line, raw in enumerate(stream, start=1):
            if b"\0" in raw:
                raise DataError(f"{source.place(member)}, line {line}: NUL byte: not a text file")
            yield raw.decode("latin-1").rstrip("\r\n")


# ---- topics and judgements -------------------------------------------------------------


def _topics(source: Source, member: str) -> Iterator[tuple[str, str, str]]:
    text = source.text(member, ("utf-8", "latin-1"))
    place = source.place(member)
    if text.lstrip().startswith(".I"):
        for _, number, fields in _tagged(source, member, {".B": "patient", ".W": "need"}):
            yield str(number), fields.get("patient", ""), fields.get("need", "")
        return
    blocks = re.findall(r"<top>(.*?)</top>", text, flags=re.DOTALL)
    if len(blocks) != text.count("<top>") or not blocks:
        raise DataError(f"{place}: a <top> is not closed, or there is none")
    for block in blocks:
        found = re.fullmatch(
            r"\s*<num>\s*(?:Number:)?\s*(\S+)\s*<title>(.*?)<desc>\s*(?:Description:)?(.*)",
            block,
            flags=re.DOTALL,
        )
        if found is None:
            raise DataError(f"{place}: topic {block.strip()[:40]!r} lacks <num>, <title> or <desc>")
        yield found[1], " ".join(found[2].split()), " ".join(found[3].split())


def _judgements(source: Source, member: str) -> Iterator[tuple[str, str, int, int | None]]:
    for line, text in enumerate(_lines(source, member), start=1):
        fields = text.split("\t") if "\t" in text else text.split()
        if not text.strip():
            continue
        try:
            if len(fields) == 3:  # TREC-9: topic, MEDLINE identifier, grade
                topic, ui, grade = fields
                if grade.strip() not in ("0", "1", "2"):
                    raise ValueError(f"grade {grade!r} is not 0, 1 or 2")
                yield topic.strip(), ui.strip(), int(grade), None
            elif 4 <= len(fields) <= 6:  # the original: topic, identifier, number, d/p/n ...
                topic, ui, number, *letters = (field.strip() for field in fields)
                given = [letter.lower() for letter in letters if letter]
                if not given or not set(given) <= set(_GRADES) or not number.isdecimal():
                    raise ValueError("expected topic, identifier, number, and d, p or n")
                if len(number) > MAX_DIGITS:
                    raise ValueError(f"{number[:20]!r} is too large")
                yield topic, ui, _GRADES[given[0]], int(number)
            else:
                raise ValueError(f"{len(fields)} fields, expected 3 (TREC-9) or 4 to 6 (judged)")
        except ValueError as error:
            raise DataError(f"{source.place(member)}, line {line}: {error}") from None
