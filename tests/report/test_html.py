"""The page, as a reader's browser sees it."""

import json
import re
import sys
from pathlib import Path

import pytest

from graphlint import registry
from graphlint.finding import Finding, Grid, Proof, Report, Stats, Strip
from graphlint.report import html
from graphlint.report.prose import inline, to_html
from graphlint.runner import Outcome
from graphlint.source.discovery import Discovery
from graphlint.source.files import SourceText

sys.path.insert(0, str(Path(__file__).parent))
from browser import CHROMIUM, DRIVER, browser

in_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="Chromium and chromedriver are not installed")


def test_the_page_loads_nothing_from_elsewhere(outcome):
    page = html.render(outcome, color=False)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//|file:)|@import|url\(""", page)
    assert "default-src 'none'" in page


def test_text_from_sources_is_escaped():
    finding = Finding(
        rule="XX101", name="x", severity="error", confidence="high", path="<b>.py", line=1, message="<script>alert(1)</script> `a<b`",
        symbol="<i>", buffer="<u>",
    )
    outcome = Outcome(Report([finding], [], Stats()), Discovery([], [], []), SourceText())
    page = html.render(outcome, color=False)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; <code>a&lt;b</code>" in page
    assert "&lt;b&gt;.py" in page


def test_rows_steps_and_schedule(outcome):
    page = html.render(outcome, color=False)
    assert '<span class="m1">' in page
    assert page.count("<circle") == 4
    assert page.count("class=head") == 3
    assert page.count('<b class="live">') == 12 + 3
    assert page.count('<b class="stale">') == 1
    assert "Safe fix:</b> fill the tail" in page
    assert "<code>engine/old.py:4</code> does not parse" in page


def test_what_a_run_showed_stands_with_its_finding(outcome):
    proved, other = outcome.report.findings[1], outcome.report.findings[0]
    strips = (Strip("as it is", 3, 4, (3,), "12 then 3 <stale>"), Strip("fixed", 3, 4))
    outcome.proofs = {proved.fingerprint: Proof("confirmed", "lane 3 holds `7`", strips)}
    articles = html.render(outcome, color=False).split("<article ")[1:]
    assert [one for one in articles if "class=\"proof" in one] == [one for one in articles if f'data-rule="{proved.rule}"' in one]
    (shown,) = [one[one.index('class="proof'):] for one in articles if 'class="proof' in one]
    assert "Run: confirmed.</b> lane 3 holds <code>7</code>" in shown
    assert shown.count('<b class="live">') == 6
    assert (shown.count('<b class="stale">'), shown.count('<b class="padded">')) == (1, 1)
    assert "12 then 3 &lt;stale&gt;" in shown
    assert other.fingerprint not in outcome.proofs


def test_the_support_of_the_engine_stands_below(outcome):
    outcome.grids = [Grid("Support of <x>", "A = ALWAYS", ("backend", "FULL"), ((("FLASH_ATTN", ""), ("NONE", "bad")),))]
    page = html.render(outcome, color=False)
    assert "<summary>Support of &lt;x&gt;</summary>" in page
    assert '<td class="">FLASH_<wbr>ATTN</td><td class="bad">NONE</td>' in page
    assert page.index("<section class=grid>") > page.index("<main id=findings>")


def test_prose():
    text = "# T\n\nOne `a < b`\nparagraph.\n\n## What\n- x\n  y\n- z\n\n    code\n\n    more\n\n```\nfenced <\n```\n"
    assert to_html(text, below=1) == (
        "<p>One <code>a &lt; b</code> paragraph.</p><h3>What</h3><ul><li>x y</li><li>z</li></ul><pre>code\n\nmore</pre>"
        "<pre>fenced &lt;</pre>"
    )
    assert inline("a ` b") == "a ` b"
    assert inline("`a` b ` c") == "<code>a</code> b ` c"


def test_a_clean_run_says_so():
    outcome = Outcome(Report([], [], Stats(3)), Discovery([], [], []), SourceText())
    assert "No problems found." in html.render(outcome, color=False)


@in_browser
def test_in_chromium_on_a_phone_and_on_a_desk(outcome, tmp_path):
    outcome.rules = registry.load()
    wide = tuple((f"COLUMN_{number}_OF_MANY", "part") for number in range(9))
    outcome.grids = [Grid("Support", "legend", tuple(text for text, _ in wide), (wide,))]
    outcome.proofs = {outcome.report.findings[1].fingerprint: Proof("confirmed", "seen", (Strip("as it is", 3, 64, (3,), "text"),))}
    page = tmp_path / "report.html"
    page.write_text(html.render(outcome, color=False), "utf-8")
    with browser(page, 390) as driver:
        driver.execute_script("document.querySelector('.grid details').open = true")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
        sizes = driver.execute_script(
            "return [...document.querySelectorAll('article,article table,h3,.grid details,.scroll')]"
            ".map(e => e.getBoundingClientRect()).map(r => [r.left, r.right])"
        )
        assert all(left >= 0 and right <= 390 for left, right in sizes)
        # the dots of the drawing stand beside the labels of their steps
        middles = "return [...document.querySelectorAll('%s')].map(e => e.getBoundingClientRect()).map(r => r.top + r.height / 2)"
        dots, rows = (driver.execute_script(middles % selector) for selector in ("circle", ".label"))
        assert len(dots) == 4
        assert all(min(abs(dot - row) for row in rows) < 3 for dot in dots)
        assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
        requests = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        urls = [one["params"]["request"]["url"] for one in requests if one["method"] == "Network.requestWillBeSent"]
        assert urls == [page.as_uri()]
    with browser(page, 1200, dark=True) as driver:
        assert driver.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 27)"
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 1200


@in_browser
def test_in_chromium_search_filters_and_groups(outcome, tmp_path):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    outcome.rules = registry.load()
    page = tmp_path / "report.html"
    page.write_text(html.render(outcome, color=False), "utf-8")
    with browser(page, 1000) as driver:
        def shown():
            return [e.get_attribute("data-rule") for e in driver.find_elements(By.TAG_NAME, "article") if e.is_displayed()]

        def groups():
            return [e.text for e in driver.find_elements(By.CSS_SELECTOR, "h2.group")]

        assert shown() == ["GL204", "GL301"]
        assert groups() == ["engine/attention.py", "engine/runner.py"]
        Select(driver.find_element(By.TAG_NAME, "select")).select_by_visible_text("severity")
        assert (shown(), groups()) == (["GL301", "GL204"], ["error", "warning"])
        driver.find_element(By.CSS_SELECTOR, "[value=error]").click()
        assert shown() == ["GL204"]
        assert driver.find_element(By.TAG_NAME, "output").text == "1 of 2 shown"
        driver.find_element(By.CSS_SELECTOR, "[value=error]").click()
        driver.find_element(By.CSS_SELECTOR, "[type=search]").send_keys("seq_lens prepare")
        assert shown() == ["GL301"]
        driver.find_element(By.LINK_TEXT, "stale-tail: why is this a bug?").click()
        assert driver.find_element(By.ID, "rule-GL301").get_attribute("open") == "true"
