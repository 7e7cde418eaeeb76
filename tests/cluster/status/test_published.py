"""What the launchers and the chief keep in ZooKeeper becomes one document."""

import json

import pytest

from semisync.cli import main
from semisync.cluster.record import Shape, content, write_training
from semisync.cluster.status.document import read_status
from semisync.cluster.zookeeper import generation
from semisync.cluster.zookeeper.leader import Election
from semisync.cluster.zookeeper.membership import Membership
from semisync.common.errors import BadInput
from tests.cluster.status.documents import training

pytestmark = pytest.mark.one_tensorflow

ROOT = "/semisync/ctr-7"


def begin(store):
    """A job of one parameter server and two workers, of which one is missing; returns a client."""
    client, shape = store.client(), Shape(ps=1, workers=2)
    for name in ("ps-0", "worker-0"):
        about = {"id": "id of " + name, "host": name + ".example", "shape": shape._asdict()}
        Membership(client, ROOT, name, about).register()
    election = Election(client, ROOT, "id of worker-0", "worker 0", lease=60.0)
    election.step()
    election.step()
    members = {"ps-0": "id of ps-0", "worker-0": "id of worker-0"}
    generation.publish(
        election, ROOT, generation.Generation(1, members, content(shape, addresses={}, fixed={}))
    )
    return client


def test_the_document_tells_what_the_launchers_know_and_the_chief_said(store):
    client = begin(store)
    found = read_status(store.client(), ROOT, "ctr-7")
    assert found["training"] is None
    assert found["cluster"] == {
        "leader": "worker 0",
        "epoch": 1,
        "generation": 1,
        "members": {"ps 0": "ps-0.example", "worker 0": "worker-0.example"},
        "waiting_for": [],
        "outcome": None,
    }
    write_training(client, ROOT, training())
    assert read_status(store.client(), ROOT, "ctr-7")["training"] == training()


def test_a_member_that_the_job_cannot_do_without_is_waited_for(store):
    client = begin(store)
    client.delete(ROOT + "/members/ps-0", -1)
    found = read_status(client, ROOT, "ctr-7")["cluster"]
    assert found["waiting_for"] == ["ps 0"]


@pytest.mark.parametrize("node", ["leader", "training"])
def test_a_node_that_semisync_did_not_write_is_named(store, node):
    client = begin(store)
    if node == "leader":
        client.delete(ROOT + "/leader", -1)
    client.create(ROOT + "/" + node, b"{}")
    with pytest.raises(BadInput, match="the node {}/{} in ZooKeeper does not".format(ROOT, node)):
        read_status(client, ROOT, "ctr-7")


def test_a_job_that_does_not_exist_is_named(store):
    with pytest.raises(BadInput, match="there is no job none: its launchers would keep /semisync"):
        read_status(store.client(), "/semisync/none", "none")


def test_the_command_reads_a_real_zookeeper(real_store, capsys):
    begin(real_store)
    where = ["--zookeeper", real_store.hosts, "--job"]
    assert main(["status", *where, "ctr-7"]) == 0
    assert "leader      worker 0, epoch 1" in capsys.readouterr().out
    assert main(["status", *where, "ctr-7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cluster"]["generation"] == 1
    assert main(["status", *where, "ctr-7", "--serve", "8080"]) == 3
    assert "--serve takes HOST:PORT, not '8080'" in capsys.readouterr().err
    assert main(["status", *where, "ctr-7", "--serve", "127.0.0.1:0", "--json"]) == 3
    assert "has the document at /status.json" in capsys.readouterr().err
    assert main(["status", *where, "none"]) == 3
    assert "there is no job none" in capsys.readouterr().err
