"""The status over HTTP."""

import json
import urllib.error
import urllib.request

import pytest

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


def test_the_chiefs_page_shows_its_last_report(page):
    page.show(training())
    assert json.loads(get(page.url + "/status.json")[1])["training"] == training()


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


def test_a_port_that_is_taken_is_refused(page):
    with pytest.raises(UsageError, match="cannot listen on"):
        Page("other", port=int(page.url.rpartition(":")[2]))
