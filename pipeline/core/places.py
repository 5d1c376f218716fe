"""Where the URIs of a job lead: which ones are refused, and how one place is told from another."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

__all__ = ["absolute", "checked_uri", "local_path", "placed"]


def checked_uri(uri: str) -> str:
    """The URI itself.

    Raises:
        ValueError: it names a place that is refused, and why.
    """
    if "\x00" in uri or any(part == ".." for part in uri.split("/")):
        raise ValueError(f"{uri!r} holds '..' or NUL; write the path in full")
    if uri.startswith("~"):
        raise ValueError(f"{uri!r} begins with '~', which stands for a home in a shell alone; write the path in full")
    parts = urlsplit(uri)
    if parts.scheme not in ("s3", "file", ""):
        raise ValueError(f"{uri!r} has scheme {parts.scheme!r}; use s3://bucket/prefix/ or a local path")
    if parts.scheme == "file" and not uri.startswith("file:///"):
        raise ValueError(
            f"{uri!r} names no file of this machine; write file:/// and the path from the root, or the path"
        )
    if "@" in parts.netloc:
        raise ValueError("credentials do not belong in a URI; use the environment, a role or a mounted secret")
    if parts.scheme == "s3" and not parts.netloc:
        raise ValueError(f"{uri!r} names no bucket")
    return uri


def absolute(uri: str) -> str:
    """The same place whatever the working directory is; one that is so already stays as it is spelt."""
    if uri.startswith("s3://") or os.path.isabs(uri.removeprefix("file://")):
        return uri
    return local_path(uri) + ("/" if uri.endswith("/") else "")


def placed(uri: str) -> str:
    """The same place always spelt alike, and ending in a slash; for telling whether one holds another."""
    return (uri if uri.startswith("s3://") else local_path(uri)).rstrip("/") + "/"


def local_path(uri: str) -> str:
    """The path, from the root, that names a file or folder here; `file://` before it says nothing more."""
    return os.path.abspath(uri.removeprefix("file://"))
