"""Files to hand out, and servers that are closed after the test."""

import os
import random

import pytest

from semisync.cluster.files.manifest import BLOCK, copy
from semisync.cluster.files.server import FileServer


@pytest.fixture
def source(tmp_path):
    """A folder of five files: several blocks, exactly one, few bytes, none, a program."""
    folder = tmp_path / "source"
    (folder / "words").mkdir(parents=True)
    dice = random.Random(1)

    def some(size):
        return dice.getrandbits(8 * size).to_bytes(size, "big")

    (folder / "model.ckpt").write_bytes(some(3 * BLOCK + 7))
    (folder / "one").write_bytes(some(BLOCK))
    (folder / "words" / "user name ü%2e.txt").write_bytes(b"anna\nbela\n")
    (folder / "words" / "empty").write_bytes(b"")
    (folder / "run.sh").write_bytes(b"echo it runs\n")
    (folder / "run.sh").chmod(0o755)
    return folder


class HandedOut:
    """A server of a folder's copy.

    Attributes:
        manifest, server, folder: of the copy.
    """

    def __init__(self, source, folder):
        self.folder = folder
        folder.mkdir()
        self.manifest = copy([(str(source), "")], str(folder))
        self.server = FileServer(self.manifest, str(folder), "127.0.0.1")

    @property
    def url(self):
        return self.server.url


@pytest.fixture
def handed_out(source, tmp_path):
    """The source's copy, served."""
    made = HandedOut(source, tmp_path / "shipped")
    yield made
    made.server.close()


def contents(folder):
    """{relative path: bytes} of every file below a folder."""
    found = {}
    for above, _, names in os.walk(str(folder)):
        for name in names:
            path = os.path.join(above, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, str(folder))] = file.read()
    return found
