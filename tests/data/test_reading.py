"""Reading ahead: what is read when, and how it ends."""

import gc
import os
import signal
import subprocess
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrate.data import Column, Shuffle, open_data
from migrate.data.loading import Loader
from semisync.common.errors import BadInput
from tests.support.require import ROOT, environment

SCHEMA = [Column("row", "key")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for number in range(4):
        rows = range(1000 * number, 1000 * number + 1000)
        pq.write_table(pa.table({"row": rows}), folder / f"{number}.parquet", row_group_size=100)
    return folder


def opened(folder, **more):
    return open_data(folder, SCHEMA, 50, last="drop", readers=2, prefetch=3, **more)


@pytest.fixture
def reads(monkeypatch):
    """The blocks that were read, in turn."""
    found = []
    load = Loader.load
    monkeypatch.setattr(
        Loader, "load", lambda self, number: found.append(number) or load(self, number)
    )
    return found


def test_no_thread_is_left_however_an_iteration_ends(folder):
    before = threading.active_count()
    data = opened(folder)
    for _ in data:
        break
    next(iter(data))
    data.close()
    assert threading.active_count() == before
    list(data)
    assert threading.active_count() == before
    with pytest.raises(ZeroDivisionError):
        for _ in data:
            1 / 0  # noqa: B018
    gc.collect()  # the traceback had the loop's iterator
    assert threading.active_count() == before
    running = iter(opened(folder))
    next(running)
    del running
    assert threading.active_count() == before


def test_an_error_in_a_reader_comes_after_the_batches_before_it(folder, monkeypatch):
    load = Loader.load

    def failing(self, number):
        if number == 7:
            raise BadInput("block 7 is bad")
        return load(self, number)

    monkeypatch.setattr(Loader, "load", failing)
    before, seen = threading.active_count(), []
    with pytest.raises(BadInput, match="block 7 is bad"):
        for batch in opened(folder):
            seen.append(batch)
    assert len(seen) == 14 and threading.active_count() == before


def test_an_error_of_convert_is_raised_where_the_batch_would_come(folder):
    def convert(rows):
        if rows.position.taken[-1].batches == 3:
            raise BadInput("the third one")
        return rows.position.taken[-1].batches

    running = iter(opened(folder, convert=convert))
    assert [next(running), next(running)] == [1, 2]
    with pytest.raises(BadInput, match="the third one"):
        next(running)


def test_what_is_read_ahead_is_bounded(folder, reads):
    for number, _ in enumerate(opened(folder)):
        made = number + 1 + 3 + 1  # delivered, waiting, and one on its way
        assert len(reads) <= -(-made // 2) + 1 + 2  # two batches a block; the next, two readers


@pytest.mark.parametrize("shuffle", [None, Shuffle(1, 250)])
def test_restoring_reads_the_window_that_is_needed_and_none_before(folder, reads, shuffle):
    whole = list(opened(folder, shuffle=shuffle))
    order = list(reads)
    assert sorted(order) == list(range(40))
    reads.clear()
    data = opened(folder, shuffle=shuffle)
    data.load_state_dict(data.state_dict(whole[59].position))
    batch = next(iter(data))
    assert batch.keys["row"].equals(whole[60].keys["row"])
    data.close()
    assert set(reads) <= set(order[27:])


def test_a_rank_reads_its_share_alone_where_rows_are_shuffled(folder, reads):
    list(opened(folder, shuffle=Shuffle(1, 250), rank=1, ranks=4))
    assert len(set(reads)) == len(reads) <= 10 + 2 * 2  # and the rest of the windows at its ends


END = """
import sys, threading
from migrate.data import Column, open_data
data = open_data(sys.argv[1], [Column("row", "key")], 50, last="drop", convert=lambda rows: rows)
running = iter(data)
next(running)
print("reading", flush=True)
if sys.argv[2] == "wait":
    threading.Event().wait()
if sys.argv[2] == "raise":
    raise KeyboardInterrupt
"""


@pytest.mark.parametrize("how, code", [("return", 0), ("raise", -signal.SIGINT), ("wait", None)])
def test_a_process_ends_at_once_and_leaves_no_reader(folder, tmp_path, interpreters, how, code):
    script = tmp_path / "end.py"
    script.write_text(END)
    command = [str(interpreters / "python"), str(script), str(folder), how]
    env = environment(PYTHONPATH=str(ROOT))
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"reading\n"
        if how == "wait":
            os.kill(child.pid, signal.SIGKILL)
        child.communicate(timeout=60)
    if code is not None:
        assert child.returncode in (code, 128 - code if code < 0 else code, 1 if code else 0)


RANKS = """
import sys
import torch.distributed as dist
from migrate.data import Column, open_data
from semisync.common.errors import BadInput
rank, meeting = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method="file://" + meeting, rank=rank, world_size=2)
data = open_data(sys.argv[3], [Column("row", "key")], 50, last="drop")
print(data.rank, data.ranks, data.batches)
try:
    open_data(sys.argv[3] + f"/{rank}.parquet", [Column("row", "key")], 50, last="drop")
except BadInput as error:
    print("refused" if "sees other files than" in str(error) else error)
try:
    open_data(sys.argv[3] + "/*" * (1 + rank), [Column("row", "key")], 50, last="drop")
except BadInput as error:
    print(str(error).rpartition("/")[2])
dist.barrier()
dist.destroy_process_group()
"""


def test_ranks_are_those_of_torch_distributed_and_must_see_the_same_files(
    folder, tmp_path, interpreters
):
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    command = [str(interpreters / "python"), str(script)]
    children = [
        subprocess.Popen(
            [*command, str(rank), str(tmp_path / "meeting"), str(folder)],
            env=environment(PYTHONPATH=str(ROOT)),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    printed = [child.communicate(timeout=120)[0].splitlines() for child in children]
    assert [lines[:2] for lines in printed] == [["0 2 40", "refused"], ["1 2 40", "refused"]]
    assert printed[0][2] == "rank 1 cannot open the data set; its own message says why"
    assert printed[1][2] == "*"
