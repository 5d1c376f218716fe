"""Catalogue: dates, times, identifiers, addresses and URLs."""

from __future__ import annotations

import importlib.util
import uuid
from datetime import UTC, date, datetime, time, timedelta
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)
from typing import Annotated, Any

from hypothesis import strategies as st
from pydantic import (
    UUID1,
    UUID3,
    UUID4,
    UUID5,
    UUID6,
    UUID7,
    UUID8,
    AmqpDsn,
    AnyHttpUrl,
    AnyUrl,
    AwareDatetime,
    Base64Bytes,
    BaseModel,
    CockroachDsn,
    ConfigDict,
    EmailStr,
    Field,
    FileUrl,
    FtpUrl,
    FutureDate,
    FutureDatetime,
    HttpUrl,
    IPvAnyAddress,
    IPvAnyInterface,
    IPvAnyNetwork,
    KafkaDsn,
    MongoDsn,
    MySQLDsn,
    NaiveDatetime,
    NameEmail,
    NatsDsn,
    PastDate,
    PastDatetime,
    PostgresDsn,
    RedisDsn,
    Strict,
    UrlConstraints,
    WebsocketUrl,
)

from tests.soundness.entry import Entry, entry

__all__ = ["ENTRIES"]

_EXTRA_TYPES = {
    "country_alpha2": ("country", "CountryAlpha2"),
    "country_alpha3": ("country", "CountryAlpha3"),
    "currency": ("currency_code", "Currency"),
    "iso4217": ("currency_code", "ISO4217"),
    "colour": ("color", "Color"),
    "latitude": ("coordinate", "Latitude"),
    "coordinate": ("coordinate", "Coordinate"),
    "mac_address": ("mac_address", "MacAddress"),
    "payment_card": ("payment", "PaymentCardNumber"),
    "routing_number": ("routing_number", "ABARoutingNumber"),
    "isbn": ("isbn", "ISBN"),
    "language": ("language_code", "LanguageAlpha2"),
    "time_zone": ("timezone_name", "TimeZoneName"),
}

_EXAMPLES = {
    "country_alpha2": st.sampled_from(["DE", "FR", "JP"]),
    "country_alpha3": st.sampled_from(["DEU", "FRA", "JPN"]),
    "mac_address": st.sampled_from(["00:00:5e:00:53:01", "02:00:5e:10:00:00:00:01"]),
    "payment_card": st.sampled_from(["4242424242424242", "378282246310005"]),
    "routing_number": st.sampled_from(["122105155", "021000021"]),
    "isbn": st.sampled_from(["9780306406157", "0306406152"]),
    "language": st.sampled_from(["de", "en", "ja"]),
}


def _extra_types() -> list[Entry]:
    """The types of pydantic-extra-types where that is installed; all may be widened."""
    if importlib.util.find_spec("pydantic_extra_types") is None:
        return []
    entries = []
    for name, (module, attribute) in _EXTRA_TYPES.items():
        tp: Any = getattr(importlib.import_module(f"pydantic_extra_types.{module}"), attribute)
        entries.append(
            entry(
                f"extra_{name}", tp, "extra_types", may_widen=True, may_be_refused=True, instances=_EXAMPLES.get(name)
            )
        )
    return entries


class StrictUrls(BaseModel):
    model_config = ConfigDict(strict=True)
    page: HttpUrl
    keyed: dict[AnyUrl, bool]


_URLS = {
    "amqp": (AmqpDsn, "amqp://h.org:5672/v"),
    "cockroach": (CockroachDsn, "cockroachdb://h.org:26257/d"),
    "ftp": (FtpUrl, "ftp://h.org/x"),
    "kafka": (KafkaDsn, "kafka://h.org:9092"),
    "mongo": (MongoDsn, "mongodb://h.org:27017/d"),
    "mysql": (MySQLDsn, "mysql+pymysql://h.org:3306/d"),
    "nats": (NatsDsn, "nats://h.org:4222"),
    "redis": (RedisDsn, "redis://h.org:6379/0"),
    "websocket": (WebsocketUrl, "wss://h.org/x"),
}


