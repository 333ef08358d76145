"""What all types have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LARGEST = 2**31 - 1
Index = Annotated[int, Field(ge=0, le=LARGEST)]
Cell = Annotated[
    list[Index], Field(min_length=2, max_length=2, description="Row and column, from 0.")
]
Cells = Annotated[list[Cell], Field(min_length=1, max_length=100_000)]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=200,
        description="Repeating a request with its key is harmless. Also as Idempotency-Key.",
    ),
]
By = Annotated[
    str | None,
    Field(max_length=200, description="In whose name; crews act in their own. Default: yours."),
]
Reason = Annotated[str, Field(max_length=2000, description="Why, for the log.")]
Seconds = Annotated[float, Field(gt=0, le=3.2e9)]


class Taken(BaseModel):
    """A body: unknown fields, texts in place of numbers, and numbers that are none are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Given(BaseModel):
    """An answer."""

    model_config = ConfigDict(allow_inf_nan=False)
