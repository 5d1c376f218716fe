"""What every value of the report is made of: a frozen model, counts and times that are never negative."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Count", "Seconds", "Value"]

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]


class Value(BaseModel):
    """A part of the report that cannot be changed and has no field but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)
