"""Converts SOURCE onto a small file system of its own, at FOLDER, that fills up after some bytes.

Run as `unshare --map-root-user --mount python -m tests.migrate.fill_disk SOURCE FOLDER BYTES...`.
Each of BYTES is one try. Prints for each a line of JSON: what the conversion raised, and what
--resume then raised, when there was room again. The output must be that of an undisturbed one, and
may not be there before. With a graph beside SOURCE its model is written too.
"""

import contextlib
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys

import migrate
from migrate.model.load import read_meta_graph, write_source
from migrate.model.outputs import find_outputs
from migrate.targets import work_directory
from semisync.common.errors import SemisyncError

_SIZE = 16 << 20


def main(source, folder, *sizes):
    """See the module."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", folder], check=True)
    os.posix_fallocate = _refuse
    root = pathlib.Path(folder)
    out = root / "out"
    model = None
    with migrate.open_checkpoint(source) as checkpoint:
        if os.path.exists(source + ".meta"):
            found = read_meta_graph(checkpoint, None)
            model = write_source(found, checkpoint, find_outputs(found.graph, "logits"))
        dense = os.path.isdir(source) or model is not None
        plan = migrate.plan(checkpoint, tables=None if dense else "^rows$")
    migrate.convert(plan, root / "whole", workers=2, model=model)
    for size in map(int, sizes):
        with _left(root, size):
            first = _said(plan, out, model, False)
        assert first is None or not out.exists()
        then = _said(plan, out, model, True) if first else None
        print(json.dumps([first, then]))
        subprocess.run(["diff", "-r", root / "whole", out], check=True)
        shutil.rmtree(out)


def _said(plan, out, model, resume):
    try:
        migrate.convert(plan, out, workers=2, resume=resume, model=model)
    except SemisyncError as error:
        return f"{type(error).__name__}: {error}"
    return None


@contextlib.contextmanager
def _left(root, size):
    """Another file takes all room but `size` bytes, once the conversion has seen that there is."""
    check_room, other = work_directory.check_room, root / "other"

    def check_and_fill(parent, needed):
        check_room(parent, needed)
        other.write_bytes(bytes(shutil.disk_usage(root).free - size))

    work_directory.check_room = check_and_fill
    yield
    work_directory.check_room = check_room
    other.unlink()


def _refuse(*_):
    """posix_fallocate of a file system that cannot take room before it is written."""
    raise OSError(errno.EOPNOTSUPP, "")


if __name__ == "__main__":
    main(*sys.argv[1:])
