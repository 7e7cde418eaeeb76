"""With a user, a job's nodes are the user's alone, whoever was there before or comes between."""

import contextlib
import itertools
import json
import logging

import pytest
from kazoo.exceptions import NoAuthError, NoNodeError, NotEmptyError

from semisync.cli import main
from semisync.cluster import record
from semisync.cluster.files import configurations
from semisync.cluster.zookeeper import membership, ownership
from semisync.cluster.zookeeper.client import BadVersion, Forbidden, NodeExists, NoNode
from semisync.cluster.zookeeper.connection import Access
from semisync.cluster.zookeeper.leader import Election
from semisync.cluster.zookeeper.membership import Membership
from semisync.common import exit_codes
from semisync.common.errors import BadInput

pytestmark = pytest.mark.one_tensorflow

ROOT = "/semisync/ctr-7"
PLAN = ROOT + "/configuration"
ME, OTHER = Access(auth="me:secret"), Access(auth="other:secret")
READ, WRITE, CREATE, DELETE, ALL = 1, 2, 4, 8, 31


@pytest.fixture
def stranger(real_store):
    return real_store.client()


@pytest.fixture
def me(real_store, stranger):
    """A user's client; the nodes above the job are everybody's."""
    stranger.ensure("/semisync")
    return real_store.client(access=ME)


def open_nodes(client, path=ROOT):
    """Nodes from `path` on in which others may do something."""
    lists, _ = client._kazoo.get_acls(path)
    here = [path] if lists != client._kazoo.default_acl else []
    below = (open_nodes(client, "{}/{}".format(path, name)) for name in client.children(path))
    return here + list(itertools.chain.from_iterable(below))


def assert_shut(me, stranger):
    """The stranger can do nothing to any node of the job, nor to the way to it."""
    assert open_nodes(me) == []
    first = PLAN + "/000000001"
    evil = json.dumps({"rate": 1e9}).encode()
    for attempt in (
        lambda: configurations.publish(stranger, ROOT, evil, 1),
        lambda: stranger.create(PLAN + "/000000002", evil),
        lambda: stranger.put(first, evil, -1),
        lambda: stranger.delete(first, -1),
        lambda: stranger.create(ROOT + "/training", b"{}"),
        lambda: stranger.get(first),
    ):
        with pytest.raises(Forbidden):
            attempt()
    for path in (ROOT, "/semisync"):
        with pytest.raises(BadVersion, match="NotEmpty"):
            stranger.delete(path, -1)


NODES = [ROOT, PLAN, ROOT + "/leader/x/y", ROOT + "/owned/x"]


@pytest.mark.parametrize("there", [[], *([node] for node in NODES), NODES], ids=str)
def test_nobody_else_publishes_changes_or_removes_whatever_they_made_before(me, stranger, there):
    for path in there:
        stranger.ensure(path)
    assert configurations.publish(me, ROOT, b'{"rate": 0.1}', 0) == 1
    assert_shut(me, stranger)
    assert configurations.newest(me, ROOT, 0) == (1, b'{"rate": 0.1}')
    assert configurations.newest(me, ROOT, 1) is None


@pytest.mark.parametrize(
    "begin",
    [
        lambda client: Election(client, ROOT, "id", "worker 0"),
        lambda client: Membership(client, ROOT, "worker-0", {"id": "id"}),
    ],
    ids=["election", "membership"],
)
def test_whatever_is_used_first_the_nodes_are_taken_over_before(me, stranger, begin):
    configurations.publish(stranger, ROOT, b"{}", 0)
    begin(me)
    assert_shut(me, stranger)


def test_a_run_without_a_password_leaves_nothing_open_and_its_content(me, stranger, caplog):
    for version in range(3):
        configurations.publish(stranger, ROOT, b"%d" % version, version)
    election = Election(stranger, ROOT, "id", "worker 0", lease=30.0)
    election.step()
    Membership(stranger, ROOT, "worker-0", {"id": "id"}).register()
    record.write_end(stranger, ROOT, "worker-1", "id", 0, "")
    record.write_training(stranger, ROOT, {})
    with caplog.at_level(logging.WARNING, "semisync.cluster.zookeeper"):
        Membership(me, ROOT, "worker-0", {"id": "other"})
    assert_shut(me, stranger)
    assert [one.getMessage() for one in caplog.records] == [
        "ZooKeeper, {}: others could write to 11 of its nodes, which are this user's alone from "
        "now on; if others did, end the job and remove them".format(ROOT)
    ]
    assert membership.members(me, ROOT) == {}  # it held its place by a session that is not ours
    with pytest.raises(Forbidden):
        election.step()


def test_a_second_process_of_the_user_is_not_disturbed(me, real_store, stranger, caplog):
    stranger.ensure(ROOT + "/members")
    Membership(me, ROOT, "worker-0", {"id": "id"}).register()
    caplog.clear()
    second = real_store.client(access=ME)
    Membership(second, ROOT, "worker-1", {"id": "other"}).register()
    assert sorted(membership.members(second, ROOT)) == ["worker-0", "worker-1"]
    assert caplog.records == []


def test_a_job_that_was_the_users_from_the_start_costs_four_requests(me, real_store):
    configurations.publish(me, ROOT, b"{}", 0)
    assert take(real_store.client(access=ME), (), None) == 4


