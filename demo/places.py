"""Where the demonstration's shops are: owns how a place writes money, dates, addresses and the words on paper.

All names are invented.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal

__all__ = ["PLACES", "Place", "smudged"]

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LOOKALIKES = {"0": "O", "O": "0", "1": "l", "l": "1", "S": "5", "m": "rn", "B": "8", "e": "c", "u": "v"}


@dataclass(frozen=True, slots=True)
class Place:
    """One country's habits."""

    currency: str
    """ISO 4217 code."""
    symbols: tuple[str, ...]
    """Ways to mark an amount; `{}` stands for the number."""
    decimals: int
    decimal_sign: str
    thousands_sign: str
    date_forms: tuple[str, ...]
    """Date forms of `strftime`, save that %b is always English."""
    streets: tuple[str, ...]
    """Streets, with `{}` for the number."""
    towns: tuple[str, ...]
    """Post code and town."""
    shops: tuple[str, ...]
    suffixes: tuple[str, ...]
    goods: tuple[str, ...]
    tax_name: str
    tax_percent: Decimal
    total_words: tuple[str, ...]
    """Labels of the amount to pay; no other line of a receipt begins like one."""
    thanks: tuple[str, ...]

    def money(self, amount: Decimal) -> str:
        """The number alone, as `1.234,50`."""
        written = f"{amount:,.{self.decimals}f}"
        return "".join({",": self.thousands_sign, ".": self.decimal_sign}.get(sign, sign) for sign in written)

    def marked_money(self, amount: Decimal, symbol: str) -> str:
        """The number with one of `symbols`, as `€ 1.234,50`."""
        return symbol.replace("{}", self.money(amount))

    def round(self, amount: Decimal) -> Decimal:
        """To the currency's smallest unit."""
        return amount.quantize(Decimal(1).scaleb(-self.decimals))

    def date(self, date: dt.date, form: str) -> str:
        return date.strftime(form.replace("%b", _MONTHS[date.month - 1]))

    def address(self, rng: random.Random) -> tuple[str, ...]:
        """Street, then post code and town."""
        return rng.choice(self.streets).replace("{}", str(rng.randint(1, 199))), rng.choice(self.towns)

    def company(self, rng: random.Random) -> str:
        name = f"{rng.choice(self.shops)} {rng.choice(self.suffixes)}"
        return name.upper() if rng.random() < 0.5 else name

    def price(self, rng: random.Random, most: int = 4000) -> Decimal:
        """A shop's price: most are small, and many end like one."""
        cents = min(int(rng.lognormvariate(6.3, 0.8)) + 45, most)
        if rng.random() < 0.6:
            cents = cents - cents % 10 + rng.choice((0, 5, 9))
        return Decimal(cents) if self.decimals == 0 else Decimal(cents) / 100


def smudged(rng: random.Random, text: str, rate: float) -> str:
    """What a scanner may make of a line: characters taken for others, lost, or torn apart.

    Args:
        rate: share of the characters that change, 0 to 1.
    """
    read: list[str] = []
    for character in text:
        if rng.random() >= rate:
            read.append(character)
        elif character in _LOOKALIKES:
            read.append(_LOOKALIKES[character])
        else:
            read.append(rng.choice(("", character + " ", character + ".")))
    return "".join(read)


