"""Forms of dates and times, and what each may be read as."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from pipeline.core.errors import SchemaRefusedError
from pipeline.decoding.formats import string_language
from pipeline.spans import SpanFinder
from pipeline.spans.names import months_named
from tests.unit.spans.reading import candidates, found_in, values_in

DAY_FIRST = "2018-02-03"
DAY_FORMS = [
    "2018-02-03", "2018/02/03", "2018.02.03", "2018.2.3", "2018-2-3", "20180203", "2018 02 03", "2018_02_03",
    "2018:02:03",
    "03/02/2018", "3/2/2018", "03-02-2018", "03.02.2018", "3.2.18", "03/02/18", "03-02-18", "3.2.2018", "03022018",
    "03 02 2018",
    "03 / 02 / 2018", "03 /02/ 2018", "03. 02. 2018", "03\\02\\2018", "03–02–2018", "03⁄02⁄2018",
    "０３／０２／２０１８", "٠٣/٠٢/٢٠١٨",
    "3 Feb 2018", "3 February 2018", "03-FEB-2018", "3-Feb-18", "03FEB2018", "03FEB18", "3 Feb. 2018", "3rd Feb 2018",
    "3rd of February, 2018",
    "3 Feb '18", "3 Feb ’18", "03/Feb/2018", "3 FEBRUARY 2018", "Feb 3, 2018", "February 3, 2018", "Feb. 3rd, 2018",
    "FEB-03-2018",
    "Feb 3 2018", "Feb 3 '18", "2018 Feb 03", "2018-Feb-03", "3 de febrero de 2018", "3 de fevereiro de 2018",
    "3 février 2018", "3 FEVRIER 2018",
    "3. Februar 2018", "3. Feb. 2018", "3 febbraio 2018", "3 februari 2018", "3. februar 2018", "3 lutego 2018",
    "3. února 2018", "3 февраля 2018",
    "3 лютого 2018", "3 Şubat 2018", "2018. február 3.", "3 Φεβρουαρίου 2018", "3 בפברואר 2018", "3 فبراير 2018",
    "3 फ़रवरी 2018", "3 กุมภาพันธ์ 2018",
    "3 ก.พ. 2018", "3 Februari 2018", "2018年2月3日", "2018 年 2 月 3 日", "2018년 2월 3일", "3 tháng 2 năm 2018",
    "3 tháng 2, 2018", "3 fe\u0301vrier 2018",
]  # fmt: skip


@pytest.mark.parametrize("form", DAY_FORMS)
def test_a_date_is_found_with_its_place_in_many_forms(form: str) -> None:
    text = f"Date: {form}, paid"
    found = values_in(text, {"type": "date", "date_order": "dmy"})
    assert {value for value, _ in found} == {DAY_FIRST}
    assert form.rstrip(".") in {source for _, source in found}


@pytest.mark.parametrize(
    ("form", "order", "dates"),
    [
        ("03/02/2018", "dmy", ["2018-02-03"]),
        ("03/02/2018", "mdy", ["2018-03-02"]),
        ("03/02/2018", "any", ["2018-02-03", "2018-03-02"]),
        ("03/02/2018", "ymd", ["2018-02-03", "2018-03-02"]),
        ("03/03/2018", "any", ["2018-03-03"]),
        ("25/12/2018", "mdy", ["2018-12-25"]),
        ("12/25/2018", "dmy", ["2018-12-25"]),
        ("18/02/03", "ymd", ["2018-02-03"]),
        ("18/02/03", "dmy", ["2003-02-18"]),
        ("18/02/03", "any", ["2003-02-18", "2018-02-03"]),
        ("01/02/03", "any", ["2001-02-03", "2003-01-02", "2003-02-01"]),
        ("03022018", "mdy", ["2018-03-02"]),
        ("2018-02-03", "dmy", ["2018-02-03"]),
        ("29/02/2016", "dmy", ["2016-02-29"]),
        ("1.1.68", "dmy", ["2068-01-01"]),
        ("1.1.69", "dmy", ["1969-01-01"]),
        ("3 listopada 2018", "dmy", ["2018-10-03", "2018-11-03"]),
        ("25/12/2561", "dmy", ["2018-12-25", "2561-12-25"]),
    ],
)
def test_a_date_has_a_candidate_for_each_reading_that_the_order_allows(form: str, order: str, dates: list[str]) -> None:
    assert values_in(form, {"type": "date", "date_order": order}) == [(date, form) for date in dates]


@pytest.mark.parametrize(
    "text",
    [
        "29/02/2018", "31.04.2018", "2018-13-01", "12.50", "1/2", "192.168.2.18.4", "version 1.2.3", "03/02",
        "Feb 2018", "3 Feb", "3 Foo 2018",
        "tel 03-02-2018-44", "20181301", "120180203", "3 Feb 10:30", "0000-01-01", "03/02\n2018", "3 May\x002018",
        "12:02:18", "3/2/201",
    ],
)  # fmt: skip
def test_what_is_no_date_is_none(text: str) -> None:
    assert values_in(text, {"type": "date", "date_order": "dmy"}) == []


def test_a_date_ends_where_a_time_is_glued_to_it() -> None:
    assert values_in("25/12/201818:05", {"type": "date"}) == [("2018-12-25", "25/12/2018")]
    assert values_in("20181225180500", {"type": "date"}) == [("2018-12-25", "20181225")]


def test_a_date_may_cross_lines_only_where_its_scope_does() -> None:
    text = "3 February\n2018"
    assert values_in(text, {"type": "date"}) == []
    assert values_in(text, {"type": "date", "within": "paragraph"}) == [("2018-02-03", text)]
    assert values_in("am 3. Februar 2018", {"type": "date", "within": "sentence"}) == [
        ("2018-02-03", "3. Februar 2018")
    ]


@pytest.mark.parametrize(
    ("form", "time"),
    [
        ("20:13", "20:13:00"), ("20:13:39", "20:13:39"), ("8:13 PM", "20:13:00"), ("8:13:39PM", "20:13:39"),
        ("08:13 am", "08:13:00"),
        ("8:13 p.m.", "20:13:00"), ("12:05 AM", "00:05:00"), ("12:05 PM", "12:05:00"), ("13:39:05 PM", "13:39:05"),
        ("2 pm", "14:00:00"),
        ("11a.m.", "11:00:00"), ("8.13 pm", "20:13:00"), ("20.13.39", "20:13:39"), ("20.13 Uhr", "20:13:00"),
        ("14h30", "14:30:00"),
        ("14 h 30", "14:30:00"), ("1430 hrs", "14:30:00"), ("20 : 13", "20:13:00"), ("10:15:30.25", "10:15:30.25"),
        ("10:15:30,1234567", "10:15:30.123456"),
        ("10:15Z", "10:15:00Z"), ("10:15:30+08:00", "10:15:30+08:00"), ("10:15:30-0500", "10:15:30-05:00"),
        ("10:15 UTC", "10:15:00Z"), ("10:15:30 +0100", "10:15:30+01:00"), ("10:15:30 -07:00", "10:15:30-07:00"),
        ("10:15 GMT+8", "10:15:00+08:00"), ("下午2:30", "14:30:00"), ("오후 2:30", "14:30:00"),
        ("14時30分", "14:30:00"), ("午後2時30分15秒", "14:30:15"),
        ("8:13 μ.μ.", "20:13:00"), ("00:00", "00:00:00"), ("２０：１３", "20:13:00"),
    ],
)  # fmt: skip
def test_a_time_is_found_with_its_place_in_many_forms(form: str, time: str) -> None:
    found = values_in(f"at {form}, gate 5", {"type": "time"})
    assert [value for value, _ in found] == [time]
    assert found[0][1].rstrip(".") in (form.rstrip("."), form.removesuffix(" Uhr"), form.removesuffix(" hrs"))


@pytest.mark.parametrize(
    "text", ["24:00", "12:60", "12.50", "ratio 3:2", "10:15:61", "1:2:3:4", "25 pm", "MAC 10:20:30:40", "2 in"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert values_in(text, {"type": "time"}) == []


@pytest.mark.parametrize("text", ["10:30-12:00", "10:30 - 12:00", "10:30 -12:00", "10:30 -1200 12:00"])
def test_the_end_of_a_range_is_no_zone(text: str) -> None:
    assert [value for value, _ in values_in(text, {"type": "time"})] == ["10:30:00", "12:00:00"]


@pytest.mark.parametrize("text", ["tel 10:30 +6012345678", "10:30 +12.50", "10:30:15 + 0800", "10:30 -0800"])
def test_what_stands_behind_a_time_is_no_zone_for_its_sign(text: str) -> None:
    assert all(len(value) == len("10:30:00") for value, _ in values_in(text, {"type": "time"}))


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("25/12/2018 8:13:39 PM", "2018-12-25T20:13:39"), ("2018-12-25T20:13:39Z", "2018-12-25T20:13:39Z"),
        ("2018-12-25 20:13", "2018-12-25T20:13:00"),
        ("2018-12-25T20:13:39.5+08:00", "2018-12-25T20:13:39.5+08:00"), ("25 Dec 2018, 20:13", "2018-12-25T20:13:00"),
        ("Dec 25, 2018 at 8:13 pm", "2018-12-25T20:13:00"), ("25.12.2018 um 20.13 Uhr", "2018-12-25T20:13:00"),
        ("25/12/2018 Time: 20:13", "2018-12-25T20:13:00"),
        ("25-12-18 (Tue) 20:13", "2018-12-25T20:13:00"), ("20:13 25/12/2018", "2018-12-25T20:13:00"),
        ("20:13:39, 25 Dec 2018", "2018-12-25T20:13:39"),
        ("8:13 PM on 25 Dec 2018", "2018-12-25T20:13:00"), ("20181225T201339", "2018-12-25T20:13:39"),
        ("20181225201339", "2018-12-25T20:13:39"),
        ("25/12/201820:13", "2018-12-25T20:13:00"), ("2018年12月25日 20時13分", "2018-12-25T20:13:00"),
        ("25/12/2018", "2018-12-25T00:00:00"), ("2018-12-25T20:13-05:00", "2018-12-25T20:13:00-05:00"),
        ("25 Dec 2018 20:13:39 +0100", "2018-12-25T20:13:39+01:00"),
    ],
)  # fmt: skip
def test_a_datetime_is_found_with_its_place_in_many_forms(form: str, value: str) -> None:
    found = values_in(f"No 7: {form}; end", {"type": "datetime", "date_order": "dmy"})
    assert [each for each, _ in found] == [value]
    assert found[0][1] in (form, form.removesuffix(" Uhr"))


_SEPARATORS = st.sampled_from(["/", "-", ".", " / ", " "])


@settings(deadline=None, max_examples=200)
@given(st.dates(datetime.date(1970, 1, 1), datetime.date(2060, 1, 1)), _SEPARATORS, st.booleans())
def test_every_day_of_a_century_is_read_in_the_order_asked_for(day: datetime.date, mark: str, is_us: bool) -> None:
    parts = [day.strftime("%d"), day.strftime("%m")]
    text = mark.join([*(reversed(parts) if is_us else parts), f"{day.year}"])
    order = "mdy" if is_us else "dmy"
    assert values_in(text, {"type": "date", "date_order": order}) == [(day.isoformat(), text)]


@settings(deadline=None, max_examples=200)
@given(st.text(alphabet="0123456789/-.: TZ+APMFebMarché,'年月日", max_size=40))
def test_what_is_found_is_a_value_of_the_type(text: str) -> None:
    for kind, type_ in (("date", datetime.date), ("time", datetime.time), ("datetime", datetime.datetime)):
        language = string_language({"kind": kind})
        for value, start, end in found_in(text, {"type": kind}):
            assert 0 <= start < end <= len(text)
            assert language.accepts(map(ord, value))
            TypeAdapter(type_).validate_json(f'"{value}"')


def test_a_kind_that_names_no_order_takes_that_of_the_finder() -> None:
    finder = SpanFinder([{"type": "date"}, {"type": "date", "date_order": "dmy"}], date_order="mdy")
    us, other = finder.document("03/02/2018").views
    assert [value for value, _, _ in candidates(us)] == ["2018-03-02"]
    assert [value for value, _, _ in candidates(other)] == ["2018-02-03"]


@pytest.mark.parametrize(
    "kind", [{"type": "date", "date_order": "dym"}, {"type": "uuid"}, {"type": "string", "within": "page"}]
)
def test_a_kind_that_there_is_not_is_refused(kind: dict[str, str]) -> None:
    with pytest.raises(SchemaRefusedError):
        SpanFinder([kind])


def test_a_name_of_months_means_one_or_two() -> None:
    names = months_named()
    assert names["may"] == (5,)
    assert names["fevrier"] == names["февраля"] == (2,)
    assert all(len(numbers) <= 2 for numbers in names.values())


@pytest.mark.parametrize(
    ("text", "time", "form"),
    [
        ("Amsterdam 12:10", "12:10:00", "12:10"),
        ("Birmingham 12:45", "12:45:00", "12:45"),
        ("am 12:15", "12:15:00", "12:15"),
        ("Team 9:30", "09:30:00", "9:30"),
        ("1500 rpm 3:30", "03:30:00", "3:30"),
        ("AM 10:30", "10:30:00", "AM 10:30"),
        ("PM 3:30", "15:30:00", "PM 3:30"),
        ("오후 3:30", "15:30:00", "오후 3:30"),
        ("今日下午 3:30", "15:30:00", "下午 3:30"),
    ],
)
def test_a_half_of_the_day_before_a_time_is_a_word_of_its_own(text: str, time: str, form: str) -> None:
    assert values_in(text, {"type": "time"}) == [(time, form)]
