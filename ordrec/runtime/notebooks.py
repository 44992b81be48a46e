"""What notebooks show of an object, as html."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["facts_html"]


def facts_html(title: str, facts: Mapping[str, Any]) -> str:
    """Return a table with a title and one row per fact.

    Examples
    --------
    >>> facts_html("a < b", {"users": 3})
    '<table><caption>a &lt; b</caption><tbody><tr><th>users</th><td>3</td></tr></tbody></table>'
    """
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"
