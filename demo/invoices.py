"""Invented invoices with their answers: owns what is charged and the layouts it is printed in."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from demo.places import PLACES, Place, smudged

__all__ = ["Charge", "Invoice", "Party", "invoice", "printed"]

_FIRST_DAY = dt.date(2019, 1, 1)
_DAYS = 365 * 7
_TERMS: dict[str, int | None] = {"on receipt": 0, "net 14": 14, "net 30": 30, "net 60": 60, "prepaid": None}
_SERVICES = (
    "Consulting, on site",
    "Web hosting, monthly",
    "Translation per page",
    "Printer maintenance",
    "Packing and freight",
    "Licence, annual",
    "Photo shooting, half day",
    "Office chair, black",
)
_PEOPLE = (
    "Nordlicht Verlag",
    "Alba Textiles",
    "Kestrel Logistics",
    "Museo del Rio",
    "Finch & Partners",
    "Tanaka Shoji",
)


@dataclass(frozen=True, slots=True)
class Party:
    """Who sells or buys."""

    name: str
    address: str
    tax_id: str | None


@dataclass(frozen=True, slots=True)
class Charge:
    """One line; `amount` is without tax."""

    description: str
    quantity: Decimal
    unit_price: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Invoice:
    """The answers of one invoice, with the forms in which they are printed."""

    place: Place
    number: str
    issue_date: dt.date
    date_form: str
    terms: str
    due_date: dt.date | None
    seller: Party
    buyer: Party
    charges: tuple[Charge, ...]

    @property
    def net(self) -> Decimal:
        return sum((charge.amount for charge in self.charges), Decimal(0))

    @property
    def tax(self) -> Decimal:
        return self.place.round(self.net * self.place.tax_percent / 100)

    @property
    def total(self) -> Decimal:
        return self.net + self.tax

    def printed_date(self, date: dt.date) -> str:
        return self.place.date(date, self.date_form)


def invoice(rng: random.Random) -> Invoice:
    """An invoice of one to five charges."""
    place = rng.choice(PLACES)
    issued = _FIRST_DAY + dt.timedelta(days=rng.randrange(_DAYS))
    terms, days = rng.choice(tuple(_TERMS.items()))
    charges = []
    for description in rng.sample(_SERVICES, rng.randint(1, 5)):
        quantity = Decimal(rng.choice(("1", "2", "3", "8", "12", "0.5", "2.5")))
        price = place.round(place.price(rng, most=90_000) * 10)
        charges.append(Charge(description, quantity, price, place.round(price * quantity)))
    return Invoice(
        place=place,
        number=rng.choice((f"{issued.year}-{rng.randint(1, 9999):04d}", f"INV{rng.randint(10**5, 10**6)}")),
        issue_date=issued,
        date_form=rng.choice(place.date_forms),
        terms=terms,
        due_date=None if days is None else issued + dt.timedelta(days=days),
        seller=_party(rng, place, place.company(rng)),
        buyer=_party(rng, place, rng.choice(_PEOPLE)),
        charges=tuple(charges),
    )


def printed(rng: random.Random, sent: Invoice) -> str:
    """The invoice's text, in one of the layouts; lines that hold no answer may be misread."""
    lines = rng.choice(_LAYOUTS)(rng, sent)
    remark = rng.choice(("Thank you for your business.", "Please quote the invoice number.", "Bank: IBAN on request"))
    return "\n".join([*lines, smudged(rng, remark, rng.choice((0.0, 0.05)))])


def _party(rng: random.Random, place: Place, name: str) -> Party:
    tax_id = f"{place.currency[:2]}{rng.randint(10**8, 10**9)}" if rng.random() < 0.6 else None
    return Party(name, ", ".join(place.address(rng)), tax_id)


def _charges(sent: Invoice) -> list[str]:
    write = sent.place.money
    return [
        f"{number}. {charge.description}  {charge.quantity} x {write(charge.unit_price)}  {write(charge.amount)}"
        for number, charge in enumerate(sent.charges, 1)
    ]


def _sums(sent: Invoice) -> list[str]:
    write, place = sent.place.money, sent.place
    return [
        f"Subtotal {write(sent.net)}",
        f"{place.tax_name} {place.tax_percent}% {write(sent.tax)}",
        f"Total {place.currency} {write(sent.total)}",
    ]


def _party_lines(party: Party) -> list[str]:
    return [party.name, party.address, *([f"Tax no. {party.tax_id}"] if party.tax_id is not None else [])]


def _letter(rng: random.Random, sent: Invoice) -> list[str]:
    due = [f"Payable by {sent.printed_date(sent.due_date)} ({sent.terms})"] if sent.due_date else [f"({sent.terms})"]
    return [
        *_party_lines(sent.seller),
        "",
        "To:",
        *_party_lines(sent.buyer),
        "",
        f"Invoice {sent.number}, {sent.printed_date(sent.issue_date)}",
        *_charges(sent),
        *_sums(sent),
        *due,
    ]


def _form(rng: random.Random, sent: Invoice) -> list[str]:
    due = sent.printed_date(sent.due_date) if sent.due_date else "-"
    return [
        "INVOICE",
        f"No.: {sent.number} | Date: {sent.printed_date(sent.issue_date)} | Due: {due} | Terms: {sent.terms}",
        "From: " + " / ".join(_party_lines(sent.seller)),
        "Bill to: " + " / ".join(_party_lines(sent.buyer)),
        "Pos  Description  Qty x Price  Amount",
        *_charges(sent),
        *_sums(sent),
    ]


_LAYOUTS: Sequence[Callable[[random.Random, Invoice], list[str]]] = (_letter, _form)