def acl(client, path, *given):
    """Sets a node's access list: pairs of "user:password", or None for everybody, and rights."""
    from kazoo.security import ACL, Id, make_digest_acl_credential

    client.ensure(path)
    lists = [
        ACL(rights, Id("digest", make_digest_acl_credential(*who.split(":"))))
        if who
        else ACL(rights, Id("world", "anyone"))
        for who, rights in given
    ]
    client._kazoo.set_acls(path, lists)


@pytest.mark.parametrize("path", [ROOT, ROOT + "/leader", PLAN])
@pytest.mark.parametrize(
    "given",
    [
        [(None, READ | WRITE | CREATE | DELETE)],
        [("other:secret", ALL)],
        [("other:secret", ALL), (None, READ)],
        [("other:secret", ALL), ("me:secret", READ | WRITE | CREATE | DELETE)],
        [(None, READ)],
    ],
    ids=["everybody's", "another's", "another's to read", "shared", "nobody's"],
)
def test_a_node_that_others_hold_is_refused_by_name(me, stranger, path, given):
    acl(stranger, path, *given)
    for _ in range(2):
        with pytest.raises(BadInput, match="^ZooKeeper, {}: .*another user's".format(path)):
            configurations.publish(me, ROOT, b"{}", 0)


def test_a_way_to_the_job_that_is_anothers_is_refused_by_name(me, real_store, stranger):
    other = real_store.client(access=OTHER)
    acl(stranger, "/semisync", ("other:secret", ALL))
    with pytest.raises(BadInput, match="^ZooKeeper, {}: .*another user's".format(ROOT)):
        me.own(ROOT)
    other.delete("/semisync", -1)
    stranger.create("/semisync", b"", ephemeral=True)
    with pytest.raises(BadInput, match="^ZooKeeper, {}: .*another user's".format(ROOT)):
        me.own(ROOT)


@pytest.mark.parametrize("path", [ROOT, ROOT + "/members", ROOT + "/owned"])
def test_what_ends_with_a_strangers_session_is_removed(me, stranger, path):
    stranger.create(path, b"", ephemeral=True)
    configurations.publish(me, ROOT, b"{}", 0)
    stranger.close()
    assert me.children(ROOT) == ["configuration", "owned"]
    assert open_nodes(me) == []


def take(me, at, act):
    """Takes the job over; `act` runs right before the requests of these numbers.

    Returns:
        The number of requests.
    """
    numbers = itertools.count()

    def ask(*what):
        if next(numbers) in at:
            act()
        return me._ask(*what)

    ownership.Ownership(ask, me._kazoo.default_acl).take(ROOT)
    return next(numbers)


def replace(stranger, path):
    """Puts nodes of the stranger's in place of the job's, where they may."""
    for known in (ROOT + "/owned", ROOT):  # without a look inside
        with contextlib.suppress(NoNode, BadVersion, Forbidden):
            stranger.delete(known, -1)
    with contextlib.suppress(NoNodeError, NotEmptyError, NoAuthError):
        stranger._kazoo.delete(ROOT, recursive=True)
    with contextlib.suppress(NodeExists, Forbidden):
        stranger.create(path, b"1e9")


@pytest.mark.long
@pytest.mark.parametrize("begin", ["absent", "open"])
@pytest.mark.parametrize("path", [ROOT, PLAN + "/000000001"], ids=["empty", "full"])
def test_whenever_a_stranger_puts_a_node_in_its_place_it_is_taken_over(me, stranger, begin, path):
    most, times = 0, range(9)
    for at in itertools.chain(
        [()], itertools.combinations(times, 1), itertools.combinations(times, 2)
    ):
        if begin == "open":
            stranger.ensure(path)
        most = max(most, take(me, at, lambda: replace(stranger, path)))
        assert open_nodes(me) == []
        with pytest.raises(Forbidden):
            stranger.create(ROOT + "/training", b"")
        with pytest.raises(BadVersion, match="NotEmpty"):
            stranger.delete(ROOT, -1)
        me._kazoo.delete(ROOT, recursive=True)
    assert most > 8  # some began again


def test_who_replaces_the_root_without_end_is_named(me, stranger):
    with pytest.raises(BadInput, match="removes it whenever this job has made it"):
        take(me, range(10**6), lambda: replace(stranger, ROOT))


def test_nodes_without_number_or_bottom_are_refused_in_bounded_time(me, stranger, monkeypatch):
    monkeypatch.setattr(ownership, "_MOST", 200)
    stranger.ensure(ROOT + "/a" * 250)
    with pytest.raises(BadInput, match="it has more than 200 nodes that others could write to"):
        me.own(ROOT)


def test_a_launcher_ends_with_one_sentence_where_the_job_is_anothers(
    real_store, stranger, tmp_path, capsys
):
    acl(stranger, ROOT, (None, READ | WRITE | CREATE | DELETE))
    auth = tmp_path / "auth"
    auth.write_text("me:secret\n")
    auth.chmod(0o600)
    options = ["--zookeeper", real_store.hosts, "--job", "ctr-7", "--auth", str(auth)]
    options += ["--role", "ps", "--ps", "1", "--workers", "1", "--", "true"]
    assert main(["launch", *options]) == exit_codes.BAD_INPUT
    error = capsys.readouterr().err
    assert "{}: NoAuthError: it or the node above is another user's".format(ROOT) in error
    assert error.count("\n") == 1
