"""From a Python value to what an Arrow column holds, or a reason why it cannot.

Nothing is rounded, clipped or dropped on the way: what does not fit is refused.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pydantic_core import PydanticSerializationError, to_json

from pipeline.storage.columns import is_json

__all__ = ["NotStorableError", "json_text", "stored", "well_formed"]


class NotStorableError(ValueError):
    """The column cannot hold the value.  It never leaves `pipeline.storage`: it becomes an outcome."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def json_text(value: object) -> str:
    """The value as JSON; infinities and NaN as strings, since JSON has no numbers for them.

    Raises:
        ValueError: it holds something that has no JSON form.
    """
    try:
        return to_json(value, inf_nan_mode="strings").decode()
    except PydanticSerializationError as error:
        raise ValueError("it has no JSON form") from error


def well_formed(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def stored(value: object, field: pa.Field[Any], path: str) -> object:
    """What to put into `field` for `value`.

    Args:
        value: as `model_dump()` gives it.
        field: the column, or a member of one.
        path: where it stands in the record, for the error.

    Raises:
        NotStorableError: it does not fit; `path` is the innermost one.
    """
    if value is None:
        return None
    kind = field.type
    if pa.types.is_struct(kind):
        return _struct(value, kind, path)
    if pa.types.is_map(kind):
        return _map(value, kind, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list(value, kind, path)
    try:
        if is_json(field):
            return _text(json_text(value))
        convert = _CONVERT.get(kind.id)
        # Columns passed through from the input may have any type; their values came from Arrow.
        return _by_arrow(value, kind) if convert is None else convert(value, kind)
    except (ValueError, TypeError, OverflowError, decimal.DecimalException, pa.ArrowException) as error:
        # Arrow's messages quote the value, which is document text: say what was expected in its stead.
        reason = str(error) if type(error) is ValueError else f"no {kind} can hold it"
        raise NotStorableError(path, reason) from error


def _struct(value: object, kind: Any, path: str) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise NotStorableError(path, f"a {type(value).__name__} is not an object")
    members = {kind.field(index).name: kind.field(index) for index in range(kind.num_fields)}
    for name in value:
        if name not in members:
            raise NotStorableError(f"{path}.{name}", "no column holds it")
    return {name: stored(value.get(name), member, f"{path}.{name}") for name, member in members.items()}


def _map(value: Any, kind: Any, path: str) -> list[tuple[object, object]]:
    # Arrow itself gives a map as a list of pairs, in which a key may stand twice.
    is_pairs = isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value)
    if not isinstance(value, Mapping) and not is_pairs:
        raise NotStorableError(path, f"a {type(value).__name__} is not a mapping")
    pairs = []
    for key, item in value.items() if isinstance(value, Mapping) else value:
        if key is None:
            raise NotStorableError(path, "a key of a map cannot be null")
        inner = f"{path}[{key}]"
        pairs.append((stored(key, kind.key_field, inner), stored(item, kind.item_field, inner)))
    return pairs


def _list(value: object, kind: Any, path: str) -> list[object]:
    if not isinstance(value, list | tuple | set | frozenset):
        raise NotStorableError(path, f"a {type(value).__name__} is not a list")
    # A set's order differs from process to process; a part's content should not.
    items = sorted(value, key=_order) if isinstance(value, set | frozenset) else value
    return [stored(item, kind.value_field, f"{path}[{index}]") for index, item in enumerate(items)]


def _order(value: object) -> str:
    return repr(value.value if isinstance(value, enum.Enum) else value)


def _text(value: object) -> str:
    text = str(value.value) if isinstance(value, enum.Enum) else str(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it holds a lone surrogate, which UTF-8 cannot hold") from None
    return text


def _to_string(value: object, kind: pa.DataType) -> str:
    return _text(value)


def _to_int(value: object, kind: Any) -> int:
    if isinstance(value, enum.Enum):
        value = value.value
    if not isinstance(value, int):
        raise ValueError(f"a {type(value).__name__} is not an integer")
    bits = kind.bit_width
    least, most = (0, 2**bits) if pa.types.is_unsigned_integer(kind) else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if not least <= value < most:
        raise ValueError(f"the integer is beyond {bits} bits")
    return int(value)


def _to_bool(value: object, kind: pa.DataType) -> bool:
    if isinstance(value, enum.Enum):
        value = value.value
    if not isinstance(value, bool):
        raise ValueError(f"a {type(value).__name__} is not a boolean")
    return value


def _to_float(value: object, kind: pa.DataType) -> float:
    if isinstance(value, enum.Enum):
        value = value.value
    if not isinstance(value, float | int | decimal.Decimal):
        raise ValueError(f"a {type(value).__name__} is not a number")
    return float(value)


def _to_decimal(value: object, kind: Any) -> decimal.Decimal:
    number = value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value))
    if not number.is_finite():
        raise ValueError("the number is not finite")
    with decimal.localcontext() as context:
        context.prec = kind.precision
        context.traps[decimal.Inexact] = True
        return number.quantize(decimal.Decimal(1).scaleb(-kind.scale))


def _to_timestamp(value: object, kind: Any) -> dt.datetime:
    if not isinstance(value, dt.datetime):
        raise ValueError(f"a {type(value).__name__} is not a date and time")
    if kind.tz is None:
        if value.tzinfo is not None:
            raise ValueError("it has a UTC offset, and the column has none")
        return value
    # A column of instants: what names no offset is read as UTC.
    return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


def _to_time(value: object, kind: pa.DataType) -> dt.time:
    if not isinstance(value, dt.time):
        raise ValueError(f"a {type(value).__name__} is not a time of day")
    offset = value.utcoffset()
    if not offset:
        return value.replace(tzinfo=None)
    # No column type has a time of day with an offset: the same time at UTC is kept, round the clock.
    return (dt.datetime.combine(dt.date(2000, 1, 2), value.replace(tzinfo=None)) - offset).time()


def _of(expected: type) -> Callable[[object, pa.DataType], object]:
    """Values of this type, as they are."""

    def convert(value: object, kind: pa.DataType) -> object:
        # A datetime is a date to Python, but the column would cut it.
        if not isinstance(value, expected) or (expected is dt.date and isinstance(value, dt.datetime)):
            raise ValueError(f"a {type(value).__name__} is not a {expected.__name__}")
        return value

    return convert


def _by_arrow(value: object, kind: pa.DataType) -> object:
    pa.scalar(value, kind)
    return value


_CONVERT: dict[int, Callable[[Any, Any], object]] = {
    pa.string().id: _to_string,
    pa.large_string().id: _to_string,
    pa.bool_().id: _to_bool,
    **{kind.id: _to_int for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{kind.id: _to_int for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    pa.float64().id: _to_float,
    pa.binary().id: _of(bytes),
    pa.date32().id: _of(dt.date),
    pa.time64("us").id: _to_time,
    pa.timestamp("us").id: _to_timestamp,
    pa.duration("us").id: _of(dt.timedelta),
    pa.decimal128(1).id: _to_decimal,
}
