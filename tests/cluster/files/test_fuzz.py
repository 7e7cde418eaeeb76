"""A short run of the fuzzer; `python -m tests.cluster.files.fuzz` runs 10,000 turns."""

import logging

import pytest

from tests.cluster.files import fuzz


def test_no_hostile_request_is_served_and_the_node_serves_on(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG):
        outcomes = fuzz.run(tmp_path, 500)
    assert sum(outcomes.values()) > 450
    statuses = {status for _, status in outcomes}
    assert {0, 400, 401, 404, 405, 413, 416} <= statuses
    assert 500 not in statuses
    assert fuzz.KEY.decode() not in caplog.text
    assert "Traceback" not in caplog.text


def test_the_fuzzer_notices_what_is_served():
    for served in (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 404 No\r\n\r\n" + fuzz.SECRET):
        with pytest.raises(AssertionError):
            fuzz.judge(served)
