"""One invoice: an example of a richer record type, for a model of some billion parameters.

It adds to what `schemas.receipt` shows: nested models, optional parts, a pattern, choices, numbers with ranges, and a
rule over several fields.  No grammar can hold that rule, so it is checked afterwards: a record that breaks it is
`invalid` with cause `validator`, and its text is kept.
"""

import datetime as dt
import enum
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

__all__ = ["Currency", "Invoice", "InvoiceLine", "Party"]

Money = Annotated[Decimal, Field(max_digits=12, decimal_places=2)]
Percent = Annotated[Decimal, Field(ge=0, le=100, max_digits=5, decimal_places=2)]

ROUNDING = Decimal("0.05")
"""How far net and tax may be from the total: some countries round cash amounts to five cents."""


class Currency(enum.StrEnum):
    """ISO 4217 codes of the currencies that occur."""

    CHF = "CHF"
    EUR = "EUR"
    GBP = "GBP"
    JPY = "JPY"
    MYR = "MYR"
    USD = "USD"


class Party(BaseModel):
    """Who sells or buys."""

    name: Annotated[str, Field(min_length=1, max_length=80, description="Name of the company or person")]
    address: Annotated[str | None, Field(max_length=160, description="Postal address on one line")] = None
    tax_id: Annotated[
        str | None, Field(pattern=r"^[A-Z0-9][A-Z0-9 .-]{3,19}$", description="VAT or tax number, as printed")
    ] = None


class InvoiceLine(BaseModel):
    """One line of the invoice."""

    description: Annotated[str, Field(min_length=1, max_length=100, description="What is charged for")]
    quantity: Annotated[Decimal, Field(gt=0, max_digits=8, decimal_places=3, description="How many or how much")]
    unit_price: Annotated[Money, Field(description="Price of one, without tax")]
    tax_percent: Annotated[Percent | None, Field(description="Tax rate of the line")] = None
    amount: Annotated[Money, Field(description="Quantity times unit price, without tax")]


class Invoice(BaseModel):
    """An invoice."""

    invoice_number: Annotated[str, Field(min_length=1, max_length=32, description="The invoice's own number")]
    issue_date: Annotated[dt.date, Field(description="Day of issue, as YYYY-MM-DD")]
    due_date: Annotated[dt.date | None, Field(description="Day by which to pay, as YYYY-MM-DD")] = None
    currency: Annotated[Currency, Field(description="Currency code")]
    terms: Annotated[
        Literal["prepaid", "on receipt", "net 14", "net 30", "net 60"] | None, Field(description="Payment terms")
    ] = None
    seller: Annotated[Party, Field(description="Who issued the invoice")]
    buyer: Annotated[Party, Field(description="Who has to pay")]
    net: Annotated[Money, Field(description="Sum without tax")]
    tax: Annotated[Money, Field(description="Tax")]
    total: Annotated[Money, Field(description="Sum to pay, tax included")]
    lines: Annotated[list[InvoiceLine], Field(min_length=1, max_length=20, description="The invoice's lines")]

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if abs(self.net + self.tax - self.total) > ROUNDING:
            raise ValueError(f"net {self.net} and tax {self.tax} do not make {self.total}")
        return self
