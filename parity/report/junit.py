"""The verdict as JUnit XML, which every CI can show.

1. The verdict on AUC is a test case, and so is each gate (parity.gates). These alone can fail: one
   does where the exit code is not 0, so that the file and the exit code never contradict each
   other.
2. Each day and slice is a test case as well. One that is not equivalent is skipped, with what was
   found as its message: it is seen and does not decide, as it was not required beforehand.
"""

import re
from typing import Optional
from xml.etree import ElementTree

from parity.formatting import clipped, signed
from parity.report.words.advice import what_to_do
from parity.report.words.details import gates_in_words
from parity.report.words.verdict import NAME, compared, finding, gate_name, headline
from parity.result import Comparison
from parity.stats.equivalence import Interval, Verdict
from semisync.common.errors import UsageError

INCONCLUSIVE = ("fail", "warn")  # the status of an INCONCLUSIVE verdict

_LONGEST = 200  # letters of a name
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(comparison: Comparison, title: str, inconclusive: str = "fail") -> str:
    """The XML document.

    Args:
        inconclusive: one of INCONCLUSIVE.

    Raises:
        UsageError: another one.
    """
    if inconclusive not in INCONCLUSIVE:
        raise UsageError(f"inconclusive is {inconclusive!r}; 'fail' or 'warn' is expected")
    suite = ElementTree.Element("testsuite", name=_legal(title))
    _add_properties(suite, comparison)
    _add_verdict(suite, comparison, inconclusive)
    for gate, sentence in zip(comparison.gates, gates_in_words(comparison)):
        within = "" if gate.margin is None else f" within {gate.margin:g}"
        case = _add_case(suite, "required", gate_name(gate) + within)
        _add_outcome(case, gate.verdict, sentence, inconclusive)
    _add_parts(suite, comparison)
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


def _add_properties(suite: ElementTree.Element, comparison: Comparison) -> None:
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (
        ("delta", comparison.delta),
        ("interval", f"{comparison.interval.low} {comparison.interval.high}"),
        ("margin", comparison.margin),
        ("rows", comparison.rows),
    ):
        ElementTree.SubElement(properties, "property", name=name, value=str(value))


def _add_verdict(suite: ElementTree.Element, comparison: Comparison, inconclusive: str) -> None:
    case = _add_case(suite, None, f"AUC within {comparison.margin:g} of the baseline's")
    outcome = _add_outcome(case, comparison.verdict, headline(comparison), inconclusive)
    if outcome is not None:
        sentences = finding(comparison), compared(comparison), what_to_do(comparison)
        outcome.text = _printable("\n".join([*sentences, *comparison.warnings]))


def _add_outcome(
    case: ElementTree.Element, verdict: Verdict, message: str, inconclusive: str
) -> Optional[ElementTree.Element]:
    """The case's failure or skip; None where it passes."""
    if verdict is Verdict.EQUIVALENT:
        return None
    warned = verdict is Verdict.INCONCLUSIVE and inconclusive == "warn"
    outcome = ElementTree.SubElement(case, "skipped" if warned else "failure")
    outcome.set("message", _printable(message))
    if not warned:
        outcome.set("type", verdict.value)
    return outcome


def _add_parts(suite: ElementTree.Element, comparison: Comparison) -> None:
    """The days, their mean, and the slices: none of them decides."""
    margin, days = comparison.margin, comparison.days
    if days is not None:
        case = _add_case(suite, "days", "mean of the days")
        _skip_unless_equivalent(case, days.verdict, days.mean_delta, days.interval, margin)
    columns = [(f"slices.{column}", parts) for column, parts in comparison.slices]
    for kind, parts in [*([("days", days.days)] if days is not None else []), *columns]:
        for part in parts:
            case = _add_case(suite, kind, part.name)
            _skip_unless_equivalent(case, part.verdict, part.delta, part.interval, margin)


def _skip_unless_equivalent(
    case: ElementTree.Element,
    verdict: Optional[Verdict],
    delta: Optional[float],
    interval: Optional[Interval],
    margin: float,
) -> None:
    if verdict is Verdict.EQUIVALENT:
        return
    message = "too few rows of a class"
    if verdict is not None and delta is not None and interval is not None:
        low, high = (signed(value, margin) for value in interval)
        message = f"{NAME[verdict]}: {signed(delta, margin)}, between {low} and {high}"
    ElementTree.SubElement(case, "skipped", message=message)


def _add_case(suite: ElementTree.Element, kind: Optional[str], name: str) -> ElementTree.Element:
    kind = "parity" if kind is None else f"parity.{kind}"
    return ElementTree.SubElement(suite, "testcase", classname=_legal(kind), name=_legal(name))


def _legal(name: str) -> str:
    """A name that XML can hold, and not too long."""
    return _printable(clipped(name, _LONGEST))


def _printable(text: str) -> str:
    """The text without the control characters that XML has no way to write."""
    return _NO_XML.sub("\ufffd", text)
