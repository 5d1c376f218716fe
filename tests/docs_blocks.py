"""Fenced blocks of the documentation's pages, for the tests that carry them out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "Block", "Command", "blocks", "commands", "pages"]

DOCS = Path(__file__).resolve().parents[1] / "docs"
_BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<language>\w+)\n(?P<text>.*?)\n```\n", re.DOTALL)
_SAVED = re.compile(r"Save this as `([^`]+)`:")
_EXITS = re.compile(r"\s+# exits with (\d+)$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block."""

    language: str
    text: str
    saved_as: str | None
    """The file that the line before it names."""


@dataclass(frozen=True, slots=True)
class Command:
    """A line `$ command` of a console block, and the lines shown beneath it; dots stand for what is left out."""

    line: str
    exit_code: int
    output: tuple[str, ...]

    def not_shown_by(self, said: str) -> list[str]:
        """Lines that are no line of what the command said; the space at a line's end does not count."""
        patterns = {line: ".*".join(re.escape(piece) for piece in line.split("...")) for line in self.output}
        return [line for line, text in patterns.items() if not re.search(rf"^{text}\s*$", said, re.MULTILINE)]


def pages() -> list[Path]:
    """Every page, the made ones too."""
    return sorted(DOCS.rglob("*.md"))


def blocks(page: Path) -> Iterator[Block]:
    for match in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        saved = _SAVED.search(match["before"])
        yield Block(match["language"], match["text"] + "\n", saved and saved[1])


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block; a line of dots stands for output that is not shown."""
    for chunk in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, *output = chunk.splitlines()
        code = _EXITS.search(line)
        shown = tuple(text for text in output if text.strip() not in ("", "..."))
        yield Command(_EXITS.sub("", line), int(code[1]) if code else 0, shown)
