"""`semisync launch` from the outside: whole jobs of small commands, and how each ends."""

import json
import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

from semisync.cli import main
from semisync.cluster.launch import codes
from semisync.cluster.zookeeper.options import root_of
from semisync.common.errors import UsageError
from tests.cluster.launch.processes import Launchers
from tests.support.processes import running
from tests.support.require import ROOT, environment
from tests.support.waiting import DEADLINE, until

pytestmark = pytest.mark.one_tensorflow

LOCAL = ["--local", "--ps", "1", "--workers", "2"]
ROLE = "case {{job_name}}-{{task_index}} in ps-0) sleep 1000;; worker-0) {};; *) {};; esac"
ELSEWHERE = "--zookeeper 127.0.0.1:1 --job a"


def start(*arguments, **more):
    """A launcher as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "semisync", "launch", *arguments],
        env=environment(PYTHONPATH=str(ROOT)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        **more,
    )


def local(chief, worker, *options):
    """Runs a job of one server and two workers; returns its exit code, output and errors."""
    job = start(*LOCAL, *options, "--", "sh", "-c", ROLE.format(chief, worker))
    out, err = job.communicate(timeout=DEADLINE)
    return job.returncode, sorted(out.splitlines()), err


def test_a_job_ends_with_its_workers_and_every_line_says_whose_it_is(tmp_path):
    began = tmp_path / "began"  # worker 0 ends the job, so not before the other has begun
    chief = "until [ -e {} ]; do sleep 0.1; done; echo hello".format(began)
    code, out, err = local(chief, "echo there; echo oh >&2; touch {}".format(began))
    assert (code, out) == (0, ["[worker 0] hello", "[worker 1] there"])
    lines = err.splitlines()  # and perhaps how long the worker has to end
    assert [line for line in lines if "--linger" not in line] == ["[worker 1] oh"]


@pytest.mark.long
def test_with_json_the_document_of_its_end_stands_alone_and_its_processes_speak_beside_it():
    job = start(*LOCAL, "--json", "--", "sh", "-c", ROLE.format("echo hello; exit 7", "exit 0"))
    out, err = job.communicate(timeout=DEADLINE)
    found = json.loads(out)
    assert (found["schema"], found["code"]) == ("semisync.launch/1", job.returncode)
    assert job.returncode == codes.COMMAND_FAILED
    ends = {one["place"]: one for one in found["places"]}
    assert set(ends) == {"ps 0", "worker 0", "worker 1"}
    assert "exit code 7" in ends["worker 0"]["why"]
    assert "[worker 0] hello" in err.splitlines()


def test_a_command_that_fails_once_is_started_again(tmp_path):
    once = "[ -e {0} ] && touch {1} && exit 0; touch {0}; exit 3"
    again = tmp_path / "again"  # worker 0 ends the job, so not before the other has come back
    code, _, err = local(
        "until [ -e {} ]; do sleep 0.1; done".format(again), once.format(tmp_path / "once", again)
    )
    assert code == 0
    assert (
        "[worker 1] semisync launch: the command ended with exit code 3; start 2 of at most 4"
        in err
    )


def test_a_worker_that_hangs_after_the_chief_is_named_and_stopped_and_the_job_ends_well():
    hang = "trap '' TERM; setsid sleep 1000 & echo $!; while :; do sleep 0.1; done"
    code, out, err = local("sleep 1", hang, "--linger", "1", "--grace", "1")
    assert code == 0
    assert "[worker 1] semisync launch: the chief has ended: the command has 1 s to end" in err
    assert (
        "[ps 0] semisync launch: warning: the job has ended without worker 1, which had not ended "
        "1 s after the chief (--linger)\n" in err
    )
    assert int(out[0].rpartition(" ")[2]) not in running()


def test_a_job_with_a_command_that_fails_for_good_fails_and_says_which():
    code, _, err = local("exit 9", "sleep 1000", "--restarts", "0")
    assert code == 10
    assert "[worker 0] semisync launch: the command on 127.0.0.1 ended with exit code 9" in err
    assert "[ps 0] semisync launch: worker 0 failed: the command on 127.0.0.1 ended with" in err


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_every_process(number, code):
    job = start(*LOCAL, "--", "sh", "-c", "sleep 1000 & echo ready; wait")
    for _ in range(3):
        assert "ready" in job.stdout.readline()
    started = {process.pid for process in psutil.Process(job.pid).children(recursive=True)}
    job.send_signal(number)
    job.communicate(timeout=DEADLINE)
    assert job.returncode == code
    until(lambda: started.isdisjoint(running()))


def test_output_that_nobody_reads_any_more_holds_up_nothing():
    job = start(*LOCAL, "--", "sh", "-c", ROLE.format("yes | head -c 10000000", "true"))
    job.stdout.close()
    job.stderr.close()
    assert job.wait(timeout=DEADLINE) == 0


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ("--local -- true", "at least one parameter server"),
        ("--local --ps 1 --workers 1 -- no-such-program", "no-such-program is not a program"),
        ("--local --ps 1 --workers 1", "the command is missing"),
        ("--local --ps 1 --workers 1 --host h -- true", "--host has no meaning with --local"),
        (ELSEWHERE + "/b --role ps --ps 1 --workers 1 -- true", "--job takes letters"),
        (ELSEWHERE + " --ps 1 --workers 1 -- true", "--role is missing"),
        (ELSEWHERE + " --role ps --index 1 --ps 1 --workers 1 -- true", "no such place"),
        (ELSEWHERE + " --role ps --ps 1 --workers 1 -- true", "no ZooKeeper at 127.0.0.1:1"),
    ],
)
def test_a_wrong_call_ends_with_one_sentence(arguments, sentence, capsys, monkeypatch):
    monkeypatch.setattr("semisync.cluster.zookeeper.connection.CONNECT_WITHIN", 0.5)
    assert main(["launch", *arguments.split()]) == 3
    err = capsys.readouterr().err
    assert sentence in err and err.count("\n") == 1


def test_the_name_of_a_job_ends_without_a_new_line():
    with pytest.raises(UsageError, match="--job takes letters"):
        root_of("ctr\n")


def test_the_page_has_the_exit_codes_of_the_help():
    page = (ROOT / "docs" / "launch" / "failures.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d+) \| (.*?) \|$", page, re.MULTILINE))
    assert rows == {str(code): meaning for code, meaning in codes.MEANINGS.items()}


@pytest.fixture
def job(real_store, tmp_path):
    options = ["--zookeeper", real_store.hosts, "--job", "test", "--ps", "1", "--workers", "2"]
    made = Launchers(tmp_path, [*options, "--session-timeout", "4"])
    yield made
    made.stop()


def at_work(job, tmp_path):
    """Starts a job; (the file whose coming ends it, its command, the process of worker 1)."""
    go = tmp_path / "go"
    wait = ["--", "sh", "-c", "echo ready $$; while [ ! -e {} ]; do sleep 0.05; done".format(go)]
    job.launch("ps", "ps", "--", "sleep", "1000")
    job.launch("chief", "worker", "--index", "0", *wait)
    job.launch("one", "worker", "--index", "1", *wait)
    until(lambda: "ready" in job.words("one") and "ready" in job.words("chief"))
    child = psutil.Process(int(job.words("one").split()[-1]))
    return go, wait, child


def test_a_job_over_zookeeper_loses_a_launcher_and_ends_well(job, tmp_path):
    go, wait, child = at_work(job, tmp_path)
    os.kill(job.running["one"].pid, signal.SIGKILL)
    until(lambda: not child.is_running() or child.status() == "zombie")
    job.launch("another", "worker", *wait)
    until(lambda: "[worker 1] ready" in job.words("another"))
    go.touch()
    assert [job.ended(key) for key in ("chief", "another", "ps")] == [0, 0, 0]


@pytest.mark.long
def test_a_launcher_that_was_stopped_and_replaced_ends_its_command(job, tmp_path):
    go, wait, child = at_work(job, tmp_path)
    job.running["one"].send_signal(signal.SIGSTOP)
    job.launch("spare", "worker", *wait)
    until(lambda: "[worker 1] ready" in job.words("spare"))
    job.running["one"].send_signal(signal.SIGCONT)
    assert job.ended("one") == 13
    assert "worker 1 is held by a launcher on 127.0.0.1 now" in job.words("one")
    assert not child.is_running() or child.status() == "zombie"
    go.touch()
    assert [job.ended(key) for key in ("chief", "spare", "ps")] == [0, 0, 0]
