"""A command runs, is heard, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from semisync.cluster.launch.child import Child, check, in_words
from semisync.common.errors import UsageError
from tests.support.processes import running
from tests.support.require import LONG, ROOT
from tests.support.waiting import DEADLINE, until

pytestmark = pytest.mark.one_tensorflow


class Heard:
    """Starts a child and keeps what it says."""

    def __init__(self, *command, **environment):
        self.lines, self.ended = [], threading.Event()
        self.child = Child(command, environment, self._say, self.ended.set)

    def _say(self, lines, is_error):
        self.lines += [(line, is_error) for line in lines]


def test_its_output_comes_line_by_line_and_its_exit_code_at_the_end():
    heard = Heard("sh", "-c", 'echo "$WORD"; echo two >&2; printf three; exit 7', WORD="one two")
    assert heard.ended.wait(30)
    assert heard.child.code == 7
    assert sorted(heard.lines) == [(b"one two", False), (b"three", False), (b"two", True)]


@pytest.mark.long
def test_the_end_of_a_command_that_ends_at_once_is_noticed():
    for heard in [Heard("true") for _ in range(40 if LONG else 10)]:
        assert heard.ended.wait(DEADLINE)
        assert heard.child.code == 0


def test_words_reach_the_command_as_they_are():
    heard = Heard("printf", "%s|", "a b", "$HOME", "'", "*")
    assert heard.ended.wait(30)
    assert heard.lines == [(b"a b|$HOME|'|*|", False)]


def test_a_script_that_does_not_say_by_what_it_runs_is_the_shells(tmp_path):
    (tmp_path / "run").write_text('echo "$1"; exit 4\n')
    (tmp_path / "run").chmod(0o755)
    heard = Heard(str(tmp_path / "run"), "a b")
    assert heard.ended.wait(DEADLINE)
    assert (heard.child.code, heard.lines) == (4, [(b"a b", False)])


def test_it_reads_nothing():
    heard = Heard("cat")
    assert heard.ended.wait(30)
    assert heard.child.code == 0 and heard.lines == []


def test_a_line_without_an_end_is_passed_on_in_parts():
    heard = Heard("sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x")
    assert heard.ended.wait(30)
    assert sum(len(line) for line, _ in heard.lines) == 200000
    assert max(len(line) for line, _ in heard.lines) <= 1 << 17


def test_it_is_asked_to_end_and_then_made_to():
    polite = Heard("sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    until(lambda: polite.lines)
    polite.child.stop(30)
    assert polite.child.code == 3
    stubborn = Heard("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    until(lambda: stubborn.lines)
    stubborn.child.stop(0.1)
    assert stubborn.child.code == -signal.SIGKILL


def test_what_it_has_started_ends_with_it():
    heard = Heard("sh", "-c", "sleep 1000 & echo $!")
    assert heard.ended.wait(30)
    left = int(heard.lines[0][0])
    until(lambda: left not in running())


def test_what_has_left_its_group_and_its_parents_ends_with_it_too():
    heard = Heard("sh", "-c", "setsid sh -c 'setsid sleep 1000 & echo $!'; exit 5")
    assert heard.ended.wait(30)
    assert heard.child.code == 5
    assert int(heard.lines[0][0]) not in running()


def test_a_signal_to_the_whole_group_leaves_nothing_behind_either():
    heard = Heard("sh", "-c", "setsid sleep 1000 & echo $!; kill -USR1 0")
    assert heard.ended.wait(30)
    assert heard.child.code == -signal.SIGUSR1
    assert int(heard.lines[0][0]) not in running()


def test_it_ends_with_its_guard():
    heard = Heard("sh", "-c", "sleep 1000 & echo $!; wait")
    until(lambda: heard.lines)
    left = int(heard.lines[0][0])
    os.kill(heard.child.pid, signal.SIGKILL)
    assert heard.ended.wait(30)
    assert heard.child.code == -signal.SIGKILL
    until(lambda: left not in running())


LAUNCHER = """
import os, time
from semisync.cluster.launch.child import Child

def say(line):
    os.write(1, line + b"\\n")  # one write, for two threads speak

command = ["sh", "-c", "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sleep 1000"]
child = Child(command, {}, lambda lines, _: [say(line) for line in lines], lambda: None)
say(b"%d" % child.pid)
time.sleep(1000)
"""


def test_it_ends_with_a_launcher_that_is_killed():
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], cwd=str(ROOT), stdout=subprocess.PIPE
    )
    started = [psutil.Process(int(launcher.stdout.readline())) for _ in range(3)]
    started += psutil.Process(launcher.pid).children()  # the guard is one of them
    launcher.kill()
    launcher.wait()
    launcher.stdout.close()
    gone, alive = psutil.wait_procs(started, timeout=DEADLINE)
    assert [p for p in alive if p.status() != "zombie"] == []


def test_a_command_that_cannot_be_run_is_refused():
    with pytest.raises(UsageError, match="no-such-program is not a program"):
        check(["no-such-program"])
    with pytest.raises(UsageError, match="the command is missing"):
        check([])
    check([sys.executable, "x"])


def test_how_it_ended_is_said_in_words():
    assert in_words(3) == "exit code 3"
    assert in_words(-9) == "killed by SIGKILL"
