"""Options that say how a table of ratings is read, the same for every command that reads one."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ordrec.cli.options import EncodingOption

if TYPE_CHECKING:
    import pandas as pd

    from ordrec.data import Ratings, RatingsScan

__all__ = ["PAIRS", "USUAL", "Reading", "options_of_reading"]

PAIRS = (
    "user_col",
    "item_col",
    "time_col",
    "sep",
    "encoding",
)  # the options of tables without ratings
NO_COLUMN = "none"
MAY_BE_ABSENT = ("rating", "timestamp", "weight", "count", "kind")
OF_EVENTS = ("user", "item", "timestamp", "count", "separator", "encoding")


@dataclass(frozen=True)
class Reading:
    """How a table is read: one field per option, with its help."""

    user_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of users; by default user, user_id, customer_id, ...",
        ),
    ] = None
    item_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Column of items; by default item, item_id, movieId, product, ..."
        ),
    ] = None
    rating_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of ratings; by default rating, stars or score. With none, or where there "
            "is no such column, what was picked is all that is known.",
        ),
    ] = None
    time_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of times, seconds since 1970 or dates (2020-12-31); by default timestamp. "
            "With none, times are not read.",
        ),
    ] = None
    weight_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column that says how much each rating counts, from 0 to 1; without it, or with "
            "none, all count alike. Factors and models per user take weights.",
        ),
    ] = None
    count_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For a table without ratings: column that says how often the user picked the "
            "item; by default count, if there is one.",
        ),
    ] = None
    sep: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="Character between the fields of a csv; found by itself unless given.",
        ),
    ] = None
    duplicates: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="What to do if a user rated an item twice: error, last (keep the latest) or mean.",
        ),
    ] = None
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="VALUES",
            help="The possible ratings: 1..5, 0.5..5:0.5 (in steps of 0.5), 1,2,4; words "
            "from the worst to the best, poor,fair,good; or, for fine scales, bins:20. Found in "
            "the ratings unless given.",
        ),
    ] = None
    encoding: EncodingOption = None
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT", help="What to do with rows without a rating: error, or drop them."
        ),
    ] = None
    events: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A csv or parquet table of what users did beside rating: columns of users and "
            "items as in DATA, and possibly kind (view, cart, ...), count and timestamp.",
        ),
    ] = None
    kind_col: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Column of the kinds of events; by default kind, if there is one. With none, all "
            "are of one kind.",
        ),
    ] = None
    no_rating: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help='A number that stands for "no rating", such as 0: its rows become events.',
        ),
    ] = None
    offline: Annotated[bool, typer.Option("--offline", help="Never use the network.")] = False

    def ratings(self, data: str, model: Any = None) -> Ratings:
        """Load ratings by the name of a data set or by path.

        Those of a table for a model have its scale, and ids of the types of its own.
        """
        from ordrec.data.read import is_own_table, read_ratings

        options = self._table_options()
        if model is not None and is_own_table(data):
            options["scale"] = model.scale_
            options["ids"] = (model.user_ids_, model.item_ids_)
        ratings = read_ratings(data, offline=self.offline, **options)
        return self._with_events(self._in_chosen_bins(ratings))

    def _with_events(self, ratings: Ratings) -> Ratings:
        """Add the events in the file that is named."""
        from ordrec.data.formats.archives import prefix_errors
        from ordrec.data.read import load_events
        from ordrec.errors import ArgumentError, visible

        if self.events is None:
            if self.kind_col is not None:
                raise ArgumentError("--kind-col: name the table of events with --events")
            return ratings
        options = {name: value for name, value in self._table_options().items()
                   if name in OF_EVENTS}  # fmt: skip
        if self.kind_col is not None:
            options["kind"] = None if self.kind_col == NO_COLUMN else self.kind_col
        frame = load_events(self.events, ratings, **options)
        with prefix_errors(self.events):
            joined = ratings.with_events(frame)
        assert joined.events is not None
        said = (
            f"ordrec: {self.events}: {len(frame):,} rows; beside ratings: {joined.events.summary()}"
        )
        print(visible(said), file=sys.stderr)
        return joined

    def part(self, path: Path, first: Ratings) -> Ratings:
        """Load a further part of ratings, with ids of the same types and, if it fits, their scale.

        Without a declared scale, it has its own where its ratings are not on that of the first.
        """
        from ordrec.data.read import is_own_table, read_ratings
        from ordrec.evaluation.splits.own import read_on_scale

        options = self._table_options()
        if not is_own_table(path):
            return self.ratings(str(path))

        def read(scale: Any) -> Ratings:
            given = options if "scale" in options or scale is None else options | {"scale": scale}
            return read_ratings(
                path, offline=self.offline, ids=(first.user_ids, first.item_ids), **given
            )

        return read_on_scale(read, first.scale)

    def scan(self, data: str) -> RatingsScan:
        """Open a folder of partitions."""
        from ordrec.data import Ratings
        from ordrec.errors import ArgumentError

        options = self._table_options()
        for name in ("separator", "duplicates", "encoding", "missing", "no_rating"):
            if name in options:
                raise ArgumentError(
                    f"{name}= is for csv tables: partitions are parquet files without any",
                    parameter=name,
                )
        if self.events is not None or self.kind_col is not None:
            raise ArgumentError(
                "--events and --kind-col: ratings on disk are read without events: give a table "
                "that fits into memory"
            )
        return Ratings.scan(data, **options)

    def pairs(self, path: Path, model: Any) -> pd.DataFrame:
        """Read pairs of users and items for a model."""
        from ordrec.lists.frames import read_pairs

        return read_pairs(path, model, **self._table_options())

    def words(self) -> list[str]:
        """The options that are given, as they are typed."""
        given = [(field.name, getattr(self, field.name)) for field in fields(self)]
        words: list[str] = []
        for name, value in given:
            if value not in (None, False):
                words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
        return words

    def _table_options(self) -> dict[str, Any]:
        """The options that are given, as `load_ratings` calls them."""
        options: dict[str, Any] = {
            "user": self.user_col,
            "item": self.item_col,
            "rating": self.rating_col,
            "timestamp": self.time_col,
            "weight": self.weight_col,
            "count": self.count_col,
            "separator": "\t" if self.sep in ("tab", "\\t") else self.sep,
            "duplicates": self.duplicates,
            "scale": _scale_of(self.scale),
            "encoding": self.encoding,
            "missing": self.missing,
            "no_rating": self.no_rating,
        }
        return {
            name: None if value == NO_COLUMN and name in MAY_BE_ABSENT else value
            for name, value in options.items()
            if value is not None
        }

    def judgement_options(self) -> dict[str, Any]:
        """Return the options that tables of judged documents have, too."""
        scale = _scale_of(self.scale)
        return {"scale": scale if isinstance(scale, list) else None, "encoding": self.encoding}

    def _in_chosen_bins(self, ratings: Ratings) -> Ratings:
        from ordrec.data import Scale

        bins = _bins_of(self.scale)
        if bins is None:
            return ratings
        return ratings.on_scale(Scale.binned(ratings.values, bins=bins))


USUAL = Reading()


def _bins_of(text: str | None) -> int | None:
    """The number in "bins:20"; None for other scales."""
    from ordrec.errors import ArgumentError

    if text is None or not text.startswith("bins:"):
        return None
    number = text.removeprefix("bins:")
    if not number.isdecimal() or int(number) < 2:
        raise ArgumentError(f"--scale {text}: bins: is followed by a number of at least 2")
    return int(number)


def _scale_of(text: str | None) -> Any:
    """The scale in "1..5", "0.5..5:0.5", "1,2,4" or "poor,good"; None for none, and for bins."""
    from ordrec.data import Scale
    from ordrec.errors import ArgumentError

    if text is None or _bins_of(text) is not None:
        return None
    try:
        if ".." not in text:
            values = [value.strip() for value in text.split(",")]
            if len(values) > 1 and not any(_is_number(value) for value in values):
                return values  # words, from the worst to the best
            return Scale([float(value) for value in values])
        low, _, rest = text.partition("..")
        high, _, step = rest.partition(":")
        return Scale.regular(float(low), float(high), float(step or 1))
    except ArgumentError as error:
        raise error.prefixed(f"--scale {text}") from None
    except ValueError:
        raise ArgumentError(
            f"--scale {text}: write it as 1..5, 0.5..5:0.5, 1,2,4, poor,fair,good or bins:20"
        ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def options_of_reading(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace the parameter ``reading`` of a command by the options of a `Reading`.

    Parameters
    ----------
    *names : str
        The fields that become options; all by default. The others have their defaults.
    """
    chosen = names or tuple(field.name for field in fields(Reading))

    def give(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_options(**given: Any) -> Any:
            reading = Reading(**{name: given.pop(name) for name in chosen})
            return command(reading=reading, **given)

        own = inspect.signature(command, eval_str=True).parameters
        added = inspect.signature(Reading, eval_str=True).parameters
        place = list(own).index("reading")
        before, after = list(own.values())[:place], list(own.values())[place + 1 :]
        parameters = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in (*before, *(added[name] for name in chosen), *after)
        ]
        with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {each.name: each.annotation for each in parameters}
        return with_options

    return give
