"""What a cut-off JSON text still holds."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.run.salvage import complete_prefixes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def _holds_only_complete_values(kept: Any, whole: Any) -> bool:
    """Lists are prefixes of the whole's; objects hold its values, the last one perhaps partly."""
    if isinstance(whole, dict) and isinstance(kept, dict):
        names = list(kept)
        return all(name in whole for name in names) and all(
            kept[name] == whole[name] or (name == names[-1] and _holds_only_complete_values(kept[name], whole[name]))
            for name in names
        )
    if isinstance(whole, list) and isinstance(kept, list):
        return kept == whole[: len(kept)]
    return bool(kept == whole)


@given(st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=4), st.data(), st.booleans())
def test_every_remainder_of_a_cut_text_holds_complete_values_only(
    whole: dict[str, Any], data: Any, is_ascii: bool
) -> None:
    text = json.dumps(whole, ensure_ascii=is_ascii)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    for remainder in complete_prefixes(cut):
        assert _holds_only_complete_values(json.loads(remainder.text), whole)


def test_whole_items_of_a_cut_list_are_kept() -> None:
    (first, second) = complete_prefixes('{"shop":"a","items":[{"n":1},{"n":2},{"n":')
    assert json.loads(first.text) == {"shop": "a", "items": [{"n": 1}, {"n": 2}]}
    assert first.cut_at == ("items",)
    assert json.loads(second.text) == {"shop": "a"}


def test_a_number_that_may_go_on_is_dropped() -> None:
    assert [json.loads(item.text) for item in complete_prefixes('{"a":1,"b":12')] == [{"a": 1}]
    assert [json.loads(item.text) for item in complete_prefixes('{"a":1,"b":12 ')] == [{"a": 1, "b": 12}]


def test_a_list_without_one_whole_item_is_no_complete_value() -> None:
    assert complete_prefixes('{"items":[{"n":1') == ()


def test_a_nested_object_keeps_its_complete_fields_and_can_be_dropped() -> None:
    texts = [json.loads(item.text) for item in complete_prefixes('{"a":1,"b":{"c":2,"d":"x')]
    assert texts == [{"a": 1, "b": {"c": 2}}, {"a": 1}]


def test_text_that_is_no_json_keeps_nothing() -> None:
    assert complete_prefixes("Sure, here is") == ()
    assert complete_prefixes("]") == ()
    assert complete_prefixes("") == ()
