"""A comparison for each verdict, and the test cases of its JUnit file."""

from xml.etree import ElementTree

import numpy as np

import parity
from parity.report.junit import junit


def comparison(noise=0.01, rows=20_000, **options):
    rng = np.random.default_rng(0)
    labels = rng.random(rows) < 0.3
    baseline = rng.normal(size=rows) + labels
    candidate = baseline + noise * rng.normal(size=rows)
    probabilities = (1 / (1 + np.exp(-scores)) for scores in (baseline, candidate))
    return parity.compare(labels, *probabilities, **options)


CASES = {
    "EQUIVALENT": comparison(0.01, rows=40_000),
    "NOT_EQUIVALENT": comparison(3.0),
    "INCONCLUSIVE": comparison(0.1, rows=2000),
}


def cases(found, inconclusive="fail", title="Mine"):
    """(class, name) of each test case, with the tag of its outcome or None."""
    suites = ElementTree.fromstring(junit(found, title, inconclusive))
    suite = suites.find("testsuite")
    outcomes = {}
    for case in suite.findall("testcase"):
        tags = [child.tag for child in case]
        outcomes[case.get("classname"), case.get("name")] = tags[0] if tags else None
    told = list(outcomes.values())
    counts = {"tests": len(told), "failures": told.count("failure"), "errors": 0}
    counts["skipped"] = told.count("skipped")
    assert {name: int(suite.get(name)) for name in counts} == counts
    return outcomes
