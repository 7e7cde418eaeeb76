"""Nobody without the job's key answers for a node, whoever stands on the way to it."""

import functools

import pytest

from semisync.cluster import files
from semisync.cluster.files import downloading
from semisync.cluster.files.configurations import Configurations
from semisync.cluster.files.signing import (
    ANSWER_HEADER,
    Answer,
    Request,
    Verifier,
    answer_signature,
    is_signed,
    signature,
)
from semisync.cluster.zookeeper import memory
from semisync.common.errors import BadInput
from tests.cluster.files.between import Answered, Between
from tests.cluster.files.conftest import contents
from tests.cluster.files.http import KEY

ASKED = Request("GET", "host:1", "/configurations/plan/1", "")
SAID = Answer(200, "", b'{"rate": 0.1}')
EVIL = b'{"rate": 1e9}'


@pytest.fixture
def between():
    with Between() as one:
        yield one


@pytest.fixture
def store():
    return memory.Client(memory.Tree())


@pytest.fixture
def job(between, store):
    """Asks a node for the version after another; one is published."""
    configurations = Configurations(store, "/job")
    configurations.publish("plan", {"rate": 0.1}, after=0)
    with between.node(KEY, configurations=configurations) as node:
        yield functools.partial(files.next_configuration, KEY, node.url, "plan", seconds=0)


@pytest.fixture
def failures(monkeypatch):
    """The failures of sources, as a download hears of them."""
    failed, told = downloading._Source.failed, []

    def tell(self, failure):
        told.append(failure)
        failed(self, failure)

    monkeypatch.setattr(downloading._Source, "failed", tell)
    return told


def without(answer):
    """An answer without its signature."""
    return answer._replace(headers={n: v for n, v in answer.headers.items() if n != ANSWER_HEADER})


def test_what_the_node_says_is_believed_through_any_hands(between, job, store):
    assert job(after=0) == (1, {"rate": 0.1})
    assert job(after=1) is None
    store.cut()
    assert job(after=0) is None
    assert [answer.status for answer in between.genuine] == [200, 404, 503]


@pytest.mark.parametrize(
    "forge",
    [
        pytest.param(lambda answer: answer._replace(body=EVIL), id="another body"),
        pytest.param(lambda answer: without(answer)._replace(body=EVIL), id="no signature"),
        pytest.param(without, id="its own body, unsigned"),
        pytest.param(lambda answer: answer._replace(status=604 - answer.status), id="its opposite"),
        pytest.param(
            lambda answer: answer._replace(status=404, headers={"Retry-After": "1"}), id="not yet"
        ),
        pytest.param(
            lambda answer: answer._replace(status=503, headers={"Retry-After": "1"}), id="later"
        ),
        pytest.param(
            lambda answer: answer._replace(status=302, headers={"Location": "/x"}), id="redirect"
        ),
        pytest.param(lambda answer: answer._replace(status=410, body=b"gone\n"), id="gone"),
        pytest.param(
            lambda answer: answer._replace(
                headers={ANSWER_HEADER: answer.headers[ANSWER_HEADER][:-1] + "x"}
            ),
            id="a damaged signature",
        ),
        pytest.param(
            lambda answer: answer._replace(headers={ANSWER_HEADER: "\xff\xfe"}), id="noise"
        ),
    ],
)
@pytest.mark.parametrize("after", [0, 1], ids=["published", "not published"])
def test_what_was_changed_or_made_up_on_the_way_is_refused(between, job, forge, after):
    between.forge = forge
    with pytest.raises(BadInput, match="without a signature by the job's key"):
        job(after=after)


def test_when_the_node_wants_to_be_asked_again_cannot_be_changed(between, job):
    between.forge = lambda answer: answer._replace(
        headers=dict(answer.headers, **{"Retry-After": "30"})
    )
    with pytest.raises(BadInput, match="404: not yet, without a signature"):
        job(after=1)


@pytest.mark.parametrize("recorded, after", [(0, 0), (0, 1), (1, 1), (1, 0)])
def test_a_recorded_answer_serves_for_no_later_request(between, job, recorded, after):
    job(after=recorded)
    between.forge = lambda answer: between.genuine[0]
    with pytest.raises(BadInput, match="without a signature by the job's key"):
        job(after=after)


def test_a_server_that_has_another_key_is_not_believed(between, job):
    other = Verifier(KEY + b"!")
    assert other.sign(ASKED, signature(KEY, ASKED), SAID) is None
    header = signature(KEY, ASKED)
    assert not is_signed(
        KEY, ASKED, header, SAID, answer_signature(KEY + b"!", ASKED, header, SAID)
    )
    between.forge = lambda answer: answer._replace(status=401, body=b"go away\n")
    with pytest.raises(BadInput, match="401: go away, without a signature by the job's key"):
        job(after=0)


def test_who_alters_a_request_gets_no_signed_refusal_of_it(between, job):
    asked = between.ask

    def altered(path, headers):
        return asked(path, dict(headers, Range="bytes=0-1"))

    between.ask = altered
    with pytest.raises(BadInput, match="401: the signature is wrong, without a signature"):
        job(after=0)
    between.ask = lambda path, headers: asked("/none", headers)
    with pytest.raises(BadInput, match="401: the signature is wrong, without a signature"):
        job(after=0)


@pytest.mark.parametrize("field", Request._fields)
def test_a_signed_answer_serves_for_no_other_request(field):
    header = signature(KEY, ASKED)
    signed = answer_signature(KEY, ASKED, header, SAID)
    assert is_signed(KEY, ASKED, header, SAID, signed)
    changed = ASKED._replace(**{field: getattr(ASKED, field) + "0"})
    assert not is_signed(KEY, changed, header, SAID, signed)
    assert not is_signed(KEY, ASKED, signature(KEY, ASKED), SAID, signed)  # another nonce


@pytest.mark.parametrize(
    "changed", [{"status": 201}, {"wait": "1"}, {"body": SAID.body + b" "}], ids=str
)
def test_a_signature_is_of_one_answer(changed):
    header = signature(KEY, ASKED)
    signed = answer_signature(KEY, ASKED, header, SAID)
    assert not is_signed(KEY, ASKED, header, SAID._replace(**changed), signed)


def test_a_signed_request_is_no_signed_answer():
    header = signature(KEY, ASKED)
    assert not is_signed(KEY, ASKED, header, SAID, header.rpartition(",")[2])


def test_a_download_is_neither_put_off_nor_led_elsewhere_by_others(
    between, source, tmp_path, failures
):
    forged = [(503, {"Retry-After": "30"}), (302, {"Location": "/"})]

    def forge(answer):
        if not forged:
            return answer
        status, headers = forged.pop()
        return Answered(status, headers, b"later\n")

    between.forge = forge
    with between.node(KEY) as node:
        digest = node.publish(source, "job")
        files.download(KEY, digest, [node.url], tmp_path / "copy", 60.0)
    assert contents(tmp_path / "copy") == contents(source)
    assert len(failures) == 2
    for failure in failures:
        assert failure.wait is None
        assert "later, without a signature by the job's key" in str(failure)