ENTRIES: tuple[Entry, ...] = (
    entry("date", date, "date"),
    entry("date_ge", Annotated[date, Field(ge=date(2019, 2, 27))], "date", "bound", may_widen=True),
    entry(
        "date_range",
        Annotated[date, Field(gt=date(2024, 2, 27), lt=date(2024, 3, 2))],
        "date",
        "bound",
        may_widen=True,
        instances=st.dates(date(2024, 2, 28), date(2024, 3, 1)),
    ),
    entry("date_past", PastDate, "date", "clock", may_widen=True),
    entry("date_future", FutureDate, "date", "clock", may_widen=True),
    entry("datetime", datetime, "datetime"),
    entry("datetime_aware", AwareDatetime, "datetime", "zone"),
    entry("datetime_naive", NaiveDatetime, "datetime", "zone"),
    entry("datetime_past", PastDatetime, "datetime", "clock", may_widen=True),
    entry("datetime_future", FutureDatetime, "datetime", "clock", may_widen=True),
    entry("datetime_ge", Annotated[datetime, Field(ge=datetime(2020, 1, 1))], "datetime", "bound", may_widen=True),
    entry(
        "datetime_aware_le",
        Annotated[AwareDatetime, Field(le=datetime(2030, 1, 1, tzinfo=UTC))],
        "datetime",
        "bound",
        may_widen=True,
    ),
    entry("time", time, "time"),
    entry("time_lt", Annotated[time, Field(lt=time(12, 30))], "time", "bound", may_widen=True),
    entry("timedelta", timedelta, "timedelta"),
    entry("timedelta_ge", Annotated[timedelta, Field(ge=timedelta(hours=1))], "timedelta", "bound", may_widen=True),
    entry("uuid", uuid.UUID, "uuid"),
    entry("uuid1", UUID1, "uuid"),
    entry("uuid3", UUID3, "uuid"),
    entry("uuid4", UUID4, "uuid"),
    entry("uuid5", UUID5, "uuid"),
    entry("email", EmailStr, "email"),
    entry("name_email", NameEmail, "email", may_widen=True),
    entry("any_url", AnyUrl, "url"),
    entry("http_url", HttpUrl, "url"),
    entry("any_http_url", AnyHttpUrl, "url"),
    entry("file_url", FileUrl, "url", may_widen=True, instances=st.sampled_from(["file:///a/b.txt", "file:///x"])),
    entry("postgres_dsn", PostgresDsn, "url", may_widen=True),
    entry(
        "url_constrained",
        Annotated[AnyUrl, UrlConstraints(allowed_schemes=["ftp"], max_length=40)],
        "url",
        may_widen=True,
        instances=st.sampled_from(["ftp://h.org/x", "ftp://files.h.org:2121/"]),
    ),
    entry(
        "url_strict",
        StrictUrls,
        "url",
        "strict",
        instances=st.just({"page": "http://h.org/%7Ea?b=%2F", "keyed": {"ab://h.org/a": True}}),
    ),
    entry("url_strict_file", Annotated[FileUrl, Strict()], "url", "strict", instances=st.just("file:///a%20b")),
    entry(
        "url_file_short",
        Annotated[AnyUrl, UrlConstraints(allowed_schemes=["file"], max_length=12)],
        "url",
        instances=st.just("file:///a/b"),
    ),
    entry(
        "url_file_host",
        Annotated[AnyUrl, UrlConstraints(allowed_schemes=["file"], host_required=True)],
        "url",
        may_be_refused=True,
        instances=st.just("file://h.org/a"),
    ),
    entry(
        "url_scheme_upper",
        Annotated[AnyUrl, UrlConstraints(allowed_schemes=["HTTP", "https"])],
        "url",
        instances=st.just("https://h.org/"),
    ),
    entry(
        "url_scheme_upper_only",
        Annotated[AnyUrl, UrlConstraints(allowed_schemes=["HTTP"])],
        "url",
        "no_json",
        may_be_refused=True,
    ),
    entry("ipv4_address", IPv4Address, "ip"),
    entry("ipv4_network", IPv4Network, "ip", may_widen=True),
    entry("ipv4_interface", IPv4Interface, "ip"),
    entry("ipv6_address", IPv6Address, "ip"),
    entry("ipv6_network", IPv6Network, "ip", may_widen=True),
    entry("ipv6_interface", IPv6Interface, "ip"),
    entry("ip_any_address", IPvAnyAddress, "ip"),
    entry("ip_any_network", IPvAnyNetwork, "ip", may_widen=True),
    entry("ip_any_interface", IPvAnyInterface, "ip", may_widen=True),
    entry("ip_any_bounded", Annotated[IPvAnyAddress, Field(max_length=3)], "ip", "no_json", may_be_refused=True),
    entry("timedelta_bounded", Annotated[timedelta, Field(min_length=1)], "timedelta", "no_json", may_be_refused=True),
    entry("uuid6", UUID6, "uuid", instances=st.just("1ef0c1f6-6b3a-6c00-8000-0123456789ab")),
    entry("uuid7", UUID7, "uuid", instances=st.just("018f3f6e-2a3b-7c4d-8e5f-0123456789ab")),
    entry("uuid8", UUID8, "uuid", instances=st.just("018f3f6e-2a3b-8c4d-8e5f-0123456789ab")),
    entry("email_short", Annotated[EmailStr, Field(max_length=20)], "email", may_widen=True),
    entry("base64_short", Annotated[Base64Bytes, Field(max_length=6)], "bytes", may_widen=True),
    entry("base64_long", Annotated[Base64Bytes, Field(min_length=5)], "bytes", may_widen=True),
    *(entry(f"url_{name}", tp, "url", may_widen=True, instances=st.just(url)) for name, (tp, url) in _URLS.items()),
    *_extra_types(),
)
