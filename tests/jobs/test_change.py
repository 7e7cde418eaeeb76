"""The documented change of a job: what a .change file may say, and what it does to a script."""

import pytest

from tests.jobs import compared
from tests.jobs.jobs import JOBS
from tests.support.job_changes import SCRIPTS, apply, commands, read, size

SCRIPT = "one\n    two\n    two\nthree\n"


def test_old_lines_give_way_to_new_ones():
    change = "- one\n+ first\n+ second\n\n# why\n-     two\n- three\n+ last\n"
    assert apply(SCRIPT, change) == "first\nsecond\n    two\nlast\n"


@pytest.mark.parametrize("old", ["-     two", "- two", "- one\n- three", "- four"])
def test_old_lines_that_are_not_at_exactly_one_place_are_an_error(old):
    with pytest.raises(ValueError, match="times, not once"):
        apply(SCRIPT, old + "\n+ new\n")


@pytest.mark.parametrize("change", ["+ new\n", "- one\n+ first\nsecond\n", "-one\n+first\n"])
def test_what_is_no_block_is_an_error(change):
    with pytest.raises(ValueError):
        apply(SCRIPT, change)


def test_lines_that_stay_or_move_with_a_block_are_not_counted():
    assert size(SCRIPT, apply(SCRIPT, "- one\n+ one\n+ more\n")) == (0, 1)


def test_a_command_stands_beside_the_lines():
    change = "$ semisync rewrite 'a b' c\n\n- one\n+ first\n"
    assert commands(change) == [["semisync", "rewrite", "a b", "c"]]
    assert apply(SCRIPT, change) == "first\n    two\n    two\nthree\n"


def test_every_script_belongs_to_a_job():
    changed = {job.name for job in JOBS} | compared.NAMES
    assert {path.stem for path in SCRIPTS.glob("*.change")} == changed
    graphs = {job.graph for job in JOBS if job.graph}
    assert {path.stem for path in SCRIPTS.glob("*.py")} == changed | graphs


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_the_changed_script_is_one_that_python_compiles(job):
    script, change = read(job.name)
    compile(apply(script, change), job.name, "exec")
