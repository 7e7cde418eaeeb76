"""A member holds its name as long as it lives, and no longer."""

import threading

import pytest

from semisync.cluster.zookeeper.membership import Membership, Taken, members
from tests.support.waiting import until

pytestmark = pytest.mark.one_tensorflow

ROOT = "/job"


def test_members_are_seen_with_what_they_say_of_themselves(store):
    one, other = store.client(), store.client()
    came = threading.Event()
    assert members(other, ROOT, came.set) == {}
    member = Membership(one, ROOT, "worker-0", {"id": "a", "address": "h:1"})
    member.register()
    assert came.wait(10)
    assert members(other, ROOT) == {"worker-0": {"id": "a", "address": "h:1"}}
    member.register()  # changes nothing
    member.leave()
    assert members(other, ROOT) == {}


def test_a_name_has_one_holder(store):
    one, other = store.client(), store.client()
    Membership(one, ROOT, "worker-0", {"id": "a", "host": "here"}).register()
    rival = Membership(other, ROOT, "worker-0", {"id": "b"})
    with pytest.raises(Taken, match="worker-0 is there already") as taken:
        rival.register()
    assert taken.value.holder["host"] == "here"
    rival.leave()  # takes nothing from the holder
    assert list(members(one, ROOT)) == ["worker-0"]
    one.close()
    rival.register()
    assert members(other, ROOT)["worker-0"]["id"] == "b"


def test_a_member_registers_again_after_its_session_has_ended(store):
    one, other = store.client(), store.client()
    member = Membership(one, ROOT, "worker-0", {"id": "a"})
    member.register()
    before = one.session
    store.expire(one)
    until(lambda: one.session not in (None, before))
    member.register()
    assert members(other, ROOT) == {"worker-0": {"id": "a"}}
    assert other.stat(ROOT + "/members/worker-0").owner == one.session


def test_a_member_over_a_dead_sessions_node_makes_it_its_own(store):
    """As after a quick restart: the node is there, and would vanish with the earlier session."""
    earlier, now, observer = store.client(), store.client(), store.client()
    Membership(earlier, ROOT, "worker-0", {"id": "a"}).register()
    Membership(now, ROOT, "worker-0", {"id": "a"}).register()
    assert observer.stat(ROOT + "/members/worker-0").owner == now.session
    earlier.close()
    assert members(observer, ROOT) == {"worker-0": {"id": "a"}}
