"""The judge of what is drawn from JSON Schemas reads patterns, multiples and formats as their standards do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.soundness.json_schema import schema_complaint, schema_validator


@pytest.mark.parametrize(
    ("schema", "value", "is_valid"),
    [
        ({"pattern": r"^\s$"}, "\ufeff", True),
        ({"pattern": r"^[\s-]$"}, "\x85", False),
        ({"pattern": r"^\d$"}, "٣", False),
        ({"pattern": r"^a$"}, "a\n", False),
        ({"pattern": r"^\S$"}, "\u2028", False),
        ({"multipleOf": 0.01}, 0.47, True),
        ({"multipleOf": 0.01}, 0.475, False),
        ({"format": "date-time"}, "2022-01-01T12:00:00", False),
        ({"format": "date-time"}, "2022-01-01T12:00:00Z", True),
        ({"format": "time"}, "12:00:00", False),
        ({"format": "uri"}, "not a uri", False),
        ({"format": "duration"}, "P", False),
        ({"format": "duration"}, "P1DT2H", True),
    ],
)
def test_the_judge_keeps_to_the_standards(schema: dict[str, Any], value: Any, is_valid: bool) -> None:
    assert (schema_complaint(schema_validator(schema), value) is None) == is_valid
