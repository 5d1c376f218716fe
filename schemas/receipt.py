"""One shop receipt: an example of a record type, small enough for a small model.

What it shows:

- A field's description goes into the prompt, so it says what to copy and in which form.
- Bounds are promises the guide keeps and the budget counts on: a string without `max_length` or a list without
  `max_length` can run on until the tokens end, and `recordmill lint` says so.
- Fields are generated in the order in which they stand.  Short ones come first and the list, which can grow, last:
  where a budget has to close a record early, it costs items and not the total.
- `Currency` is an enum, so no other word can be written.  `Decimal` becomes a decimal column, never a float.
"""

import datetime as dt
import enum
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

__all__ = ["Currency", "Receipt", "ReceiptItem"]

Money = Annotated[Decimal, Field(ge=0, max_digits=10, decimal_places=2)]


class Currency(enum.StrEnum):
    """ISO 4217 codes of the currencies that occur."""

    CHF = "CHF"
    EUR = "EUR"
    GBP = "GBP"
    JPY = "JPY"
    MYR = "MYR"
    USD = "USD"


class ReceiptItem(BaseModel):
    """One thing bought."""

    name: Annotated[str, Field(min_length=1, max_length=48, description="What was bought, as printed")]
    amount: Annotated[Money, Field(description="What was paid for it")]


class Receipt(BaseModel):
    """A shop receipt."""

    company: Annotated[str, Field(min_length=1, max_length=64, description="Name of the shop, as printed")]
    date: Annotated[dt.date, Field(description="Day of the purchase, as YYYY-MM-DD")]
    total: Annotated[Money, Field(description="The amount to pay, a number alone")]
    currency: Annotated[Currency, Field(description="Currency code: RM is MYR, $ is USD, £ is GBP, ¥ is JPY")]
    address: Annotated[str | None, Field(max_length=120, description="Address of the shop, or null")] = None
    items: Annotated[list[ReceiptItem], Field(max_length=12, description="What was bought")] = []
