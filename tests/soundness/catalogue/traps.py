"""Catalogue: where the JSON Schema of a type says something other than its validation does."""

from __future__ import annotations

import dataclasses
import enum
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Set
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, NamedTuple
from zoneinfo import ZoneInfo

import annotated_types as at
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    ByteSize,
    ConfigDict,
    DirectoryPath,
    Discriminator,
    Field,
    FilePath,
    ImportString,
    InstanceOf,
    Json,
    JsonValue,
    NewPath,
    OnErrorOmit,
    Secret,
    SkipValidation,
    Strict,
    StrictStr,
)
from typing_extensions import TypeAliasType, TypedDict

from tests.soundness.entry import Entry, entry
from tests.soundness.strategies import decimals, floats, integers

__all__ = ["ENTRIES"]

_ODD = {"may_widen": True, "may_be_refused": True}


class Tupled(enum.Enum):
    PAIR = (1, 2)
    WORD = "word"


class Forgiving(enum.Enum):
    YES = "yes"

    @classmethod
    def _missing_(cls, value: object) -> Forgiving:
        return cls.YES


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Twice(enum.Enum):
    ONE = 1
    UNO = 1  # noqa: PIE796 - an alias is the case
    TRUE = "true"


class Beyond(enum.Enum):
    INFINITE = float("inf")
    NO_NUMBER = float("nan")
    LARGE = 1e22
    LONG = 2**63
    LEAST = -(2**63)
    HALF = 0.5


class BeyondIntegers(enum.IntEnum):
    LONG = 10**30
    MOST = 2**63 - 1


class BeyondFloats(float, enum.Enum):
    INFINITE = float("-inf")
    LARGE = 1e22
    HALF = 0.5


class Infinite(enum.Enum):
    ONLY = float("inf")


class ConfiguredStrings(BaseModel):
    model_config = ConfigDict(str_max_length=4, str_min_length=2)
    plain: str
    many: Annotated[list[str], Field(max_length=2)]
    keyed: dict[str, str]
    own: Annotated[str, Field(max_length=6)]
    literal: Literal["a literal keeps its length"]


@dataclasses.dataclass
class Word:
    text: str
    next: Word | None = None


class WordDict(TypedDict):
    text: str


class Holder(TypedDict):
    held: WordDict


class WordTuple(NamedTuple):
    text: str


Raw = TypeAliasType("Raw", bytes)


class ConfiguredOnce(BaseModel):
    model_config = ConfigDict(str_max_length=3)
    pair: WordTuple
    held: Holder


class ConfiguredForShared(BaseModel):
    model_config = ConfigDict(str_min_length=2)
    words: list[Word]
    one: WordDict
    two: WordDict


class ConfiguredForTuples(BaseModel):
    model_config = ConfigDict(str_max_length=3)
    one: WordTuple
    two: WordTuple


