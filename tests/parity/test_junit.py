"""report.xml and report.md say what the exit code says, whatever the names in them."""

import dataclasses
import re
from xml.etree import ElementTree

import pytest

from parity.report.junit import junit
from parity.report.markdown import markdown
from parity.stats.strata import Part
from semisync.common.errors import UsageError
from tests.parity.kinds import KINDS, comparison
from tests.support.verdicts import CASES, cases

EVIL = "<script>&\"'\x00\x1b]]> | `code` **bold** @someone #1 [link](x)\n# heading"


@pytest.mark.parametrize(
    ("verdict", "inconclusive", "outcome"),
    [
        ("EQUIVALENT", "fail", None),
        ("EQUIVALENT", "warn", None),
        ("NOT_EQUIVALENT", "fail", "failure"),
        ("NOT_EQUIVALENT", "warn", "failure"),
        ("INCONCLUSIVE", "fail", "failure"),
        ("INCONCLUSIVE", "warn", "skipped"),
    ],
)
def test_the_verdict_is_a_test_case(verdict, inconclusive, outcome):
    found = cases(CASES[verdict], inconclusive)
    assert found == {("parity", "AUC within 0.0005 of the baseline's"): outcome}


def test_a_failure_says_what_was_found_and_what_to_do():
    suites = ElementTree.fromstring(junit(CASES["NOT_EQUIVALENT"], "Mine"))
    failure = suites.find(".//failure")
    assert failure.get("type") == "NOT_EQUIVALENT"
    assert "lower than the baseline's" in failure.get("message")
    assert "Baseline AUC" in failure.text and "Hold the candidate back" in failure.text


def test_days_and_slices_are_told_and_do_not_decide():
    days = cases(comparison("days"))
    verdict = days.pop(("parity", "AUC within 0.01 of the baseline's"))
    assert verdict is None
    assert len(days) == 8, "seven days and their mean"
    slices = cases(comparison("slices"))
    assert slices[("parity.slices.os", "rare")] == "skipped"
    for (_, name), outcome in slices.items():
        for part in dict(comparison("slices").slices)["os"]:
            if part.name == name:
                assert (outcome is None) == (part.verdict == "EQUIVALENT")
    assert "failure" not in [*days.values(), *slices.values()]


def test_what_to_make_of_an_inconclusive_verdict_is_one_of_two():
    with pytest.raises(UsageError, match="'ignore'; 'fail' or 'warn' is expected"):
        junit(CASES["EQUIVALENT"], "Mine", "ignore")


def test_names_of_any_kind_are_legal_xml():
    evil = dataclasses.replace(
        comparison("slices"), slices=((EVIL, (Part(EVIL, 1, 0), Part("\ud800", 1, 0))),)
    )
    suite = ElementTree.fromstring(junit(evil, EVIL).encode()).find("testsuite")
    assert suite.get("name").startswith("<script>&\"'\ufffd\ufffd]]> |")
    assert len(suite.findall("testcase")) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_markdown_is_short_and_has_the_figures(kind):
    found = comparison(kind)
    text = markdown(found, "Mine")
    assert len(text) < 3000
    name = found.verdict.value.replace("_", " ")
    assert text.splitlines()[0].endswith(f"{name}: Mine")
    assert f"| AUC | {found.baseline.auc:.4f}"[:13] in text
    assert ("| log loss |" in text) == (kind != "logits")
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in table} == {5}


def test_markdown_renders_no_name():
    evil = dataclasses.replace(comparison("slices"), slices=((EVIL, (Part(EVIL, 1, 0, q=0.0),)),))
    text = markdown(evil, EVIL)
    for live in ("<script", "@someone", "#1", "\n# heading"):
        assert live not in text
    names = [line for line in text.splitlines() if "script" in line]
    assert not re.search(r"(?<!\\)[`*\[\]|]", "".join(names))
    assert text.count("script") == 4
    assert text.count(r"\*\*bold\*\*") == 4
