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

import torch

from benchmarks.gpu_parts.timing import synchronize
from benchmarks.training import GRAPH, opened, write_data
from migrate.training import open_columns, reading_of

BATCH = 4096


def write(folder, table_rows=20_000, rows=200_000):
    """The checkpoint and its rows."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-W", "ignore", "-c", GRAPH, str(folder / "model.ckpt")]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([*command, str(table_rows)], check=True, env=environment)
    write_data(folder, rows, table_rows)


def measure(device, folder, short):
    """Yields the errors against the CPU, then the pace, and the share of the time that the GPU is
    in a step rather than between two, with rows from files and with rows that are in memory."""
    if not folder or not os.path.exists(os.path.join(folder, "model.ckpt.index")):
        raise LookupError("no --folder that `write` has filled")
    prefix, steps = os.path.join(folder, "model.ckpt"), 3 if short else 20
    paths = [os.path.join(folder, f"{part}.parquet") for part in range(1 if short else 4)]
    wanted = reading_of(opened(prefix).inputs, {}, {}, "click", None)
    batches = list(open_columns(paths, wanted, BATCH))
    sides = {}
    for where in (torch.device("cpu"), device):
        task = opened(prefix).task
        task.module.to(where).train()
        losses = [_step(task, batch, where) for batch in batches[:steps]]
        weights = {name: one.detach().cpu() for name, one in task.module.named_parameters()}
        sides[where.type, len(sides)] = losses, weights
    (losses, weights), (there, moved) = sides.values()
    yield {
        "what": f"after {steps} steps",
        "error of losses": max(abs(a - b) / abs(a) for a, b in zip(losses, there)),
        "error of weights": max(
            float((moved[name] - one).abs().max() / one.abs().max())
            for name, one in weights.items()
        ),
    }
    sources = {
        "rows from files": lambda: open_columns(paths, wanted, BATCH),
        "rows in memory": lambda: iter(batches),
    }
    for name, source in sources.items():
        _step(task, batches[0], device)
        synchronize(device)
        began, rows, spans = time.perf_counter(), 0, []
        for batch in source():
            spans.append(_spanned(functools.partial(_step, task, batch, device, False), device))
            rows += len(batch.labels)
        synchronize(device)
        wall = time.perf_counter() - began
        inside = sum(start.elapsed_time(end) for start, end in spans if start) / 1000
        yield {"what": name, "rows/s": rows / wall, "in steps": inside / wall if inside else None}


def _step(task, batch, device, read=True):
    """One step; the loss where it is read, for which the device must be done."""
    inputs = {name: _moved(value, device) for name, value in batch.inputs.items()}
    task.optimizer.zero_grad()
    loss, _ = task.module(inputs)
    loss.backward()
    task.optimizer.step()
    return float(loss.detach()) if read else None


def _moved(value, device):
    return value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value


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
