"""Where an engine finds its guides: local files, by fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline.core.errors import EngineStartError, RequestRefusedError
from pipeline.decoding.guide import Guide

__all__ = ["GuideFiles"]


class GuideFiles:
    """The files that an engine was started with, and those that lie beside them, named likewise."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """
        Args:
            files: path of each guide, by fingerprint.

        Raises:
            EngineStartError: a file is missing, or no guide.
        """
        self._files = {fingerprint: Path(path) for fingerprint, path in files.items()}
        self._guides: dict[str, Guide] = {}
        for fingerprint, path in self._files.items():
            try:
                self.guide(fingerprint)
            except (OSError, ValueError) as error:
                raise EngineStartError(f"guide {fingerprint} cannot be read from {path}: {error}") from error

    def guide(self, fingerprint: str) -> Guide:
        """The guide, opened at its first use.

        Raises:
            RequestRefusedError: there is none.
        """
        if (guide := self._guides.get(fingerprint)) is None:
            guide = self._guides[fingerprint] = Guide.load(self.path(fingerprint))
        return guide

    def warm(self) -> None:
        """Compiles what the guides' cursors may need, once a machine; the engine's own processes find it there."""
        for guide in tuple(self._guides.values()):
            guide.warm()

    def path(self, fingerprint: str) -> Path:
        """The guide's file.

        Raises:
            RequestRefusedError: there is none.
        """
        if (path := self._files.get(fingerprint)) is not None:
            return path
        if fingerprint.isalnum():
            for known, path in list(self._files.items()):
                beside = path.with_name(path.name.replace(known, fingerprint))
                if known in path.name and beside.is_file():
                    return self._files.setdefault(fingerprint, beside)
        raise RequestRefusedError(f"this engine was given no guide {fingerprint}")
