"""The pages about jobs describe the scripts in tests/jobs correctly."""

import re

import pytest

from tests.docs.page import blocks
from tests.support import job_changes
from tests.support.require import ROOT

TABLE, SCRIPTS = ROOT / "docs" / "jobs.md", ROOT / "docs" / "supervisor_and_slim.md"
NAMES = sorted(path.stem for path in job_changes.SCRIPTS.glob("*.change"))


def test_every_job_has_its_row():
    linked = re.findall(r"\(\.\./tests/jobs/scripts/(\w+)\.py\)", TABLE.read_text())
    assert sorted(linked) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_row_tells_how_many_lines_change(name):
    row = next(line for line in TABLE.read_text().splitlines() if name + ".change" in line)
    removed, added = job_changes.size(
        job_changes.read(name)[0], job_changes.apply(*job_changes.read(name))
    )
    assert "| -{} +{} |".format(removed, added) in row


@pytest.mark.parametrize("name", ["supervisor_sync", "slim_train"])
def test_the_page_shows_the_script_that_the_tests_run(name):
    head = "# file: {}.py\n".format(name)
    shown = [text for _, text in blocks(SCRIPTS) if text.startswith(head)]
    assert shown == [head + job_changes.apply(*job_changes.read(name))]
