"""The page over HTTP, and the command that reads it."""

import json
import urllib.error
import urllib.request

import pytest

from semisync.cli import main
from semisync.cluster.status.server import Page, StatusServer
from semisync.cluster.status.text import lines
from semisync.common.errors import BadInput, UsageError
from tests.cluster.status.documents import document, training


@pytest.fixture
def page():
    with Page("ctr-7") as one:
        yield one


def get(url, method="GET"):
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=20) as answer:
        return answer.headers, answer.read().decode("utf-8")


def test_lines_the_document_and_the_metrics_come_from_one_port():
    with StatusServer(document) as server:
        headers, text = get(server.url)
        assert headers["Content-Type"] == "text/plain; charset=utf-8"
        assert text.splitlines() == lines(document())
        assert json.loads(get(server.url + "/status.json")[1]) == document()
        headers, text = get(server.url + "/metrics")
        assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert 'semisync_global_step{job_id="ctr-7"} 12345\n' in text


def test_nothing_else_is_served_and_nothing_can_be_changed(page):
    for path, method, status in [
        ("/status.json?x", "GET", 404),
        ("/../etc/passwd", "GET", 404),
        ("/", "POST", 405),
        ("/status.json", "PUT", 405),
    ]:
        with pytest.raises(urllib.error.HTTPError) as error:
            get(page.url + path, method)
        assert error.value.code == status


def test_what_cannot_be_read_is_said_and_not_shown_as_an_old_status():
    def fail():
        raise BadInput("there is no connection")

    with StatusServer(fail) as server:
        with pytest.raises(urllib.error.HTTPError) as error:
            get(server.url)
        assert (error.value.code, error.value.read()) == (503, b"there is no connection\n")


def test_the_command_prints_lines_or_json(page, capsys):
    page.show(training())
    assert main(["status", "--url", page.url]) == 0
    assert "global step 12,345" in capsys.readouterr().out
    assert main(["status", "--url", page.url + "/", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["training"] == training()


def test_a_page_that_is_gone_or_none_ends_with_one_sentence(page, capsys):
    url = page.url
    page.close()
    for arguments, sentence in [
        (["--url", url], "does not tell its status"),
        (["--url", "ctr-7"], "is no page: http://HOST:PORT was expected"),
        (["--zookeeper", "x:1"], "--job is missing"),
        (["--url", url, "--serve", "x:1"], "go with --zookeeper"),
    ]:
        assert main(["status", *arguments]) == 3
        error = capsys.readouterr().err
        assert sentence in error
        assert error.count("\n") == 1


def test_a_port_that_is_taken_is_refused(page):
    with pytest.raises(UsageError, match="cannot be listened to"):
        Page("other", port=int(page.url.rpartition(":")[2]))


def test_in_a_terminal_it_is_shown_anew_and_says_when_it_is_gone(page, capsys, monkeypatch):
    page.show(training())
    turns = []

    def next_turn(_):
        turns.append(page.close())
        if len(turns) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("time.sleep", next_turn)
    assert main(["status", "--url", page.url]) == 130
    first, second = capsys.readouterr().out.split("\033[H\033[J")[1:]
    assert "global step 12,345" in first
    assert second.startswith(first.rstrip("\n"))
    assert "does not tell its status" in second
