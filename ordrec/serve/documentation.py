"""A page about the API, made from its OpenAPI description; nothing on it is loaded from outside."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["documentation"]


def documentation(openapi: dict[str, Any], address: str, values: dict[str, Any]) -> str:
    """Return an html page about an API.

    Parameters
    ----------
    openapi : dict
        The description that FastAPI makes.
    address : str
        Where the API is asked, such as ``http://127.0.0.1:8000``.
    values : dict
        Values of fields in examples.
    """
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("ordrec.serve", package_path="")
    template = Environment(loader=loader, autoescape=True).get_template("docs.html")
    known = openapi["components"]["schemas"]
    questions: list[dict[str, Any]] = []
    refusals: dict[int, str] = {}
    for path, methods in openapi["paths"].items():
        for method, asked in methods.items():
            answer = asked["responses"]["200"]["content"]["application/json"]["schema"]
            body = asked.get("requestBody", {}).get("content", {}).get("application/json", {})
            schema = _resolved(body.get("schema", {}), known)
            questions.append(
                {
                    "name": path.rpartition("/")[2],
                    "method": method.upper(),
                    "path": path,
                    "title": asked["summary"],
                    "text": " ".join(asked["description"].split()),
                    "about": schema.get("description", ""),
                    "fields": _fields(schema, known) or _parameters(asked.get("parameters", [])),
                    "example": json.dumps(_example(schema, known, values)) if body else "",
                    "answer": _fields(_resolved(answer, known), known),
                }
            )
            refusals |= {
                int(status): response["description"]
                for status, response in asked["responses"].items()
                if status != "200"
            }
    return template.render(
        info=openapi["info"],
        questions=questions,
        refusals=sorted(refusals.items()),
        address=address,
    )


def _resolved(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return known[schema["$ref"].rpartition("/")[2]]
    return schema


def _fields(schema: dict[str, Any], known: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, kind and explanation of each field, those of inner objects as ``items[].title``."""
    rows: list[tuple[str, str, str]] = []
    for name, field in schema.get("properties", {}).items():
        notes = [f"{_value(field['default'])} by default"] if "default" in field else []
        notes += [text.rstrip(".") for text in [field.get("description", "")] if text]
        rows.append((name, _kind(field, known), "; ".join(notes)))
        field = next((each for each in field.get("anyOf", []) if "items" in each), field)
        inner = _resolved(field.get("items", field), known)
        if inner.get("type") == "object":
            dots = f"{name}[]." if "items" in field else f"{name}."
            rows += [(dots + own, kind, text) for own, kind, text in _fields(inner, known)]
    return rows


def _parameters(parameters: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    rows = []
    for each in parameters:
        notes = [f"{_value(each['schema'].get('default'))} by default"]
        notes += [text.rstrip(".") for text in [each.get("description", "")] if text]
        rows.append((each["name"], _kind(each["schema"], {}), "; ".join(notes)))
    return rows


def _value(default: Any) -> str:
    return "none" if default is None else json.dumps(default)


def _kind(field: dict[str, Any], known: dict[str, Any]) -> str:
    """The type of a field in words, with its limits."""
    if "anyOf" in field:
        kinds = [_kind(each, known) for each in field["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if field.get("type") == "array":
        most = f"list of at most {field['maxItems']}" if "maxItems" in field else "list"
        kind = _kind(field["items"], known)
        return most if kind == "object" else f"{most}: {kind}"
    field = _resolved(field, known)
    if "enum" in field:
        return " or ".join(json.dumps(each) for each in field["enum"])
    kind = {"integer": "whole number", "boolean": "true or false", "string": "text"}.get(
        field["type"], field["type"]
    )
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None and abs(high) < 1e6:
        kind += f" {low:g} to {high:g}"
    return kind


def _example(schema: dict[str, Any], known: dict[str, Any], values: dict[str, Any]) -> Any:
    """The smallest request that a schema allows, with the defaults left out."""
    found: dict[str, Any] = {}
    for name in schema.get("required", []):
        field = schema["properties"][name]
        if field.get("type") == "array":
            found[name] = [_example(_resolved(field["items"], known), known, values)]
        else:
            found[name] = values[name]
    return found
