"""Invented shop receipts with their answers: owns what was bought and the layouts it is printed in."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from demo.places import PLACES, Place, smudged

__all__ = ["Sale", "printed", "sale"]

_FIRST_DAY = dt.date(2018, 1, 1)
_DAYS = 365 * 8
_COLUMN_WIDTH = 32


@dataclass(frozen=True, slots=True)
class Item:
    """One thing bought; `amount` is what was paid for all of it."""

    name: str
    quantity: int
    amount: Decimal


@dataclass(frozen=True, slots=True)
class Sale:
    """The answers of one receipt, with the forms in which its shop prints them."""

    place: Place
    company: str
    address: tuple[str, ...]
    """Lines; none where the receipt has no address."""
    date: dt.date
    date_form: str
    symbol: str
    items: tuple[Item, ...]

    @property
    def total(self) -> Decimal:
        return sum((item.amount for item in self.items), Decimal(0))

    @property
    def printed_date(self) -> str:
        return self.place.date(self.date, self.date_form)

    @property
    def printed_total(self) -> str:
        return self.place.marked_money(self.total, self.symbol)


@dataclass(frozen=True, slots=True)
class Line:
    """One printed line; the scanner is kind to those that hold an answer."""

    text: str
    is_answer: bool = False


def sale(rng: random.Random, *, items: int | None = None) -> Sale:
    """A sale somewhere.

    Args:
        items: how many things are bought; one to four when None.
    """
    place = rng.choice(PLACES)
    count = items if items is not None else rng.choices((1, 2, 3, 4), (3, 4, 3, 1))[0]
    goods = rng.sample(place.goods, min(count, len(place.goods)))
    goods += rng.choices(place.goods, k=count - len(goods))
    bought = []
    for name in goods:
        quantity = rng.choices((1, 2, 3), (7, 2, 1))[0]
        bought.append(Item(name, quantity, place.price(rng) * quantity))
    return Sale(
        place=place,
        company=place.company(rng),
        address=place.address(rng) if rng.random() < 0.8 else (),
        date=_FIRST_DAY + dt.timedelta(days=rng.randrange(_DAYS)),
        date_form=rng.choice(place.date_forms),
        symbol=rng.choice(place.symbols),
        items=tuple(bought),
    )


def printed(rng: random.Random, sold: Sale) -> str:
    """The receipt's text, in one of the layouts, as a scanner reads it."""
    layout = rng.choice(_LAYOUTS)
    noise = rng.choice((0.0, 0.0, 0.02, 0.08))
    lines = [*_head(rng, sold), *layout(rng, sold), *_foot(rng, sold)]
    read = [line.text if line.is_answer else smudged(rng, line.text, noise) for line in lines]
    if noise and rng.random() < 0.5:
        below_head = 1 + len(sold.address)
        read.insert(rng.randrange(below_head, len(read)), rng.choice(("***", "- - -", "|", "~.", "= = =")))
    return "\n".join(line for line in read if line.strip())


def _head(rng: random.Random, sold: Sale) -> list[Line]:
    lines = [Line(sold.company, True)]
    lines += [Line(line, True) for line in sold.address]
    if rng.random() < 0.4:
        lines.append(Line(f"Tel {rng.randint(10, 99)}-{rng.randint(100, 999)} {rng.randint(1000, 9999)}"))
    return lines


def _foot(rng: random.Random, sold: Sale) -> list[Line]:
    lines: list[Line] = []
    if rng.random() < 0.4:
        net = sold.place.round(sold.total / (1 + sold.place.tax_percent / 100))
        lines.append(Line(f"{sold.place.tax_name} {sold.place.tax_percent}% {sold.place.money(sold.total - net)}"))
    if rng.random() < 0.8:
        lines.append(Line(rng.choice(sold.place.thanks)))
    return lines


def _date_line(rng: random.Random, sold: Sale) -> Line:
    label = rng.choice(("", "", "Date: ", "DATE ", "Datum: " if sold.place.decimal_sign == "," else "Date "))
    time = f" {rng.randint(8, 21):02d}:{rng.randint(0, 59):02d}" if rng.random() < 0.5 else ""
    return Line(f"{label}{sold.printed_date}{time}", True)


def _columns(rng: random.Random, sold: Sale) -> list[Line]:
    """Name at the left, amount at the right; the total in the same columns."""
    rows = [(item.name, sold.place.money(item.amount)) for item in sold.items]
    rows.append((rng.choice(sold.place.total_words), sold.printed_total))
    body = [Line(left + right.rjust(max(_COLUMN_WIDTH - len(left), len(right) + 1)), True) for left, right in rows]
    return [_date_line(rng, sold), Line(f"Bon {rng.randint(1000, 99999)}"), *body]


def _one_cell_a_line(rng: random.Random, sold: Sale) -> list[Line]:
    """As an OCR engine gives a table: every cell on a line of its own, numbers of articles among them."""
    lines = [Line("ITEM"), Line("QTY"), Line("AMOUNT")]
    for item in sold.items:
        lines.append(Line(str(rng.randint(10**7, 10**8))))
        lines += [Line(item.name, True), Line(str(item.quantity)), Line(sold.place.money(item.amount), True)]
    lines += [Line(rng.choice(sold.place.total_words), True), Line(sold.printed_total, True)]
    lines.append(_date_line(rng, sold))
    return lines


def _quantities(rng: random.Random, sold: Sale) -> list[Line]:
    """Quantity times price before the amount; cash and change after the total."""
    lines = [_date_line(rng, sold)]
    for item in sold.items:
        each = sold.place.money(item.amount / item.quantity)
        lines.append(Line(f"{item.name} {item.quantity} x {each} = {sold.place.money(item.amount)}", True))
    lines.append(Line(f"{rng.choice(sold.place.total_words)}: {sold.printed_total}", True))
    unit = Decimal(5) if sold.place.decimals else Decimal(500)
    cash = (sold.total // unit + 1) * unit
    lines += [Line(f"Cash {sold.place.money(cash)}"), Line(f"Change {sold.place.money(cash - sold.total)}")]
    return lines


def _labelled(rng: random.Random, sold: Sale) -> list[Line]:
    """Total first, as on a card slip; what was bought on one line."""
    bought = "; ".join(f"{item.name} @ {sold.place.money(item.amount)}" for item in sold.items)
    return [
        Line(f"Receipt no.: {rng.randint(100, 9999)}/{rng.randint(1, 31)}"),
        Line(f"{rng.choice(sold.place.total_words)}: {sold.printed_total}", True),
        Line(f"Card **** {rng.randint(1000, 9999)} approved"),
        _date_line(rng, sold),
        Line(bought, True),
    ]


_LAYOUTS: Sequence[Callable[[random.Random, Sale], list[Line]]] = (_columns, _one_cell_a_line, _quantities, _labelled)
