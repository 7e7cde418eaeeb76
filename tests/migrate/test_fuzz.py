"""A short run of fuzz.py; the long one is `python -m tests.migrate.fuzz --checkpoints FOLDER`."""

import sys

import pytest

from tests.support.programs import output_of


@pytest.mark.long
def test_six_hundred_damaged_sources_give_the_truth_or_one_sentence(tf2_checkpoints):
    command = [sys.executable, "-m", "tests.migrate.fuzz", "--checkpoints", tf2_checkpoints]
    printed = output_of(*command, "--count", "600", "--seed", "1")
    outcomes = {tuple(line.split()[:2]) for line in printed.splitlines()}
    assert {("tensors", "right"), ("tensors", "refused"), ("tables", "refused")} <= outcomes
