"""Renders a prompt's template around placeholders, and tells which parts of the result are the author's.

What the author wrote (instructions, markup of the chat template) may hold control tokens; what is put in (the
document, the examples' texts) may not.  So nothing that is put in is ever part of the rendered string: a placeholder
stands for it, which the author's template can print and do nothing else with (see `template_texts`).
"""

from __future__ import annotations

import json
import re
import secrets
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from pipeline.core.errors import SpecError
from pipeline.core.sections import PromptSpec
from pipeline.engine.template_texts import check_texts

__all__ = ["DEFAULT_TEMPLATE", "Rendered", "render"]

DEFAULT_TEMPLATE = """\
Extract one record from the document at the end. Answer with one JSON object that follows this JSON Schema, on one \
line, and nothing else.

Schema:
{{ schema }}
{% for example in examples %}
Document:
{{ example.text }}

Record:
{{ example.record }}
{% endfor %}
Document:
{{ text }}

Record:
"""
"""Instructions and examples first, so that the prefix cache serves them for every document."""

_DOCUMENT = 0


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt in order: `parts[i]` is the author's text before the i-th text put in, the last part ends the prompt.

    `slots[i]` is the i-th text that is put in; None is the document's place, and there is exactly one.
    """

    parts: tuple[str, ...]
    slots: tuple[str | None, ...]


class _Json(dict[str, Any]):
    """A JSON value that prints as compact JSON, as the guide has records written."""

    def __str__(self) -> str:
        return _dumps(self)


@dataclass(frozen=True, slots=True)
class _Placeholder:
    """Stands for a text.  It prints as a key that no text contains by chance."""

    key: str

    def __str__(self) -> str:
        return self.key


@dataclass(frozen=True, slots=True)
class _ExampleView:
    text: _Placeholder
    record: _Json


@dataclass(slots=True)
class _Keys:
    """One random key a rendering, and a number for each text put in."""

    stem: str = field(default_factory=lambda: "slot" + secrets.token_hex(16))

    def placeholder(self, number: int) -> _Placeholder:
        return _Placeholder(f"{self.stem}n{number}e")

    def split(self, text: str) -> tuple[list[str], list[int]]:
        pieces = re.split(rf"{self.stem}n(\d+)e", text)
        return pieces[::2], [int(number) for number in pieces[1::2]]


def render(spec: PromptSpec, template: str | None, schema: Mapping[str, Any], tokenizer: Any) -> Rendered:
    """The prompt of every document, with places for what is put in.

    Args:
        spec: the system message and the examples.
        template: Jinja source with `text`, `schema`, `examples`; None for the default.
        schema: the record's JSON Schema.
        tokenizer: its chat template is used where it has one.

    Raises:
        SpecError: the template cannot be rendered, or does not print the document exactly once.
    """
    keys = _Keys()
    content = _fill(DEFAULT_TEMPLATE if template is None else template, spec, schema, keys)
    text = _plain(spec, content) if not tokenizer.chat_template else _chat(tokenizer, spec, content)
    parts, numbers = keys.split(text)
    if numbers.count(_DOCUMENT) != 1:
        raise SpecError(
            f"prompt.template must print `text` exactly once; it prints it {numbers.count(_DOCUMENT)} times"
        )
    slots = tuple(None if number == _DOCUMENT else spec.examples[number - 1].text for number in numbers)
    return Rendered(tuple(parts), slots)


def _fill(template: str, spec: PromptSpec, schema: Mapping[str, Any], keys: _Keys) -> str:
    environment = SandboxedEnvironment(undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True)
    environment.filters["tojson"] = _dumps
    examples = [
        _ExampleView(keys.placeholder(number), _Json(example.record)) for number, example in enumerate(spec.examples, 1)
    ]
    try:
        tree = environment.parse(template)
        check_texts(tree)
        return environment.from_string(tree).render(
            text=keys.placeholder(_DOCUMENT), schema=_Json(schema), examples=examples
        )
    except jinja2.TemplateSyntaxError as error:
        raise SpecError(f"prompt.template, line {error.lineno}: {error.message}") from error
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        variables = "; its variables are `text`, `schema` and `examples`"
        hint = variables if isinstance(error, jinja2.UndefinedError) else ""
        raise SpecError(f"prompt.template{_line(error)} cannot be rendered: {error}{hint}") from error


def _line(error: Exception) -> str:
    """Where in the template it was raised; Jinja puts the template's own lines into the traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
    return f", line {lines[-1]}," if lines else ""


def _plain(spec: PromptSpec, content: str) -> str:
    """Without a chat template: the system message first, and one line break at the end, never a space."""
    content = content.rstrip() + "\n"
    return content if spec.system is None else f"{spec.system.rstrip()}\n\n{content}"


def _chat(tokenizer: Any, spec: PromptSpec, content: str) -> str:
    """The chat template around it.  Thinking is off: the record begins at once."""
    content = content.strip()
    user = {"role": "user", "content": content}
    if spec.system is None:
        return _apply(tokenizer, [user])
    try:
        return _apply(tokenizer, [{"role": "system", "content": spec.system}, user])
    except SpecError:
        # Some templates refuse a system message; the instructions then open the user's.
        return _apply(tokenizer, [{"role": "user", "content": f"{spec.system.rstrip()}\n\n{content}"}])


def _apply(tokenizer: Any, messages: Sequence[Mapping[str, str]]) -> str:
    try:
        text: str = tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
    except (jinja2.TemplateError, TypeError, ValueError) as error:
        raise SpecError(f"the model's chat template cannot be rendered: {error}") from error
    return text.rstrip(" \t")


def _dumps(value: Any, indent: int | None = None) -> str:
    separators = (",", ":") if indent is None else None
    return json.dumps(value, ensure_ascii=False, separators=separators, indent=indent)
