"""The report is whole in itself, says the verdict in words, and reads well in a browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

import parity
from semisync.errors import UsageError
from tests.support.require import skip_without

VOID = {"meta", "rect", "line", "polyline", "circle"}


def comparison(noise=0.01, rows=20_000, **options):
    rng = np.random.default_rng(0)
    labels = rng.random(rows) < 0.3
    baseline = rng.normal(size=rows) + labels
    candidate = baseline + noise * rng.normal(size=rows)
    probabilities = (1 / (1 + np.exp(-scores)) for scores in (baseline, candidate))
    return parity.compare(labels, *probabilities, **options)


CASES = {
    "EQUIVALENT": comparison(0.01),
    "NOT_EQUIVALENT": comparison(3.0),
    "INCONCLUSIVE": comparison(0.1, rows=2000),
}


class Outline(HTMLParser):
    """Fails on tags that do not nest; keeps attributes and visible text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.attributes, self.text = [], [], ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("verdict", CASES)
def test_page_is_one_file_that_fetches_nothing(tmp_path, verdict):
    found = CASES[verdict]
    assert found.verdict == verdict
    files = parity.write_report(found, tmp_path)
    page = files.html.read_text(encoding="utf-8")
    assert len(page) < 100_000
    assert not re.search(r"https?://|<script|<link|<img|@import|url\(", page)
    outline = Outline(page)
    assert not {"src", "href", "onload"} & {name for name, _ in outline.attributes}
    assert "nan" not in re.findall(r"\w+", page.lower())


@pytest.mark.parametrize("verdict", CASES)
def test_verdict_comes_first_in_words(verdict):
    text = Outline(parity.report_section(CASES[verdict], title="Old against new")).text
    name = verdict.replace("_", " ")
    assert 0 < text.index("Old against new") < text.index(name) < text.index("What to do")
    assert "Baseline AUC" in text
    assert "with 90% confidence between" in text


def test_inconclusive_says_how_many_rows_it_takes():
    text = Outline(parity.report_section(CASES["INCONCLUSIVE"])).text
    assert re.search(r"four times out of five with about [\d,]+ rows like these", text)


def test_better_is_not_equivalent_either_and_is_called_better():
    rng = np.random.default_rng(0)
    labels = rng.random(5000) < 0.3
    candidate = rng.normal(size=5000) + labels
    found = parity.compare(labels, candidate + rng.normal(size=5000), candidate)
    text = Outline(parity.report_section(found)).text
    assert found.verdict == "NOT_EQUIVALENT"
    assert "is higher than the baseline's by more than the margin" in text
    assert "find out why it is better" in text
    worse = Outline(parity.report_section(CASES["NOT_EQUIVALENT"])).text
    assert "is lower than the baseline's by more than the margin" in worse
    assert "Hold the candidate back" in worse


@pytest.mark.parametrize("margin", [1e-6, 5e-4, 0.2])
def test_numbers_have_two_digits_more_than_the_margin(margin):
    text = Outline(parity.report_section(comparison(0.01, rows=2000, margin=margin))).text
    shown = re.search(r"Baseline AUC 0\.(\d+)", text).group(1)
    assert len(shown) == {1e-6: 8, 5e-4: 6, 0.2: 4}[margin]


def test_json_is_the_comparison_with_title_and_provenance(tmp_path):
    found = CASES["EQUIVALENT"]
    origin = {"files": [{"path": "a.parquet", "rows": 3}]}
    files = parity.write_report(found, tmp_path / "new" / "folder", "A title", origin)
    record = json.loads(files.json.read_text(), parse_constant=pytest.fail)
    assert record == {**found.to_json(), "title": "A title", "provenance": origin}


def test_what_the_user_names_is_escaped():
    evil = "<script>alert('&')</script>"
    section = parity.report_section(CASES["EQUIVALENT"], evil, {evil: [{"path": evil}]})
    assert "<script" not in section
    assert Outline(section).text.count(evil) == 3


def test_sections_embed_at_any_heading_level():
    section = parity.report_section(CASES["EQUIVALENT"], "Inner", heading_level=2)
    assert '<h2 class="title">Inner</h2>' in section
    assert "<h1" not in section
    assert '<h3 class="part">' in section


def test_report_replaces_the_last_one_and_leaves_nothing_beside_it(tmp_path):
    parity.write_report(CASES["EQUIVALENT"], tmp_path)
    parity.write_report(CASES["INCONCLUSIVE"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "INCONCLUSIVE"


def test_an_interrupted_write_leaves_the_last_report_whole(tmp_path, monkeypatch):
    before = [path.read_bytes() for path in parity.write_report(CASES["EQUIVALENT"], tmp_path)]

    def disk_full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", disk_full)
    with pytest.raises(UsageError, match="No space left on device"):
        parity.write_report(CASES["INCONCLUSIVE"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.json"]
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before


def test_same_comparison_gives_the_same_bytes(tmp_path):
    first, second = (
        parity.write_report(comparison(), tmp_path / name) for name in ("first", "second")
    )
    assert first.html.read_bytes() == second.html.read_bytes()
    assert first.json.read_bytes() == second.json.read_bytes()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written to .*file"):
        parity.write_report(CASES["EQUIVALENT"], tmp_path / "file")


def test_identical_scores_have_a_report_as_well():
    scores = np.linspace(0.1, 0.9, 10_000)
    found = parity.compare(np.arange(10_000) % 2, scores, scores)
    text = Outline(parity.report_section(found)).text
    assert "0.000000 to 0.000000" in text


@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_the_screen(tmp_path, width):
    """Asks the browser itself: the page in a frame of that width must not scroll sideways."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        skip_without("chromium", "no chromium on PATH")
    provenance = {"files": [{"path": "a/" + "long-name" * 20, "sha256": "0" * 64}]}
    files = parity.write_report(CASES["INCONCLUSIVE"], tmp_path, "A title", provenance)
    page = files.html.read_text(encoding="utf-8")
    probe = tmp_path / "probe.html"
    probe.write_text(
        page.replace("</body>", "")
        .replace('<body class="parity-page">', f'<body style="width:{width}px;margin:0">')
        .replace('<section class="parity">', '<section class="parity" id="probe">')
        .replace(
            "</html>",
            "<script>const s = document.getElementById('probe');"
            "document.title = s.scrollWidth <= s.clientWidth ? 'fits' : "
            "`overflows: ${s.scrollWidth} > ${s.clientWidth}`;</script></body></html>",
        ),
        encoding="utf-8",
    )
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
    command += ["--no-first-run", "--disable-background-networking", "--disable-sync"]
    command += ["--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--dump-dom", probe.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert re.search("<title>(.*?)</title>", done.stdout).group(1) == "fits"
