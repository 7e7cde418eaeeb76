"""One process of a job that imports a rewritten MetaGraph: a PS, or a worker.

The spec holds `meta`, the path of the MetaGraph; `train`, `ids` and `targets`, the names of what is
fetched and fed; `batches`, how many each worker trains; and `out`, a directory, where worker k
writes K.json with the ticket of each batch, and the chief audit (JSON lines), before.npz and
after.npz.
"""

import json
import os
import sys

import semisync
from semisync.compat import tf
from semisync.demo.orphan import end_with_parent
from tests.tf1.job import After, Before, batch


def train(spec, server):
    task, chief = spec["task"], spec["task"] == 0
    setter = tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(spec["cluster"]), worker_device="/job:worker/task:%d" % task
    )
    out = os.path.join(spec["out"], "run")
    with tf.Graph().as_default() as graph:
        with tf.device(setter):
            tf.train.import_meta_graph(spec["meta"])
        hook = semisync.restore_hook(chief, audit=out + ".audit" if chief else None)
        hooks = [Before(out), hook, After(out)] if chief else [hook]
        ticket = hook._optimizer.worker.ticket
        if not chief:
            semisync.wait_until_initialised(server.target, semisync.worker_config(task))
        log = []
        with tf.train.MonitoredTrainingSession(
            master=server.target,
            is_chief=chief,
            hooks=hooks,
            config=semisync.worker_config(task),
        ) as session:
            for number in range(spec["batches"]):
                holds = int(session.run(ticket))
                ids, targets = batch(task, number)
                session.run(spec["train"], {spec["ids"]: ids, spec["targets"]: targets})
                log.append({"ticket": holds, "task": task, "number": number})
        devices = {op.device for op in graph.get_operations()}
    assert not any("/job:worker" in d and "task:%d" % task not in d for d in devices), devices
    with open("%s.%d.json" % (out, task), "w") as file:
        json.dump(log, file)


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    server = tf.train.Server(
        tf.train.ClusterSpec(spec["cluster"]), job_name=spec["job"], task_index=spec["task"]
    )
    if spec["job"] == "ps":
        server.join()
    train(spec, server)


if __name__ == "__main__":
    main()
