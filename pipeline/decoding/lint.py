"""Owns the rules of lint: what in a record type makes good records less likely, and what to write instead.

Pure: a schema and its verdicts in, advice out.  A rule is a row of `RULES`; it never refuses anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.decoding.field_tags import RECORD
from pipeline.decoding.grammar import FieldVerdict, Verdict
from pipeline.decoding.schema_fields import SchemaField, fields_of

__all__ = ["RULES", "Advice", "Rule", "advise", "advise_budget"]

ENUM_AT_MOST = 50
"""Values of an enum that a model can be expected to choose from."""

_EMPTY_NAME = re.compile(
    r"(data|value|val|field|info|content|misc|other|thing|stuff|var|tmp|temp|obj|object|result|output|entry|record|x|y|z"
    r"|[a-z]|(field|value|val|item|col|column|attr|attribute|prop|property|var|data|param|arg|key)_?\d+)",
    re.IGNORECASE,
)
_REASONING = re.compile(
    r"(.*_)?(reason|reasons|reasoning|rationale|thought|thoughts|thinking|explanation|justification|analysis|evidence|"
    r"quote|quotes|chain_of_thought|steps|scratchpad|support|citation)(_.*)?",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(.*_)?(answer|label|class|category|verdict|decision|conclusion|score|rating|grade|sentiment|result|is|has|"
    r"outcome|classification|type|status|severity|priority)(_.*)?",
    re.IGNORECASE,
)
_COPIED_TEXT = re.compile(
    r"(.*_)?(name|company|address|street|city|postcode|zip|country|phone|fax|email|url|website|iban|bic|vat|id|number|no|"
    r"code|reference|ref|sku|isbn|title|author|vendor|seller|buyer|supplier|customer|merchant|payee|payer|account|"
    r"invoice|order|policy|quote|quotes|evidence|signature|brand|model)(_.*)?",
    re.IGNORECASE,
)
_COPIED_NUMBER = re.compile(
    r"(.*_)?(amount|total|subtotal|price|cost|sum|net|gross|tax|vat|fee|balance|quantity|qty|salary|discount|due)(_.*)?",
    re.IGNORECASE,
)
_ENDLESS = re.compile(r"(?<!\\)[*+]|\{\d+,\}")


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing that hurts, at one place."""

    path: str
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Place:
    """A field where it stands: what a rule looks at."""

    field: SchemaField
    verdict: FieldVerdict | None
    earlier: tuple[SchemaField, ...]
    """The properties declared before it in the same object."""
    is_copied: bool
    """Whether it is extractive, or lies below a field that is."""


@dataclass(frozen=True, slots=True)
class Rule:
    """`says` gives the message for a place that the rule speaks of, else None."""

    name: str
    says: Callable[[Place], str | None]


def advise(schema: Mapping[str, Any], verdicts: Iterable[FieldVerdict]) -> tuple[Advice, ...]:
    """What hurts in a record type, in the order of its fields.

    Args:
        schema: as `schema_of_type` makes it, or any JSON Schema.
        verdicts: from `lint_fields`.
    """
    by_path = {verdict.path: verdict for verdict in verdicts}
    return tuple(
        Advice(place.field.path, rule.name, message)
        for place in _places(fields_of(schema), by_path)
        for rule in RULES
        if (message := rule.says(place)) is not None
    )


def _places(
    field: SchemaField,
    verdicts: Mapping[str, FieldVerdict],
    earlier: Sequence[SchemaField] = (),
    *,
    is_copied: bool = False,
) -> Iterable[Place]:
    is_copied = is_copied or "x-span" in field.schema
    yield Place(field, verdicts.get(field.path), tuple(earlier), is_copied)
    for index, child in enumerate(field.children):
        yield from _places(child, verdicts, field.children[:index] if child.name else (), is_copied=is_copied)


def advise_budget(max_tokens: int, least_tokens: int | None, likely_tokens: int | None) -> Advice | None:
    """What is to be said of `decoding.max_tokens`, and the one that would do."""
    if least_tokens is not None and max_tokens < least_tokens:
        wanted = _rounded(max(4 * least_tokens, 2 * (likely_tokens or 0)))
        message = f"max_tokens {max_tokens} cannot hold the least record, which takes {least_tokens}: {wanted} would do"
        return Advice(RECORD, "budget_below_least", message)
    if likely_tokens is not None and max_tokens < likely_tokens:
        message = (
            f"max_tokens {max_tokens} is less than a likely record takes ({likely_tokens}), so many would be cut "
            f"short: {_rounded(2 * likely_tokens)} would do"
        )
        return Advice(RECORD, "budget_below_likely", message)
    return None


