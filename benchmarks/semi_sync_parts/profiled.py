"""A process of the profile's cluster: the PS, or the worker that traces its runs.

The spec (see `LocalCluster`) holds `case` and `mode`, names, and `out`, the file for the profile:

    parts     list of (process, part, ops per batch, microseconds per batch)
    messages  per batch, from the worker to the PS and back
    chief     list of (run, times per global step, milliseconds of its thread's CPU per run)
"""

import collections
import json
import threading
import time

from semisync.cluster.process import join_cluster
from semisync.common.compat import tf
from semisync.demo.tensorflow.modes import wrap
from semisync.demo.tensorflow.session import plain_session

from .cases import CASES, STALENESS_BOUND
from .model import loss

WARM, RUNS = 20, 50
# The file of semisync that builds an op says what it is for.
PARTS = {
    "transport/staging.py": "staging",
    "transport/payload.py": "payload",
    "transport/mailbox.py": "mailbox",
    "transport/job_state.py": "clock and pace",
    "worker/withholding.py": "withholding",
    "worker/state.py": "ticket of the worker",
    "worker/operations.py": "ticket of the worker",
}


def main():
    spec, server, place = join_cluster(tf.logging.WARN)
    with open(spec["out"], "w") as file:
        json.dump(_profile(server, place, CASES[spec["case"]], spec["mode"]), file)


def _profile(server, place, case, mode):
    chief = _ChiefRuns()
    with tf.Graph().as_default() as graph, tf.device(place):
        step = tf.train.get_or_create_global_step()
        optimizer, make_hooks = wrap(
            mode, tf.train.AdagradOptimizer(0.05), case.batches_per_step, 1, STALENESS_BOUND, True
        )
        train_op = optimizer.minimize(loss(case.model, seed=0), global_step=step)
        with plain_session(server, 0, make_hooks()) as session:
            for _ in range(WARM):
                session.run(train_op)
            chief.begin()
            for _ in range(10 * RUNS):
                session.run(train_op)
            runs = chief.end(10 * RUNS / case.batches_per_step)
            traces = [_traced(session, train_op) for _ in range(RUNS)]
    parts = _parts(graph, [trace.step_stats for trace in traces])
    return {"parts": parts, "messages": _messages(traces[0].partition_graphs), "chief": runs}


def _traced(session, train_op):
    trace = tf.RunMetadata()
    level = tf.RunOptions.FULL_TRACE
    options = tf.RunOptions(trace_level=level, output_partition_graphs=True)
    session.run(train_op, options=options, run_metadata=trace)
    return trace


def _parts(graph, traces):
    part_of = {op.name: _part(op) for op in graph.get_operations()}
    ops, micros = collections.Counter(), collections.Counter()
    for stats in traces:
        for device in filter(_ran_on, stats.dev_stats):
            for op in device.node_stats:
                name = op.node_name.partition(":")[0]
                key = _task(device.device), part_of.get(name, "transfers")
                ops[key] += 1
                micros[key] += op.op_end_rel_micros - op.op_start_rel_micros
    return [(*key, ops[key] / len(traces), micros[key] / len(traces)) for key in sorted(ops)]


def _ran_on(device):
    """False for the trace of the transfers between two devices."""
    return _task(device.device)


def _part(op):
    """The part of a batch that an op does, by the file of semisync that built it."""
    for frame in reversed(op.traceback):
        path = str(frame[0])
        for file, part in PARTS.items():
            if path.endswith("/semisync/" + file):
                return part
    return "the job's own"


def _messages(graphs):
    sent = collections.Counter()
    for graph in graphs:
        for node in graph.node:
            if node.op in ("_Send", "_HostSend"):
                devices = (node.attr["send_device"].s, node.attr["recv_device"].s)
                sent[tuple(_task(device.decode()) for device in devices)] += 1
    return sent["worker", "ps"], sent["ps", "worker"]


def _task(device):
    return device.partition("/job:")[2].partition("/")[0]


def _run(fetches):
    """What the chief runs: it applies a global batch, takes messages, or does something rarer."""
    if isinstance(fetches, list):
        return "apply"
    return "take" if getattr(fetches, "dtype", None) == tf.string else "others"


class _ChiefRuns:
    """What the chief's thread spends in its runs, counted while they are made."""

    def __init__(self):
        self._counts, self._seconds, self._on = collections.Counter(), collections.Counter(), False
        run = tf.Session.run

        def counted(session, fetches, *args, **kwargs):
            before = time.thread_time()
            try:
                return run(session, fetches, *args, **kwargs)
            finally:
                if self._on and threading.current_thread().name == "semisync-chief":
                    name = _run(fetches)
                    self._counts[name] += 1
                    self._seconds[name] += time.thread_time() - before

        tf.Session.run = counted

    def begin(self):
        self._on = True

    def end(self, steps):
        self._on = False
        return [
            (name, count / steps, 1000 * self._seconds[name] / count)
            for name, count in sorted(self._counts.items())
        ]


if __name__ == "__main__":
    main()
