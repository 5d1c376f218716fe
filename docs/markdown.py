"""Owns how a reference page is written: Markdown tables, types in words, docstrings in one line."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["attribute_docstrings", "page", "summary", "table", "type_in_words"]


def page(title: str, *parts: str) -> str:
    head = f"# {title}\n\n<!-- Made from the code by `make docs`; changes here are lost. -->\n"
    return head + "".join(f"\n{part.strip()}\n" for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def type_in_words(schema: Mapping[str, Any], root: Mapping[str, Any]) -> str:
    """A JSON Schema's type in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        found = root["$defs"][name]
        return f"[{name}](#{name.lower()})" if "properties" in found else type_in_words(found, root)
    if "anyOf" in schema:
        return " or ".join(type_in_words(item, root) for item in schema["anyOf"])
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return type_in_words(schema["allOf"][0], root)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = str(schema.get("type", "any JSON value"))
    if kind == "array":
        return f"list of {type_in_words(schema.get('items', {}), root)}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"mapping to {type_in_words(values, root)}" if isinstance(values, dict) and values else "mapping"
    if schema.get("format") == "date-time":
        return "time"
    return kind + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    signs = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = ", ".join(f"{sign} {schema[key]:g}" for key, sign in signs.items() if key in schema)
    return f" {bounds}" if bounds else ""


def summary(of: type) -> str:
    return " ".join((inspect.getdoc(of) or "").split("\n\n")[0].split())


def attribute_docstrings(of: type) -> dict[str, str]:
    """The strings beneath a class's attributes, in one line each."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for statement, after in zip(body.body, body.body[1:], strict=False):
        if not (
            isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str)
        ):
            continue
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = " ".join(after.value.value.split())
    return found
