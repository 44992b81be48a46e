"""Errors and warnings of the library in the words of the command line: options, not keywords."""

from __future__ import annotations

import re

__all__ = ["in_options"]

WORDS = (
    (r"user=, item=, rating=, timestamp= of Ratings.from_frame or load_ratings",
     "--user-col, --item-col, --rating-col, --time-col"),
    (r'pass duplicates="(\w+)" or duplicates="(\w+)"', r"choose --duplicates \1 or \2"),
    (r"name the column of weights with weight=", "name the column of weights with --weight-col"),
    (r"pass ratings\.without_weights\(\)", "leave --weight-col out"),
    (r"or take OrdinalFactors or PerUserPredictor, which count them",
     "or choose --model factors or per-user-logistic, which count them"),
    (r"pass timestamp=None", "leave times out with --time-col none"),
    (r"pass scale=Scale\.binned\(ratings, bins=20\), or cut points, bins=\[25, 50, 75\]",
     "choose --scale bins:20"),
    (r"pass scale=Scale\(\.\.\.\)", "declare it, such as --scale 1..5"),
    (r"declare the scale with scale= if", "declare the scale with --scale if"),
    (r"^(\S+: )?separator must", r"\1--sep must"),
    (r"^(\S+: )?duplicates must", r"\1--duplicates must"),
    (r"^(like|decision|candidates|times|cold_users|ranking_users) must",
     lambda found: f"--{found[1].replace('cold_users', 'cold').replace('_', '-')} must"),
    (r"\b(user|item)_table: ", lambda found: f"--{found[1]}s: "),
    (r"index it by id, or call its column", "call its column"),
    (r"a class of your own that is registered", "a class of your own that is named by --class"),
    (r"and max_memory is (\S+): raise it", r"and --max-memory is \1: raise it"),
    (r"^max_memory must", "--max-memory must"),
    (r"\buse_time=True, but", "--set use_time=true, but"),
    (r"give the values to try as space=", "give the values to try with --search"),
    (r"^(n_trials|method|metric) must", lambda found: f"--{found[1].removeprefix('n_')} must"),
    (r"fit one with rating=", "fit one with --set rating=factors"),
)  # fmt: skip


def in_options(message: str) -> str:
    """Return a message with the options of the command line in place of Python keywords.

    Examples
    --------
    >>> in_options('row 3: rated before: pass duplicates="last" or duplicates="mean"')
    'row 3: rated before: choose --duplicates last or mean'
    """
    for pattern, words in WORDS:
        message = re.sub(pattern, words, message)
    return message
