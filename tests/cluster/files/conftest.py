"""A folder to publish, and nodes that are closed after the test."""

import os
import random

import pytest

from semisync.cluster import files
from semisync.cluster.files import manifest as manifests
from tests.cluster.files.http import KEY

CHUNK = 1 << 16


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 KiB, so that little data is many chunks."""
    monkeypatch.setattr(manifests.make_manifest, "__defaults__", (CHUNK,))


@pytest.fixture
def source(tmp_path, small_chunks):
    """A folder of four files: several chunks, exactly one, few bytes, none."""
    folder = tmp_path / "source"
    (folder / "words").mkdir(parents=True)
    dice = random.Random(1)

    def some(size):
        return dice.getrandbits(8 * size).to_bytes(size, "big")

    (folder / "model.ckpt").write_bytes(some(10 * CHUNK + 7))
    (folder / "one").write_bytes(some(CHUNK))
    (folder / "words" / "user name ü%2e.txt").write_bytes(b"anna\nbela\n")
    (folder / "words" / "empty").write_bytes(b"")
    return folder


@pytest.fixture
def node():
    """Makes nodes."""
    made = []

    def make(**options):
        made.append(files.Node(options.pop("key", KEY), **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def contents(folder):
    """{relative path: bytes} of every file below a folder."""
    found = {}
    for above, _, names in os.walk(str(folder)):
        for name in names:
            path = os.path.join(above, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, str(folder))] = file.read()
    return found
