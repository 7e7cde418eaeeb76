"""The page that tells where the wheel installs has what `versions` tries, and nothing else."""

import re

from tests.downstream.versions import CASES, HERE
from tests.support.require import ROOT


def test_the_page_has_a_row_for_each_environment_that_is_tried():
    page = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (3\.\d+) \| (\w+(?: [\d.]+)?) \| .+ \|$", page, re.MULTILINE)
    assert rows == [(case.python, case.name) for case in CASES]


def test_every_smoke_test_is_there():
    assert {case.program for case in CASES} == {path.name for path in HERE.glob("smoke_*.py")}
