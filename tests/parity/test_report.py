"""The report is whole in itself, says the verdict in words, and reads well in a browser."""

import dataclasses
import functools
import json
import pathlib
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.stats

import parity
from parity import plot
from parity.formatting import signed
from parity.report.sections import SECTIONS
from parity.report.words.advice import what_to_do
from parity.stats.intervals import Interval
from parity.stats.strata import Days, Part
from parity.stats.worst_rows import WorstRow
from semisync.common.errors import UsageError
from tests.parity import kinds
from tests.parity.browser import answer
from tests.support.verdicts import CASES, comparison

VOID = {"meta"}
NAMES = ["report.html", "report.json", "report.md", "report.xml"]


@functools.lru_cache(maxsize=None)
def section(kind):
    """The report's section on one of CASES or of `kinds.KINDS`, drawn once."""
    return parity.report_section(CASES[kind] if kind in CASES else kinds.comparison(kind))


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
@pytest.mark.few(1)
def test_page_is_one_file_that_fetches_nothing(tmp_path, verdict):
    found = CASES[verdict]
    assert found.verdict == verdict
    files = parity.write_report(found, tmp_path)
    page = files.html.read_text(encoding="utf-8")
    assert len(page) < 100_000
    assert not re.search(r"https?://|<script|<link|<img|@import", page)
    outline = Outline(page)
    assert not {"src", "onload"} & {name for name, _ in outline.attributes}
    fetched = [value for name, value in outline.attributes if name == "href"]
    assert all(value.startswith(("#", "data:image/png;base64,")) for value in fetched)
    assert set(re.findall(r"url\((.)", page)) <= {"#"}
    assert "nan" not in re.findall(r"\w+", page.lower())


@pytest.mark.parametrize("verdict", CASES)
@pytest.mark.few(1)
def test_verdict_comes_first_in_words(verdict):
    text = Outline(parity.report_section(CASES[verdict], title="Old against new")).text
    name = verdict.replace("_", " ")
    assert 0 < text.index("Old against new") < text.index(name) < text.index("What to do")
    assert "Baseline AUC" in text
    assert "with 90% confidence between" in text


def test_inconclusive_says_how_many_rows_it_takes():
    text = Outline(section("INCONCLUSIVE")).text
    assert re.search(r"four times out of five with about [\d,]+ rows like these", text)


def test_rows_enough_for_equal_models_are_not_called_too_few():
    """The difference is near the margin: "compare 0.75 times as many rows" would help nobody."""
    rng = np.random.default_rng(0)
    labels = rng.random(20_000) < 0.1
    baseline = rng.normal(size=20_000) + labels
    candidate = baseline + 0.1 * rng.normal(size=20_000)
    found = parity.compare(labels, baseline, candidate, margin=2e-3)
    assert found.verdict == "INCONCLUSIVE" and found.rows_to_settle < found.rows
    assert what_to_do(found).startswith("Compare several times as many rows: equal models would")


@pytest.mark.long
def test_better_is_not_equivalent_either_and_is_called_better():
    rng = np.random.default_rng(0)
    labels = rng.random(5000) < 0.3
    candidate = rng.normal(size=5000) + labels
    found = parity.compare(labels, candidate + rng.normal(size=5000), candidate)
    text = Outline(parity.report_section(found)).text
    assert found.verdict == "NOT_EQUIVALENT"
    assert "is higher than the baseline's by more than the margin" in text
    assert "find out why it is better" in text
    worse = Outline(section("NOT_EQUIVALENT")).text
    assert "is lower than the baseline's by more than the margin" in worse
    assert "Hold the candidate back" in worse


@pytest.mark.parametrize("margin", [1e-6, 5e-4, 0.2])
@pytest.mark.few(1)
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
    evil = "<script>$x$'&'</script>"
    unsure = parity.Verdict.INCONCLUSIVE
    part = Part(evil, 9, 3, 0.5, 0.6, 0.1, 0.1, Interval(-0.1, 0.3), unsure, 0.3, 0.01)
    days = Days((part, part), 0.1, 0.1, Interval(-0.1, 0.3), unsure, None, None, None)
    found = dataclasses.replace(
        CASES["EQUIVALENT"], notes=(evil,), days=days, slices=((evil, (part,)),)
    )
    page = parity.report_section(found, evil, {evil: [{"path": evil}]})
    assert "<script" not in page
    assert Outline(page).text.count(evil) == 16


