"""What reading and checkpoints cost `semisync train`.

    python -m benchmarks.training [--rows N] [--batch N] [--repeats N] [--table-rows N]

1. Reading: rows per second of the training loop over Parquet files, against the same batches made
   before and kept in memory. The two take turns; ratios are within a turn.
2. Checkpoints: how long a save stops the training, against how long its writing takes beside it;
   and the throughput while all the time one is written, against none.

The model has eight tables and three dense layers under Adagrad; a TensorFlow process writes its
checkpoint first. The loop has one thread, readers and writers the rest. CPU seconds are those of
the whole process.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import migrate
from benchmarks.tables import head, row, spread
from migrate.training import state
from migrate.training.checkpoints import Checkpoints
from migrate.training.converted_task import open_converted
from migrate.training.metrics import Metrics
from migrate.training.reading import open_columns, reading_of

COLUMNS = [f"c{k}" for k in range(8)]
THREE = "{:.3f}"  # digits
GRAPH = """
import sys
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
found = []
for k in range(8):
    ids = tf.placeholder(tf.int64, [None], name=f"c{k}")
    found.append(tf.nn.embedding_lookup(tf.get_variable(f"t{k}", [int(sys.argv[2]), 16]), ids))
net, click = tf.concat(found, 1), tf.placeholder(tf.float32, [None], name="click")
for k, (i, o) in enumerate([(128, 256), (256, 128), (128, 1)]):
    net = tf.matmul(net, tf.get_variable(f"w{k}", [i, o]))
    net = tf.nn.relu(net) if o > 1 else net
loss = tf.losses.sigmoid_cross_entropy(click, net[:, 0])
step = tf.train.get_or_create_global_step()
tf.train.AdagradOptimizer(0.05).minimize(loss, step)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    tf.train.Saver().save(session, sys.argv[1])
"""


def write_data(folder, rows, table_rows):
    """Parquet files of 8 id columns and a label."""
    draw = np.random.default_rng(0)
    for part in range(4):
        table = {name: draw.integers(0, table_rows, rows // 4) for name in COLUMNS}
        table["click"] = draw.integers(0, 2, rows // 4)
        pq.write_table(pa.table(table), folder / f"{part}.parquet", row_group_size=50_000)


def opened(prefix):
    return open_converted(migrate.open_checkpoint(prefix))


def take(task, batches, metrics, after=None):
    """(wall seconds, CPU seconds, rows) of a step for each batch."""
    wall, cpu, rows = time.perf_counter(), time.process_time(), 0
    for number, batch in enumerate(batches):
        task.optimizer.zero_grad()
        loss, scores = task.module(batch.inputs)
        metrics.add(batch.labels, scores)
        loss.backward()
        task.optimizer.step()
        rows += len(batch.labels)
        if after is not None:
            after(number + 1)
    return time.perf_counter() - wall, time.process_time() - cpu, rows


def reading(converted, from_files, kept, repeats):
    """Yields the throughput from files and from memory, of the batches `kept`."""
    task, metrics = converted.task, Metrics()
    take(task, kept[:5], metrics)
    walls, cpus, speeds = [], [], []
    for _ in range(repeats):
        memory = take(task, kept, metrics)
        files = take(task, from_files(), metrics)
        walls.append(memory[0] / files[0])
        cpus.append(files[1] / memory[1])
        speeds.append(files[2] / files[0])
    yield "rows/s from files", f"{statistics.median(speeds):,.0f}"
    yield "throughput with reading / from memory", spread(walls, THREE)
    yield "CPU with reading / from memory", spread(cpus, THREE)


def checkpoints(converted, kept, folder, repeats):
    """Yields how long saves stop the training and how long they are written."""
    task, metrics = converted.task, Metrics()
    saved = Checkpoints(str(folder), keep=1)
    stops, writes, numbers = [], [], iter(range(1, 10**6))

    def save(*_):
        begun = time.perf_counter()
        state.save(saved, next(numbers), task, metrics, {})
        ended = time.perf_counter()
        saved._writing.add_done_callback(lambda _: writes.append(time.perf_counter() - ended))
        stops.append(ended - begun)

    save()
    saved.wait()
    stops.clear(), writes.clear()
    slowed = []
    for _ in range(repeats):
        quiet = take(task, kept, metrics)
        busy = take(task, kept, metrics, lambda n: save() if n == 1 else None)
        saved.wait()
        slowed.append(quiet[0] / busy[0])
    size = sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file())
    yield "checkpoint, MB", f"{size / 1e6:,.0f}"
    yield "written in, s", spread(writes, THREE)
    yield "the training stops for, s", spread(stops, THREE)
    yield "stop / writing", spread((stop / write for stop, write in zip(stops, writes)), THREE)
    yield f"throughput with one checkpoint per {len(kept)} steps / without", spread(slowed, THREE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--table-rows", type=int, default=200_000)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        prefix = str(folder / "model.ckpt")
        command = [sys.executable, "-W", "ignore", "-c", GRAPH, prefix, str(args.table_rows)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
        write_data(folder, args.rows, args.table_rows)
        converted = opened(prefix)
        converted.task.module.train()
        paths = [str(folder / f"{part}.parquet") for part in range(4)]
        wanted = reading_of(converted.inputs, {}, {}, "click", None)

        def from_files():
            return open_columns(paths, wanted, args.batch)

        kept = list(from_files())
        print(head("what | median [least, most]"))
        for name, figure in (
            *reading(converted, from_files, kept, args.repeats),
            *checkpoints(converted, kept, folder / "checkpoints", args.repeats),
        ):
            print(row(name, figure), flush=True)


if __name__ == "__main__":
    main()