class ConfiguredForAliases(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    one: Raw
    two: Raw


class ConfiguredWithin(BaseModel):
    pair: WordTuple
    held: Holder
    again: Holder
    once: ConfiguredOnce
    twice: ConfiguredOnce


class TrimmedJson(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    free: JsonValue


class NumbersAsText(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)
    text: Annotated[str, Field(max_length=3)]


class AllowWithAlias(BaseModel):
    model_config = ConfigDict(extra="allow", validate_by_name=True, validate_by_alias=True)
    total: Annotated[int, Field(alias="Total")]


class ForbidWithAlias(BaseModel):
    model_config = ConfigDict(extra="forbid", validate_by_name=True, validate_by_alias=True)
    total: Annotated[int, Field(alias="Total")]


class NameOnly(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)
    total: Annotated[int, Field(alias="Total")]


class SerializationAlias(BaseModel):
    total: Annotated[int, Field(serialization_alias="Total")]


class BytesBase64(BaseModel):
    model_config = ConfigDict(val_json_bytes="base64")
    data: bytes


class BytesHex(BaseModel):
    model_config = ConfigDict(val_json_bytes="hex")
    data: bytes


class EnumValues(BaseModel):
    model_config = ConfigDict(use_enum_values=True)
    word: Tupled
    flag: Flags


class TaggedByAlias(BaseModel):
    tag: Annotated[Literal["a", "b"], Field(alias="kind")]


class TaggedByAliasToo(BaseModel):
    tag: Annotated[Literal["c"], Field(alias="kind")]
    value: bool


class NoInit(BaseModel):
    a: bool
    made: Annotated[int, Field(init=False, default=3)]


@dataclasses.dataclass
class InitOnly:
    a: int
    seed: dataclasses.InitVar[bool]
    made: int = dataclasses.field(init=False, default=3)


_TWO_WORDS = {"words": [{"text": "ab", "next": None}], "one": {"text": "ab"}, "two": {"text": "abc"}}
_RAW = {"one": "AAEC", "two": ""}

ENTRIES: tuple[Entry, ...] = (
    entry(
        "decimal_float_bound", Annotated[Decimal, Field(ge=0.1, le=0.3)], "decimal", instances=decimals(0, 1, 2), **_ODD
    ),
    entry(
        "float_decimal_bound",
        Annotated[float, Field(ge=Decimal("0.1"), lt=Decimal("0.7"))],
        "float",
        instances=floats(min_value=0.125, max_value=0.625),
        **_ODD,
    ),
    entry("int_float_bound", Annotated[int, Field(ge=1.0, lt=7.0)], "int", "bound", **_ODD),
    entry("int_crossed_bounds", Annotated[int, Field(ge=5), Field(ge=3, le=9)], "int", "bound", **_ODD),
    entry("int_negative_multiple", Annotated[int, Field(multiple_of=6, lt=0)], "int", "multiple"),
    entry("int_one_value", Annotated[int, Field(ge=42, le=42)], "int", "bound"),
    entry("int_no_value", Annotated[int, Field(ge=3, le=2)], "int", "no_json", **_ODD),
    entry("optional_bounded", Annotated[int | None, Field(ge=1)], "optional", "bound", **_ODD),
    entry("union_bounded", Annotated[int | float, Field(gt=10)], "union", "bound", **_ODD),
    entry("not_predicate", Annotated[int, at.Not(lambda value: value > 3)], "int", "annotated_types", **_ODD),
    entry("time_zone_unit", Annotated[datetime, at.Timezone(None)], "datetime", **_ODD),
    entry("strict_annotation", Annotated[int, Strict()], "int", "strict"),
    entry("strict_str", StrictStr, "str", "strict"),
    entry("enum_tuple", Tupled, "enum", instances=st.sampled_from(["word"]), **_ODD),
    entry("enum_missing", Forgiving, "enum", **_ODD),
    entry("enum_flags", Flags, "enum", instances=st.sampled_from([1, 2]), **_ODD),
    entry("enum_aliases", Twice, "enum"),
    entry("enum_beyond", Beyond, "enum", instances=st.sampled_from([0.5, -(2**63)])),
    entry("enum_beyond_integers", BeyondIntegers, "enum", instances=st.just(2**63 - 1)),
    entry("enum_beyond_floats", BeyondFloats, "enum", instances=st.just(0.5)),
    entry("enum_infinite", Infinite, "enum", "no_json", may_be_refused=True),
    entry("literal_beyond", Literal[-(2**63) - 1, 2**63, 5], "literal", instances=st.just(5)),
    entry("literal_beyond_only", Literal[2**63], "literal", "no_json", may_be_refused=True),
    entry("literal_bool_int", Literal[True, 1, "1"], "literal"),
    entry("skip_validation", SkipValidation[int], "schema", **_ODD),
    entry("instance_of", InstanceOf[Path], "str", instances=st.just("a/b"), **_ODD),
    entry("callable", Callable[[int], int], "no_json", **_ODD),
    entry("class_itself", type[int], "no_json", **_ODD),
    entry("import_string", ImportString, "str", "as_drawn", instances=st.sampled_from(["math.pi", "os.path"]), **_ODD),
    entry("regular_expression", re.Pattern[str], "str", instances=st.sampled_from(["a+", "^b$"]), **_ODD),
    entry("byte_size", ByteSize, "int", instances=st.integers(0, 9999), **_ODD),
    entry("file_path", FilePath, "str", instances=st.just("/etc/hostname"), **_ODD),
    entry("directory_path", DirectoryPath, "str", instances=st.just("/tmp"), **_ODD),
    entry("new_path", NewPath, "str", instances=st.just("/tmp/does-not-exist-yet"), **_ODD),
    entry("zone_info", ZoneInfo, "str", instances=st.sampled_from(["UTC", "Europe/Berlin"]), **_ODD),
    entry("secret_int", Secret[int], "int", "as_drawn", **_ODD),
    entry("secret_date", Secret[date], "date", "as_drawn", **_ODD),
    entry("on_error_omit", list[OnErrorOmit[Annotated[int, Field(ge=0)]]], "list", **_ODD),
    entry("default_dict", defaultdict[str, list[int]], "dict", **_ODD),
    entry("ordered_dict", OrderedDict[str, bool], "dict", **_ODD),
    entry("counter", Counter[str], "dict", **_ODD),
    entry("abstract_set", Set[Literal["a", "b"]], "set", **_ODD),
    entry("tuple_unpacked", tuple[int, *tuple[bool, ...]], "tuple", **_ODD),
    entry("dict_in_tuple", tuple[dict[Literal["k"], int], None], "tuple", "dict"),
    entry(
        "json_bounded", Json[Annotated[int, Field(ge=0, le=50)]], "json", instances=st.integers(0, 50).map(str), **_ODD
    ),
    entry("json_in_list", list[Json[bool]], "json", instances=st.lists(st.sampled_from(["true", "false"])), **_ODD),
    entry("config_strings", ConfiguredStrings, "config", "dict", **_ODD),
    entry("config_once", ConfiguredOnce, "config"),
    entry("config_shared", ConfiguredForShared, "config", "as_drawn", instances=st.just(_TWO_WORDS)),
    entry("config_shared_tuple", ConfiguredForTuples, "config", may_widen=True),
    entry("config_shared_alias", ConfiguredForAliases, "config", may_widen=True, instances=st.just(_RAW)),
    entry("config_within", ConfiguredWithin, "config", may_widen=True),
    entry("config_trimmed_json", TrimmedJson, "config", "any", instances=st.just({"free": ["a", {"b": None}]})),
    entry("config_numbers_as_text", NumbersAsText, "config"),
    entry("config_bytes_base64", BytesBase64, "config", "bytes", instances=st.just({"data": "AAEC"}), **_ODD),
    entry("config_bytes_hex", BytesHex, "config", "bytes", instances=st.just({"data": "00ff"}), **_ODD),
    entry("config_enum_values", EnumValues, "enum", instances=st.just({"word": "word", "flag": 1}), **_ODD),
    entry("alias_allow", AllowWithAlias, "alias", "extra", over_restricting="extra keys may be left out", **_ODD),
    entry("alias_forbid", ForbidWithAlias, "alias", "extra"),
    entry("alias_name_only", NameOnly, "alias", instances=st.fixed_dictionaries({"total": integers()})),
    entry("alias_serialization", SerializationAlias, "alias", "as_drawn"),
    entry(
        "discriminated_alias",
        Annotated[TaggedByAlias | TaggedByAliasToo, Discriminator("tag")],
        "discriminated",
        **_ODD,
    ),
    entry("model_no_init", NoInit, "model", **_ODD),
    entry("dataclass_init_only", InitOnly, "dataclass", instances=st.just({"a": 1, "seed": True}), **_ODD),
)
