"""A manifest says of every byte what it is, and names nothing outside of its folder."""

import hashlib
import json
import os
import subprocess

import pytest

from semisync.cluster.files.manifest import PARTS, make_manifest, read_manifest
from semisync.common.errors import BadInput, UsageError
from tests.cluster.files.conftest import CHUNK

pytestmark = pytest.mark.one_tensorflow


def test_its_checksums_are_those_of_sha256sum(source):
    for file in make_manifest(source, "job").files:
        place = os.path.join(str(source), file.path)
        assert subprocess.check_output(["sha256sum", place]).split()[0].strip(b"\\").decode() == (
            file.sha256
        )
        with open(place, "rb") as stream:
            data = stream.read()
        pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
        assert list(file.chunks) == [hashlib.sha256(piece).hexdigest() for piece in pieces]


def test_equal_folders_have_one_digest_and_a_changed_byte_has_another(source, tmp_path):
    first = make_manifest(source, "job")
    subprocess.check_call(["cp", "-r", str(source), str(tmp_path / "copy")])
    assert make_manifest(tmp_path / "copy", "job").digest == first.digest
    assert read_manifest(first.to_bytes(), first.digest, "here") == first
    with open(str(tmp_path / "copy" / "one"), "r+b") as file:
        file.write(b"!")
    assert make_manifest(tmp_path / "copy", "job").digest != first.digest
    assert make_manifest(source, "another").digest != first.digest


def test_the_parts_of_a_download_are_not_published(source):
    before = make_manifest(source, "job")
    (source / PARTS / "x").mkdir(parents=True)
    (source / PARTS / "x" / "0.part").write_bytes(b"half")
    assert make_manifest(source, "job") == before


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: (f / "link").symlink_to("/etc/passwd"), "link is neither a file nor a folder"),
        (lambda f: (f / "words" / "loop").symlink_to(".."), "loop is neither a file nor a folder"),
        (lambda f: os.mkfifo(str(f / "pipe")), "pipe is neither a file nor a folder"),
        (lambda f: (f / "a\nb").write_bytes(b""), "cannot be published"),
        (lambda f: (f / "a\\b").write_bytes(b""), "cannot be published"),
    ],
)
def test_what_is_no_plain_file_is_refused(source, change, sentence):
    change(source)
    with pytest.raises(BadInput, match=sentence):
        make_manifest(source, "job")


def test_an_empty_folder_no_folder_and_no_job_are_refused(source, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="there is no file to publish"):
        make_manifest(tmp_path / "empty", "job")
    with pytest.raises(UsageError, match="no such folder"):
        make_manifest(tmp_path / "none", "job")
    with pytest.raises(UsageError, match="is not a job's id"):
        make_manifest(source, "../job")


def entry(path, size=0):
    chunks = ["0" * 64] * -(-size // CHUNK)
    return {"path": path, "size": size, "sha256": "0" * 64, "chunks": chunks}


def read(*files, **more):
    value = dict({"schema": 1, "job": "job", "chunk_size": CHUNK, "files": list(files)}, **more)
    data = json.dumps(value).encode()
    return read_manifest(data, hashlib.sha256(data).hexdigest(), "there")


HOSTILE = ["../a", "a/../../b", "/etc/passwd", "a//b", "a/", "", ".", "a/./b", "a\\..\\b", "a\0b"]
HOSTILE += [PARTS + "/x", "\ud800", "a" * 256, "b/" * 600 + "c", None, 7, "a\u202eb"]


@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_that_leaves_the_folder_or_fits_no_disk_is_refused(path):
    with pytest.raises(BadInput, match="cannot be published"):
        read(entry(path))


@pytest.mark.parametrize(
    ("files", "more", "sentence"),
    [
        ([entry("b"), entry("a")], {}, "not sorted, each once"),
        ([entry("a"), entry("a")], {}, "not sorted, each once"),
        ([entry("a"), entry("a/b")], {}, "a is a file and a folder"),
        ([dict(entry("a"), size=-1)], {}, "no size that fits"),
        ([dict(entry("a"), size=True)], {}, "no size that fits"),
        ([dict(entry("a"), size=CHUNK + 1)], {}, "no size that fits"),
        ([dict(entry("a", 9), chunks=["x" * 64])], {}, "has no SHA-256"),
        ([], {}, "no files"),
        ([entry("a")], {"job": 7}, "no job"),
        ([entry("a")], {"chunk_size": 0}, "no chunk size"),
        ([entry("a")], {"schema": 2}, "has schema 2, and this semisync reads 1"),
        ([7], {}, "cannot be read"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(files, more, sentence):
    with pytest.raises(BadInput, match=sentence):
        read(*files, **more)


def test_a_manifest_of_another_digest_is_refused(source):
    manifest = make_manifest(source, "job")
    with pytest.raises(BadInput, match="another SHA-256"):
        read_manifest(manifest.to_bytes() + b" ", manifest.digest, "there")
