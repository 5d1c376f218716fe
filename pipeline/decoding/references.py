"""Finding what a `$ref` means inside one schema document."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urljoin

__all__ = ["References"]

_HIDING_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")
_DATA = frozenset({"const", "enum", "default", "examples", "example"})
"""Keywords whose values are no schemas, whatever stands in them."""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas"})
"""Keywords whose values hold schemas by names, which are no keywords."""


class References:
    """Pointers, anchors and identifiers of one document.

    Attributes:
        ref_hides_siblings: whether keywords beside `$ref` are ignored, as drafts up to 7 have it.
    """

    def __init__(self, document: Any) -> None:
        self._document = document
        declared = str(document.get("$schema", "")) if isinstance(document, dict) else ""
        self.ref_hides_siblings = any(draft in declared for draft in _HIDING_DRAFTS)
        self._named: dict[str, Any] = {}
        self._places: dict[int, tuple[str, Any]] = {}
        """By identity of a schema, the address of the resource that it stands in, and that resource."""
        self._walk(document)

    def _walk(self, document: Any) -> None:
        stack: list[tuple[Any, str, Any]] = [(document, "", document)]
        while stack:
            item, base, resource = stack.pop()
            if isinstance(item, list):
                stack.extend((each, base, resource) for each in item)
            if not isinstance(item, dict):
                continue
            if name := _identifier(item):
                address = urljoin(base, name).removesuffix("#")
                self._named.setdefault(address, item)
                # A name that is a fragment alone marks a place; any other begins a resource of its own.
                if not name.startswith("#") and ("$id" in item or item is document):
                    base, resource = address.partition("#")[0], item
            if anchor := item.get("$anchor"):
                self._named.setdefault(f"{base}#{anchor}", item)
            self._places[id(item)] = base, resource
            for keyword, value in item.items():
                named = keyword in _MAPS and isinstance(value, dict)
                if keyword not in _DATA:
                    stack.extend((each, base, resource) for each in (value.values() if named else (value,)))

    def resolve(self, reference: str, holder: Any = None) -> Any:
        """The schema meant by a `$ref` of the schema `holder`, which is one of the document's; or None."""
        base, resource = self._places.get(id(holder)) or self._places.get(id(self._document), ("", self._document))
        target = urljoin(base, reference) if base else reference
        for name in (target, reference, target.removesuffix("#")):
            if name in self._named:
                return self._named[name]
        address, _, fragment = target.partition("#")
        root = self._named.get(address) if address and address != base else resource
        return _pointed(root, unquote(fragment))


def _identifier(schema: dict[str, Any]) -> str:
    for key in ("$id", "id"):
        if isinstance(value := schema.get(key), str):
            return value
    return ""


def _pointed(root: Any, pointer: str) -> Any:
    """RFC 6901; None where it leads nowhere."""
    if pointer in ("", "/"):
        return root
    if not pointer.startswith("/"):
        return None
    for part in pointer[1:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(root, dict) and key in root:
            root = root[key]
        elif isinstance(root, list) and key.isdecimal() and int(key) < len(root):
            root = root[int(key)]
        else:
            return None
    return root
