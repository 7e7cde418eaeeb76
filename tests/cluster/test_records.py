"""A job's records in ZooKeeper, as they are written and as somebody else may have left them."""

import pytest

from semisync.cluster import record
from semisync.cluster.files import configurations
from semisync.cluster.status.document import read_status
from semisync.cluster.zookeeper import generation, membership, memory
from semisync.common.errors import BadInput

pytestmark = pytest.mark.one_tensorflow

ROOT = "/job"


class Client(memory.Client):
    """A client of a server whose `myid` is 128 or more: the first bit of its sessions is set."""

    session = -0x7FFFFFFFFFFFFFFF


@pytest.mark.parametrize("kind", [Client, memory.Client])
def test_a_launcher_is_ready_whatever_the_number_of_its_session(kind):
    client = kind(memory.Tree())
    record.write_ready(client, ROOT, "a1b2", 3)
    assert record.read_ready(client, ROOT) == {("a1b2", 3)}


READERS = {
    "/members/worker-0": membership.members,
    "/generation": generation.read,
    "/ended/worker-0": record.read_ends,
    "/ready/somebody": record.read_ready,
    "/ready/some-body-s": record.read_ready,
    "/configuration/first": configurations.latest,
    "/training": lambda client, root: read_status(client, root, "job"),
}


@pytest.mark.parametrize("path", sorted(READERS))
def test_a_node_of_somebody_else_is_named_in_a_sentence(path):
    client = memory.Client(memory.Tree())
    client.create(ROOT + path, b"somebody's")
    said = "the node {}{} in ZooKeeper does not hold what semisync writes there".format(ROOT, path)
    with pytest.raises(BadInput, match=said):
        READERS[path](client, ROOT)
