"""Catalogue: booleans, null and numbers, with every bound that Pydantic knows."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import annotated_types as at
from hypothesis import strategies as st
from pydantic import (
    Field,
    FiniteFloat,
    NegativeFloat,
    NegativeInt,
    NonNegativeInt,
    NonPositiveFloat,
    PositiveFloat,
    PositiveInt,
    StrictBool,
    StrictFloat,
    StrictInt,
)

from tests.soundness.entry import Entry, entry
from tests.soundness.strategies import decimals

__all__ = ["ENTRIES"]


def _is_even(value: int) -> bool:
    return value % 2 == 0


_PLAIN = decimals(-(10**6), 10**6, 2)

ENTRIES: tuple[Entry, ...] = (
    entry("bool", bool, "bool"),
    entry("bool_strict", StrictBool, "bool", "strict"),
    entry("none", None, "null"),
    entry("int", int, "int"),
    entry("int_strict", StrictInt, "int", "strict"),
    entry("int_positive", PositiveInt, "int", "bound"),
    entry("int_negative", NegativeInt, "int", "bound"),
    entry("int_non_negative", NonNegativeInt, "int", "bound"),
    entry("int_ge", Annotated[int, Field(ge=18)], "int", "bound"),
    entry("int_gt", Annotated[int, Field(gt=-7)], "int", "bound"),
    entry("int_le", Annotated[int, Field(le=-100)], "int", "bound"),
    entry("int_lt", Annotated[int, Field(lt=1000)], "int", "bound"),
    entry("int_ge_le", Annotated[int, Field(ge=0, le=130)], "int", "bound"),
    entry("int_ge_le_signs", Annotated[int, Field(ge=-273, le=5505)], "int", "bound"),
    entry("int_gt_lt_narrow", Annotated[int, Field(gt=98, lt=101)], "int", "bound"),
    entry("int_64_bit", Annotated[int, Field(ge=-(2**63), lt=2**63)], "int", "bound"),
    entry("int_beyond_64_bit", Annotated[int, Field(ge=10**20, le=10**21 + 7)], "int", "bound", may_be_refused=True),
    entry("int_multiple_of", Annotated[int, Field(multiple_of=7)], "int", "multiple"),
    entry("int_multiple_of_bounded", Annotated[int, Field(multiple_of=5, ge=-13, le=208)], "int", "multiple", "bound"),
    entry("int_multiple_of_large", Annotated[int, Field(multiple_of=360, gt=0)], "int", "multiple", "bound"),
    entry(
        "int_two_multiples", Annotated[int, Field(multiple_of=4), at.MultipleOf(6)], "int", "multiple", may_widen=True
    ),
    entry("int_annotated_types", Annotated[int, at.Gt(3), at.Le(77)], "int", "bound", "annotated_types"),
    entry("int_interval", Annotated[int, at.Interval(ge=10, lt=20)], "int", "bound", "annotated_types"),
    entry("int_predicate", Annotated[int, at.Predicate(_is_even)], "int", "annotated_types", may_widen=True),
    entry("float", float, "float"),
    entry("float_strict", StrictFloat, "float", "strict"),
    entry("float_finite", FiniteFloat, "float"),
    entry("float_positive", PositiveFloat, "float", "bound"),
    entry("float_negative", NegativeFloat, "float", "bound"),
    entry("float_non_positive", NonPositiveFloat, "float", "bound"),
    entry("float_unit", Annotated[float, Field(ge=0, le=1)], "float", "bound"),
    entry("float_open_unit", Annotated[float, Field(gt=0, lt=1)], "float", "bound"),
    entry("float_latitude", Annotated[float, Field(ge=-90, le=90)], "float", "bound"),
    entry("float_fractional_bounds", Annotated[float, Field(ge=0.125, lt=12.75)], "float", "bound"),
    entry("float_tiny_bound", Annotated[float, Field(gt=1e-9, le=2.5e-7)], "float", "bound", "unwritten"),
    entry(
        "float_huge_bound",
        Annotated[float, Field(ge=1e300)],
        "float",
        "bound",
        "unwritten",
        may_be_refused=True,
        may_widen=True,
    ),
    entry("float_multiple_of", Annotated[float, Field(multiple_of=0.5)], "float", "multiple", may_widen=True),
    entry("float_multiple_of_decimal", Annotated[float, Field(multiple_of=0.1)], "float", "multiple", may_widen=True),
    entry("decimal", Decimal, "decimal", instances=_PLAIN),
    entry("decimal_ge", Annotated[Decimal, Field(ge=0)], "decimal", "bound", instances=_PLAIN),
    entry(
        "decimal_ge_lt",
        Annotated[Decimal, Field(ge=Decimal("-1.5"), lt=Decimal("99.95"))],
        "decimal",
        "bound",
        instances=decimals(-1, 99, 2),
    ),
    entry("decimal_places", Annotated[Decimal, Field(decimal_places=2)], "decimal", "digits", instances=_PLAIN),
    entry("decimal_digits", Annotated[Decimal, Field(max_digits=8)], "decimal", "digits", instances=_PLAIN),
    entry(
        "decimal_money",
        Annotated[Decimal, Field(max_digits=10, decimal_places=2)],
        "decimal",
        "digits",
        instances=_PLAIN,
    ),
    entry(
        "decimal_equal_digits",
        Annotated[Decimal, Field(max_digits=4, decimal_places=4)],
        "decimal",
        "digits",
        instances=st.integers(1, 9999).map(lambda count: str(Decimal(count).scaleb(-4))),
    ),
    entry(
        "decimal_all",
        Annotated[Decimal, Field(max_digits=7, decimal_places=2, ge=0, le=50000)],
        "decimal",
        "digits",
        "bound",
        instances=decimals(0, 50000, 2),
    ),
    entry(
        "decimal_multiple_of",
        Annotated[Decimal, Field(multiple_of=Decimal("0.05"))],
        "decimal",
        may_widen=True,
        instances=st.integers(-5000, 5000).map(lambda count: str(count * Decimal("0.05"))),
    ),
    entry(
        "decimal_gt_digits",
        Annotated[Decimal, Field(max_digits=5, decimal_places=3, gt=0)],
        "decimal",
        "digits",
        "bound",
        instances=decimals(0, 99, 3),
    ),
)