PLACES = (
    Place(
        currency="EUR",
        symbols=("{} EUR", "€ {}", "EUR {}"),
        decimals=2,
        decimal_sign=",",
        thousands_sign=".",
        date_forms=("%d.%m.%Y", "%d.%m.%y", "%Y-%m-%d"),
        streets=("Hauptstraße {}", "Bahnhofstr. {}", "Am Markt {}", "Lindenweg {}"),
        towns=("50667 Köln", "04109 Leipzig", "79098 Freiburg", "24103 Kiel"),
        shops=("Bäckerei Sommerfeld", "Drogerie Tannhoff", "Buchladen Kranich", "Feinkost Ahrens", "Farben Wiechert"),
        suffixes=("GmbH", "e.K.", "KG", "OHG"),
        goods=("Roggenbrot 750g", "Apfelsaft 1L", "Zahnpasta Mint", "Notizbuch A5", "Käse jung", "Kaffee gem. 500g"),
        tax_name="MwSt",
        tax_percent=Decimal(19),
        total_words=("SUMME", "Gesamtbetrag", "Zu zahlen"),
        thanks=("Vielen Dank für Ihren Einkauf", "Umtausch nur mit Bon", "Es bediente Sie: Frau Keller"),
    ),
    Place(
        currency="EUR",
        symbols=("{} €", "{} EUR"),
        decimals=2,
        decimal_sign=",",
        thousands_sign=" ",
        date_forms=("%d/%m/%Y", "%d/%m/%y", "%d-%m-%Y"),
        streets=("{} rue des Lilas", "{} avenue du Port", "{} place Carnot"),
        towns=("69002 Lyon", "44000 Nantes", "13006 Marseille"),
        shops=("Boulangerie Marceau", "Épicerie du Canal", "Librairie Vauban", "Pharmacie des Halles"),
        suffixes=("SARL", "SAS", "& Fils"),
        goods=("Baguette trad.", "Beurre doux 250g", "Eau minérale 6x1L", "Cahier 96p", "Tomates vrac", "Savon 4x100g"),
        tax_name="TVA",
        tax_percent=Decimal(20),
        total_words=("TOTAL TTC", "TOTAL A PAYER", "NET A PAYER"),
        thanks=("Merci de votre visite", "A bientôt", "Ticket à conserver"),
    ),
    Place(
        currency="GBP",
        symbols=("£{}", "£ {}", "GBP {}"),
        decimals=2,
        decimal_sign=".",
        thousands_sign=",",
        date_forms=("%d/%m/%Y", "%d %b %Y", "%d-%m-%y"),
        streets=("{} High Street", "{} Mill Lane", "Unit {}, Station Road"),
        towns=("Leeds LS1 4AP", "Bristol BS1 5TR", "York YO1 8QG"),
        shops=("Harbour Hardware", "The Corner Larder", "Penrose Books", "Whitby Garden Centre"),
        suffixes=("Ltd", "& Sons", "PLC"),
        goods=(
            "Semi skim milk 2pt",
            "Wholemeal loaf",
            "AA batteries x4",
            "Garden twine",
            "Cheddar 350g",
            "Tea bags 80",
        ),
        tax_name="VAT",
        tax_percent=Decimal(20),
        total_words=("TOTAL", "BALANCE DUE", "TOTAL TO PAY"),
        thanks=("Thank you for shopping with us", "Please retain your receipt", "Returns within 28 days"),
    ),
    Place(
        currency="USD",
        symbols=("${}", "$ {}", "USD {}"),
        decimals=2,
        decimal_sign=".",
        thousands_sign=",",
        date_forms=("%m/%d/%Y", "%b %d, %Y", "%Y-%m-%d"),
        streets=("{} Maple Ave", "{} W 4th St", "{} Route 9"),
        towns=("Albany, NY 12207", "Dayton, OH 45402", "Boise, ID 83702"),
        shops=("Blue Mesa Coffee", "Lakeside Grocery", "Ridgeway Auto Parts", "Quincy Pet Supply"),
        suffixes=("LLC", "Inc.", "Co."),
        goods=("Drip coffee 12oz", "Bagel w/ cream", "Motor oil 5W30", "Dog treats 1lb", "Bananas", "Wiper blade 22in"),
        tax_name="Sales tax",
        tax_percent=Decimal(7),
        total_words=("TOTAL", "Amount due", "TOTAL DUE"),
        thanks=("Have a nice day!", "Tell us how we did", "No refunds after 30 days"),
    ),
    Place(
        currency="MYR",
        symbols=("RM {}", "RM{}", "MYR {}"),
        decimals=2,
        decimal_sign=".",
        thousands_sign=",",
        date_forms=("%d/%m/%Y", "%d-%m-%Y", "%d %b %Y"),
        streets=("No. {}, Jalan Melati 3", "Lot {}, Jalan Kenanga", "{}-G, Jalan Bukit Hijau"),
        towns=("81100 Johor Bahru", "43300 Seri Kembangan", "10200 Pulau Pinang"),
        shops=("Kedai Runcit Seri Indah", "Restoran Lima Bintang", "Pasaraya Mutiara", "Alat Tulis Cemerlang"),
        suffixes=("Sdn Bhd", "Enterprise", "Trading"),
        goods=("Teh tarik", "Nasi lemak ayam", "Beras 5kg", "Pen biru 0.5", "Minyak masak 1kg", "Kertas A4 80gsm"),
        tax_name="SST",
        tax_percent=Decimal(6),
        total_words=("TOTAL", "TOTAL (INCL. TAX)", "JUMLAH"),
        thanks=("Terima kasih, sila datang lagi", "Goods sold are not returnable", "Thank you, please come again"),
    ),
    Place(
        currency="CHF",
        symbols=("CHF {}", "Fr. {}"),
        decimals=2,
        decimal_sign=".",
        thousands_sign="'",
        date_forms=("%d.%m.%Y", "%d.%m.%y"),
        streets=("Seestrasse {}", "Kirchgasse {}", "Rue du Lac {}"),
        towns=("8001 Zürich", "3011 Bern", "1800 Vevey"),
        shops=("Molkerei Rütli", "Papeterie Bellerive", "Velo Zentrum", "Confiserie Amstutz"),
        suffixes=("AG", "GmbH", "SA"),
        goods=("Gruyère 200g", "Rivella 0.5L", "Veloschlauch 28", "Couverts C5 50x", "Truffes 125g", "Zopf 500g"),
        tax_name="MWST",
        tax_percent=Decimal("8.1"),
        total_words=("TOTAL CHF", "Total", "Zu bezahlen"),
        thanks=("Besten Dank, auf Wiedersehen", "Merci et au revoir", "Umtausch innert 14 Tagen"),
    ),
    Place(
        currency="JPY",
        symbols=("¥{}", "{}円", "¥ {}"),
        decimals=0,
        decimal_sign=".",
        thousands_sign=",",
        date_forms=("%Y/%m/%d", "%Y-%m-%d", "%Y年%m月%d日"),
        streets=("Sakura-dori 2-{}", "Minato-cho {}-1", "本町3丁目{}"),
        towns=("Kyoto 604-8001", "Sapporo 060-0042", "大阪市 541-0053"),
        shops=("Matsuba Bento", "Cafe Hoshizora", "文具のあおば", "Yamato Denki"),
        suffixes=("K.K.", "Honten", "株式会社"),
        goods=("Onigiri sake", "緑茶 500ml", "Melon pan", "ノート B5", "USB-C cable 1m", "Miso ramen"),
        tax_name="内税",
        tax_percent=Decimal(10),
        total_words=("合計", "お会計", "TOTAL"),
        thanks=("ありがとうございました", "またお越しください", "Thank you"),
    ),
)
