"""The demo's list of batches, which workers share."""

import contextlib
import socket

import pytest

from semisync.common.compat import tf
from semisync.demo.tensorflow.work import WorkList


@pytest.fixture
def server():
    with contextlib.closing(socket.socket()) as free:
        free.bind(("localhost", 0))
        address = "localhost:%d" % free.getsockname()[1]
    return tf.train.Server({"ps": [address]}, job_name="ps")


def test_a_session_made_again_goes_on_with_the_list_and_each_worker_finds_its_end(server):
    with tf.Graph().as_default():
        work = WorkList(5, is_chief=True)
        numbers = []
        for _ in range(2):
            with tf.Session(server.target) as session:
                work.after_create_session(session, None)
                numbers += [session.run(work.next), session.run(work.next)]
        with tf.Session(server.target) as session:
            numbers.append(session.run(work.next))
            for _ in range(3):
                with pytest.raises(tf.errors.OutOfRangeError):
                    session.run(work.next)
    assert numbers == [0, 1, 2, 3, 4]