def test_sections_embed_at_any_heading_level():
    inner = parity.report_section(CASES["EQUIVALENT"], "Inner", heading_level=2)
    assert '<h2 class="title">Inner</h2>' in inner
    assert "<h1" not in inner
    assert '<h3 class="part">' in inner


@pytest.mark.long
def test_report_replaces_the_last_one_and_leaves_nothing_beside_it(tmp_path):
    parity.write_report(CASES["EQUIVALENT"], tmp_path)
    parity.write_report(CASES["INCONCLUSIVE"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "INCONCLUSIVE"


def test_an_interrupted_write_leaves_the_last_report_whole(tmp_path, monkeypatch):
    parity.write_report(CASES["EQUIVALENT"], tmp_path)
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]

    def disk_full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", disk_full)
    with pytest.raises(UsageError, match="No space left on device"):
        parity.write_report(CASES["INCONCLUSIVE"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before


def test_no_file_of_a_report_is_replaced_where_one_cannot_be_written(tmp_path, monkeypatch):
    parity.write_report(CASES["EQUIVALENT"], tmp_path)
    before = [path.read_bytes() for path in sorted(tmp_path.iterdir())]
    write = pathlib.Path.write_bytes

    def room_for_small_files(path, data):
        if len(data) > 10_000:
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(pathlib.Path, "write_bytes", room_for_small_files)
    with pytest.raises(UsageError, match="No space left on device"):
        parity.write_report(CASES["INCONCLUSIVE"], tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    assert [path.read_bytes() for path in sorted(tmp_path.iterdir())] == before


@pytest.mark.long
def test_same_comparison_gives_the_same_bytes(tmp_path):
    first, second = (
        parity.write_report(comparison(), tmp_path / name) for name in ("first", "second")
    )
    for one, other in zip(first, second):
        assert one.read_bytes() == other.read_bytes()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match="cannot be written to .*file"):
        parity.write_report(CASES["EQUIVALENT"], tmp_path / "file")


def test_identical_scores_have_a_report_as_well():
    scores = np.linspace(0.1, 0.9, 10_000)
    found = parity.compare(np.arange(10_000) % 2, scores, scores)
    text = Outline(parity.report_section(found)).text
    assert "−1.2e−07 to +1.2e−07" in text


def test_a_difference_that_rounds_to_0_has_digits():
    assert signed(3.14e-8, 5e-4) == "+3.1e−08"
    assert signed(-3.14e-8, 5e-4) == "−3.1e−08"
    assert signed(1e-17, 5e-4) == signed(0.0, 5e-4) == "0.000000"
    assert signed(1e-6, 5e-4) == "+0.000001"


def test_the_first_suspect_stands_beside_the_verdict():
    def box(found):
        page = parity.report_section(found)
        return page[page.index('<div class="verdict') : page.index("</div>")]

    found = kinds.comparison("diagnosis")
    assert f"<dt>First suspect</dt><dd>{found.diagnosis[0].name.capitalize()}, " in box(found)
    nothing = dataclasses.replace(found, diagnosis=())
    assert "<dt>First suspect</dt><dd>No suspect was found.</dd>" in box(nothing)
    assert "First suspect" not in box(kinds.comparison("plain")), "it was not looked for"


@pytest.mark.long
def test_each_kind_of_comparison_has_its_sections():
    titles = {
        kind: set(re.findall(r'<h2 class="part">(.*?)</h2>', section(kind)))
        for kind in ("runs", "days", "slices", "logits", "histograms", "diagnosis")
    }
    always = {"How far this reaches", "Both models", "The difference in AUC", "Row by row"}
    assert titles == {
        "runs": always | {"Training runs, and the control", "Calibration"},
        "days": always | {"Day by day", "Calibration"},
        "slices": always | {"Slices", "Rows that pull hardest", "Calibration"},
        "logits": always,
        "histograms": always | {"Calibration"},
        "diagnosis": always | {"Why they may differ", "Calibration"},
    }
    assert set().union(*titles.values()) == {title for title, _ in SECTIONS}


def test_the_control_stands_above_the_comparison():
    found = kinds.comparison("runs")
    text = Outline(section("runs")).text
    assert text.index("control: baseline against baseline") < text.index(
        "candidate against baseline"
    )
    control = found.training.control
    figures = (
        control.pairs,
        f"{control.mean:.2g}",
        f"{control.largest:.2g}",
        control.beyond_margin,
    )
    cells = "".join(f"<td>{value}</td>" for value in figures)
    assert f"control: baseline against baseline</th>{cells}</tr>" in section("runs")
    assert "3 of the baseline and 2 of the candidate" in text


def test_days_tell_their_drift_and_slices_their_q():
    days, slices = Outline(section("days")).text, Outline(section("slices")).text
    assert f"p = {kinds.comparison('days').days.drift_p:.2g}" in days
    for part in dict(kinds.comparison("slices").slices)["os"]:
        row = re.search(rf">{part.name}</th>(.*?)</tr>", section("slices")).group(1)
        assert (f"<td>{part.q:.2g}</td>" if part.q is not None else "too few rows") in row
    assert slices.count("row, label") == 0 and "baseline's score" in slices


def test_every_figure_of_either_side_is_in_the_table():
    found = kinds.comparison("clusters")
    text = section("clusters")
    fit = found.candidate.calibration
    shown = (found.candidate.gauc, found.candidate.pr_auc, found.candidate.tf1_compat_auc)
    for value in (*fit, *shown):
        assert f"<td>{value:.6f}</td>" in text
    loss = found.logloss_difference
    assert f"{loss.delta:+.2g}".replace("-", "−") in text
    assert f"{found.score_difference.ks:.3g}" in text
    assert f"{found.score_difference.spearman:.6f}" in text
    assert f"{found.design_effect:.2f}" in text


def test_the_bound_of_histograms_is_in_the_report():
    bound = kinds.comparison("histograms").bound
    assert f"±{bound:.2g}" in section("histograms")


@pytest.mark.long
def test_the_page_stays_small_whatever_it_is_told():
    """A thousand days, fifty columns of a thousand slices, names of five thousand letters."""
    name = "a long name " * 400
    verdict = parity.Verdict.NOT_EQUIVALENT
    figures = (0.5, 0.6, 0.1, 0.1, Interval(0.05, 0.15), verdict)
    parts = tuple(
        Part(f"{i} {name}", 10**9, 10**8, *figures, p=1 / (i + 2), q=0.01) for i in range(1000)
    )
    days = Days(parts, 0.1, 0.1, Interval(0.05, 0.15), verdict, 1e-5, 1e-5, 0.3)
    found = dataclasses.replace(
        kinds.comparison("runs"),
        days=days,
        slices=tuple((f"{i} {name}", parts) for i in range(50)),
        worst=tuple(WorstRow(i, 1, 0.123456789, 0.2, 1e-3) for i in range(10_000)),
        notes=(name,),
    )
    files = [{"path": f"{i} {name}", "sha256": "0" * 64} for i in range(3000)]
    page = parity.report_section(found, name, {"files": files})
    assert len((page + parity.stylesheet()).encode()) < 400_000
    assert "and 2,980 more, in report.json" in page
    assert "and 30 more columns, in report.json" in page


def test_ids_are_unique_and_references_lead_to_them():
    for kind in ("runs", "days", "slices"):
        ids = re.findall(r' id="([^"]*)"', section(kind))
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'(?:href="|url\()#([^")]*)', section(kind))) <= set(ids)


def test_figures_have_a_title_and_a_description_and_the_pages_colours():
    for kind in ("runs", "days", "slices"):
        figures = re.findall(r"<svg.*?</svg>", section(kind), re.DOTALL)
        assert len(figures) >= 5
        for figure in figures:
            assert re.match(
                r'<svg viewBox="[^"]+" role="img"><title>[^<]+</title><desc>[^<]+</desc>', figure
            )
            colours = set(re.findall(r"#[0-9a-f]{6}", figure.replace("#000000", "")))
            assert not colours & set(plot.PALETTE.values())
    style = parity.stylesheet()
    for name, colour in plot.PALETTE.items():
        assert f"--{name}: {colour};" in style, "light: the figure's own colours"


def test_figures_write_numbers_in_full():
    found = CASES["INCONCLUSIVE"]
    figure = re.search(r"<svg.*?</svg>", section("INCONCLUSIVE"), re.DOTALL).group()
    labels = re.findall(r">([^<>]+)</text>", figure)
    assert signed(found.delta, found.margin) in labels
    assert {"−0.0005", "+0.0005"} <= set(labels)


def contrast(one, other):
    """WCAG's contrast ratio of two colours like #1d2330."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_told_apart_on_light_and_dark_screens():
    schemes = re.findall(r"\.parity \{([^}]*--ink[^}]*)\}", parity.stylesheet())
    light, *dark = (dict(re.findall(r"--([\w-]+): (#\w{6});", scheme)) for scheme in schemes)
    assert len(dark) == 2 and dark[0] == dark[1], "the system's and a notebook's"
    for colour in (light, dark[0]):
        for text in ("ink", "muted", "baseline", "candidate", "edge"):
            assert contrast(colour[text], colour["paper"]) >= 4.5, text
        for text in ("good", "bad", "open"):
            assert contrast(colour[text], colour[f"{text}-paper"]) >= 4.5, text
            assert contrast(colour["ink"], colour[f"{text}-paper"]) >= 7
        assert contrast(colour["ink"], colour["band"]) >= 4.5


def test_a_notebook_shows_the_report_and_its_styles_stay_inside(monkeypatch):
    found = kinds.comparison("plain")
    fragment = found._repr_html_()
    Outline(fragment)
    assert fragment.startswith("<style>") and "<html" not in fragment
    style = re.sub(r"/\*.*?\*/", "", parity.stylesheet(), flags=re.DOTALL)
    rules = re.findall(r"([^{}]+)\{", re.sub(r"@media[^{]*\{", "", style))
    for selectors in rules:
        for selector in re.split(r",(?![^()]*\))", selectors):
            assert re.match(r"(:is\(.*\) )?\.parity", selector.strip()), selector


@pytest.mark.few(1)
@pytest.mark.parametrize("width", [390, 1200])
def test_nothing_is_wider_than_the_screen(tmp_path, width):
    """Asks the browser itself: the page in a frame of that width must not scroll sideways."""
    provenance = {"files": [{"path": "a/" + "long-name" * 20, "sha256": "0" * 64}]}
    files = parity.write_report(CASES["INCONCLUSIVE"], tmp_path, "A title", provenance)
    page = files.html.read_text(encoding="utf-8")
    page = page.replace('<body class="parity-page">', f'<body style="width:{width}px;margin:0">')
    widths = "(s => s.scrollWidth <= s.clientWidth)(document.querySelector('.parity'))"
    assert answer(tmp_path, page, widths) == "true"


LOOKED_AT = "getComputedStyle(document.querySelector('.parity')).getPropertyValue('--paper')"


@pytest.mark.parametrize(
    ("system", "body", "paper"),
    [
        ("light", 'class="parity-page"', "#ffffff"),
        ("dark", 'class="parity-page"', "#14171c"),
        ("dark", 'data-jp-theme-light="true"', "#ffffff"),
        ("light", 'data-jp-theme-light="false"', "#14171c"),
        ("dark", 'class="vscode-light"', "#ffffff"),
        ("light", 'class="vscode-dark"', "#14171c"),
        ("dark", "", "#ffffff"),
    ],
)
@pytest.mark.long
def test_a_notebooks_theme_decides_and_of_a_page_the_systems(tmp_path, system, body, paper):
    fragment = kinds.comparison("plain")._repr_html_()
    page = f"<!DOCTYPE html><html><head></head><body {body}>{fragment}</body></html>"
    flag = f"--blink-settings=preferredColorScheme={int(system == 'light')}"
    assert answer(tmp_path, page, LOOKED_AT, flag) == paper


@pytest.mark.long
def test_a_table_that_is_wider_than_a_phone_scrolls_by_itself_and_shows_it(tmp_path):
    files = parity.write_report(kinds.comparison("slices"), tmp_path)
    page = files.html.read_text(encoding="utf-8")
    page = page.replace('<body class="parity-page">', '<body style="width:390px;margin:0">')
    wide = (
        "[...document.querySelectorAll('.wide')].filter(t => t.scrollWidth > t.clientWidth)"
        ".map(t => getComputedStyle(t).backgroundAttachment).join('; ')"
    )
    shown = set(answer(tmp_path, page, wide).split("; "))
    assert shown == {"local, local, scroll, scroll"}, "covers move with the table, shadows stay"


@pytest.mark.long
def test_the_page_has_an_index_whose_links_lead_to_the_sections(tmp_path):
    page = parity.write_report(kinds.comparison("slices"), tmp_path).html.read_text("utf-8")
    index = re.search(r'<nav class="index".*?</nav>', page).group()
    links = re.findall(r'<a href="#([^"]*)">(.*?)</a>', index)
    assert links == re.findall(r'<h2 class="part" id="([^"]*)">(.*?)</h2>', page)
    assert len(links) >= 6
    assert "<nav" not in section("slices"), "ids must not come twice on a notebook's page"


def test_captions_are_true_in_the_dark():
    assert "darker" not in section("plain") and "the fuller the colour the more" in section("plain")


def test_the_repr_is_one_short_line():
    found = kinds.comparison("slices")
    assert len(repr(found)) < 150 and "\n" not in repr(found)
    assert repr(found).startswith("Comparison(EQUIVALENT, delta=")
    assert repr(found.baseline) == f"Side(auc={found.baseline.auc:.6f})"


def test_p_values_agree_with_the_verdict_and_with_the_normal_distribution():
    for found in map(kinds.comparison, kinds.KINDS):
        inside = max(map(abs, found.interval)) < found.margin
        assert (found.p_equivalence < 0.05) == inside
    found = CASES["NOT_EQUIVALENT"]
    z = abs(found.delta) / found.standard_error
    assert found.p_difference == pytest.approx(2 * scipy.stats.norm.sf(z), rel=0.01)
    text = section("NOT_EQUIVALENT")
    assert f"<td>{found.p_difference:.2g}</td>" in text
    assert f"<td>{found.p_equivalence:.2g}</td>" in text


def test_confidence_widens_the_intervals_and_is_named(tmp_path):
    labels, old, new = kinds.columns()
    usual = parity.compare(labels, old, new, 0.02)
    with parity.at_confidence(0.99):
        found = parity.compare(labels, old, new, 0.02)
        days = parity.compare_days(labels, old, new, np.arange(len(labels)) % 7, 0.02)
    found = dataclasses.replace(found, days=days)
    assert usual.confidence == 0.9 and found.confidence == found.to_json()["confidence"] == 0.99
    ratio = scipy.stats.norm.ppf(0.995) / scipy.stats.norm.ppf(0.95)
    for one, other in ((usual, found), (usual.logloss_difference, found.logloss_difference)):
        wide, narrow = (x.interval.high - x.interval.low for x in (other, one))
        assert wide / narrow == pytest.approx(ratio, rel=0.01)
    assert found.p_difference == pytest.approx(usual.p_difference, rel=0.02)
    text = Outline(parity.report_section(found)).text
    assert "99% confidence" in text and "90%" not in text.replace("90%99%largest", "")
    assert parity.compare(labels, old, new, 0.02).interval == usual.interval


@pytest.mark.parametrize("level", [0.4, 1.0, float("nan")])
def test_a_confidence_without_meaning_is_refused(level):
    with pytest.raises(UsageError, match="the confidence is"), parity.at_confidence(level):
        pass
