"""A scanned receipt whose values are copied, not written: an example of extractive fields.

`Span()` marks a field whose value must stand in the document.  A string is a stretch of its text, a date or an
amount one of those that occur in it, in canonical form.  What is not in the document cannot be generated, and every
value comes with its place in the text, in the `_spans` column.  The model can still be used by itself, as if the marks
were not there.
"""

import datetime as dt
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, Field

from pipeline import Span

__all__ = ["ScannedReceipt"]


class ScannedReceipt(BaseModel):
    """Four facts of a shop receipt."""

    company: Annotated[str, Span(lines=True), Field(max_length=80, description="Name of the shop, as printed")]
    date: Annotated[dt.date | None, Span(date_order="dmy"), Field(description="Day of the purchase, as YYYY-MM-DD")]
    address: Annotated[
        str | None,
        Span(within="document", lines=True, max_words=30),
        Field(max_length=160, description="Address of the shop, as printed"),
    ]
    total: Annotated[
        Decimal | None,
        Span(pattern=r".*[.,]\d\d"),
        Field(ge=0, max_digits=9, decimal_places=2, description="The amount to pay"),
    ]
