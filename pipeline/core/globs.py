"""What the input's URIs take: which names match a pattern, and which are hidden."""

from __future__ import annotations

import re
from collections.abc import Callable

from fsspec.utils import glob_translate

__all__ = ["folder_asked", "glob_matcher", "glob_root", "is_glob", "is_hidden"]

_MAGIC = re.compile(r"[*?\[]")


def is_glob(uri: str) -> bool:
    return _MAGIC.search(uri) is not None


def glob_root(pattern: str) -> str:
    """The longest prefix of a pattern that holds no wildcard."""
    match = _MAGIC.search(pattern)
    return pattern if match is None else pattern[: match.start()]


def folder_asked(uri: str) -> str:
    """The folder that a pattern begins with, empty where it is the working one; what is no pattern names it itself."""
    return glob_root(uri).rpartition("/")[0] if is_glob(uri) else uri


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a path matches, where `*` stays within a folder and `**` does not.

    A pattern that names a folder takes all that lies in it.

    Raises:
        ValueError: `**` is not a folder's whole name.
    """
    try:
        regex = re.compile(glob_translate(pattern.rstrip("/")))
    except ValueError as error:
        raise ValueError(
            f"{pattern!r} is no pattern: `**` has to stand alone between slashes, as in `a/**/*.parquet`"
        ) from error

    def matches(path: str) -> bool:
        parts = path.split("/")
        return any(regex.match("/".join(parts[:length])) for length in range(len(parts), 0, -1))

    return matches


def is_hidden(path: str) -> bool:
    """Whether a path below what was asked for is bookkeeping; `_part=1` is a Hive partition and is not."""
    return any(name.startswith(("_", ".")) and "=" not in name for name in path.split("/"))
