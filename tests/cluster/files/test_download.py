"""What arrives is what was handed out, whatever happens on the way, or nothing does."""

import http.server
import os
import threading
import time

import pytest

from semisync.cluster.files import download as module
from semisync.cluster.files.download import MANIFEST, Download, Source, Stopped, file_path
from semisync.cluster.files.manifest import BLOCK
from semisync.common.errors import BadInput
from tests.cluster.files.conftest import contents
from tests.cluster.files.http import ask
from tests.support.waiting import until


def fetch(handed_out, into, url=None, token=None, seconds=60.0, stopped=None, say=None):
    server = handed_out.server
    source = Source(url or server.url, token or server.token)
    into.mkdir(exist_ok=True)
    download = Download(
        handed_out.manifest.digest,
        lambda: source,
        str(into),
        seconds,
        stopped or threading.Event(),
        say or (lambda why: None),
    )
    return download.run()


class Between:
    """Somebody on the way, who passes on what the server answers as they like.

    Attributes:
        forge: a function from the path, the Range and the answer (status, headers, body) to what is
            sent; None in its place ends the connection.
        asked: [(path, Range)] so far.
    """

    def __init__(self, server):
        self.asked, self.forge = [], lambda path, span, answer: answer
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                span = self.headers.get("Range", "")
                between.asked.append((self.path, span))
                answer = ask(server, self.path, **({"Range": span} if span else {}))
                forged = between.forge(self.path, span, answer)
                if forged is None:
                    return
                status, headers, body = forged
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.url = "http://127.0.0.1:{}".format(self._server.server_port)

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def between(handed_out):
    made = Between(handed_out.server)
    yield made
    made.close()


MODEL = file_path("model.ckpt")


def test_every_file_arrives_and_nothing_else_stays(handed_out, source, tmp_path):
    assert fetch(handed_out, tmp_path / "copy") == handed_out.manifest
    assert contents(tmp_path / "copy") == contents(source)
    assert os.access(str(tmp_path / "copy" / "run.sh"), os.X_OK)
    assert not os.access(str(tmp_path / "copy" / "one"), os.X_OK)
    assert not (tmp_path / "copy.parts").exists()


def test_a_file_that_is_cut_off_goes_on_where_it_stopped(handed_out, between, source, tmp_path):
    def cut(path, span, answer):
        status, headers, body = answer
        return status, headers, body[:BLOCK] if path == MODEL else body

    between.forge = cut
    fetch(handed_out, tmp_path / "copy", between.url)
    assert contents(tmp_path / "copy") == contents(source)
    spans = [span for path, span in between.asked if path == MODEL]
    assert spans == [""] + ["bytes={}-".format(n * BLOCK) for n in (1, 2, 3)]


def test_a_server_without_ranges_sends_from_the_beginning(handed_out, between, source, tmp_path):
    cuts = [1]

    def forge(path, span, answer):
        if path != MODEL:
            return answer
        status, headers, body = ask(handed_out.server, path)
        return status, headers, body[:BLOCK] if cuts and not cuts.pop() else body

    cuts[:] = [0]
    between.forge = forge
    fetch(handed_out, tmp_path / "copy", between.url)
    assert contents(tmp_path / "copy") == contents(source)
    assert [span for path, span in between.asked if path == MODEL] == ["", "bytes=1048576-"]


def test_what_is_refused_is_tried_again_after_all_others_and_given_up(
    handed_out, between, source, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "LONGEST_REST", 0.05)

    def forge(path, span, answer):
        return (416, {}, b"no ranges") if path == MODEL else answer

    between.forge, said = forge, []
    with pytest.raises(BadInput, match="1 of the job's files .* model.ckpt: it answered 416: no"):
        fetch(handed_out, tmp_path / "copy", between.url, say=said.append)
    paths = [path for path, _ in between.asked]
    others = {file_path(file.path) for file in handed_out.manifest.files if file.size} - {MODEL}
    assert paths.count(MODEL) == module.FAILURES and others <= set(paths)
    assert paths[-module.FAILURES + 1 :] == [MODEL] * (module.FAILURES - 1)
    assert said[0] == "it answered 416: no ranges"


