"""The report and its records in a terminal, through rich.  No text of a document is ever read as markup or control."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from pipeline.core.document import Document
from pipeline.core.outcome import Outcome, Status
from pipeline.report.model import Report
from pipeline.report.text import compact, count, duration, passed_columns, percent, plural, record_text, visible
from pipeline.report.time_text import OVERLAP, engines_line, left_line, phase_lines
from pipeline.report.verdict import not_scored, verdict

__all__ = ["STATUS_LOOKS", "records_beside_text", "report_lines"]

BAR_CELLS = 60
ALARMS = 10
"""Lines of one kind of what is wrong."""
TEXT_CHARS = 1500
"""Characters of a document, a record or a generation that a panel shows."""
NARROW = 92
"""Cells below which a record stands under its text instead of beside it."""

STATUS_LOOKS: dict[str, tuple[str, str]] = {
    Status.VALID: ("█", "blue"),
    Status.CLOSED: ("▓", "cyan"),
    Status.TRUNCATED: ("▒", "yellow"),
    Status.INVALID: ("░", "red"),
    Status.FAILED: ("╳", "magenta"),
    "missing": ("·", "bright_black"),
}
"""Glyph and colour of each status: the glyph alone tells them apart."""


def report_lines(report: Report, *, worst: int = 3) -> RenderableType:
    """The report in a few lines: the verdict, the counts by status and cause, tokens, time and the worst shards.

    Args:
        report: what to show.
        worst: shards named at most.
    """
    said = verdict(report)
    style = "bold" if said.state in ("complete", "empty") else "bold red"
    lines: list[RenderableType] = [
        Text.assemble((visible(report.name), "bold"), "  ", (said.headline, style)),
        Text(said.detail, style="dim"),
    ]
    if report.balance.documents_planned:
        lines += [Text(), _bar(report), _counts(report)]
    lines += _alarms(report.balance.problems)
    lines += _alarms([f"unreadable input {entry.uri}: {entry.reason}" for entry in report.unreadable])
    lines += list(_facts(report, worst))
    return Group(*lines)


def _alarms(said: Sequence[str]) -> Iterator[Text]:
    for line in said[:ALARMS]:
        yield Text(f"! {visible(line)}", style="red")
    if len(said) > ALARMS:
        yield Text(f"! and {count(len(said) - ALARMS)} more", style="red")


def _parts(report: Report) -> list[tuple[str, int]]:
    counted = [(status.value, report.balance.outcomes.of(status)) for status in Status]
    return [*counted, ("missing", report.balance.documents_missing)]


def _bar(report: Report) -> Text:
    """Cells in proportion; every status that occurs has one at least."""
    present = [(name, number) for name, number in _parts(report) if number]
    total = sum(number for _, number in present)
    cells = {name: max(1, round(BAR_CELLS * number / total)) for name, number in present}
    if cells:
        widest = max(cells, key=lambda name: cells[name])
        cells[widest] = max(1, cells[widest] + BAR_CELLS - sum(cells.values()))
    bar = Text(no_wrap=True)
    for name, width in cells.items():
        glyph, colour = STATUS_LOOKS[name]
        bar.append(glyph * width, style=colour)
    return bar


def _counts(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column(style="dim")
    planned = report.balance.documents_planned
    for name, number in _parts(report):
        glyph, colour = STATUS_LOOKS[name]
        causes = [entry for entry in report.counts if entry.status == name and entry.cause and entry.documents]
        table.add_row(
            Text.assemble((glyph, colour), f" {name}"),
            count(number),
            percent(number / planned),
            ", ".join(f"{entry.cause} {count(entry.documents)}" for entry in causes),
            style="dim" if not number else "",
        )
    table.add_row("= documents in" if not report.balance.difference else "≠ documents in", count(planned))
    return table


def _facts(report: Report, worst: int) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    if isinstance(link := report.spec.get("rerun"), dict):
        table.add_row("rerun of", Text(visible(str(link.get("of")))))
    tokens = report.tokens
    if tokens.prompt_tokens or tokens.output_tokens:
        hits = f" ({percent(tokens.prefix_cache_hit_rate)} from the prefix cache)" if tokens.cached_tokens else ""
        table.add_row("tokens", f"{compact(tokens.prompt_tokens)} in{hits}, {compact(tokens.output_tokens)} out")
    if report.active_s:
        rate = compact(report.documents_per_s)
        left = f"; {line}" if (line := left_line(report)) else ""
        table.add_row("time", f"{duration(report.active_s)} of work; {rate} documents a second{left}")
        table.add_row("engines", engines_line(report))
        table.add_row("a document", "; ".join(phase_lines(report)))
        table.add_row("", Text(OVERLAP, style="dim"))
    if report.shaped_fields:
        shaped = ", ".join(f"{visible(entry.field)} {count(entry.documents)}" for entry in report.shaped_fields[:5])
        table.add_row("shaped", Text(shaped))
    if report.spans.grounded:
        spans = report.spans
        found = (
            f"{count(spans.grounded)} grounded, of them {count(spans.ambiguous)} ambiguous, {count(spans.empty)} empty"
        )
        table.add_row("spans", found)
    for score in report.scores:
        shares = f"{percent(score.exact_share)} exact, {percent(score.normalised_share)} normalised"
        table.add_row("score", Text(f"{visible(score.field)}: {shares} of {plural(score.answered, 'answer')}"))
    for line in not_scored(report.known_answers):
        table.add_row("not scored", Text(visible(line), style="yellow"))
    for shard_id in report.worst_shards[:worst]:
        shard = report.shard(shard_id)
        lost = f"{percent(shard.share_lost)} without a record, {count(shard.closed)} closed"
        table.add_row("worst", f"shard {shard_id}: {lost}")
    if report.missing:
        named = ", ".join(gone.shard_id for gone in report.missing[:3])
        more = "" if len(report.missing) <= 3 else f" and {count(len(report.missing) - 3)} more"
        table.add_row("missing", Text(f"shard {named}{more}"))
    if table.row_count:
        yield Text()
        yield table


def records_beside_text(pairs: Iterable[tuple[Document, Outcome]]) -> RenderableType:
    """Each document's text with its record beside it, spans marked in both; under each other in a narrow terminal."""
    return Group(*(_Pair(document, outcome) for document, outcome in pairs))


