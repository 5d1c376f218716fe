"""The documentation says what is so: made pages are current, links lead somewhere, examples are accepted."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from docs.reference import main as reference
from pipeline.cli.app import app
from pipeline.core.errors import SpecError
from pipeline.core.spec import parse_spec
from pipeline.storage.layout import RunLayout
from tests.docs_blocks import DOCS, Command, blocks, commands, pages
from tests.unit.report.runs import Run, closed, lost, plan_of, valid

PAGES = [pytest.param(page, id=str(page.relative_to(DOCS))) for page in pages()]
README = DOCS.parent / "README.md"
NEEDED: dict[str, Any] = {
    "name": "example",
    "input": {"uri": "s3://in/documents/"},
    "record": "schemas.receipt:Receipt",
    "model": {"name": "some/model"},
    "output": {"uri": "s3://out/run/"},
}


def _anchors(page: Path) -> set[str]:
    """GitHub's anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _command_lines(page: Path) -> list[list[str]]:
    """Every `recordmill ...` of a page: in console blocks, indented, and within a line."""
    text = re.sub(r"\\\n\s*", "", page.read_text(encoding="utf-8"))
    shown = [command.line for block in blocks(page) if block.language == "console" for command in commands(block)]
    indented = re.findall(r"^    (recordmill .+)$", text, re.MULTILINE)
    inline = re.findall(r"`(recordmill [a-z][^`]*)`", text)
    return [shlex.split(line, comments=True) for line in (*shown, *indented, *inline) if line.startswith("recordmill ")]


def test_the_reference_is_made_from_this_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", [*PAGES, pytest.param(README, id="README.md")])
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked), target


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_reached_from_the_index(page: Path) -> None:
    index = DOCS / "index.md"
    assert page == index or f"({page.relative_to(DOCS)})" in index.read_text()


@pytest.mark.parametrize("page", [*PAGES, pytest.param(README, id="README.md")])
def test_commands_and_their_options_exist(page: Path) -> None:
    known_commands: dict[str, Any] = typer.main.get_command(app).commands
    for _, *words in _command_lines(page):
        command = known_commands[words[0]]
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        used = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert used <= known | {"--help"}, words


@pytest.mark.parametrize("page", [*PAGES, pytest.param(README, id="README.md")])
def test_nothing_is_installed_from_an_index_that_does_not_have_it(page: Path) -> None:
    assert not re.search(r"pip install [^`\n]*\brecordmill\b", page.read_text(encoding="utf-8"))


def test_what_the_readme_shows_of_a_file_stands_in_it() -> None:
    shown = {match[1]: block for block in blocks(README) if (match := re.match(r"# (\S+), shortened\n", block.text))}
    assert {block.language for block in shown.values()} == {"yaml", "python"}
    for name, block in shown.items():
        text = (README.parent / name).read_text(encoding="utf-8")
        if block.language == "yaml":
            assert _is_part(yaml.safe_load(block.text), yaml.safe_load(text)), name
        else:
            assert set(block.text.splitlines()[1:]) <= set(text.splitlines()), name


def _is_part(piece: Any, whole: Any) -> bool:
    if isinstance(piece, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(value, whole[key]) for key, value in piece.items())
    return bool(piece == whole)


def test_the_engine_keys_that_the_page_calls_refused_are_refused() -> None:
    (listed,) = re.findall(r"These keys are refused there: ([^.]+)\.", (DOCS / "models.md").read_text(encoding="utf-8"))
    keys = re.findall(r"`(\w+)`", listed)
    assert "trust_remote_code" in keys
    for key in keys:
        with pytest.raises(SpecError, match=key):
            parse_spec({**NEEDED, "model": {"name": "some/model", "engine": {key: "x"}}}, source="test")


def test_a_piece_of_a_line_is_not_what_a_command_prints() -> None:
    said = "tickets  All 3 documents\n2 rows  \n"
    shown = Command("recordmill run", 0, ("All 3 documents", "2 rows", "tickets ...documents", "tickets  ..."))
    assert shown.not_shown_by(said) == ["All 3 documents"]


@pytest.mark.parametrize("page", PAGES)
def test_pieces_of_job_specs_are_accepted(page: Path) -> None:
    for block in blocks(page):
        if block.language != "yaml":
            continue
        piece = yaml.safe_load(block.text)
        parse_spec({**NEEDED, **piece}, source=page.name)


@pytest.mark.parametrize("page", PAGES)
def test_python_is_python_and_record_types_can_be_made(page: Path) -> None:
    for block in blocks(page):
        if block.language != "python":
            continue
        tree = ast.parse(block.text)
        if any(isinstance(statement, ast.ClassDef) for statement in tree.body):
            exec(compile(tree, page.name, "exec"), {"__name__": page.stem})


def test_a_run_and_its_rerun_put_together_have_one_record_a_document(tmp_path: Path) -> None:
    """The page's own lines, over two small runs: the new record where there is one, the old one else."""
    runs = {
        "receipts": [valid("a"), closed("b"), closed("c"), lost("d"), lost("e")],
        "receipts-2": [valid("b", vendor="new"), lost("c"), valid("d", vendor="new"), lost("e")],
    }
    (text,) = (block.text for block in blocks(DOCS / "failures.md") if "receipts-2/" in block.text)
    for name, outcomes in runs.items():
        Run(RunLayout(str(tmp_path / name))).put_part(plan_of(len(outcomes)), 0, outcomes)
        text = text.replace(f"s3://my-bucket/runs/{name}/", f"{tmp_path}/{name}/")
    names: dict[str, Any] = {}
    exec(compile(text, "failures.md", "exec"), names)
    found = sorted((row["_document_id"], row["vendor"]) for row in names["records"].to_pylist())
    assert found == [("a", "ACME"), ("b", "new"), ("c", "ACME"), ("d", "new")]
