"""Columns that stand in the names of folders, as `.../country=DE/day=2026-11-29/part-0.parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import unquote

from pipeline.core.document import Document
from pipeline.core.sections import InputSpec

__all__ = ["file_spec", "folder_columns", "partition_values", "with_partitions"]

_NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_values(uri: str) -> dict[str, str | None]:
    """Name to value of each `name=value` folder of a URI, from the left; None for Hive's name of null.

    Values are text, as in the folder's name, percent escapes resolved; the last of several of one name counts.
    """
    folders = (folder.partition("=") for folder in uri.split("/")[:-1] if "=" in folder)
    named = ((unquote(name), unquote(value)) for name, _, value in folders if name)
    return {name: None if value == _NULL else value for name, value in named}


def file_spec(spec: InputSpec, uri: str) -> InputSpec:
    """The spec with those passed columns only that have to stand in the object itself."""
    values = partition_values(uri)
    own = tuple(name for name in spec.columns if name not in values)
    return spec if own == spec.columns else spec.model_copy(update={"columns": own})


def folder_columns(spec: InputSpec, uri: str) -> dict[str, str | None]:
    """The passed columns that an object's folders give: known without reading it."""
    values = partition_values(uri)
    return {name: values[name] for name in spec.columns if name in values}


def with_partitions(documents: Iterable[Document], spec: InputSpec, uri: str) -> Iterator[Document]:
    """The documents of an object, with the values that its folders give them."""
    given = folder_columns(spec, uri)
    if not given:
        yield from documents
        return
    for document in documents:
        yield replace(document, extra={**document.extra, **given})
