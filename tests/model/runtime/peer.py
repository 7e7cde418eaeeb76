"""TensorFlow in another process, asked for what its ops say; see tensorflow_child.py."""

import contextlib
import pathlib
import subprocess

from tests.model.runtime.tensorflow_child import receive, send
from tests.support.require import environment


class Refused(Exception):
    """TensorFlow ended an op with an error."""


class Peer:
    """peer.ask("hash_fast", strings=array, attr_buckets=7) gives the arrays of the answer."""

    def __init__(self, process):
        self._process = process

    def ask(self, kind, **arguments):
        """The outputs of a kind, in order; arguments named attr_... are attributes."""
        send(self._process.stdin, {"kind": kind, **arguments})
        answer = receive(self._process.stdout)
        assert answer is not None, f"TensorFlow ended at {kind}"
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return [answer[str(number)] for number in range(len(answer))]


@contextlib.contextmanager
def tensorflow(python):
    """A Peer that `python` runs."""
    process = subprocess.Popen(
        [python, "-W", "ignore", str(pathlib.Path(__file__).with_name("tensorflow_child.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(TF_CPP_MIN_LOG_LEVEL="3"),
    )
    try:
        yield Peer(process)
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(60)
        process.stdout.close()
