"""What C++ libraries log while TensorFlow is loaded is held back, but not lost when that fails."""

import os
import subprocess
import sys

import pytest

from tests.support.require import ROOT

SCRIPT = """
import os, sys
from semisync.common.logs import suppress_tensorflow_log
with suppress_tensorflow_log():
    os.write(2, b"a log line")
    if sys.argv[1] == "fails":
        raise SystemExit("no library")
os.write(2, b"later")
"""


@pytest.mark.parametrize(
    ("ending", "level", "expected"),
    [
        ("works", None, "later"),
        ("fails", None, "a log lineno library\n"),
        ("works", "0", "a log linelater"),
    ],
)
def test_a_log_is_shown_where_loading_fails_or_the_user_wants_it(ending, level, expected):
    environment = {key: value for key, value in os.environ.items() if key != "TF_CPP_MIN_LOG_LEVEL"}
    if level is not None:
        environment["TF_CPP_MIN_LOG_LEVEL"] = level
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, ending],
        cwd=str(ROOT),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == expected
