"""A signature serves once, for one request, at one server, in one minute."""

import pytest

from semisync.cluster.files.signing import (
    KEY_VARIABLE,
    Answer,
    Request,
    Verifier,
    read_key,
    signature,
)
from semisync.common.errors import UsageError
from tests.cluster.files.http import KEY

pytestmark = pytest.mark.one_tensorflow

ASKED = Request("GET", "host:1", "/path", "bytes=0-9")


class Clock:
    now = 1.7e9

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def verifier(clock):
    return Verifier(KEY, clock, most=3)


def test_a_right_signature_serves_once(verifier, clock):
    header = signature(KEY, ASKED, clock())
    assert verifier.refusal(ASKED, header) is None
    assert verifier.refusal(ASKED, header) == "the signature was used before"
    assert verifier.refusal(ASKED, signature(KEY, ASKED, clock())) is None


@pytest.mark.parametrize("field", Request._fields)
def test_it_serves_for_no_other_request(verifier, clock, field):
    header = signature(KEY, ASKED, clock())
    changed = ASKED._replace(**{field: getattr(ASKED, field) + "0"})
    assert verifier.refusal(changed, header) == "the signature is wrong"
    assert verifier.refusal(ASKED, header) is None


def test_fields_cannot_be_moved_across_their_border(verifier, clock):
    header = signature(KEY, Request("GET", "host:1", "/a\nbytes=0-9", ""), clock())
    assert verifier.refusal(Request("GET", "host:1", "/a", "bytes=0-9"), header) is not None
    asked = Request("GET", "host:1", "/a\nbytes=0-9", "")
    assert verifier.refusal(asked, header) == "the signature is wrong"
    assert verifier.sign(asked, header, Answer(200, "", b"")) is None


@pytest.mark.parametrize("late", [-31, 31, -1e9, 1e9])
def test_it_is_refused_outside_of_its_window(verifier, clock, late):
    header = signature(KEY, ASKED, clock())
    clock.now += late
    assert "differs from this server's by more than 30 s" in verifier.refusal(ASKED, header)


@pytest.mark.parametrize("skew", [-29, 0, 29])
def test_a_nonce_is_not_forgotten_while_its_time_is_in_the_window(verifier, clock, skew):
    header = signature(KEY, ASKED, clock() + skew)
    assert verifier.refusal(ASKED, header) is None
    for _ in range(100):
        clock.now += 1
        assert verifier.refusal(ASKED, header) is not None


@pytest.mark.parametrize(
    "damage",
    [
        lambda header: None,
        lambda header: "",
        lambda header: header[:-1],
        lambda header: header + "0",
        lambda header: header.upper(),
        lambda header: header.replace("time=", "time=-"),
        lambda header: header.replace("Semisync", "Basic"),
        lambda header: header[:-64] + "0" * 64,
    ],
)
def test_a_damaged_signature_is_refused(verifier, clock, damage):
    assert verifier.refusal(ASKED, damage(signature(KEY, ASKED, clock()))) is not None


def test_another_key_is_refused(verifier, clock):
    header = signature(KEY + b"!", ASKED, clock())
    assert verifier.refusal(ASKED, header) == "the signature is wrong"


def test_its_memory_is_bounded_and_when_full_it_refuses_rather_than_forgets(verifier, clock):
    headers = [signature(KEY, ASKED, clock()) for _ in range(4)]
    assert [verifier.refusal(ASKED, header) for header in headers[:3]] == [None] * 3
    assert "too many requests" in verifier.refusal(ASKED, headers[3])
    assert verifier.refusal(ASKED, headers[0]) == "the signature was used before"
    clock.now += 32
    assert verifier.refusal(ASKED, signature(KEY, ASKED, clock())) is None


def test_a_key_comes_from_a_file_of_ones_own_or_the_environment(tmp_path, monkeypatch):
    place = tmp_path / "job.key"
    place.write_bytes(KEY + b"\n")
    place.chmod(0o600)
    assert read_key(place) == KEY
    monkeypatch.setenv(KEY_VARIABLE, KEY.decode())
    assert read_key() == KEY


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_read_is_refused(tmp_path, mode):
    place = tmp_path / "job.key"
    place.write_bytes(KEY)
    place.chmod(mode)
    with pytest.raises(UsageError, match="chmod 600"):
        read_key(place)


def test_no_key_and_a_short_one_are_refused_without_showing_it(tmp_path, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(UsageError, match=KEY_VARIABLE):
        read_key()
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_key(tmp_path / "none")
    monkeypatch.setenv(KEY_VARIABLE, "hunter2")
    with pytest.raises(UsageError, match="16 to 4096 bytes") as error:
        read_key()
    assert "hunter2" not in str(error.value)
