"""What the chief says reaches everybody: through its launcher, and on the page of the leader."""

import json
import shlex
import signal
import socket
import urllib.request

import pytest

from semisync.cluster.job.places import Shape
from semisync.cluster.status.published import read_status
from tests.cluster.launch.job import ROOT, SLEEP, Job
from tests.cluster.status.documents import training
from tests.cluster.waiting import until


@pytest.fixture
def job(store, tmp_path):
    made = Job(store, Shape(ps=1, workers=1), tmp_path)
    yield made
    made.stop()


def saying(said, then):
    """The command of a chief that says so, as the optimizer's hook does."""
    words = "echo {} > $SEMISYNC_STATUS.new; mv $SEMISYNC_STATUS.new $SEMISYNC_STATUS; {}"
    return ["sh", "-c", words.format(shlex.quote(json.dumps(said)), then)]


def shown(job):
    """What the pages show that are served just now."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    found = []
    for url in filter(None, [launcher._page.url for launcher in job.launchers.values()]):
        try:
            answer = opener.open(url + "/status.json", timeout=10)
        except OSError:  # it has moved meanwhile
            continue
        with answer:
            found.append(json.loads(answer.read().decode()))
    return found


def leaders(job):
    """Who leads, as the pages say."""
    return [document["cluster"]["leader"] for document in shown(job)]


def test_the_leaders_page_shows_what_the_chief_says(job):
    job.launch("ps", SLEEP, status_port=0)
    job.launch("worker", saying(training(), "sleep 1000"), 0, status_port=0)
    until(lambda: training() in [document["training"] for document in shown(job)])
    until(lambda: leaders(job) in (["ps 0"], ["worker 0"]))


def test_the_page_moves_with_the_leader(job):
    job.launch("ps", SLEEP, status_port=0)
    until(lambda: leaders(job) == ["ps 0"])
    job.launch("worker", SLEEP, 0, status_port=0)
    job.launchers["ps None"].stop(signal.SIGTERM)
    job.ended("ps None")
    until(lambda: leaders(job) == ["worker 0"])


def test_a_port_that_is_taken_costs_the_page_and_not_the_job(job, capfd):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        job.launch("ps", SLEEP, status_port=other.getsockname()[1])
        job.launch("worker", ["true"], 0)
        assert job.ended("ps None").code == 0
    assert capfd.readouterr().err.count("the job has no page: ") == 1


def test_what_is_no_report_is_ignored(job, store):
    job.launch("ps", SLEEP)
    job.launch("worker", saying(["no report"], "echo { > $SEMISYNC_STATUS"), 0)
    assert job.ended("ps None").code == 0
    assert read_status(store.client(), ROOT, "job")["training"] is None


def test_what_the_chief_said_last_is_known_after_the_end(job, store):
    job.launch("ps", SLEEP)
    job.launch("worker", saying(training(), "true"), 0)
    job.ended("ps None")
    assert read_status(store.client(), ROOT, "job")["training"] == training()
