"""What a command is told of its job."""

import json

import pytest

from semisync.cluster.launch.port import HeldPort, is_loopback, own_host, with_port
from semisync.cluster.launch.running import variables, words
from semisync.cluster.record import Shape
from semisync.common.errors import SemisyncError, UsageError

pytestmark = pytest.mark.one_tensorflow

BOOK = {"ps-0": "a:1", "ps-1": "b:2", "worker-0": "c:3", "worker-1": "d:4", "chief-0": "e:5"}


def test_a_job_whose_worker_0_is_the_chief_has_no_chief_of_its_own():
    told = json.loads(variables(Shape(2, 2), BOOK, "worker-1")["TF_CONFIG"])
    assert told == {
        "cluster": {"ps": ["a:1", "b:2"], "worker": ["c:3", "d:4"]},
        "task": {"type": "worker", "index": 1},
    }


def test_an_estimators_chief_is_a_job_of_its_own():
    told = json.loads(variables(Shape(2, 2, chief=True), BOOK, "chief-0")["TF_CONFIG"])
    assert told["cluster"]["chief"] == ["e:5"]
    assert told["task"] == {"type": "chief", "index": 0}


def test_words_of_the_command_line_are_filled_in():
    command = [
        "--hosts={ps_hosts};{worker_hosts}",
        "{job_name}/{task_index}",
        "{other}",
        '{"a": 1}',
    ]
    assert words(command, Shape(2, 2), BOOK, "ps-1") == [
        "--hosts=a:1,b:2;c:3,d:4",
        "ps/1",
        "{other}",
        '{"a": 1}',
    ]


@pytest.mark.parametrize("shape", [Shape(), Shape(1, 0), Shape(0, 1), Shape(-1, 1)])
def test_what_is_no_job_is_refused(shape):
    with pytest.raises(UsageError):
        shape.check()


def test_a_job_cannot_do_without_its_servers_and_its_chief():
    assert Shape(2, 3).required == ["ps-0", "ps-1", "worker-0"]
    assert Shape(1, 0, chief=True).required == ["ps-0", "chief-0"]
    assert Shape(2, 900).candidates == ["ps-0", "ps-1", "worker-0", "worker-1", "worker-2"]


def test_a_held_port_is_nobody_elses():
    held = HeldPort()
    assert HeldPort(held.number).number == held.number  # with the same option, as a server has it
    held.close()


def test_this_machines_address_is_the_one_towards_zookeeper():
    assert own_host("127.0.0.1:2181,other:1/path") == "127.0.0.1"
    assert own_host("localhost:2181") == "127.0.0.1"
    for wrong in ("host", "host:port", ":1", ""):
        with pytest.raises(UsageError, match="HOST:PORT"):
            own_host(wrong)
    with pytest.raises(SemisyncError, match="cannot be reached"):
        own_host("no-such-host.invalid:1")


def test_addresses_of_one_machine_alone_are_known():
    assert is_loopback("127.0.0.1:1") and is_loopback("localhost:1") and is_loopback("[::1]:1")
    assert not is_loopback("10.0.0.1:1") and not is_loopback("host:1")
    assert with_port("::1", 5) == "[::1]:5" and with_port("h", 5) == "h:5"
