"""Finding what a `$ref` means inside one schema document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urljoin

__all__ = ["References"]

_HIDING_DRAFTS = ("draft-03", "draft-04", "draft-06", "draft-07")


class References:
    """Pointers, anchors and identifiers of one document.

    Attributes:
        ref_hides_siblings: whether keywords beside `$ref` are ignored, as drafts up to 7 have it.
    """

    def __init__(self, document: Any) -> None:
        self._document = document
        self._base = _identifier(document) if isinstance(document, dict) else ""
        declared = str(document.get("$schema", "")) if isinstance(document, dict) else ""
        self.ref_hides_siblings = any(draft in declared for draft in _HIDING_DRAFTS)
        self._named: dict[str, Any] = {}
        for schema in _subschemas(document):
            if name := _identifier(schema):
                self._named.setdefault(urljoin(self._base, name).removesuffix("#"), schema)
            if anchor := schema.get("$anchor"):
                self._named.setdefault(f"{self._base}#{anchor}", schema)

    def resolve(self, reference: str) -> Any:
        """The schema meant, or None."""
        target = urljoin(self._base, reference) if self._base else reference
        for name in (target, reference, target.removesuffix("#")):
            if name in self._named:
                return self._named[name]
        address, _, fragment = target.partition("#")
        root = self._document
        if address and address != self._base.partition("#")[0]:
            root = self._named.get(address)
        return _pointed(root, unquote(fragment))


def _identifier(schema: dict[str, Any]) -> str:
    for key in ("$id", "id"):
        if isinstance(value := schema.get(key), str):
            return value
    return ""


def _subschemas(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


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
