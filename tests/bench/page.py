"""Owns `docs/benchmarks.md`: our goals and what was reached, then each benchmark's tables and what it printed."""

from __future__ import annotations

import re
from collections.abc import Mapping

import jinja2

from tests.bench.catalogue import BENCHMARKS, Benchmark
from tests.bench.goals import GOALS, Goal
from tests.bench.results import Ran
from tests.bench.sections import SECTIONS, markdown_table

__all__ = ["page"]


def page(results: Mapping[str, Ran], failures: Mapping[str, Ran]) -> str:
    """The page, of the last good run of each benchmark, and of the runs that failed after it."""
    sections = [
        {
            "item": item,
            "ran": ran,
            "table": _table(item, ran),
            "failure": failures.get(item.name),
        }
        for item in BENCHMARKS
        if (ran := results.get(item.name, failures.get(item.name))) is not None
    ]
    return _TEMPLATE.render(sections=sections, goals=_goals(results))


def _goals(results: Mapping[str, Ran]) -> str:
    figures = {name: ran.figures for name, ran in results.items() if ran.figures is not None}
    return markdown_table(
        ["goal", "target", "reached", "met", "section"],
        [_goal(goal, figures) for goal in GOALS],
        left=5,
    )


def _goal(goal: Goal, figures: Mapping[str, object]) -> list[str]:
    reached = goal.reached(figures)
    met = {None: "–", True: "yes", False: "no"}[reached.is_met]
    title = next(item.title for item in BENCHMARKS if item.name == goal.benchmark)
    sign = "≥" if goal.is_least else "≤"
    target = goal.target if goal.target[0].isalpha() or goal.target == "0" else f"{sign} {goal.target}"
    return [goal.text, target, reached.shown(goal.digits), met, f"[{goal.benchmark}](#{_anchor(title)})"]


def _anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _table(item: Benchmark, ran: Ran) -> str:
    return "" if ran.figures is None or ran.exit_code else SECTIONS[item.module](ran.figures)


_TEMPLATE = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True).from_string(
    """# Benchmarks

Made by `make bench` from the figures under `docs/bench`. Times on a shared machine vary; compare what stands in one
table, which was measured in one run.

## Goals

Medians, with the least and the most: over record types and vocabularies for masks, each of which has to meet the goal,
and over rounds for whole jobs; in the target's unit. What compiles has compiled before: the first time in a process
takes longer, by what it fills caches with. Ray Data LLM as it comes lets a model write white space without end between
JSON's marks, which one of random weights does; *compact* forbids it.

{{ goals }}
{% for section in sections %}
{% set item, ran, failure = section.item, section.ran, section.failure %}

## {{ item.title }}

`{{ ran.command }}`, commit {{ ran.commit }}, {{ ran.day }}, {{ "%.0f"|format(ran.minutes) }} minutes on
{{ ran.machine }}{% if ran.exit_code %}, **ended with code {{ ran.exit_code }}**{% endif %}

{% if failure %}

A run of {{ failure.day }}, commit {{ failure.commit }}, ended with code {{ failure.exit_code }}.
{% if failure.error %}

<details><summary>The end of what it said</summary>

```text
{{ failure.error }}
```

</details>
{% endif %}
{% endif %}
{% if section.table %}

{{ section.table }}

<details><summary>As printed</summary>

```text
{{ ran.text }}
```

</details>
{% else %}

```text
{{ ran.text }}
```
{% endif %}
{% if item.plot and not ran.exit_code %}

![{{ item.title }}]({{ item.plot }})
{% endif %}
{% endfor %}
"""
)