def test_a_changed_byte_is_found_and_its_file_is_named(handed_out, between, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_REST", 0.05)

    def forge(path, span, answer):
        status, headers, body = answer
        return status, headers, body[:-1] + b"!" if path == MODEL else body

    between.forge = forge
    with pytest.raises(BadInput, match="model.ckpt: it sent wrong bytes"):
        fetch(handed_out, tmp_path / "copy", between.url)
    assert not (tmp_path / "copy" / "model.ckpt").exists()
    between.forge = lambda path, span, answer: (200, {}, answer[2].replace(b"one", b"two"))
    with pytest.raises(BadInput, match="manifest: the manifest has another SHA-256"):
        fetch(handed_out, tmp_path / "none", between.url)


def test_more_than_was_asked_for_is_cut(handed_out, between, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_REST", 0.05)
    monkeypatch.setattr(module, "LARGEST", 10**4)

    def forge(path, span, answer):
        return (200, {}, b"x" * 10**7) if path == MANIFEST else answer

    between.forge = forge
    with pytest.raises(BadInput, match="it sent more than 10000 bytes"):
        fetch(handed_out, tmp_path / "copy", between.url)


def test_no_redirect_is_followed(handed_out, between, tmp_path):
    between.forge = lambda *_: (302, {"Location": handed_out.url + MANIFEST}, b"there")
    with pytest.raises(BadInput, match="it answered 302: there"):
        fetch(handed_out, tmp_path / "copy", between.url, seconds=1.0)


def test_a_wrong_token_ends_soon_with_what_the_server_says(handed_out, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_REST", 0.05)
    with pytest.raises(BadInput, match="401: it does not show the job's token"):
        fetch(handed_out, tmp_path / "copy", token="wrong")


def test_a_server_that_goes_and_comes_elsewhere_is_found(handed_out, between, source, tmp_path):
    sources = [Source("http://127.0.0.1:9", "x"), None, Source(handed_out.url, "")]
    sources[2] = Source(handed_out.url, handed_out.server.token)
    said, now = [], [0]

    def say(why):
        said.append(why)
        now[0] = min(2, now[0] + 1)

    (tmp_path / "copy").mkdir()
    Download(
        handed_out.manifest.digest,
        lambda: sources[now[0]],
        str(tmp_path / "copy"),
        60.0,
        threading.Event(),
        say,
    ).run()
    assert contents(tmp_path / "copy") == contents(source)
    assert "http://127.0.0.1:9: " in said[0] and said[1] == "who hands them out is not there"


def test_the_deadline_says_what_the_server_did(handed_out, tmp_path):
    handed_out.server.close()
    with pytest.raises(BadInput, match="1 of the job's files .* manifest: http://127.0.0.1"):
        fetch(handed_out, tmp_path / "copy", seconds=0.5)


def test_a_server_that_says_nothing_or_too_slowly_is_left(
    handed_out, between, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "SILENT_SECONDS", 0.3)
    over = threading.Event()

    def wait(path, span, answer):
        over.wait(60)

    between.forge = wait
    with pytest.raises(BadInput, match="timed out"):
        fetch(handed_out, tmp_path / "copy", between.url, seconds=0.5)
    over.set()


def test_it_ends_when_it_is_told_to(handed_out, tmp_path):
    handed_out.server.close()
    stopped, met = threading.Event(), []

    def run():
        try:
            fetch(handed_out, tmp_path / "copy", stopped=stopped)
        except Stopped:
            met.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    stopped.set()
    thread.join(60)
    until(lambda: met)


def test_nothing_is_written_through_a_link(handed_out, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "words").symlink_to(str(tmp_path / "elsewhere"))
    with pytest.raises(BadInput, match="a folder above it is a symbolic link"):
        fetch(handed_out, tmp_path / "copy")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_disk_that_is_full_is_said_at_once(handed_out, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BadInput, match="copy cannot be written: No space left on device"):
        fetch(handed_out, tmp_path / "copy")
