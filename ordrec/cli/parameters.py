"""The library's parameters as options: errors and warnings name what a user of a command can type.

Errors and warnings carry the names of the parameters that they speak of (`OrdrecError`). The table
below says once which option sets each of them; parameters of models are set with ``--set``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["OPTION_OF", "in_options"]

OPTION_OF = {
    "user": "--user-col",
    "item": "--item-col",
    "rating": "--rating-col",
    "timestamp": "--time-col",
    "weight": "--weight-col",
    "count": "--count-col",
    "separator": "--sep",
    "duplicates": "--duplicates",
    "scale": "--scale",
    "encoding": "--encoding",
    "missing": "--missing",
    "no_rating": "--no-rating",
    "events": "--events",
    "events.kind": "--kind-col",
    "user_table": "--users",
    "item_table": "--items",
    "max_memory": "--max-memory",
    "register": "--class",
    # evaluate
    "metrics": "--metrics",
    "split": "--split",
    "decision": "--decision",
    "candidates": "--candidates",
    "ranking_users": "--ranking-users",
    "like": "--like",
    "times": "--times",
    "cold_users": "--cold",
    "test": "--test",
    "valid": "--valid",
    "against": "--against",
    "groups": "--by-group",
    "propensity": "--propensity",
    "kind": "--kind",
    "column": "--column",
    "overwrite": "--overwrite",
    # from disk
    "held_out": "--hold-out",
    # recommend
    "by": "--by",
    "exclude": "--exclude",
    "only": "--only",
    "at_most": "--at-most",
    "explore": "--explore",
    # tune
    "space": "--search",
    "metric": "--metric",
    "n_trials": "--trials",
    "method": "--method",
}

# How values are typed that Python writes otherwise.
VALUES = {
    "None": "none",
    "True": "",
    "Scale(...)": "1..5",
    "Scale.binned(ratings, bins=20)": "bins:20",
}
SETTINGS = {"None": "null", "True": "true", "False": "false"}

VALUE = r'"[^"]*"|Scale[\w.]*\([^()]*\)|\w*'


def in_options(said: BaseException) -> str:
    """Return the message of an error or a warning, with options in place of parameters.

    Parameters
    ----------
    said : exception or warning

    Examples
    --------
    >>> from ordrec.errors import ArgumentError, DataError
    >>> in_options(ArgumentError("cold_users must not be negative, got -1"))
    '--cold must not be negative, got -1'
    >>> in_options(DataError('pass duplicates="last" or timestamp=None',
    ...                      parameter=("duplicates", "timestamp")))
    'pass --duplicates last or --time-col none'
    >>> in_options(ArgumentError("use_time=True, but there are no times", parameter="use_time"))
    '--set use_time=true, but there are no times'
    """
    message = " ".join(str(said).split())
    for parameter in dict.fromkeys(_parameters_of(said)):
        message = _renamed(message, parameter.rpartition(".")[2], OPTION_OF.get(parameter))
    return message


def _renamed(message: str, name: str, option: str | None) -> str:
    """The message with an option for a parameter; without one it is set with ``--set``."""
    renamed = re.sub(rf"\b{name}=({VALUE})", lambda found: _set(name, option, found[1]), message)
    if option is None:
        return renamed
    # A name that is also a word is the parameter only where something is said about it.
    follows = "" if "_" in name else "(?= must |: )"
    renamed = re.sub(rf"\b{name}\b{follows}", option, renamed)
    return renamed if renamed != message or option in message else f"{message}: see {option}"


def _set(name: str, option: str | None, value: str) -> str:
    """The words that set a parameter to a value, or name its option if there is none."""
    value = value.strip('"')
    if option is None:
        return f"--set {name}={SETTINGS.get(value, value)}"
    return f"{option} {VALUES.get(value, value)}".rstrip()


def _parameters_of(said: BaseException) -> Iterator[str]:
    """The parameters of an error, and of those that it was raised in place of."""
    error: BaseException | None = said
    while error is not None:
        yield from getattr(error, "parameters", ())
        error = error.__context__
