"""A TensorFlow model in a process of its own, run by an interpreter that has TensorFlow.

`tf_child.messages` is the protocol. Every answer has a deadline; a child that misses it is killed,
and one that dies is reported with the last line that it wrote to stderr.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from migrate.scoring.model import Feature, Input
from migrate.scoring.tf_child.messages import receive, send
from semisync.common.errors import BadInput, UsageError
from semisync.common.logs import last_error

_CHILD = pathlib.Path(__file__).with_name("tf_child")


class TensorFlowModel:
    """Starts the child and opens the model.

    Args:
        python: the interpreter, Python 3.7 or later with TensorFlow 1.15 or later.
        spec: of the model, see `tf_child.scorer.Scorer`.
        origin: `model.Model.origin` without the versions.
        timeout: seconds for each answer.

    Raises:
        UsageError: the interpreter cannot be run.
        BadInput: with its own or TensorFlow's message.
    """

    def __init__(
        self, python: str, spec: Mapping[str, Any], origin: Dict[str, Any], timeout: float
    ) -> None:
        self._python, self._path, self._timeout = python, spec["path"], timeout
        self._late = threading.Event()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        environment = dict(os.environ)
        environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        # Set by importing TensorFlow 2.x; it would make a 1.15 behave like 2.x.
        environment.pop("TF2_BEHAVIOR", None)
        try:
            self._child = subprocess.Popen(
                [python, str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                start_new_session=True,  # Ctrl-C is the parent's to handle
            )
        except OSError as error:
            raise UsageError(f"{python} cannot be run: {error.strerror}") from error
        try:
            head, _ = self._ask(dict(spec))
        except BaseException:
            self.close()
            raise
        self.inputs = [Input(**described) for described in head["inputs"]]
        self.batch: Optional[int] = head["batch"]
        self.output: Optional[str] = spec["output"]
        self._origin = {**origin, "versions": head["versions"]}

    def score(self, rows: int, features: List[Feature]) -> np.ndarray:
        """The output for a batch, of the model's own shape."""
        return self._ask({"rows": rows}, arrays_of(features))[1]["scores"]

    def origin(self) -> Dict[str, Any]:
        """As `model.Model.origin`."""
        return self._origin

    def close(self) -> None:
        """Ends the child, and the processes that it started."""
        self._kill()
        streams: List[Any] = [self._child.stdin, self._child.stdout, self._errors]
        for stream in streams:
            with contextlib.suppress(OSError):  # unflushed data has no reader any more
                stream.close()
        self._child.wait()

    def _ask(
        self, head: Mapping[str, Any], arrays: Sequence[Tuple[str, np.ndarray]] = ()
    ) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
        # A pipe has no deadline: the child's death ends the write or read that waits for it.
        alarm = threading.Timer(self._timeout, self._end_late_child)
        alarm.start()
        try:
            send(self._child.stdin, head, arrays)
            answer = receive(self._child.stdout)
        except (OSError, EOFError):
            answer = None
        except ValueError as error:
            raise BadInput(
                f"{self._python} answers with something else; a Python with TensorFlow is expected"
            ) from error
        finally:
            alarm.cancel()
        if answer is None:
            raise BadInput(f"{self._path}: {self._python} {self._end()}")
        if "error" in answer[0]:
            raise BadInput(f"{self._path}: {answer[0]['error']}")
        return answer

    def _end_late_child(self) -> None:
        self._late.set()
        self._kill()

    def _kill(self) -> None:
        """Kills the whole session: if `python` is a script, the real one is a child of the
        child."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)

    def _end(self) -> str:
        """A sentence on the end of a child that no longer answers."""
        try:
            code = self._child.wait(self._timeout)
        except subprocess.TimeoutExpired:
            self._late.set()
        if self._late.is_set():
            return f"gave no answer within {self._timeout:g} s; --timeout gives it more"
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        return f"ended with {how}: {last_error(self._errors)}"


def arrays_of(features: Sequence[Feature]) -> List[Tuple[str, np.ndarray]]:
    """The features of a batch in the form of `tf_child.messages`."""
    arrays: List[Tuple[str, np.ndarray]] = []
    for i, feature in enumerate(features):
        arrays.append((f"{i}", feature.numpy()))
        if feature.lengths is not None:
            arrays.append((f"{i}/lengths", feature.lengths))
    return arrays