def _rounded(tokens: int) -> int:
    return -(-tokens // 64) * 64


def _answer_first(place: Place) -> str | None:
    name = place.field.name
    if not name or not _REASONING.fullmatch(name):
        return None
    before = next((field.name for field in place.earlier if _is_answer(field, name)), None)
    if before is None:
        return None
    return f"comes after {before!r}, so it can only justify what is already written: declare it before {before!r}"


def _is_answer(field: SchemaField, reasoning: str) -> bool:
    if _REASONING.fullmatch(field.name):
        return False
    is_choice = field.types == {"boolean"} or (field.choices is not None and len(field.choices) > 1)
    return is_choice or bool(_ANSWER.fullmatch(field.name)) or reasoning.lower().startswith(f"{field.name.lower()}_")


def _unbounded_string(place: Place) -> str | None:
    for branch in _branches(place.field):
        is_free = branch.get("type") == "string" and not {"maxLength", "enum", "const", "format", "x-string"} & set(
            branch
        )
        if is_free and "x-json" not in branch and not place.is_copied and _ENDLESS.search(branch.get("pattern", "*")):
            return "a string without max_length can run on until the tokens end: give it one"
    return None


def _unbounded_list(place: Place) -> str | None:
    for branch in _branches(place.field):
        if branch.get("type") == "array" and "maxItems" not in branch and branch.get("items", True) is not False:
            return "a list without max_length can run on until the tokens end: give it one"
        below = branch.get("additionalProperties", branch.get("type") == "object")
        if branch.get("type") == "object" and below is not False and "maxProperties" not in branch:
            return "a map without max_length can run on until the tokens end: give it one, or name its keys"
    return None


def _large_enum(place: Place) -> str | None:
    choices = place.field.choices
    if choices is None or len(choices) <= ENUM_AT_MOST or place.is_copied:
        return None
    return (
        f"{len(choices)} values are too many to choose from, and all of them stand in the prompt's schema: "
        "ask for a coarser one first, or extract the text and map it afterwards"
    )


def _empty_name(place: Place) -> str | None:
    if not place.field.name or not _EMPTY_NAME.fullmatch(place.field.name):
        return None
    return "the name tells the model nothing: name what it holds, as `invoice_number`"


def _no_description(place: Place) -> str | None:
    if not place.field.name or place.field.description:
        return None
    return "has no description: say in a few words what to write and in which form"


def _checked_afterwards(place: Place) -> str | None:
    if place.verdict is None or place.verdict.verdict is not Verdict.WIDENED:
        return None
    return f"checked only when the record is written ({place.verdict.reason}); one that breaks it is `invalid`"


def _looks_copied(place: Place) -> str | None:
    field = place.field
    if place.is_copied or not field.name or field.children or field.choices is not None:
        return None
    kinds = {branch.get("x-string", {}).get("kind", branch.get("format")) for branch in _branches(field)}
    is_text = field.types == {"string"} and bool(_COPIED_TEXT.fullmatch(field.name)) and kinds == {None}
    is_date = bool(kinds & {"date", "datetime", "time", "date-time"})
    is_number = bool(field.types & {"number", "integer"}) and bool(_COPIED_NUMBER.fullmatch(field.name))
    if not (is_text or is_date or is_number):
        return None
    return "looks copied from the document: with `Span()` in its Annotated type it can only be what stands there"


def _branches(field: SchemaField) -> Sequence[Mapping[str, Any]]:
    branches: Sequence[Mapping[str, Any]] = field.schema.get("anyOf", (field.schema,))
    return branches


RULES: tuple[Rule, ...] = (
    Rule("answer_before_reasoning", _answer_first),
    Rule("unbounded_string", _unbounded_string),
    Rule("unbounded_list", _unbounded_list),
    Rule("large_enum", _large_enum),
    Rule("empty_name", _empty_name),
    Rule("no_description", _no_description),
    Rule("checked_afterwards", _checked_afterwards),
    Rule("looks_copied", _looks_copied),
)
"""Every rule, in the order in which a field is asked."""
