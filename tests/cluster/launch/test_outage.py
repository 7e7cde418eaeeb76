"""A job whose ZooKeeper goes away."""

import signal

import pytest

from semisync.cluster.launch import member
from semisync.cluster.record import Shape
from tests.cluster.conftest import Store
from tests.cluster.launch.job import SLEEP, Job
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeper

pytestmark = pytest.mark.one_tensorflow


@pytest.fixture
def own_server(tmp_path):
    started = ZooKeeper(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def job(own_server, tmp_path):
    """A job of one server and two workers; the workers train until the file `go` is there."""
    store = Store(own_server)
    made = Job(store, Shape(ps=1, workers=2), tmp_path)
    wait = "while [ ! -e {}/go ]; do sleep 0.05; done".format(tmp_path)
    made.launch("ps", SLEEP)
    for number in (0, 1):
        made.launch("worker", made.write("worker", wait), number)
    until(lambda: len(made.lines("worker")) == 2)
    yield made
    made.stop()
    store.close()


def test_training_goes_on_and_the_job_ends_when_zookeeper_is_back(job, own_server):
    own_server.kill(0)
    until(lambda: all(client.session is None for client in job.clients.values()))
    (job.folder / "go").touch()
    children = [job.launchers[key].running._child for key in ("worker 0", "worker 1")]
    until(lambda: [child.code for child in children] == [0, 0])
    assert job.ends == {}  # the ends could not be told yet
    own_server.start(0)
    assert {job.ended(key).code for key in job.launchers} == {0}
    assert len(job.lines("worker")) == 2


@pytest.mark.long
def test_a_launcher_can_be_stopped_meanwhile(job, own_server):
    own_server.kill(0)
    until(lambda: all(client.session is None for client in job.clients.values()))
    for launcher in job.launchers.values():
        launcher.stop(signal.SIGTERM)
    assert {job.ended(key).code for key in job.launchers} == {143}


@pytest.mark.long
def test_a_launcher_that_is_cut_off_ends_its_command_at_the_deadline(tmp_path, monkeypatch):
    monkeypatch.setattr(member, "LOOK_EVERY", 0.1)
    job = Job(Store(), Shape(ps=1, workers=2), tmp_path)
    job.launch("ps", SLEEP)
    job.launch("worker", SLEEP, 0)
    job.launch("worker", job.write("one", "sleep 1000"), 1, deadline=4.0)
    until(lambda: job.lines("one"))
    job.clients["worker 1"].cut()
    why = "nobody led the job, or ZooKeeper was away, for 4 s"
    assert job.ended("worker 1") == (11, why)
    job.stop()
