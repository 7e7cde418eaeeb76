"""The verdict as JUnit XML, which every CI can show.

1. One test case is the verdict on AUC, and each gate (parity.gates) is one. These alone can fail:
   one does where the exit code is not 0, so that the file and the exit code never contradict each
   other.
2. Days and slices are test cases of their own. One that is not equivalent is skipped, with what
   was found as its message: it is seen, and does not decide, as nobody said beforehand that it
   would.
"""

import re
from typing import Optional
from xml.etree import ElementTree

from parity.report import words
from parity.report.words import clipped, signed
from parity.result import Comparison
from parity.stats.equivalence import Interval, Verdict
from semisync.common.errors import UsageError

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
    for gate, sentence in zip(found.gates, words.gates_in_words(found)):
        name = f"{words.gate_name(gate)} within {gate.margin:g}"
        case = ElementTree.SubElement(
            suite, "testcase", classname="parity.required", name=_legal(name)
        )
        _add_outcome(case, gate.verdict, sentence, inconclusive)
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


def _case(suite: ElementTree.Element, kind: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_legal(kind), name=_legal(name))


def _verdict_case(suite: ElementTree.Element, found: Comparison, inconclusive: str) -> None:
    case = _case(suite, "parity", f"AUC within {found.margin:g} of the baseline's")
    outcome = _add_outcome(case, found.verdict, words.headline(found), inconclusive)
    if outcome is not None:
        told = words.finding(found), words.compared(found), words.advice(found), *found.warnings
        outcome.text = _NO_XML.sub("\ufffd", "\n".join(told))


def _add_outcome(
    case: ElementTree.Element, verdict: Verdict, message: str, inconclusive: str
) -> Optional[ElementTree.Element]:
    """The case's failure or skip; None where it passes."""
    if verdict is Verdict.EQUIVALENT:
        return None
    warned = verdict is Verdict.INCONCLUSIVE and inconclusive == "warn"
    outcome = ElementTree.SubElement(case, "skipped" if warned else "failure")
    outcome.set("message", _NO_XML.sub("\ufffd", message))
    if not warned:
        outcome.set("type", verdict.value)
    return outcome


def _part_case(
    suite: ElementTree.Element,
    kind: str,
    name: str,
    verdict: Optional[Verdict],
    delta: Optional[float],
    interval: Optional[Interval],
    margin: float,
) -> None:
    case = _case(suite, f"parity.{kind}", name)
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
