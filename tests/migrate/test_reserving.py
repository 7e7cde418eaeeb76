"""The room of a file is taken before it is written, where the file system can do that."""

import errno
import os

import pytest

import migrate
from migrate.conversion.layout import reserve
from migrate.targets.work_directory import Unfinished
from tests.support.conversions import contents, make_plan


def refusing(error):
    """posix_fallocate of a disk that answers with `error`."""

    def refuse(descriptor, offset, size):
        raise OSError(error, os.strerror(error))

    return refuse


def test_room_is_taken_and_what_was_written_stays(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"written")
    with open(path, "ab") as file:
        if not reserve(file, 1 << 20):
            pytest.skip("this file system cannot reserve room")
        assert os.fstat(file.fileno()).st_blocks * 512 >= 1 << 20
    assert path.read_bytes().rstrip(b"\0") == b"written"


@pytest.mark.parametrize("error", [errno.EBADF, errno.EOPNOTSUPP])
def test_a_file_system_that_cannot_reserve_gets_the_same_bytes(
    tf2_checkpoints, tmp_path, monkeypatch, error
):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    migrate.convert(plan, tmp_path / "reserved")
    monkeypatch.setattr(os, "posix_fallocate", refusing(error))
    migrate.convert(plan, tmp_path / "sparse")
    assert contents(tmp_path / "sparse") == contents(tmp_path / "reserved")


def test_a_full_disk_is_named_before_anything_is_written(tf2_checkpoints, tmp_path, monkeypatch):
    plan = make_plan(tf2_checkpoints / "adagrad_ref")
    monkeypatch.setattr(os, "posix_fallocate", refusing(errno.ENOSPC))
    with pytest.raises(Unfinished, match="cannot write .*out: No space left on device"):
        migrate.convert(plan, tmp_path / "out", progress=lambda *_: pytest.fail("it wrote"))
