"""Files that a real TensorFlow writes for the tests, once per version of the writer.

A writer is a script that runs as `python WRITER FOLDER OPTIONS` and writes into FOLDER; it imports
TensorFlow, NumPy and files beside it. Its output is cached under .pytest_cache by the content of
all inputs: the writer and the files beside it, its options, the files given to it, the versions of
TensorFlow and NumPy. All test processes share the folder: copy a file before a test changes it.
"""

import contextlib
import fcntl
import hashlib
import pathlib
import shutil
import sys

from tests.support.programs import output_of
from tests.support.require import ROOT, TF1_PYTHON, forked_tensorflow

KEPT = ROOT / ".pytest_cache" / "written"
PACKAGES = ("tensorflow-", "numpy-")


def written(python, writer, *options, beside=(), given=None):
    """The folder that a writer has written.

    Args:
        python: the interpreter that has TensorFlow.
        writer: path of the script.
        options: of its command line, after the folder.
        beside: names of the files beside it that it imports.
        given: {name: bytes} of files to put into the folder first.
    """
    given = given or {}
    writer = pathlib.Path(writer)
    # Files named `checkpoint` hold the whole path.
    digest = hashlib.sha256(repr((str(KEPT), _versions(python), options)).encode())
    for path in [writer, *(writer.with_name(name) for name in beside)]:
        digest.update(path.read_bytes())
    for name, content in sorted(given.items()):
        digest.update(name.encode() + content)
    folder = KEPT / "{}-{}".format(writer.stem, digest.hexdigest()[:16])
    with _locked(folder) as done:
        if not done.exists():
            if python in (sys.executable, str(TF1_PYTHON)):
                python = forked_tensorflow(python)
            _write(folder, [python, "-W", "ignore", str(writer)], options, given)
            done.touch()
    return folder


def semisync_sources():
    """A digest of the code that builds a job's graph, for the options of a writer that runs it."""
    digest = hashlib.sha256()
    for package in ("semisync", "graph_rewrite"):
        for path in sorted((ROOT / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def _locked(folder):
    """Lets one test process write while the others wait; yields the path of the completion mark."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(str(folder) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder.with_name(folder.name + ".done")


def _write(folder, command, options, given):
    shutil.rmtree(str(folder), ignore_errors=True)  # of an interrupted writer
    folder.mkdir()
    for name, content in given.items():
        (folder / name).write_bytes(content)
    output_of(*command, folder, *options, TF_CPP_MIN_LOG_LEVEL="2")


def _versions(python):
    """The distributions, with versions, on which a writer's output depends."""
    return sorted(
        path.name
        for path in pathlib.Path(python).parents[1].glob("lib/python*/site-packages/*.dist-info")
        if path.name.startswith(PACKAGES)
    )
