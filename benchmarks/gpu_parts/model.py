"""A converted model on a GPU: the CPU's losses and weights, rows per second, and what input costs.

`write` needs TensorFlow, and what it writes needs none: a checkpoint of eight tables and three
dense layers with their Adagrad accumulators, and rows in Parquet.
"""

import functools
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

import migrate
from benchmarks.gpu_parts.timing import synchronize
from migrate.training import open_columns, reading_of
from migrate.training.converted_task import open_converted

BATCH = 4096
COLUMNS = [f"c{k}" for k in range(8)]
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


def write(folder, table_rows=20_000, rows=200_000):
    """The checkpoint and its rows."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-W", "ignore", "-c", GRAPH, str(folder / "model.ckpt")]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([*command, str(table_rows)], check=True, env=environment)
    write_data(folder, rows, table_rows)


def write_data(folder, rows, table_rows):
    """Parquet files of 8 id columns and a label."""
    draw = np.random.default_rng(0)
    for part in range(4):
        table = {name: draw.integers(0, table_rows, rows // 4) for name in COLUMNS}
        table["click"] = draw.integers(0, 2, rows // 4)
        pq.write_table(pa.table(table), folder / f"{part}.parquet", row_group_size=50_000)


def opened(prefix):
    return open_converted(migrate.open_checkpoint(prefix))


def read(folder, short):
    """The checkpoint of `write`, and its rows in batches."""
    if not folder or not os.path.exists(os.path.join(folder, "model.ckpt.index")):
        raise LookupError("no --folder that `write` has filled")
    prefix = os.path.join(folder, "model.ckpt")
    return prefix, list(_open(prefix, folder, short))


def _open(prefix, folder, short):
    paths = [os.path.join(folder, f"{part}.parquet") for part in range(1 if short else 4)]
    return open_columns(paths, reading_of(opened(prefix).inputs, {}, {}, "click", None), BATCH)


def measure(device, folder, short):
    """Yields the errors against the CPU, then the pace, and the share of the time that the GPU is
    in a step rather than between two, with rows from files and with rows that are in memory."""
    prefix, batches = read(folder, short)
    few = batches[: 3 if short else 20]
    expected = trained(opened(prefix).task, few)
    task = opened(prefix).task
    task.module.to(device)
    yield {"what": f"after {len(few)} steps", **compared(trained(task, few), expected)}
    sources = {
        "rows from files": lambda: _open(prefix, folder, short),
        "rows in memory": lambda: iter(batches),
    }
    for name, source in sources.items():
        _step(task, batches[0])
        synchronize(device)
        began, rows, spans = time.perf_counter(), 0, []
        for batch in source():
            spans.append(_spanned(functools.partial(_step, task, batch), device))
            rows += len(batch.labels)
        synchronize(device)
        wall = time.perf_counter() - began
        inside = sum(start.elapsed_time(end) for start, end in spans if start) / 1000
        yield {"what": name, "rows/s": rows / wall, "in steps": inside / wall if inside else None}


def trained(task, batches):
    """The losses of the steps, and the weights after them."""
    task.module.train()
    losses = [float(_step(task, batch)) for batch in batches]
    return losses, {name: _whole(one) for name, one in task.module.state_dict().items()}


def _whole(tensor):
    """A weight as one tensor; a sharded one has a single part here."""
    if hasattr(tensor, "local_shards"):
        (shard,) = tensor.local_shards()
        tensor = shard.tensor
    return tensor.detach().cpu().clone()


def compared(found, expected):
    """The largest errors of losses, and of weights of the largest value."""
    errors = [abs(a - b) / abs(b) for a, b in zip(found[0], expected[0])]
    weights = [
        float((found[1][name] - one).abs().max() / one.abs().max())
        for name, one in expected[1].items()
        if one.is_floating_point()
    ]
    return {"error of losses": max(errors), "error of weights": max(weights)}


def _step(task, batch):
    task.optimizer.zero_grad()
    loss, _ = task.module(batch.inputs)
    loss.backward()
    task.optimizer.step()
    return loss.detach()


def _spanned(work, device):
    """Events before and after work, None on a CPU."""
    if device.type != "cuda":
        work()
        return None, None
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    return start, end
