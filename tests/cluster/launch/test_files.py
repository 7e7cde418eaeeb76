"""What one machine of a job has, every machine's commands find where they run."""

import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

from semisync.cli import main
from semisync.cluster.launch import member
from semisync.cluster.record import Shape
from tests.cluster.launch.job import SLEEP, Job
from tests.cluster.launch.processes import Launchers
from tests.cluster.launch.test_command import start
from tests.support.require import ROOT as REPOSITORY
from tests.support.require import environment, tf1_python
from tests.support.waiting import DEADLINE, until

pytestmark = pytest.mark.one_tensorflow

# Prints what is there, then waits for the file that the first argument names.
RUN = '#!/bin/sh\necho "ready $(cat words/user.txt) $(ls | tr "\\n" " ")"\n'
RUN += "[ $1 = ps ] && exec sleep 1000\n"
RUN += 'while [ ! -e "$2" ]; do sleep 0.05; done; cp "$SEMISYNC_CONFIG" "$2.config" || true\n'


@pytest.fixture
def source(tmp_path):
    """The folder of the machine that has the job's files."""
    folder = tmp_path / "source"
    (folder / "words").mkdir(parents=True)
    (folder / "words" / "user.txt").write_text("ann")
    (folder / "run.sh").write_text(RUN)
    (folder / "run.sh").chmod(0o755)
    (folder / "rates.json").write_text('{"rate": 1}\n')
    return folder


@pytest.fixture
def empty(tmp_path):
    """The folder of a machine that has nothing."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


@pytest.fixture
def job(real_store, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    options = ["--zookeeper", real_store.hosts, "--job", "test", "--ps", "1", "--workers", "2"]
    made = Launchers(tmp_path, [*options, "--session-timeout", "4", "--grace", "2"])
    yield made
    made.stop()


def command(job):
    return ["--", "sh", "run.sh", "{job_name}", str(job.folder / "go")]


def begin(job, source, empty, *options, servers=()):
    """Starts the whole job; the chief's launcher hands out what is in `source`."""
    job.launch("ps", "ps", *servers, *command(job), folder=empty)
    job.launch("one", "worker", "--index", "1", *command(job), folder=empty)
    shipped = ["--ship", "words", "run.sh", *options]
    job.launch("chief", "worker", *shipped, *command(job), folder=source)
    until(lambda: all("ready" in job.words(key) for key in ("ps", "one", "chief")))


def temporary(job):
    return [name for name in os.listdir(str(job.folder / "tmp")) if "semisync-status" not in name]


@pytest.mark.long
def test_a_machine_that_has_nothing_runs_what_another_hands_out(job, source, empty):
    begin(job, source, empty)
    for key, place in (("ps", "ps 0"), ("one", "worker 1"), ("chief", "worker 0")):
        assert "[{}] ready ann run.sh words \n".format(place) in job.words(key)
    (source / "words" / "user.txt").write_text("edited meanwhile")
    job.running["one"].kill()
    job.launch("again", "worker", *command(job), folder=empty)
    until(lambda: "[worker 1] ready ann run.sh words \n" in job.words("again"))
    (job.folder / "go").touch()
    assert [job.ended(key) for key in ("chief", "again", "ps")] == [0, 0, 0]
    assert list(empty.iterdir()) == []
    left = temporary(job)  # of the launcher that was killed alone
    assert len(left) == 1 and left[0].startswith("semisync-job-")


@pytest.mark.long
def test_changed_files_are_a_new_generation_where_the_servers_may_restart(job, source, empty):
    begin(job, source, empty, servers=["--restarts", "1"])
    job.running["chief"].send_signal(signal.SIGKILL)
    (source / "words" / "user.txt").write_text("bob")
    shipped = ["--ship", "words", "run.sh"]
    job.launch("changed", "worker", *shipped, *command(job), folder=source)
    for key in ("changed", "one", "ps"):
        until(lambda key=key: "ready bob" in job.words(key))
    assert "semisync launch: the job starts over" in job.words("one")
    (job.folder / "go").touch()
    assert [job.ended(key) for key in ("changed", "one", "ps")] == [0, 0, 0]


@pytest.mark.long
def test_changed_files_are_refused_where_the_servers_may_not_restart(job, source, empty):
    begin(job, source, empty)
    job.running["chief"].send_signal(signal.SIGKILL)
    job.running["chief"].wait()
    (source / "run.sh").write_text("exit 1")
    shipped = ["--ship", "words", "run.sh"]
    job.launch("changed", "worker", *shipped, *command(job), folder=source)
    assert job.ended("changed") == 3
    assert "the job runs with other files, and the launchers of its" in job.words("changed")
    job.launch("none", "worker", "--index", "0", *command(job), folder=source)
    assert job.ended("none") == 3
    assert "start this one with the same --ship and --config" in job.words("none")
    (source / "run.sh").write_text(RUN)
    job.launch("same", "worker", *shipped, *command(job), folder=source)
    until(lambda: "ready ann" in job.words("same"))
    (job.folder / "go").touch()
    assert [job.ended(key) for key in ("same", "one", "ps")] == [0, 0, 0]
    assert "starts over" not in job.words("one")


