"""The page in a real browser: it loads without complaint and fits a phone.  Skipped where there is no Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.report.html import render_html
from pipeline.report.model import Balance, StatusCounts
from tests.unit.report.runs import closed, effective_spec, lost, plan_of, report_of, valid
from tests.unit.report.test_report_html import hostile_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine to open the page in"),
]

FLAGS = (
    "--headless",
    "--hide-scrollbars",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
    "--virtual-time-budget=5000",
    "--dump-dom",
)

# The page allows no script, so another page holds it in a frame and measures from outside.
HARNESS = """<!doctype html><meta charset="utf-8"><pre id="found"></pre>
<iframe id="frame" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>
const frame = document.getElementById("frame");
frame.onload = () => {{
  const page = frame.contentDocument;
  for (const details of page.querySelectorAll("details")) details.open = true;
  const wide = [...page.querySelectorAll("body *")].filter((element) => {{
    if (element.closest(".scroll, pre, svg, thead")) return false;
    return element.getBoundingClientRect().right > {width} + 1;
  }}).map((element) => element.outerHTML.slice(0, 120));
  const spilt = [...page.querySelectorAll(".term")].filter((term) => term.scrollWidth > term.clientWidth + 1);
  document.getElementById("found").textContent = JSON.stringify({{
    width: page.documentElement.scrollWidth, wide, spilt: spilt.length,
    sections: page.querySelectorAll("section").length,
    marks: page.querySelectorAll(".plot rect").length, scripts: page.scripts.length,
    size: parseFloat(getComputedStyle(page.body).fontSize),
  }});
}};
</script>"""


def opened(page: str, width: int, folder: Path) -> tuple[dict[str, object], list[str]]:
    """What the browser measured, and the lines it wrote to the console."""
    harness = folder / "harness.html"
    harness.write_text(HARNESS.format(page=html.escape(page), width=width))
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--window-size=1400,1000", harness.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    return json.loads(html.unescape(found[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def pages() -> dict[str, str]:
    plan = plan_of(*[4] * 40)
    rows = {position: [valid("a"), valid("b"), closed("c"), lost("d")] for position in range(38)}
    usual = report_of(plan, rows, spec=effective_spec())
    millions = StatusCounts(valid=7_700_000, closed=1_000_000, truncated=100_000, invalid=100_000, failed=1_000_000)
    balance = Balance(documents_planned=10_000_000, outcomes=millions, documents_missing=100_000)
    return {
        "usual": render_html(usual.model_copy(update={"balance": balance})),
        "empty": render_html(report_of(plan_of(), {})),
        "hostile": render_html(hostile_report()),
    }


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["usual", "empty", "hostile"])
def test_the_page_loads_in_silence_and_fits(name: str, width: int, tmp_path: Path) -> None:
    found, console = opened(pages()[name], width, tmp_path)
    assert console == []
    assert found["wide"] == []
    assert found["spilt"] == 0
    assert found["width"] == width
    assert found["sections"] == 7
    assert found["scripts"] == 0
    assert (found["marks"] == 0) == (name == "empty")


def test_the_measure_itself_sees_overflow_and_forbidden_scripts(tmp_path: Path) -> None:
    page = pages()["usual"].replace("</main>", '<div style="width:600px">wide</div><script>alert(1)</script></main>')
    found, console = opened(page, 390, tmp_path)
    assert found["wide"]
    assert any("Content Security Policy" in line for line in console)
