"""All that a node sends keeps one pace."""

import asyncio

import pytest

from semisync.cluster.files import pace


@pytest.mark.parametrize(
    ("rate", "slept"), [(None, []), (100.0, [1.0, 3.0, 3.5]), (1000.0, [0.1, 0.3, 0.35])]
)
def test_bytes_go_in_the_order_in_which_they_ask_and_no_faster_than_the_rate(
    rate, slept, monkeypatch
):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    async def send():
        limited = pace.Pace(rate)
        for size in (100, 200, 50, 1):
            await limited.wait(size)

    monkeypatch.setattr(pace.asyncio, "sleep", sleep)
    monkeypatch.setattr(pace.time, "monotonic", lambda: 7.0)
    asyncio.get_event_loop_policy().new_event_loop().run_until_complete(send())
    assert waits == pytest.approx(slept)