@pytest.mark.long
def test_a_chief_that_has_no_files_is_named_to_the_launcher_that_has_them(job, source, empty):
    sleep = ["--", "sh", "-c", "echo ready; sleep 1000"]
    job.launch("ps", "ps", *sleep, folder=empty)
    job.launch("plain", "worker", *sleep, folder=empty)
    until(lambda: "[worker 0] ready" in job.words("plain"))
    job.launch("chief", "worker", "--ship", "words", *command(job), folder=source)
    assert job.ended("chief") == 3
    assert "worker 0 is on 127.0.0.1 already, without --ship" in job.words("chief")


def config(job, *words):
    """`semisync config` of the job; returns its exit code."""
    action, *rest = words
    return main(["config", action, *job._options[:4], *rest])


@pytest.mark.long
def test_a_configuration_is_handed_out_and_changed_while_the_job_runs(
    job, source, empty, capsys, tmp_path
):
    begin(job, source, empty, "--config", "rates.json")
    assert config(job, "show") == 0
    assert "version 0: the file that the job was started with" in capsys.readouterr().err
    (tmp_path / "new.json").write_text('{"rate": 2}')
    assert config(job, "publish", str(tmp_path / "new.json")) == 0
    assert capsys.readouterr().out == "version 1 is published\n"
    for key in ("one", "chief", "ps"):
        until(lambda key=key: "version 1 of the configuration is there" in job.words(key))
    assert config(job, "publish", "--after", "0", str(tmp_path / "new.json")) == 3
    assert "the configuration is at version 1, not 0" in capsys.readouterr().err
    job.running["one"].kill()
    script = 'echo "ready $(cat $SEMISYNC_CONFIG {config})"; until [ -e "$0" ]; do sleep 0.05; done'
    again = ["sh", "-c", script, str(job.folder / "go")]
    job.launch("again", "worker", "--", *again, folder=empty)
    until(lambda: '[worker 1] ready {"rate": 2}{"rate": 2}' in job.words("again"))
    assert config(job, "show") == 0
    assert capsys.readouterr().out == '{"rate": 2}\n'
    assert config(job, "show", "--json") == 0
    shown = {"schema": "semisync.config/1", "version": 1, "configuration": {"rate": 2}}
    assert json.loads(capsys.readouterr().out) == shown
    (job.folder / "go").touch()
    assert [job.ended(key) for key in ("chief", "again", "ps")] == [0, 0, 0]
    assert json.loads((job.folder / "go.config").read_text()) == {"rate": 2}
    assert config(job, "publish", str(tmp_path / "new.json")) == 3
    assert "the job test does not run" in capsys.readouterr().err


def test_a_job_without_a_configuration_takes_none(job, source, empty, capsys):
    begin(job, source, empty)
    assert config(job, "publish", str(source / "rates.json")) == 3
    assert "the job test was started without --config" in capsys.readouterr().err


def test_on_one_machine_the_files_are_handed_out_too_and_the_saved_configuration(source, tmp_path):
    go, rates = tmp_path / "go", source / "rates.json"
    shape = ["--local", "--ps", "1", "--workers", "2", "--config", str(rates)]
    shipped = ["--ship", str(source) + "/", "--", "./run.sh", "{job_name}", str(go)]
    job = start(*shape, *shipped)
    lines = sorted(job.stdout.readline() for _ in range(3))
    ready = "] ready ann rates.json run.sh words \n"
    assert lines == ["[ps 0" + ready, "[worker 0" + ready, "[worker 1" + ready]
    rates.write_text("half of")
    until(lambda: "rates.json: a configuration is JSON" in job.stderr.readline())
    rates.write_text('{"rate": 3}')
    for _ in range(3):
        assert "version 1 of the configuration is there" in job.stderr.readline()
    go.touch()
    job.communicate(timeout=DEADLINE)
    assert job.returncode == 0
    assert json.loads((tmp_path / "go.config").read_text()) == {"rate": 3}


def test_what_the_command_writes_beside_its_files_stays(source, tmp_path, monkeypatch):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    write = "[ $0 = ps ] && exec sleep 1000; mkdir __pycache__ out && echo kept > out/model"
    shape = ["--local", "--ps", "1", "--workers", "1", "--ship", str(source)]
    job = start(*shape, "--", "sh", "-c", write, "{job_name}")
    _, err = job.communicate(timeout=DEADLINE)
    assert job.returncode == 0
    (left,) = (tmp_path / "tmp").iterdir()
    assert "what the command wrote beside the job's files stays in {}".format(left) in err
    kept = [path for path in left.rglob("*") if path.is_file()]
    assert kept == [left / "generation-1" / "files" / "out" / "model"]


