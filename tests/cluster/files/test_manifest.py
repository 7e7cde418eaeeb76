"""A manifest says of every file what it is, and names nothing outside of its folder."""

import hashlib
import json
import os
import subprocess

import pytest

from semisync.cluster.files.manifest import copy, read_manifest
from semisync.common.errors import BadInput
from tests.cluster.files.conftest import contents

pytestmark = pytest.mark.one_tensorflow


@pytest.fixture
def copied(tmp_path):
    """A function that copies (place, path)s, into a folder of its own each time."""
    made = []

    def make(*sources):
        made.append(tmp_path / "copy-{}".format(len(made)))
        made[-1].mkdir()
        return copy([(str(place), path) for place, path in sources], str(made[-1]))

    return make


def test_its_checksums_are_those_of_sha256sum_and_the_copy_is_the_same(source, copied, tmp_path):
    manifest = copied((source, ""))
    assert contents(tmp_path / "copy-0") == contents(source)
    for file in manifest.files:
        place = os.path.join(str(source), file.path)
        said = subprocess.check_output(["sha256sum", place]).split()[0].strip(b"\\").decode()
        assert (file.sha256, file.size) == (said, os.path.getsize(place))
        assert file.executable == (file.path == "run.sh")


def test_equal_files_have_one_digest_and_a_changed_byte_has_another(source, copied):
    first = copied((source, ""))
    assert read_manifest(first.to_bytes(), first.digest) == first
    for folder in ("__pycache__", ".git"):
        (source / "words" / folder).mkdir()
        (source / "words" / folder / "changes").write_bytes(b"with every start")
    assert copied((source, "")).digest == first.digest
    (source / "run.sh").chmod(0o644)
    second = copied((source, ""))
    with open(str(source / "one"), "r+b") as file:
        file.write(b"!")
    assert len({first.digest, second.digest, copied((source, "")).digest}) == 3


def test_files_and_folders_have_the_paths_that_they_are_given(source, copied):
    manifest = copied((source / "words", "a"), (source / "words", "b/c"), (source / "one", "one"))
    names = ("empty", "user name ü%2e.txt")
    expected = [folder + name for folder in ("a/", "b/c/") for name in names] + ["one"]
    assert [file.path for file in manifest.files] == expected


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: (f / "link").symlink_to("/etc/passwd"), "link: it is not there, or neither"),
        (lambda f: (f / "words" / "loop").symlink_to(".."), "loop: it is not there, or neither"),
        (lambda f: os.mkfifo(str(f / "pipe")), "pipe: it is not there, or neither"),
        (lambda f: (f / "a\nb").write_bytes(b""), "cannot be handed out"),
        (lambda f: (f / "a\\b").write_bytes(b""), "cannot be handed out"),
    ],
)
def test_what_is_no_plain_file_is_refused(source, copied, change, sentence):
    change(source)
    with pytest.raises(BadInput, match=sentence):
        copied((source, ""))


def test_nothing_two_of_one_path_and_a_file_as_a_folder_are_refused(source, copied, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match="empty: there is no file"):
        copied((tmp_path / "empty", ""))
    with pytest.raises(BadInput, match="none: it is not there"):
        copied((tmp_path / "none", ""))
    with pytest.raises(BadInput, match="one and .*run.sh would both be x"):
        copied((source / "one", "x"), (source / "run.sh", "x"))


def entry(path, size=0, **more):
    return dict({"path": path, "size": size, "sha256": "0" * 64, "executable": False}, **more)


def read(*files, **more):
    data = json.dumps(dict({"schema": 2, "files": list(files)}, **more)).encode()
    return read_manifest(data, hashlib.sha256(data).hexdigest())


HOSTILE = ["../a", "a/../../b", "/etc/passwd", "a//b", "a/", "", ".", "a/./b", "a\\..\\b", "a\0b"]
HOSTILE += ["\ud800", "a" * 256, "b/" * 600 + "c", None, 7, "a\u202eb"]


@pytest.mark.parametrize("path", HOSTILE)
def test_a_path_that_leaves_the_folder_or_fits_no_disk_is_refused(path):
    with pytest.raises(BadInput, match="cannot be handed out"):
        read(entry(path))


@pytest.mark.parametrize(
    ("files", "more", "sentence"),
    [
        ([entry("b"), entry("a")], {}, "not sorted, each once"),
        ([entry("a"), entry("a")], {}, "not sorted, each once"),
        ([entry("a"), entry("a/b")], {}, "a is a file and a folder"),
        ([entry("a", -1)], {}, "a has no size"),
        ([entry("a", True)], {}, "a has no size"),
        ([entry("a", executable=7)], {}, "a has no size"),
        ([entry("a", other=7)], {}, "cannot be read"),
        ([], {}, "from 1 to 100,000 files"),
        ([entry("a")], {"schema": 1}, "has schema 1, and this semisync reads 2"),
        ([7], {}, "cannot be read"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(files, more, sentence):
    with pytest.raises(BadInput, match=sentence):
        read(*files, **more)


def test_a_manifest_of_another_digest_is_refused(source, copied):
    manifest = copied((source, ""))
    with pytest.raises(BadInput, match="another SHA-256"):
        read_manifest(manifest.to_bytes() + b" ", manifest.digest)
