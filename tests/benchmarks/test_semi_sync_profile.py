"""The profile of a batch runs, and what it counts is what the protocol promises."""

import pathlib
import re
import sys

import pytest

from tests.support.programs import output_of
from tests.support.require import fastest_tensorflow

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def printed():
    command = [
        sys.executable,
        "-m",
        "benchmarks.semi_sync_profile",
        "--python",
        fastest_tensorflow(),
    ]
    return output_of(*command, PYTHONPATH=str(ROOT))


def test_a_batch_sends_fewer_tensors_than_asynchronous_training(printed):
    counted = re.findall(r"^\| (\S+) \| (\d+) \| (\d+) \|$", printed, re.MULTILINE)
    sent = {mode: int(there) + int(back) for mode, there, back in counted}
    assert sent["sync"] < sent["semi-sync"] < sent["async"]


@pytest.mark.parametrize("mode, takes", [("semi-sync", (0, 0.5)), ("auto", (0.9, 1.5))])
def test_a_global_step_costs_the_chief_one_run_and_another_where_tickets_are_rationed(
    mode, takes, printed
):
    row = r"^\| " + mode + r" \| (take|apply) \| ([\d.]+) \|"
    runs = dict(re.findall(row, printed, re.MULTILINE))
    assert 0.9 < float(runs["apply"]) < 1.1
    assert takes[0] < float(runs["take"]) < takes[1]