def test_files_that_do_not_come_are_said_and_end_the_job_at_the_deadline(
    store, source, tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr(member, "LOOK_EVERY", 0.3)
    gone = member.Shipment([str(source)], None, "127.0.0.1")
    gone.close()
    monkeypatch.setattr(member, "Shipment", lambda *_: gone)
    job = Job(store, Shape(ps=1, workers=1), tmp_path)
    job.launch("ps", SLEEP, deadline=2.0)
    job.launch("worker", SLEEP, 0, deadline=2.0, ship=[str(source)])
    ends = [job.ended(key) for key in ("ps None", "worker 0")]
    job.stop()
    assert {end.code for end in ends} <= {10, 11}
    assert all("of the job's files did not come, such as manifest: http" in e.why for e in ends)
    assert "the job's files do not come: {}".format(gone.about["url"]) in capfd.readouterr().err


@pytest.mark.long
def test_files_come_when_the_chiefs_launcher_is_back(store, source, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(member, "LOOK_EVERY", 0.3)
    gone, real = member.Shipment([str(source) + "/"], None, "127.0.0.1"), member.Shipment
    gone.close()
    monkeypatch.setattr(member, "Shipment", lambda *_: gone)
    job = Job(store, Shape(ps=1, workers=2), tmp_path)
    job.launch("ps", job.write("ps", "cp words/user.txt {}/seen; sleep 1000".format(tmp_path)))
    job.launch("worker", ["test", "-e", "words/user.txt"], 1)
    job.launch("worker", SLEEP, 0, ship=[str(source) + "/"])
    said = []
    until(lambda: said.append(capfd.readouterr().err) or "files do not come" in "".join(said))
    monkeypatch.setattr(member, "Shipment", real)
    job.launchers["worker 0"].stop(signal.SIGTERM)
    assert job.ended("worker 0").code == 143 and job.lines("ps") == []
    wait = ["sh", "-c", "while [ ! -s {}/seen ]; do sleep 0.05; done".format(tmp_path)]
    job.launch("worker", wait, 0, key="again", ship=[str(source) + "/"])
    assert [job.ended(key).code for key in ("again", "worker 1", "ps None")] == [0, 0, 0]
    assert (tmp_path / "seen").read_text() == "ann"
    job.stop()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ps", "1", "--workers", "2", "--role", "ps"], "are for the chief's launcher"),
        (["--ps", "1", "--workers", "2", "--role", "worker", "--index", "1"], "--role worker here"),
        (["--ps", "1", "--workers", "2", "--role", "worker", "--chief"], "--role chief here"),
    ],
)
def test_only_the_chiefs_launcher_hands_out(words, sentence, source, capsys):
    where = ["--zookeeper", "127.0.0.1:1", "--job", "a", "--ship", str(source)]
    assert main(["launch", *where, *words, "--", "true"]) == 3
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ship", "none"], "none: it is not there"),
        (["--config", "none"], "none: it cannot be read"),
        (["--config", "run.sh"], "run.sh: a configuration is JSON"),
    ],
)
def test_what_cannot_be_handed_out_ends_with_one_sentence(
    words, sentence, source, capsys, monkeypatch
):
    monkeypatch.chdir(source)
    assert main(["launch", "--local", "--ps", "1", "--workers", "1", *words, "--", "true"]) == 3
    err = capsys.readouterr().err
    assert sentence in err and err.count("\n") == 1


def commands_of_the_page():
    """The commands of the page's example for many machines, without the lines that go on."""
    page = (REPOSITORY / "docs" / "launch.md").read_text(encoding="utf-8")
    block = page.partition("## On many machines")[2].partition("```sh\n")[2].partition("```")[0]
    lines = block.replace("\\\n", " ").splitlines()
    return [line for line in lines if not line.startswith("#")]


@pytest.mark.long
def test_the_example_of_the_page_runs_on_a_machine_that_has_nothing(real_store, tmp_path):
    page = (REPOSITORY / "docs" / "launch.md").read_text(encoding="utf-8")
    script = re.search("```python\n# file: train.py\n(.*?)```", page, re.DOTALL).group(1)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (first / "train.py").write_text(script)
    python = os.path.dirname(tf1_python())
    command = [python + "/python", "-m", "semisync", "launch"]
    with contextlib.ExitStack() as stack:
        running = []
        for words in commands_of_the_page():
            told = words.replace("zk1:2181,zk2:2181,zk3:2181/ctr", real_store.hosts).split()
            where = first if "--ship" in told else second
            path = os.pathsep.join([python, os.environ["PATH"]])
            job = subprocess.Popen(
                [*command, *told[2:]],
                cwd=str(where),
                env=environment(PYTHONPATH=str(REPOSITORY), PATH=path),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                universal_newlines=True,
            )
            running.append(job)
            stack.callback(job.kill)
        said = [job.communicate(timeout=DEADLINE)[0] for job in running]
    assert [job.returncode for job in running] == [0, 0, 0], said
    assert "[worker 0] worker 0 has ended" in said[0]
    assert "[worker 1] worker 1 has ended" in said[2]
    assert list(second.iterdir()) == []
