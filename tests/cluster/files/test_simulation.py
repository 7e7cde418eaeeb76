"""The rules by which followers choose, run for many of them: benchmarks/files.py --simulate."""

import re
import subprocess
import sys

import pytest

from tests.support.require import ROOT

pytestmark = pytest.mark.one_tensorflow


def figures(*arguments):
    """What the simulation prints, by the first word of each row."""
    command = [sys.executable, "benchmarks/files.py", "--simulate", *arguments]
    done = subprocess.run(
        command, cwd=str(ROOT), stdout=subprocess.PIPE, encoding="utf-8", check=True
    )
    return dict(re.findall(r"^\| (.+?) \| (.+) \|$", done.stdout, re.MULTILINE))


def test_fifty_followers_need_little_more_than_one_copys_time_and_one_copy_of_the_root():
    found = figures("--gigabytes", "1", "--followers", "50")
    assert float(found["the last follower"].split()[2]) < 1.6
    assert float(found["copies from the root"]) < 1.3
    assert float(found["copies from a follower, mean, most"].split(", ")[1]) < 3
