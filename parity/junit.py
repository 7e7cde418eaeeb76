"""The verdict as JUnit XML, which every CI can show.

1. One test case is the verdict, and it alone can fail: it does where the exit code is not 0, so
   that the file and the exit code never contradict each other.
2. Days and slices are test cases of their own. One that is not equivalent is skipped, with what
   was found as its message: it is seen, and does not decide, as nobody said beforehand that it
   would.
"""

import re
from typing import Optional
from xml.etree import ElementTree

from parity import words
from parity.equivalence import Interval, Verdict
from parity.result import Comparison
from parity.words import clipped, signed
from semisync.errors import UsageError

INCONCLUSIVE = ("fail", "warn")  # what becomes of an INCONCLUSIVE verdict

_LONGEST = 200  # letters of a name
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(found: Comparison, title: str, inconclusive: str = "fail") -> str:
    """The XML document.

    Args:
        inconclusive: one of INCONCLUSIVE.

    Raises: UsageError for another one.
    """
    if inconclusive not in INCONCLUSIVE:
        raise UsageError(f"inconclusive is {inconclusive!r}; 'fail' or 'warn' is expected")
    suite = ElementTree.Element("testsuite", name=_legal(title))
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("delta", found.delta),
        ("interval", f"{found.interval.low} {found.interval.high}"),
        ("margin", found.margin),
        ("rows", found.rows),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=str(value))
    _verdict_case(suite, found, inconclusive)
    if found.days is not None:
        mean = found.days.mean_delta, found.days.interval
        _part_case(suite, "days", "mean of the days", found.days.verdict, *mean, found.margin)
        for day in found.days.days:
            _part_case(suite, "days", day.name, day.verdict, day.delta, day.interval, found.margin)
    for column, parts in found.slices:
        for part in parts:
            told = part.verdict, part.delta, part.interval
            _part_case(suite, f"slices.{column}", part.name, *told, found.margin)
    counts = {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": 0,
        "skipped": len(suite.findall("testcase/skipped")),
    }
    suite.attrib.update({name: str(count) for name, count in counts.items()})
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _verdict_case(suite: ElementTree.Element, found: Comparison, inconclusive: str) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname="parity", name=f"AUC within {found.margin:g} of the baseline's"
    )
    if found.verdict is Verdict.EQUIVALENT:
        return
    warned = found.verdict is Verdict.INCONCLUSIVE and inconclusive == "warn"
    outcome = ElementTree.SubElement(case, "skipped" if warned else "failure")
    outcome.set("message", words.headline(found))
    if not warned:
        outcome.set("type", found.verdict.value)
    outcome.text = "\n".join((words.finding(found), words.compared(found), words.advice(found)))


def _part_case(
    suite: ElementTree.Element,
    kind: str,
    name: str,
    verdict: Optional[Verdict],
    delta: Optional[float],
    interval: Optional[Interval],
    margin: float,
) -> None:
    case = ElementTree.SubElement(
        suite, "testcase", classname=_legal(f"parity.{kind}"), name=_legal(name)
    )
    if verdict is Verdict.EQUIVALENT:
        return
    message = "too few rows of a class"
    if verdict is not None and delta is not None and interval is not None:
        low, high = (signed(value, margin) for value in interval)
        message = f"{words.NAME[verdict]}: {signed(delta, margin)}, between {low} and {high}"
    ElementTree.SubElement(case, "skipped", message=message)


def _legal(text: str) -> str:
    """A name without the control characters that XML has no way to write, and not too long."""
    return _NO_XML.sub("\ufffd", clipped(text, _LONGEST))