@dataclass(frozen=True, slots=True)
class _Pair:
    document: Document
    outcome: Outcome

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyph, colour = STATUS_LOOKS[self.outcome.status]
        cause = f" · {self.outcome.cause}" if self.outcome.cause else ""
        title = Text.assemble(
            (glyph, colour), f" {self.outcome.status}{cause}  ", (visible(self.outcome.document_id or "no id"), "bold")
        )
        text, record = self._text(), self._record()
        if options.max_width < NARROW:
            body: RenderableType = Group(text, Rule(style="bright_black"), record)
        else:
            grid = Table.grid(expand=True, padding=(0, 2))
            grid.add_column(ratio=1)
            grid.add_column(ratio=1)
            grid.add_row(text, record)
            body = grid
        yield Panel(body, title=title, title_align="left", border_style="bright_black")

    def _text(self) -> Text:
        shown = self._marked_text()
        for name, value in passed_columns(self.outcome.extra):
            shown.append(f"\n{visible(name)}: {visible(value)}", style="dim")
        return shown

    def _marked_text(self) -> Text:
        if self.document.text is None:
            return Text("no text", style="dim italic")
        shown = _cut(self.document.text)
        for span in self.outcome.spans:
            shown.stylize(
                "bold underline yellow" if span.is_ambiguous else "bold underline green", span.start, span.end
            )
        return shown

    def _record(self) -> Text:
        outcome = self.outcome
        if outcome.record is not None:
            shown = _cut(record_text(outcome.record))
        elif outcome.raw:
            shown = _cut(outcome.raw)
        else:
            shown = Text("nothing generated", style="dim italic")
        for note, style in self._notes():
            shown.append(f"\n{note}", style=style)
        return shown

    def _notes(self) -> Iterator[tuple[str, str]]:
        outcome = self.outcome
        if outcome.detail:
            yield visible(outcome.detail), "red" if outcome.record is None else "yellow"
        if outcome.shaped_fields:
            yield "shaped: " + ", ".join(map(visible, outcome.shaped_fields)), "yellow"
        for span in outcome.spans:
            several = ", several places" if span.is_ambiguous else ""
            yield f"{visible(span.field)}: characters {span.start}–{span.end}{several}", "dim"
        if outcome.output_tokens is not None:
            budget = "" if outcome.budget_tokens is None else f" of {count(outcome.budget_tokens)}"
            yield f"{count(outcome.output_tokens)}{budget} tokens", "dim"


def _cut(text: str) -> Text:
    shown = Text(visible(text[:TEXT_CHARS]))
    if len(text) > TEXT_CHARS:
        shown.append(f"\n… {count(len(text) - TEXT_CHARS)} more characters", style="dim")
    return shown
