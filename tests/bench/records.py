"""The models that masks are timed on, and records of each as a model would write them."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow.parquet as pq
from pydantic import BaseModel, Field, HttpUrl

from tests.bench.data import receipts_file

__all__ = ["MODELS", "RECEIPTS", "records_of"]

RECEIPTS = receipts_file()

Money = Annotated[Decimal, Field(max_digits=10, decimal_places=2, ge=0)]
Name = Annotated[str, Field(min_length=1, max_length=80)]
_BUILT_IN = (
    ("OAK STREET HARDWARE SDN. BHD.", "12, Jalan Besar 4/2, 43000 Kajang", "48.20"),
    ("Café Zürich", "Bahnhofstraße 3, 8001 Zürich", "7.50"),
    ("Northside Dental Group", "900 W 3rd Ave, Suite 210", "1240.00"),
)


class ThreeFields(BaseModel):
    company: Name
    issued: date
    total: Money


class Line(BaseModel):
    description: Annotated[str, Field(max_length=60)]
    quantity: Annotated[int, Field(ge=1, le=9999)]
    unit_price: Money


class Invoice(BaseModel):
    number: Annotated[str, Field(pattern=r"^[A-Z]{2,4}-[0-9]{4,8}$")]
    issued: date
    seller: Name
    currency: Literal["EUR", "USD", "GBP", "MYR"]
    lines: Annotated[list[Line], Field(max_length=20)]
    total: Money


class Address(BaseModel):
    street: Annotated[str, Field(max_length=120)]
    city: Annotated[str, Field(max_length=40)]
    postcode: Annotated[str, Field(pattern=r"^[0-9A-Z -]{3,10}$")]


class Party(BaseModel):
    name: Name
    address: Address
    vat_id: Annotated[str, Field(max_length=20)] | None


class TenNested(BaseModel):
    reference: Annotated[str, Field(max_length=30)]
    issued: date
    seller: Party
    buyer: Party
    paid: bool
    total: Money


class FifteenNested(TenNested):
    lines: Annotated[list[Line], Field(min_length=1, max_length=10)]
    tags: Annotated[list[Annotated[str, Field(max_length=20)]], Field(max_length=5)]
    status: Literal["open", "paid", "overdue", "void"]
    due: date | None
    share: Annotated[float, Field(ge=0, le=1)]


class Bounded300(BaseModel):
    title: Annotated[str, Field(max_length=80)]
    summary: Annotated[str, Field(max_length=300)]


class WithUrl(BaseModel):
    name: Name
    website: HttpUrl


MODELS: dict[str, type[BaseModel]] = {
    "three fields": ThreeFields,
    "invoice": Invoice,
    "ten nested": TenNested,
    "fifteen nested, lists": FifteenNested,
    "strings of 80 + 300": Bounded300,
    "HttpUrl": WithUrl,
}


def _shops(receipts: Path) -> list[tuple[str, str, str]]:
    """Company, address and total of each receipt, or three made-up ones where there is no data."""
    if not receipts.exists():
        return list(_BUILT_IN)
    columns = ["gold_company", "gold_address", "gold_total"]
    rows = pq.read_table(receipts, columns=columns).to_pylist()
    shops = [tuple(row[column] or "" for column in columns) for row in rows]
    return [(company, address, total) for company, address, total in shops if company and _is_money(total)]


def _is_money(text: str) -> bool:
    whole, _, cents = text.partition(".")
    return whole.isdigit() and (not cents or (cents.isdigit() and len(cents) <= 2))


def records_of(name: str, count: int, *, seed: int = 0, receipts: Path = RECEIPTS) -> list[str]:
    """Compact JSON of `count` records of a model of `MODELS`, made of receipts' values."""
    rng = random.Random(f"{seed} {name}")
    shops, model = _shops(receipts), MODELS[name]
    return [_compact(model, _VALUES[model](rng, shops)) for _ in range(count)]


def _compact(model: type[BaseModel], values: dict[str, Any]) -> str:
    return model.model_validate(values).model_dump_json()


def _day(rng: random.Random) -> date:
    return date(2018, 1, 1) + timedelta(days=rng.randrange(2500))


def _lines(rng: random.Random, count: int) -> list[dict[str, Any]]:
    goods = ('PVC pipe 3/4" x 2m', "Kopi O", "Battery AA (4 pcs)", "Consultation fee", "Rice 5kg", "Tax 6 %")
    return [
        {
            "description": rng.choice(goods),
            "quantity": rng.randrange(1, 40),
            "unit_price": f"{rng.randrange(9999) / 100}",
        }
        for _ in range(count)
    ]


Shops = list[tuple[str, str, str]]


def _three(rng: random.Random, shops: Shops) -> dict[str, Any]:
    company, _, total = rng.choice(shops)
    return {"company": company[:80], "issued": _day(rng), "total": total}


def _invoice(rng: random.Random, shops: Shops) -> dict[str, Any]:
    company, _, total = rng.choice(shops)
    return {
        "number": f"INV-{rng.randrange(10**4, 10**7)}",
        "issued": _day(rng),
        "seller": company[:80],
        "currency": "MYR",
        "lines": _lines(rng, rng.randrange(1, 6)),
        "total": total,
    }


def _party(rng: random.Random, shops: Shops) -> dict[str, Any]:
    company, address, _ = rng.choice(shops)
    place = {"street": address[:120], "city": "Kuala Lumpur", "postcode": f"{rng.randrange(10**4, 10**5)}"}
    return {"name": company[:80], "address": place, "vat_id": rng.choice((None, "000112233445"))}


def _ten(rng: random.Random, shops: Shops) -> dict[str, Any]:
    return {
        "reference": f"{rng.randrange(10**9)}",
        "issued": _day(rng),
        "seller": _party(rng, shops),
        "buyer": _party(rng, shops),
        "paid": rng.random() < 0.5,
        "total": rng.choice(shops)[2],
    }


def _fifteen(rng: random.Random, shops: Shops) -> dict[str, Any]:
    return {
        **_ten(rng, shops),
        "lines": _lines(rng, rng.randrange(1, 6)),
        "tags": ["retail", "hardware store"][: rng.randrange(3)],
        "status": "paid",
        "due": rng.choice((None, _day(rng))),
        "share": round(rng.random(), 3),
    }


def _bounded(rng: random.Random, shops: Shops) -> dict[str, Any]:
    chosen = [rng.choice(shops) for _ in range(8)]
    return {"title": chosen[0][0][:80], "summary": "; ".join(f"{name}, {place}" for name, place, _ in chosen)[:300]}


def _url(rng: random.Random, shops: Shops) -> dict[str, Any]:
    company = rng.choice(shops)[0]
    slug = "-".join(
        word for word in "".join(c if c.isascii() and c.isalnum() else " " for c in company).lower().split()
    )
    return {
        "name": company[:80],
        "website": f"https://www.{slug[:40].strip('-')}.com/shop/{rng.randrange(999)}?lang=en",
    }


_VALUES: dict[type[BaseModel], Callable[[random.Random, Shops], dict[str, Any]]] = {
    ThreeFields: _three,
    Invoice: _invoice,
    TenNested: _ten,
    FifteenNested: _fifteen,
    Bounded300: _bounded,
    WithUrl: _url,
}
