"""Three ZooKeeper servers and candidates in processes, while any of them is killed or stopped."""

import signal

import pytest

from semisync.cluster.zookeeper.connection import Connection
from semisync.cluster.zookeeper.leader import boot_clock
from semisync.cluster.zookeeper.membership import Membership, members
from tests.cluster.candidates import Candidates
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeper

pytestmark = pytest.mark.one_tensorflow

SESSION = 4.0  # seconds


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    started = ZooKeeper(tmp_path_factory.mktemp("ensemble"), servers=3)
    yield started
    started.stop()


@pytest.fixture
def candidates(ensemble, tmp_path):
    made = Candidates(ensemble.hosts + "/faults", tmp_path, SESSION)
    for _ in range(3):
        made.start()
    yield made
    made.stop()


@pytest.mark.long
def test_never_two_lead_while_leaders_are_killed_and_stopped_and_zookeeper_loses_its_own(
    ensemble, candidates
):
    epoch, name = candidates.leader()
    candidates.signal(name, signal.SIGKILL)
    candidates.start()
    epoch, stopped = candidates.leader(epoch)
    candidates.signal(stopped, signal.SIGSTOP)
    epoch, name = candidates.leader(epoch)
    candidates.signal(stopped, signal.SIGCONT)  # it wakes up in the belief that it leads
    killed = ensemble.leader()
    ensemble.kill(killed)
    candidates.led_at(boot_clock() + 1)
    ensemble.start(killed)
    ensemble.wait()
    candidates.signal(candidates.leader()[1], signal.SIGKILL)
    candidates.leader(candidates.terms()[-1][0])
    candidates.check()
    assert len(candidates.terms()) >= 4


@pytest.mark.long
def test_members_outlive_the_loss_of_zookeepers_leader(ensemble):
    client = Connection(ensemble.hosts + "/members", 5 * SESSION)
    Membership(client, "/job", "worker-0", {"id": "a"}).register()
    session = client.session
    killed = ensemble.leader()
    ensemble.kill(killed)
    observer = Connection(ensemble.hosts + "/members", SESSION)
    assert members(observer, "/job") == {"worker-0": {"id": "a"}}
    until(lambda: client.session == session)
    ensemble.start(killed)
    ensemble.wait()
    client.close()
    until(lambda: members(observer, "/job") == {})  # its server may be behind
    observer.close()
