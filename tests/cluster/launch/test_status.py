"""What the chief says reaches everybody through its launcher."""

import json
import shlex

import pytest

from semisync.cluster.record import Shape
from semisync.cluster.status.document import read_status
from tests.cluster.launch.job import ROOT, SLEEP, Job
from tests.cluster.status.documents import training
from tests.support.waiting import until

pytestmark = pytest.mark.one_tensorflow


@pytest.fixture
def job(store, tmp_path):
    made = Job(store, Shape(ps=1, workers=1), tmp_path)
    yield made
    made.stop()


def saying(said, then):
    """The command of a chief that says so, as the optimizer's hook does."""
    words = "echo {} > $SEMISYNC_STATUS.new; mv $SEMISYNC_STATUS.new $SEMISYNC_STATUS; {}"
    return ["sh", "-c", words.format(shlex.quote(json.dumps(said)), then)]


def test_what_the_chief_says_is_known_while_it_trains(job, store):
    job.launch("ps", SLEEP)
    job.launch("worker", saying(training(), "sleep 1000"), 0)
    client = store.client()
    until(lambda: client.stat(ROOT + "/training") and client.get(ROOT + "/training")[0])
    assert read_status(client, ROOT, "job")["training"] == training()


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
