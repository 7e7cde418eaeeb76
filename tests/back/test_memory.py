"""A table passes through in bounded memory, whatever its size and however it was saved."""

import subprocess
import sys

import pytest
import torch
from torch.distributed import checkpoint as dcp

import migrate
from tests.back.same import assert_same
from tests.back.test_round_trip import convert
from tests.support.require import ROOT

# After a first, small way back, all is imported. The peak is that of /proc: getrusage's starts
# from the parent's at the fork.
_MEASURE = """
import re, sys
import migrate

def peak():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read())[1]) >> 10

small, small_original, original, out, saved, prefix = sys.argv[1:]
migrate.write_checkpoint(small, prefix + "-small", small_original)
before = peak()
migrate.write_checkpoint(out, prefix + "-out", original)
migrate.write_checkpoint(saved, prefix + "-saved", original, out)
print(peak() - before)
"""


@pytest.fixture(scope="module")
def folder(tf2_checkpoints, tmp_path_factory):
    """Folder of `out`, the conversion of a table of 304 MB in four partitions, dealt by mod, of
    `dcp`, the same as one chunk, and of `small`, another conversion."""
    folder = tmp_path_factory.mktemp("large")
    with migrate.open_checkpoint(tf2_checkpoints / "large") as checkpoint:
        plan = migrate.plan(checkpoint, tables="large", partition_strategy="mod")
        (table,) = migrate.convert(plan, folder / "out", verify=False).tables
    rows = torch.arange(table.rows, dtype=torch.float32)[:, None].expand(-1, table.dim)
    dcp.save({table.fqn: rows.contiguous()}, checkpoint_id=str(folder / "dcp"), no_dist=True)
    convert(tf2_checkpoints / "sgd", folder / "small")
    return folder


@pytest.mark.long
def test_memory_does_not_follow_the_size_of_a_table(tf2_checkpoints, folder, tmp_path):
    original, small = (str(tf2_checkpoints / name) for name in ("large", "sgd"))
    sources = [str(folder / name) for name in ("out", "dcp")]
    arguments = [str(folder / "small"), small, original, *sources, str(tmp_path / "back")]
    command = [sys.executable, "-W", "ignore", "-c", _MEASURE, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < 160  # MiB, of a table of 290; a few blocks of 16 at a time
    for name in ("out", "saved"):
        assert_same(original, tmp_path / f"back-{name}")
